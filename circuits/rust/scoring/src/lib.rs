//! Exact scores of all rows of an index (docs/spec/02-integers.md §2.3): integers only, rows read
//! once and in order.

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

/// The inner products of all rows with the query, one row after the other.
///
/// `rows` holds N rows of as many two's complement bytes as the query has entries. Refused is a
/// query so large that a sum of 32 bits might not hold a score: 128 sum |e_j| >= 2^31.
pub fn scores(rows: &[u8], query: &[i16]) -> Result<Vec<i64>, Malformed> {
    let width = query.len();
    if width == 0 || !rows.len().is_multiple_of(width) {
        let message = format!("rows: {} entries, expected {width} in each row", rows.len());
        return Err(Malformed(message));
    }
    let size: u64 = query.iter().map(|entry| u64::from(entry.unsigned_abs())).sum();
    if 128 * size > i32::MAX as u64 {
        return Err(Malformed("query: too large for exact scores".into()));
    }
    let mut scores = vec![0; rows.len() / width];
    if rows.len() <= ALONE {
        inner_products(rows, query, &mut scores);
    } else {
        scores
            .par_chunks_mut(BLOCK)
            .zip(rows.par_chunks(BLOCK * width))
            .for_each(|(scores, rows)| inner_products(rows, query, scores));
    }
    Ok(scores)
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
}
