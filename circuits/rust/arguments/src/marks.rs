//! Commitments to marked rows, in a time that does not say how many are marked (spec 11.9).

use std::sync::{Arc, LazyLock, RwLock};

use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::Identity;
use rayon::prelude::*;

use crate::commitments::subset_sums;
use crate::errors::{Result, malformed};
use crate::generators::{self, Generator, List};

/// Points that one table of subset sums covers.
const SPAN: usize = 3;
/// Rows that have tables, which are kept: 56 MB of points. Each further row is one addition.
const TABLE_ROWS: usize = SPAN * 43_690;
/// Tables that one task reads.
const TABLES_PER_TASK: usize = 4096;

static TABLES: LazyLock<RwLock<Arc<Vec<RistrettoPoint>>>> = LazyLock::new(Default::default);

/// B = sum of A_i over the marked rows + blinding H.
///
/// Time depends on the number of rows only; which entries of small tables are read depends on the
/// marks (docs/threat-model.md). The first call for so many rows takes seconds: it makes tables.
///
/// ```
/// use curve25519_dalek::scalar::Scalar;
/// use ragaudit_arguments::commitments::commit_selection;
/// use ragaudit_arguments::marks::commit_marked;
///
/// let marked = commit_marked(&[false, true, true, false], &Scalar::ONE)?;
/// assert_eq!(marked, commit_selection(&[1, 2], &Scalar::ONE)?);
/// # Ok::<(), ragaudit_arguments::Error>(())
/// ```
pub fn commit_marked(marks: &[bool], blinding: &Scalar) -> Result<[u8; 32]> {
    if marks.len() as u64 > crate::MAX_ROWS {
        return Err(malformed("marks: more than 2^32 rows"));
    }
    let (first, rest) = marks.split_at(marks.len().min(TABLE_ROWS));
    let sum = table_sum(first) + direct_sum(rest, first.len());
    Ok((sum + blinding * &*generators::H).compress().to_bytes())
}

fn table_sum(marks: &[bool]) -> RistrettoPoint {
    let tables = tables(marks.len());
    let parts = marks.par_chunks(SPAN * TABLES_PER_TASK).enumerate();
    let sums = parts.map(|(part, marks)| {
        let tables = tables[(part * TABLES_PER_TASK) << SPAN..].chunks(1 << SPAN);
        let entries = marks.chunks(SPAN).zip(tables).map(|(marks, table)| table[subset(marks)]);
        entries.sum::<RistrettoPoint>()
    });
    sums.reduce(RistrettoPoint::identity, |left, right| left + right)
}

fn subset(marks: &[bool]) -> usize {
    marks.iter().enumerate().fold(0, |index, (j, mark)| index | usize::from(*mark) << j)
}

/// As many additions as there are rows, whether to the sum or to that of the others.
fn direct_sum(marks: &[bool], start: usize) -> RistrettoPoint {
    let chunks = marks.par_chunks(TABLES_PER_TASK).enumerate();
    let sums = chunks.map(|(chunk, marks)| {
        let from = (start + chunk * TABLES_PER_TASK) as u64;
        let names: Vec<Generator> =
            (from..).take(marks.len()).map(|i| Generator::new(List::A, i)).collect();
        let mut sums = [RistrettoPoint::identity(); 2];
        for (point, mark) in generators::points(&names).iter().zip(marks) {
            sums[usize::from(*mark)] += point;
        }
        sums[1]
    });
    sums.reduce(RistrettoPoint::identity, |left, right| left + right)
}

/// The sums of all subsets of A_0 .. A_(SPAN-1), then of the next ones, for so many rows at least.
fn tables(rows: usize) -> Arc<Vec<RistrettoPoint>> {
    let wanted = rows.div_ceil(SPAN);
    // A poisoned lock still holds only whole tables.
    let known = Arc::clone(&TABLES.read().unwrap_or_else(|poisoned| poisoned.into_inner()));
    if known.len() >= wanted << SPAN {
        return known;
    }
    let points = generators::first(List::A, wanted * SPAN);
    let made = points.par_chunks(SPAN).flat_map_iter(|points| subset_sums(points, SPAN));
    let made = Arc::new(made.collect::<Vec<_>>());
    let mut kept = TABLES.write().unwrap_or_else(|poisoned| poisoned.into_inner());
    if kept.len() < made.len() {
        *kept = Arc::clone(&made);
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commitments::commit_selection;

    fn check(marks: &[bool]) {
        let positions: Vec<u64> =
            (0..).zip(marks).filter(|(_, mark)| **mark).map(|(i, _)| i).collect();
        let blinding = Scalar::from(7u64);
        assert_eq!(
            commit_marked(marks, &blinding).unwrap(),
            commit_selection(&positions, &blinding).unwrap()
        );
    }

    #[test]
    fn marked_rows_are_the_selected_ones() {
        for rows in [0, 1, 2, 3, 4, 50, 3 * TABLES_PER_TASK + 1] {
            check(&vec![false; rows]);
            check(&vec![true; rows]);
            check(&(0..rows).map(|i| i % 5 == 1 || i + 1 == rows).collect::<Vec<_>>());
        }
    }

    #[test]
    fn rows_without_a_table_are_added_one_by_one() {
        let marks: Vec<bool> = (0..9000).map(|i| i % 7 == 3).collect();
        let positions: Vec<u64> = (0..9000).filter(|i| i % 7 == 3).map(|i| i + 5).collect();
        let expected = commit_selection(&positions, &Scalar::ZERO).unwrap();
        assert_eq!(direct_sum(&marks, 5).compress().to_bytes(), expected);
    }
}
