//! Commitments to rows and to selections (spec 4.1.5).

use curve25519_dalek::ristretto::{RistrettoBasepointTable, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::Identity;
use rayon::prelude::*;

use crate::MAX_DIMENSION;
use crate::encoding::{ELEMENT_BYTES, decode_point, decode_scalar};
use crate::entries::Entry;
use crate::errors::{Error, Result, malformed};
use crate::four_squares::COMPLETION;
use crate::generators::{self, Generator, List};
use crate::progress::Progress;
use crate::randomness::ProverRandomness;

/// Rows committed between two reports of progress.
const STEP: usize = 4096;
/// Points that one task of [`bit_sums`] covers.
const BITS_PER_TASK: usize = 840;
/// Points whose encodings share one inversion.
const ENCODED_AT_ONCE: usize = 128;

/// `count` uniform canonical scalars from operating-system entropy, 32 bytes each.
pub fn random_scalars(count: usize) -> Result<Vec<u8>> {
    let mut randomness = ProverRandomness::from_system()?;
    Ok((0..count).flat_map(|_| randomness.scalar().to_bytes()).collect())
}

/// Decodes a blinding given by the caller; malformed unless it is canonical.
pub fn blinding(bytes: &[u8], what: &str) -> Result<Scalar> {
    decode_scalar(bytes, what).map_err(|error| Error::Malformed(error.to_string()))
}

/// Most entries of a row: more than any accepted dimension with its completion.
const MOST_ENTRIES: usize = MAX_DIMENSION as usize + COMPLETION;

/// Most columns that one table of subset sums covers: 160 kB stay in a cache.
const MOST_SPAN: usize = 10;
/// Rows that meet a table while it is in the cache.
const ROWS_PER_TABLE: usize = 512;

/// The generators of rows, prepared for many sums with small coefficients.
///
/// Half of each generator stands for it: [`RistrettoPoint::double_and_compress_batch`] encodes the
/// double of a point without the square root that encoding the point itself takes.
struct RowGenerators {
    /// Columns that one table of subset sums covers.
    span: usize,
    /// For each span of columns, the sum of every subset of its generators.
    subsets: Vec<RistrettoPoint>,
    /// 1, 2, .. times each generator, as often as a high digit may be.
    multiples: Vec<Vec<RistrettoPoint>>,
    /// -2^(LOW_BITS - 1) times the sum of all generators.
    offset: RistrettoPoint,
    /// Multiples of H.
    blinding: RistrettoBasepointTable,
}

impl RowGenerators {
    fn new<E: Entry>(width: usize, rows: usize) -> Self {
        let half = Scalar::from(2u8).invert();
        let generators: Vec<RistrettoPoint> =
            generators::first(List::G, width).into_par_iter().map(|point| half * point).collect();
        let span = span(width, rows, E::LOW_BITS);
        let subsets = generators.par_chunks(span).flat_map_iter(|part| subset_sums(part, span));
        let sum: RistrettoPoint = generators.iter().sum();
        RowGenerators {
            span,
            subsets: subsets.collect(),
            offset: -(Scalar::from(1u16 << (E::LOW_BITS - 1)) * sum),
            multiples: generators.par_iter().map(|point| multiples(point, E::MOST_HIGH)).collect(),
            blinding: RistrettoBasepointTable::create(&(half * generators::point(List::H, 0))),
        }
    }

    /// Half of sum_j row_j G_j for every row.
    ///
    /// All rows meet one table after the other, so that a table stays in the processor's cache.
    fn sums<E: Entry>(&self, rows: &[E]) -> Vec<RistrettoPoint> {
        let width = self.multiples.len();
        let count = rows.len() / width;
        let mut planes = vec![RistrettoPoint::identity(); count * E::LOW_BITS];
        let mut chosen = vec![0; E::LOW_BITS];
        for (part, subsets) in self.subsets.chunks(1 << self.span).enumerate() {
            let start = part * self.span;
            let end = width.min(start + self.span);
            for (row, planes) in rows.chunks(width).zip(planes.chunks_mut(E::LOW_BITS)) {
                choose(&row[start..end], &mut chosen);
                for (plane, subset) in planes.iter_mut().zip(&chosen) {
                    *plane += subsets[*subset];
                }
            }
        }
        let sum = |(row, planes): (&[E], &[RistrettoPoint])| {
            let high = self.high_sum(row);
            self.offset + planes.iter().rev().fold(high, |sum, plane| sum + sum + plane)
        };
        rows.chunks(width).zip(planes.chunks(E::LOW_BITS)).map(sum).collect()
    }

    /// The sum of the generators times the high digits; most of these are zero, since the squares
    /// of a row's entries add up to B².
    fn high_sum<E: Entry>(&self, row: &[E]) -> RistrettoPoint {
        let mut sum = RistrettoPoint::identity();
        for (entry, multiples) in row.iter().zip(&self.multiples) {
            let high = shifted(*entry) >> E::LOW_BITS;
            if high != 0 {
                let multiple = multiples[high.unsigned_abs() as usize - 1];
                sum += if high < 0 { -multiple } else { multiple };
            }
        }
        sum
    }
}

/// entry + 2^(LOW_BITS - 1) = 2^LOW_BITS high + (low + 2^(LOW_BITS - 1)).
fn shifted<E: Entry>(entry: E) -> i32 {
    Into::<i32>::into(entry) + (1 << (E::LOW_BITS - 1))
}

/// For each bit of low + 2^(LOW_BITS - 1) the subset of the columns in which it is set.
fn choose<E: Entry>(entries: &[E], chosen: &mut [usize]) {
    chosen.fill(0);
    for (column, entry) in entries.iter().enumerate() {
        for (bit, chosen) in chosen.iter_mut().enumerate() {
            *chosen |= usize::from(shifted(*entry) >> bit & 1 == 1) << column;
        }
    }
}

/// The span for which tables and rows together take the fewest additions.
fn span(width: usize, rows: usize, low_bits: usize) -> usize {
    let additions = |span: &usize| width.div_ceil(*span) * ((1 << span) + low_bits * rows);
    (1..=MOST_SPAN).min_by_key(additions).unwrap_or(1)
}

/// The sums of all subsets of at most `span` points, 2^span of them; bit j stands for point j.
pub(crate) fn subset_sums(points: &[RistrettoPoint], span: usize) -> Vec<RistrettoPoint> {
    let mut sums = vec![RistrettoPoint::identity()];
    for point in points {
        let with: Vec<RistrettoPoint> = sums.iter().map(|sum| sum + point).collect();
        sums.extend(with);
    }
    sums.resize(1 << span, RistrettoPoint::identity());
    sums
}

fn multiples(generator: &RistrettoPoint, count: usize) -> Vec<RistrettoPoint> {
    std::iter::successors(Some(*generator), |last| Some(last + generator)).take(count).collect()
}

/// C_i = sum_j rows_ij G_j + rho_i H for every row of `width` entries, 32 bytes each.
///
/// Any entries are committed to, whatever their norm. Constant time in the blindings. Which table
/// entries are read, and how many, depends on the rows (docs/threat-model.md).
///
/// ```
/// use ragaudit_arguments::commitments::{commit_rows, random_scalars, reblind_rows};
/// use ragaudit_arguments::progress::Silent;
///
/// let rows = [0i8, 0, 127, 0, 0, 0, 3, 4, 126, 11, 3, 3];
/// let (old, new) = (random_scalars(2)?, random_scalars(2)?);
/// let commitments = commit_rows(&rows, 6, &old, &Silent)?;
/// let again = reblind_rows(&commitments, &old, &new, &Silent)?;
/// assert_eq!(again, commit_rows(&rows, 6, &new, &Silent)?);
/// # Ok::<(), ragaudit_arguments::Error>(())
/// ```
pub fn commit_rows<E: Entry>(
    rows: &[E],
    width: usize,
    blindings: &[u8],
    progress: &dyn Progress,
) -> Result<Vec<u8>> {
    let count = blindings.len() / ELEMENT_BYTES;
    if !(1..=MOST_ENTRIES).contains(&width) {
        return Err(malformed(format!("rows of {width} entries, expected 1 to {MOST_ENTRIES}")));
    }
    if rows.len() != count * width || blindings.len() != count * ELEMENT_BYTES {
        return Err(malformed(format!(
            "{} entries in rows of {width} with {} bytes of blindings",
            rows.len(),
            blindings.len()
        )));
    }
    let generators = RowGenerators::new::<E>(width, count);
    let mut commitments = Vec::with_capacity(blindings.len());
    for (step, blindings) in blindings.chunks(STEP * ELEMENT_BYTES).enumerate() {
        progress.report((step * STEP) as f64 / count as f64)?;
        let first = step * STEP;
        let part = &rows[first * width..][..blindings.len() / ELEMENT_BYTES * width];
        let sums =
            part.par_chunks(ROWS_PER_TABLE * width).flat_map_iter(|rows| generators.sums(rows));
        let halves = blindings
            .par_chunks(ELEMENT_BYTES)
            .zip(sums.collect::<Vec<_>>())
            .enumerate()
            .map(|(row, (bytes, sum))| {
                let rho = blinding(bytes, &format!("blinding {}", first + row))?;
                Ok(sum + &rho * &generators.blinding)
            })
            .collect::<Result<Vec<RistrettoPoint>>>()?;
        commitments.extend(encode_doubles(&halves));
    }
    progress.report(1.0)?;
    Ok(commitments)
}

/// The encodings of 2 P for these P.
fn encode_doubles(halves: &[RistrettoPoint]) -> Vec<u8> {
    let encode = |part: &[RistrettoPoint]| RistrettoPoint::double_and_compress_batch(part);
    let encoded = halves.par_chunks(ENCODED_AT_ONCE).flat_map_iter(encode);
    encoded.flat_map_iter(|point| point.to_bytes()).collect()
}

/// C_i + (new_i - old_i) H for every commitment: the same rows under new blindings.
///
/// A third of the work of committing anew. Constant time in the blindings.
pub fn reblind_rows(
    commitments: &[u8],
    old: &[u8],
    new: &[u8],
    progress: &dyn Progress,
) -> Result<Vec<u8>> {
    if !commitments.len().is_multiple_of(ELEMENT_BYTES)
        || old.len() != commitments.len()
        || new.len() != commitments.len()
    {
        return Err(malformed(format!(
            "{} bytes of commitments with {} and {} bytes of blindings, expected the same lengths",
            commitments.len(),
            old.len(),
            new.len()
        )));
    }
    let count = commitments.len() / ELEMENT_BYTES;
    let mut renewed = Vec::with_capacity(commitments.len());
    let step = STEP * ELEMENT_BYTES;
    let parts = commitments.chunks(step).zip(old.chunks(step)).zip(new.chunks(step));
    for (part, ((commitments, old), new)) in parts.enumerate() {
        progress.report((part * STEP) as f64 / count as f64)?;
        let encoded = commitments
            .par_chunks(ELEMENT_BYTES)
            .zip(old.par_chunks(ELEMENT_BYTES))
            .zip(new.par_chunks(ELEMENT_BYTES))
            .enumerate()
            .map(|(row, ((commitment, old), new))| {
                let row = part * STEP + row;
                let commitment = decode_point(commitment, &format!("C_{row}"))
                    .map_err(|error| Error::Malformed(error.to_string()))?;
                let old = blinding(old, &format!("old blinding {row}"))?;
                let new = blinding(new, &format!("new blinding {row}"))?;
                let point = commitment.element + &(new - old) * &*generators::H;
                Ok(point.compress().to_bytes())
            })
            .collect::<Result<Vec<[u8; 32]>>>()?;
        renewed.extend(encoded.concat());
    }
    progress.report(1.0)?;
    Ok(renewed)
}

/// sum of A_i over distinct positions.
pub fn position_sum(positions: &[u64]) -> RistrettoPoint {
    let names: Vec<Generator> = positions.iter().map(|i| Generator::new(List::A, *i)).collect();
    generators::points(&names).into_iter().sum()
}

/// The selected positions, rising; malformed unless they are distinct and below 2^32.
pub fn sorted_selection(positions: &[u64]) -> Result<Vec<u64>> {
    let mut sorted = positions.to_vec();
    sorted.sort_unstable();
    if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(malformed("selected: a position occurs twice"));
    }
    if sorted.last().is_some_and(|last| *last >= crate::MAX_ROWS) {
        return Err(malformed("selected: position not below 2^32"));
    }
    Ok(sorted)
}

/// B_sel = sum_(i in T) A_i + rho_sel H. Positions must be distinct and below 2^32.
///
/// ```
/// use curve25519_dalek::scalar::Scalar;
/// use ragaudit_arguments::commitments::{commit_selection, position_sum};
///
/// let selection = commit_selection(&[5, 2], &Scalar::ZERO)?;
/// assert_eq!(selection, position_sum(&[2, 5]).compress().to_bytes());
/// assert!(commit_selection(&[5, 5], &Scalar::ZERO).is_err());
/// # Ok::<(), ragaudit_arguments::Error>(())
/// ```
pub fn commit_selection(positions: &[u64], blinding: &Scalar) -> Result<[u8; 32]> {
    let sorted = sorted_selection(positions)?;
    Ok((position_sum(&sorted) + blinding * &*generators::H).compress().to_bytes())
}

/// For every column of bits the sum of the points whose bit is set.
///
/// Time depends on the sizes only; which entries of small tables are read depends on the bits.
///
/// ```
/// use ragaudit_arguments::commitments::bit_sums;
/// use ragaudit_arguments::generators::{List, first};
///
/// let points = first(List::A, 3);
/// let sums = bit_sums(&[vec![true, false, true], vec![false; 3]], &points);
/// assert_eq!(sums[0], points[0] + points[2]);
/// ```
pub fn bit_sums(columns: &[Vec<bool>], points: &[RistrettoPoint]) -> Vec<RistrettoPoint> {
    // Points that one table of subset sums covers: with the fewest additions.
    let additions = |span: &usize| ((1 << span) + columns.len()).div_ceil(*span);
    let span = (1..=MOST_SPAN).min_by_key(additions).unwrap_or(1);
    let starts: Vec<usize> = (0..points.len()).step_by(BITS_PER_TASK).collect();
    let partial = starts.into_par_iter().map(|start| {
        let mut sums = vec![RistrettoPoint::identity(); columns.len()];
        let end = points.len().min(start + BITS_PER_TASK);
        for (offset, points) in points[start..end].chunks(span).enumerate() {
            let subsets = subset_sums(points, span);
            let first = start + offset * span;
            for (sum, bits) in sums.iter_mut().zip(columns) {
                let bits = bits[first..first + points.len()].iter().enumerate();
                *sum += subsets[bits.fold(0, |index, (j, bit)| index | usize::from(*bit) << j)];
            }
        }
        sums
    });
    partial.reduce(
        || vec![RistrettoPoint::identity(); columns.len()],
        |left, right| left.iter().zip(right).map(|(a, b)| a + b).collect(),
    )
}

/// The sum of the points whose bit is set.
pub fn bit_sum(bits: &[bool], points: &[RistrettoPoint]) -> RistrettoPoint {
    bit_sums(&[bits.to_vec()], points).into_iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::multiscalar::secret_sum;
    use crate::progress::Silent;
    use crate::scalars::from_integer;

    fn check_commitments<E: Entry>(rows: &[E], width: usize) {
        let blindings = random_scalars(rows.len() / width).unwrap();
        let commitments = commit_rows(rows, width, &blindings, &Silent).unwrap();
        let generators = generators::first(List::G, width);
        for (i, row) in rows.chunks(width).enumerate() {
            let scalars: Vec<Scalar> =
                row.iter().map(|x| from_integer(i128::from(Into::<i64>::into(*x)))).collect();
            let rho = blinding(&blindings[32 * i..32 * i + 32], "rho").unwrap();
            let expected = secret_sum(&scalars, &generators) + rho * generators::point(List::H, 0);
            assert_eq!(commitments[32 * i..32 * i + 32], expected.compress().to_bytes());
        }
    }

    #[test]
    fn every_entry_is_committed_as_itself() {
        check_commitments(&(-128..=127).collect::<Vec<i8>>(), 128);
        let near = |middle: i32| (middle - 3..middle + 3).map(|x| x.clamp(-32768, 32767) as i16);
        let middles = [0, 512, -512, 1536, -1536, 4095, -4095, 15000, -32768, 32767];
        check_commitments(&middles.into_iter().flat_map(near).collect::<Vec<i16>>(), 6);
        check_commitments(&(-4096..=4095).step_by(8).collect::<Vec<i16>>(), 64);
    }

    #[test]
    fn bit_sums_are_sums_of_the_points_marked() {
        for count in [0, 1, 3, 4, 5, 128, 131, 300] {
            let points = generators::first(List::A, count);
            let columns: Vec<Vec<bool>> =
                (2..5).map(|k| (0..count).map(|i| i * i % k == 0).collect()).collect();
            let expected: Vec<RistrettoPoint> = columns
                .iter()
                .map(|bits| points.iter().zip(bits).filter(|(_, bit)| **bit).map(|(p, _)| p).sum())
                .collect();
            assert_eq!(bit_sums(&columns, &points), expected);
            assert_eq!(bit_sum(&columns[0], &points), expected[0]);
        }
    }

    #[test]
    fn a_null_row_without_blinding_is_the_identity() {
        let commitments = commit_rows(&[0i8; 6], 3, &[0; 64], &Silent).unwrap();
        assert_eq!(commitments, [0; 64]);
    }

    #[test]
    fn every_span_gives_the_same_sums() {
        let generators = generators::first(List::G, 7);
        let sums = subset_sums(&generators[..3], 4);
        assert_eq!(sums.len(), 16);
        assert_eq!(sums[0b101], generators[0] + generators[2]);
        assert_eq!(sums[0b1000], RistrettoPoint::identity());
        // Small and large indexes use tables of different spans.
        assert!(span(388, 10, 5) < span(388, 1_000_000, 5));
        assert!(span(388, 1_000_000, 5) <= MOST_SPAN);
    }

    #[test]
    fn reblinded_rows_are_the_rows_under_their_new_blindings() {
        let rows: Vec<i8> = (0..60).map(|i| (i * 37 % 251 - 125) as i8).collect();
        let [old, new] = [random_scalars(10).unwrap(), random_scalars(10).unwrap()];
        let commitments = commit_rows(&rows, 6, &old, &Silent).unwrap();
        let renewed = reblind_rows(&commitments, &old, &new, &Silent).unwrap();
        assert_eq!(renewed, commit_rows(&rows, 6, &new, &Silent).unwrap());
        assert!(reblind_rows(&commitments, &old, &new[32..], &Silent).is_err());
        assert!(reblind_rows(&commitments[1..], &old[1..], &new[1..], &Silent).is_err());
        assert!(reblind_rows(&[0xff; 32], &old[..32], &new[..32], &Silent).is_err());
    }

    #[test]
    fn rows_of_no_or_of_absurdly_many_entries_are_malformed() {
        for width in [0, MOST_ENTRIES + 1, usize::MAX] {
            assert!(matches!(
                commit_rows::<i8>(&[], width, &[], &Silent),
                Err(Error::Malformed(_))
            ));
        }
    }

    #[test]
    fn a_non_canonical_blinding_is_malformed() {
        let result = commit_rows(&[1i8, 2], 2, &[0xff; 32], &Silent);
        assert!(matches!(result, Err(Error::Malformed(_))));
    }

    #[test]
    fn a_repeated_position_is_malformed() {
        assert!(commit_selection(&[1, 1], &Scalar::ONE).is_err());
        assert!(commit_selection(&[1 << 32], &Scalar::ONE).is_err());
    }
}
