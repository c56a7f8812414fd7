//! Strict decoding: one accepted byte string per value, nothing left over.

use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;

use crate::errors::{Result, rejected};

/// Bytes of an encoded point or scalar.
pub const ELEMENT_BYTES: usize = 32;

/// A group element with the encoding it came from (or got).
///
/// ```
/// use ragaudit_arguments::encoding::{Point, decode_point};
/// use ragaudit_arguments::generators::{List, point};
///
/// let sent = Point::from(point(List::H, 0));
/// assert_eq!(decode_point(&sent.bytes, "H")?.element, sent.element);
/// # Ok::<(), ragaudit_arguments::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// The 32 canonical bytes.
    pub bytes: [u8; 32],
    /// The element.
    pub element: RistrettoPoint,
}

impl From<RistrettoPoint> for Point {
    fn from(element: RistrettoPoint) -> Self {
        Point { bytes: element.compress().to_bytes(), element }
    }
}

/// Decodes a point by RFC 9496; non-canonical encodings are rejected.
///
/// ```
/// use ragaudit_arguments::encoding::decode_point;
///
/// assert!(decode_point(&[0; 32], "C_0").is_ok()); // the identity
/// let error = decode_point(&[255; 32], "C_0").unwrap_err();
/// assert_eq!(error.to_string(), "C_0: not a canonical ristretto255 encoding");
/// ```
pub fn decode_point(bytes: &[u8], what: &str) -> Result<Point> {
    let compressed = CompressedRistretto::from_slice(bytes)
        .map_err(|_| rejected(format!("{what}: {} bytes, expected 32", bytes.len())))?;
    let element = compressed
        .decompress()
        .ok_or_else(|| rejected(format!("{what}: not a canonical ristretto255 encoding")))?;
    Ok(Point { bytes: compressed.to_bytes(), element })
}

/// Decodes a scalar; values >= l are rejected.
///
/// ```
/// use curve25519_dalek::scalar::Scalar;
/// use ragaudit_arguments::encoding::decode_scalar;
///
/// assert_eq!(decode_scalar(Scalar::from(7u8).as_bytes(), "z"), Ok(Scalar::from(7u8)));
/// assert!(decode_scalar(&[255; 32], "z").is_err());
/// ```
pub fn decode_scalar(bytes: &[u8], what: &str) -> Result<Scalar> {
    let array: [u8; 32] = bytes
        .try_into()
        .map_err(|_| rejected(format!("{what}: {} bytes, expected 32", bytes.len())))?;
    Option::from(Scalar::from_canonical_bytes(array))
        .ok_or_else(|| rejected(format!("{what}: scalar not below the group order")))
}

/// Reads the elements of a proof in order.
///
/// ```
/// use curve25519_dalek::scalar::Scalar;
/// use ragaudit_arguments::encoding::{Point, Reader, Writer};
/// use ragaudit_arguments::generators::{List, point};
///
/// let mut writer = Writer::default();
/// writer.points([&Point::from(point(List::H, 0))]);
/// writer.scalars([&Scalar::ONE]);
/// let proof = writer.finish();
///
/// let mut reader = Reader::new(&proof, 2)?;
/// assert_eq!(reader.point()?.element, point(List::H, 0));
/// assert_eq!(reader.scalar()?, Scalar::ONE);
/// reader.finish()?;
/// assert!(Reader::new(&proof, 3).is_err());
/// # Ok::<(), ragaudit_arguments::Error>(())
/// ```
pub struct Reader<'a> {
    elements: std::slice::Chunks<'a, u8>,
    position: usize,
}

impl<'a> Reader<'a> {
    /// A reader of exactly `elements` elements; any other length is rejected.
    pub fn new(proof: &'a [u8], elements: usize) -> Result<Self> {
        let expected = ELEMENT_BYTES * elements;
        if proof.len() != expected {
            return Err(rejected(format!("proof: {} bytes, expected {expected}", proof.len())));
        }
        Ok(Reader { elements: proof.chunks(ELEMENT_BYTES), position: 0 })
    }

    /// The next element as a point.
    pub fn point(&mut self) -> Result<Point> {
        let (what, bytes) = self.next()?;
        decode_point(bytes, &what)
    }

    /// The next `count` points.
    pub fn points(&mut self, count: usize) -> Result<Vec<Point>> {
        (0..count).map(|_| self.point()).collect()
    }

    /// The next element as a scalar.
    pub fn scalar(&mut self) -> Result<Scalar> {
        let (what, bytes) = self.next()?;
        decode_scalar(bytes, &what)
    }

    /// The next `count` scalars.
    pub fn scalars(&mut self, count: usize) -> Result<Vec<Scalar>> {
        (0..count).map(|_| self.scalar()).collect()
    }

    /// Ends the reading; elements left over are rejected.
    pub fn finish(mut self) -> Result<()> {
        match self.elements.next() {
            None => Ok(()),
            Some(_) => Err(rejected("proof: elements left over")),
        }
    }

    fn next(&mut self) -> Result<(String, &'a [u8])> {
        let what = format!("proof element {}", self.position);
        self.position += 1;
        let bytes = self.elements.next().ok_or_else(|| rejected(format!("{what}: missing")))?;
        Ok((what, bytes))
    }
}

/// Writes the elements of a proof in order.
#[derive(Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// Appends points.
    pub fn points<'a>(&mut self, points: impl IntoIterator<Item = &'a Point>) {
        points.into_iter().for_each(|point| self.bytes.extend_from_slice(&point.bytes));
    }

    /// Appends scalars.
    pub fn scalars<'a>(&mut self, scalars: impl IntoIterator<Item = &'a Scalar>) {
        scalars.into_iter().for_each(|scalar| self.bytes.extend_from_slice(scalar.as_bytes()));
    }

    /// The proof.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}
