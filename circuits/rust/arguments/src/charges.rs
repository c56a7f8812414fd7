//! What a prover knows of a tenant's charge entries: the rows charged and the blindings of B_t.

use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::Identity;
use rayon::prelude::*;
use sha2::{Digest, Sha512};

use crate::commitments::{blinding, sorted_selection};
use crate::encoding::{ELEMENT_BYTES, decode_point};
use crate::errors::{Error, Result, malformed};

/// The charge entries of a tenant and window in log order, from the first one on.
///
/// ```
/// use ragaudit_arguments::charges::Charges;
/// use ragaudit_arguments::commitments::random_scalars;
///
/// let blindings = random_scalars(2)?;
/// let charges = Charges::new(&[vec![2, 0], vec![]], &blindings, 3)?;
/// assert_eq!((charges.len(), charges.rows(0)), (2, &[0u32, 2][..]));
/// assert!(Charges::new(&[vec![3]], &random_scalars(1)?, 3).is_err());
/// # Ok::<(), ragaudit_arguments::Error>(())
/// ```
pub struct Charges<'a> {
    rows: Vec<Vec<u32>>,
    blindings: &'a [u8],
}

impl<'a> Charges<'a> {
    /// The charged positions of each entry, in any order, and rho_t, 32 bytes each.
    ///
    /// Malformed unless positions are distinct and below `count`, and blindings canonical.
    pub fn new(charged: &[Vec<u64>], blindings: &'a [u8], count: usize) -> Result<Self> {
        if blindings.len() != charged.len() * ELEMENT_BYTES {
            return Err(malformed(format!(
                "charge blindings: {} bytes, expected 32 for each of {}",
                blindings.len(),
                charged.len()
            )));
        }
        let rows = charged.iter().map(|positions| {
            let sorted = sorted_selection(positions)?;
            if sorted.last().is_some_and(|last| *last >= count as u64) {
                return Err(malformed(format!("charged: position not below N = {count}")));
            }
            Ok(sorted.into_iter().map(|position| position as u32).collect())
        });
        Ok(Charges { rows: rows.collect::<Result<_>>()?, blindings })
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows that entry `t` charges, rising.
    pub fn rows(&self, t: usize) -> &[u32] {
        &self.rows[t]
    }

    /// rho_t.
    pub fn blinding(&self, t: usize) -> Result<Scalar> {
        let bytes = &self.blindings[t * ELEMENT_BYTES..][..ELEMENT_BYTES];
        blinding(bytes, &format!("charge blinding {t}"))
    }

    /// rho_0, rho_1, ...
    pub fn blindings(&self) -> Result<Vec<Scalar>> {
        (0..self.len()).map(|t| self.blinding(t)).collect()
    }

    /// How often each of `count` rows is charged by the first `entries` entries.
    pub fn uses(&self, entries: usize, count: usize) -> Vec<u32> {
        let mut uses = vec![0; count];
        for row in self.rows[..entries].iter().flatten() {
            uses[*row as usize] += 1;
        }
        uses
    }

    /// SHA-512 of all of it, for the prover's randomness.
    pub fn digest(&self) -> [u8; 64] {
        let mut hash = Sha512::new();
        for rows in &self.rows {
            hash.update((rows.len() as u64).to_le_bytes());
            rows.iter().for_each(|row| hash.update(row.to_le_bytes()));
        }
        hash.chain_update(self.blindings).finalize().into()
    }
}

/// S: the sum of the points before each of these places, rising ones.
///
/// ```
/// use ragaudit_arguments::charges::running_sums;
/// use ragaudit_arguments::commitments::commit_selection;
/// use curve25519_dalek::scalar::Scalar;
///
/// let point = |positions: &[u64]| commit_selection(positions, &Scalar::ZERO);
/// let points = [point(&[0])?, point(&[1])?, point(&[2])?].concat();
/// assert_eq!(running_sums(&points, &[0, 2])?, [[0; 32], point(&[0, 1])?]);
/// # Ok::<(), ragaudit_arguments::Error>(())
/// ```
pub fn running_sums(points: &[u8], numbers: &[usize]) -> Result<Vec<[u8; 32]>> {
    let count = points.len() / ELEMENT_BYTES;
    if points.len() != count * ELEMENT_BYTES
        || numbers.windows(2).any(|pair| pair[0] > pair[1])
        || numbers.last().is_some_and(|last| *last >= count)
    {
        return Err(malformed(format!(
            "sums: expected 32-byte points and rising places below {count}"
        )));
    }
    let wanted = numbers.last().copied().unwrap_or(0);
    let decoded: Vec<RistrettoPoint> = points[..wanted * ELEMENT_BYTES]
        .par_chunks(ELEMENT_BYTES)
        .enumerate()
        .map(|(t, bytes)| {
            let point = decode_point(bytes, &format!("B_{t}"));
            let point = point.map_err(|error| Error::Malformed(error.to_string()))?;
            Ok(point.element)
        })
        .collect::<Result<_>>()?;
    let (mut sum, mut done) = (RistrettoPoint::identity(), 0);
    let before = numbers.iter().map(|number| {
        sum += decoded[done..*number].iter().sum::<RistrettoPoint>();
        done = *number;
        sum
    });
    let sums: Vec<RistrettoPoint> = before.collect();
    Ok(sums.par_iter().map(|sum| sum.compress().to_bytes()).collect())
}
