//! Little-endian bytes to integers and back.

use pyo3::PyResult;
use ragaudit_arguments::encoding::decode_scalar;

use curve25519_dalek::scalar::Scalar;

use crate::errors::malformed;

/// Exactly 32 bytes.
pub fn array(bytes: &[u8], what: &str) -> PyResult<[u8; 32]> {
    bytes.try_into().map_err(|_| malformed(format!("{what}: {} bytes, expected 32", bytes.len())))
}

/// A canonical scalar of the caller.
pub fn scalar(bytes: &[u8], what: &str) -> PyResult<Scalar> {
    decode_scalar(bytes, what).map_err(|error| malformed(error.to_string()))
}

/// The bytes as signed 8-bit integers.
pub fn signed_bytes(bytes: &[u8]) -> Vec<i8> {
    bytes.iter().map(|byte| byte.cast_signed()).collect()
}

/// Little-endian signed 16-bit integers; a last odd byte is not an integer.
pub fn shorts(bytes: &[u8]) -> Vec<i16> {
    bytes.as_chunks().0.iter().map(|chunk| i16::from_le_bytes(*chunk)).collect()
}

/// Little-endian signed 64-bit integers; a last incomplete chunk is not an integer.
pub fn longs(bytes: &[u8]) -> Vec<i64> {
    bytes.as_chunks().0.iter().map(|chunk| i64::from_le_bytes(*chunk)).collect()
}
