//! Exact scores of all rows of an index (docs/spec/02-integers.md §2.3): integers only, rows read
//! once and in order. And the integers of the query's vector ([`quantise()`]).

mod quantise;

pub use quantise::quantise;

use std::fmt;

use multiversion::multiversion;
use rayon::prelude::*;

/// Rows scored by one task: 200 kB at d = 384.
const BLOCK: usize = 1 << 9;

/// So few entries are scored sooner than another thread wakes up.
const ALONE: usize = 1 << 20;

/// An input that breaks the contract of [`scores`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed(pub String);

impl fmt::Display for Malformed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Malformed {}

/// The rows of an index, kept to be scored.
pub struct Rows {
    width: usize,
    entries: Entries,
}

enum Entries {
    /// Two's complement bytes; any.
    Narrow(Vec<u8>),
    /// Of rows that are no longer than [`MOST_SQUARED_NORM`] says.
    Wide(Vec<i16>),
}

/// B² where B = 4095, and a little more: the squared norm of a row or query of 16 bits is below
/// 2^24, and so is every score (Cauchy-Schwarz). Sums of 32 bits hold it.
const MOST_SQUARED_NORM: u64 = (1 << 24) - 1;

impl Rows {
    /// Rows of `width` two's complement bytes.
    pub fn narrow(entries: Vec<u8>, width: usize) -> Result<Self, Malformed> {
        whole(entries.len(), width)?;
        Ok(Rows { width, entries: Entries::Narrow(entries) })
    }

    /// Rows of `width` integers of 16 bits; refused unless their squared norms are below 2^24.
    pub fn wide(entries: Vec<i16>, width: usize) -> Result<Self, Malformed> {
        whole(entries.len(), width)?;
        let short = |row: &[i16]| squared_norm(row) <= MOST_SQUARED_NORM;
        match entries.par_chunks(width).position_first(|row| !short(row)) {
            None => Ok(Rows { width, entries: Entries::Wide(entries) }),
            Some(row) => Err(Malformed(format!("row {row}: squared norm of 2^24 or more"))),
        }
    }

    /// The inner products of all rows with the query.
    ///
    /// Refused is a query so large that a sum of 32 bits might not hold a score: for rows of bytes
    /// 128 sum |e_j| >= 2^31, for rows of 16 bits a squared norm of 2^24 or more.
    pub fn scores(&self, query: &[i16]) -> Result<Vec<i64>, Malformed> {
        if query.len() != self.width {
            return Err(Malformed(format!(
                "query: {} entries, expected {}",
                query.len(),
                self.width
            )));
        }
        match &self.entries {
            Entries::Narrow(rows) => scores(rows, query),
            Entries::Wide(rows) => {
                if squared_norm(query) > MOST_SQUARED_NORM {
                    return Err(Malformed("query: too large for exact scores".into()));
                }
                Ok(scored(rows, query, wide_inner_products))
            }
        }
    }
}

fn whole(entries: usize, width: usize) -> Result<(), Malformed> {
    if width == 0 || !entries.is_multiple_of(width) {
        let message = format!("rows: {entries} entries, expected {width} in each row");
        return Err(Malformed(message));
    }
    Ok(())
}

fn squared_norm(vector: &[i16]) -> u64 {
    vector.iter().map(|entry| u64::from(entry.unsigned_abs()).pow(2)).sum()
}

/// The inner products of all rows with the query, one row after the other.
///
/// `rows` holds N rows of as many two's complement bytes as the query has entries. Refused is a
/// query so large that a sum of 32 bits might not hold a score: 128 sum |e_j| >= 2^31.
pub fn scores(rows: &[u8], query: &[i16]) -> Result<Vec<i64>, Malformed> {
    whole(rows.len(), query.len())?;
    let size: u64 = query.iter().map(|entry| u64::from(entry.unsigned_abs())).sum();
    if 128 * size > i32::MAX as u64 {
        return Err(Malformed("query: too large for exact scores".into()));
    }
    Ok(scored(rows, query, inner_products))
}

/// What `kernel` makes of all rows, many at a time.
fn scored<E: Sync>(rows: &[E], query: &[i16], kernel: fn(&[E], &[i16], &mut [i64])) -> Vec<i64> {
    let width = query.len();
    let mut scores = vec![0; rows.len() / width];
    if rows.len() <= ALONE {
        kernel(rows, query, &mut scores);
    } else {
        scores
            .par_chunks_mut(BLOCK)
            .zip(rows.par_chunks(BLOCK * width))
            .for_each(|(scores, rows)| kernel(rows, query, scores));
    }
    scores
}

/// The score of each row; a partial sum is at most 128 sum |e_j|, which the caller bounded.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512vl", "x86_64+avx2"))]
fn inner_products(rows: &[u8], query: &[i16], scores: &mut [i64]) {
    for (row, score) in rows.chunks_exact(query.len()).zip(scores) {
        let mut sum = 0i32;
        for (x, e) in row.iter().zip(query) {
            let product = i32::from(x.cast_signed()).wrapping_mul(i32::from(*e));
            sum = sum.wrapping_add(product);
        }
        *score = sum.into();
    }
}

/// The same for rows of 16 bits; any partial sum is at most |x| |e| < 2^24.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512vl", "x86_64+avx2"))]
fn wide_inner_products(rows: &[i16], query: &[i16], scores: &mut [i64]) {
    for (row, score) in rows.chunks_exact(query.len()).zip(scores) {
        let mut sum = 0i32;
        for (x, e) in row.iter().zip(query) {
            sum = sum.wrapping_add(i32::from(*x).wrapping_mul(i32::from(*e)));
        }
        *score = sum.into();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// The definition, one row.
    fn score(row: &[u8], query: &[i16]) -> i64 {
        row.iter().zip(query).map(|(x, e)| i64::from(*x as i8) * i64::from(*e)).sum()
    }

    #[test]
    fn scores_are_inner_products() {
        for (count, width) in [(0, 3), (1, 1), (7, 5), (BLOCK, 17), (40 * BLOCK + 5, 64)] {
            let rows: Vec<u8> = (0..count * width).map(|i| (i * i % 251) as u8).collect();
            let query: Vec<i16> = (0..width).map(|j| (j as i16 - 3) * 11).collect();
            let expected: Vec<i64> = rows.chunks(width).map(|row| score(row, &query)).collect();
            assert_eq!(scores(&rows, &query).unwrap(), expected);
        }
    }

    #[test]
    fn the_largest_accepted_query_is_exact() {
        let width = 512;
        let mut query = vec![i16::MIN; width];
        let rows = [vec![0x80; width], vec![0x7f; width]].concat();
        assert!(scores(&rows, &query).is_err());
        query[0] = i16::MIN + 1;
        let expected: Vec<i64> = rows.chunks(width).map(|row| score(row, &query)).collect();
        assert_eq!(scores(&rows, &query).unwrap(), expected);
    }

    #[test]
    fn rows_of_another_width_are_refused() {
        assert!(scores(&[1, 2, 3], &[1, 2]).is_err());
        assert!(scores(&[], &[]).is_err());
    }

    #[test]
    fn wide_rows_are_scored_as_defined() {
        for (count, width) in [(0, 3), (1, 1), (7, 5), (BLOCK, 17), (40 * BLOCK + 5, 64)] {
            let entry = |i: usize| (i * i % 1009) as i16 - 504;
            let rows: Vec<i16> = (0..count * width).map(entry).collect();
            let query: Vec<i16> = (0..width).map(|j| (j as i16 - 30) * 11).collect();
            let product = |(x, e): (&i16, &i16)| i64::from(*x) * i64::from(*e);
            let expected: Vec<i64> =
                rows.chunks(width).map(|row| row.iter().zip(&query).map(product).sum()).collect();
            assert_eq!(Rows::wide(rows, width).unwrap().scores(&query).unwrap(), expected);
        }
    }

    #[test]
    fn the_longest_wide_rows_are_exact_and_longer_ones_refused() {
        for vector in
            [vec![4095], vec![-4095, 0], vec![255; 256], [vec![1; 3071], vec![4094]].concat()]
        {
            let width = vector.len();
            let negated: Vec<i16> = vector.iter().map(|x: &i16| -x).collect();
            let norm = squared_norm(&vector) as i64;
            let rows = Rows::wide([vector.clone(), negated].concat(), width).unwrap();
            assert_eq!(rows.scores(&vector).unwrap(), [norm, -norm]);
            assert!(rows.scores(&vec![i16::MIN; width]).is_err());
            assert!(rows.scores(&[&vector[..], &[0]].concat()).is_err());
        }
        assert!(Rows::wide(vec![0, 0, 4096, 0], 2).is_err());
        assert!(Rows::wide(vec![256; 256], 256).is_err());
        assert!(Rows::wide(vec![i16::MIN], 1).is_err());
        assert!(Rows::wide(vec![0; 3], 2).is_err());
    }

    #[test]
    fn kept_rows_of_bytes_are_scored_as_such() {
        let rows = Rows::narrow(vec![1, 2, 0xff, 4], 2).unwrap();
        assert_eq!(rows.scores(&[10, 1]).unwrap(), [12, -6]);
        assert!(rows.scores(&[1]).is_err());
        assert!(Rows::narrow(vec![1; 3], 2).is_err());
    }
}
