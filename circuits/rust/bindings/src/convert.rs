//! Little-endian bytes to integers and back.

use std::borrow::Cow;

use bytemuck::AnyBitPattern;
use curve25519_dalek::scalar::Scalar;
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::PyByteArray;
use ragaudit_arguments::encoding::decode_scalar;
use ragaudit_arguments::entries::SmallRows;

use crate::errors::malformed;

/// Exactly 32 bytes.
pub fn array(bytes: &[u8], what: &str) -> PyResult<[u8; 32]> {
    bytes.try_into().map_err(|_| malformed(format!("{what}: {} bytes, expected 32", bytes.len())))
}

/// A canonical scalar of the caller.
pub fn scalar(bytes: &[u8], what: &str) -> PyResult<Scalar> {
    decode_scalar(bytes, what).map_err(|error| malformed(error.to_string()))
}

/// The memory of a NumPy array, as bytes and without copying; the caller does not write to it
/// while the call lasts.
pub type ArrayBytes<'py> = PyReadonlyArray1<'py, u8>;

/// The bytes of an array.
pub fn bytes<'a>(array: &'a ArrayBytes<'_>) -> PyResult<&'a [u8]> {
    array.as_slice().map_err(|error| malformed(error.to_string()))
}

/// The bytes as signed 8-bit integers.
pub fn signed_bytes(bytes: &[u8]) -> &[i8] {
    bytemuck::cast_slice(bytes)
}

/// Little-endian signed 16-bit integers; a last odd byte is not an integer.
pub fn shorts(bytes: &[u8]) -> Cow<'_, [i16]> {
    numbers(bytes, |bytes| {
        bytes.as_chunks().0.iter().map(|chunk| i16::from_le_bytes(*chunk)).collect()
    })
}

/// Little-endian signed 64-bit integers; a last incomplete chunk is not an integer.
pub fn longs(bytes: &[u8]) -> Cow<'_, [i64]> {
    numbers(bytes, |bytes| {
        bytes.as_chunks().0.iter().map(|chunk| i64::from_le_bytes(*chunk)).collect()
    })
}

/// Little-endian numbers of 64 bits; a last incomplete chunk is not a number.
pub fn doubles(bytes: &[u8]) -> Cow<'_, [f64]> {
    numbers(bytes, |bytes| {
        bytes.as_chunks().0.iter().map(|chunk| f64::from_le_bytes(*chunk)).collect()
    })
}

/// Little-endian bytes of signed 64-bit integers, for an array that Python may write to.
pub fn long_bytes<'py>(py: Python<'py>, values: &[i64]) -> PyResult<Bound<'py, PyByteArray>> {
    PyByteArray::new_with(py, size_of_val(values), |bytes| {
        for (bytes, value) in bytes.as_chunks_mut().0.iter_mut().zip(values) {
            *bytes = value.to_le_bytes();
        }
        Ok(())
    })
}

/// Entries of rows as little-endian bytes.
pub fn memory(rows: SmallRows<'_>) -> Cow<'_, [u8]> {
    match rows {
        SmallRows::Wide(entries) if cfg!(target_endian = "big") => {
            Cow::Owned(entries.iter().flat_map(|entry| entry.to_le_bytes()).collect())
        }
        rows => Cow::Borrowed(rows.bytes()),
    }
}

/// The memory itself where it can be read as numbers, otherwise what `decode` makes of it.
fn numbers<T: AnyBitPattern>(bytes: &[u8], decode: impl Fn(&[u8]) -> Vec<T>) -> Cow<'_, [T]> {
    match bytemuck::try_cast_slice(bytes) {
        Ok(numbers) if cfg!(target_endian = "little") => Cow::Borrowed(numbers),
        _ => Cow::Owned(decode(bytes)),
    }
}
