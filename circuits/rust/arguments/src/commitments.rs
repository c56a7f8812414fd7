//! Commitments to rows and to selections (spec 4.1.5).

use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::Identity;
use rayon::prelude::*;
use subtle::{Choice, ConditionallyNegatable, ConditionallySelectable, ConstantTimeEq};

use crate::encoding::{ELEMENT_BYTES, decode_scalar};
use crate::errors::{Error, Result, malformed};
use crate::generators::{self, Generator, List};
use crate::progress::Progress;
use crate::randomness::ProverRandomness;

/// Rows committed between two reports of progress.
const STEP: usize = 1024;

/// `count` uniform canonical scalars from operating-system entropy, 32 bytes each.
pub fn random_scalars(count: usize) -> Result<Vec<u8>> {
    let mut randomness = ProverRandomness::from_system()?;
    Ok((0..count).flat_map(|_| randomness.scalar().to_bytes()).collect())
}

/// Decodes a blinding given by the caller; malformed unless it is canonical.
pub fn blinding(bytes: &[u8], what: &str) -> Result<Scalar> {
    decode_scalar(bytes, what).map_err(|error| Error::Malformed(error.to_string()))
}

/// Multiples 1..8 of one generator, for signed digits of base 16.
type Multiples = [RistrettoPoint; 8];

fn multiples(generator: RistrettoPoint) -> Multiples {
    let mut current = RistrettoPoint::identity();
    std::array::from_fn(|_| {
        current += generator;
        current
    })
}

/// digit times the generator for -8 <= digit <= 8, in constant time.
fn select(multiples: &Multiples, digit: i8) -> RistrettoPoint {
    let magnitude = digit.unsigned_abs();
    let mut point = RistrettoPoint::identity();
    for (multiple, value) in multiples.iter().zip(1u8..) {
        point.conditional_assign(multiple, magnitude.ct_eq(&value));
    }
    point.conditional_negate(Choice::from((digit as u8) >> 7));
    point
}

/// sum_j row_j G_j: entries in two signed digits 16 high + low, low in [-8, 7].
fn row_sum(row: &[i8], generators: &[Multiples]) -> RistrettoPoint {
    let mut high_sum = RistrettoPoint::identity();
    let mut low_sum = RistrettoPoint::identity();
    for (entry, multiples) in row.iter().zip(generators) {
        let high = ((i16::from(*entry) + 8) >> 4) as i8;
        let low = (i16::from(*entry) - 16 * i16::from(high)) as i8;
        high_sum += select(multiples, high);
        low_sum += select(multiples, low);
    }
    for _ in 0..4 {
        high_sum += high_sum;
    }
    high_sum + low_sum
}

/// C_i = sum_j rows_ij G_j + rho_i H for every row of `width` entries, 32 bytes each.
///
/// Any entries are committed to, whatever their norm. Constant time in entries and blindings.
pub fn commit_rows(
    rows: &[i8],
    width: usize,
    blindings: &[u8],
    progress: &dyn Progress,
) -> Result<Vec<u8>> {
    let count = blindings.len() / ELEMENT_BYTES;
    if width == 0 || rows.len() != count * width || blindings.len() != count * ELEMENT_BYTES {
        return Err(malformed(format!(
            "{} entries in rows of {width} with {} bytes of blindings",
            rows.len(),
            blindings.len()
        )));
    }
    let generators: Vec<Multiples> =
        generators::first(List::G, width).into_par_iter().map(multiples).collect();
    let mut commitments = Vec::with_capacity(blindings.len());
    let steps = rows.chunks(STEP * width).zip(blindings.chunks(STEP * ELEMENT_BYTES));
    for (step, (rows, blindings)) in steps.enumerate() {
        progress.report((step * STEP) as f64 / count as f64)?;
        let points = rows
            .par_chunks(width)
            .zip(blindings.par_chunks(ELEMENT_BYTES))
            .enumerate()
            .map(|(row, (entries, bytes))| {
                let rho = blinding(bytes, &format!("blinding {}", step * STEP + row))?;
                let point = row_sum(entries, &generators) + &rho * &*generators::H;
                Ok(point.compress().to_bytes())
            })
            .collect::<Result<Vec<[u8; 32]>>>()?;
        commitments.extend(points.concat());
    }
    progress.report(1.0)?;
    Ok(commitments)
}

/// sum of A_i over distinct positions.
pub fn position_sum(positions: &[u64]) -> RistrettoPoint {
    let names: Vec<Generator> = positions.iter().map(|i| Generator::new(List::A, *i)).collect();
    generators::points(&names).into_iter().sum()
}

/// B_sel = sum_(i in T) A_i + rho_sel H. Positions must be distinct and below 2^32.
pub fn commit_selection(positions: &[u64], blinding: &Scalar) -> Result<[u8; 32]> {
    let mut sorted = positions.to_vec();
    sorted.sort_unstable();
    if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(malformed("selected: a position occurs twice"));
    }
    if sorted.last().is_some_and(|last| *last >= crate::MAX_ROWS) {
        return Err(malformed("selected: position not below 2^32"));
    }
    Ok((position_sum(&sorted) + blinding * &*generators::H).compress().to_bytes())
}

/// sum of the points whose bit is set, in time that depends on their number only.
pub fn bit_sum(bits: &[bool], points: &[RistrettoPoint]) -> RistrettoPoint {
    let identity = RistrettoPoint::identity();
    bits.iter()
        .zip(points)
        .map(|(bit, point)| {
            RistrettoPoint::conditional_select(&identity, point, Choice::from(u8::from(*bit)))
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::multiscalar::secret_sum;
    use crate::progress::Silent;
    use crate::scalars::from_integer;

    #[test]
    fn every_entry_is_committed_as_itself() {
        let rows: Vec<i8> = (-128..=127).collect();
        let blindings = random_scalars(2).unwrap();
        let commitments = commit_rows(&rows, 128, &blindings, &Silent).unwrap();
        let generators = generators::first(List::G, 128);
        for (i, row) in rows.chunks(128).enumerate() {
            let scalars: Vec<Scalar> = row.iter().map(|x| from_integer(i128::from(*x))).collect();
            let rho = blinding(&blindings[32 * i..32 * i + 32], "rho").unwrap();
            let expected = secret_sum(&scalars, &generators) + rho * generators::point(List::H, 0);
            assert_eq!(commitments[32 * i..32 * i + 32], expected.compress().to_bytes());
        }
    }

    #[test]
    fn a_non_canonical_blinding_is_malformed() {
        let result = commit_rows(&[1, 2], 2, &[0xff; 32], &Silent);
        assert!(matches!(result, Err(Error::Malformed(_))));
    }

    #[test]
    fn a_repeated_position_is_malformed() {
        assert!(commit_selection(&[1, 1], &Scalar::ONE).is_err());
        assert!(commit_selection(&[1 << 32], &Scalar::ONE).is_err());
    }
}
