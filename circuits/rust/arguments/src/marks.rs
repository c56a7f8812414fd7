//! Commitments to marked rows, in a time that does not say how many are marked (spec 11.9).

use std::sync::{Arc, LazyLock, RwLock};

use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::Identity;
use rayon::prelude::*;

use crate::commitments::subset_sums;
use crate::errors::{Result, malformed};
use crate::generators::{self, Generator, List};

/// Points that one table of signed sums covers.
const SPAN: usize = 5;
/// Sums of one table: the last point has sign +, the others either sign.
const SUMS: usize = 1 << (SPAN - 1);
/// Rows that have tables, which are kept: 57 MB of points. Each further row is one addition.
const TABLE_ROWS: usize = SPAN * 21_000;
/// Tables that one task reads.
const TABLES_PER_TASK: usize = 2048;
/// Sums that are fetched together: memory is waited for once.
const FETCHED: usize = 8;
/// Rows without a table that one task adds.
const ROWS_PER_TASK: usize = 4096;

/// What is kept of the first rows.
///
/// Twice the sum of the marked points is the sum of all points and of all points with signs, + where
/// one is marked and - where it is not. Turning all signs of a table turns that of its sum, so that
/// half of the sums of a table tell all of them.
#[derive(Default)]
struct Tables {
    /// Of one `SPAN` of points after the other; bit j of a place is set for sign + of point j.
    sums: Vec<RistrettoPoint>,
    /// The sum of the points before each table, and that of all.
    before: Vec<RistrettoPoint>,
}

static TABLES: LazyLock<RwLock<Arc<Tables>>> = LazyLock::new(Default::default);
/// 1/2.
static HALF: LazyLock<Scalar> = LazyLock::new(|| Scalar::from(2u8).invert());

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
    let parts = marks
        .par_chunks(SPAN * TABLES_PER_TASK)
        .zip(tables.sums.par_chunks(SUMS * TABLES_PER_TASK));
    let signed = parts
        .map(|(marks, sums)| signed_sum(marks, sums))
        .reduce(RistrettoPoint::identity, |left, right| left + right);
    *HALF * (tables.before[marks.len().div_ceil(SPAN)] + signed)
}

/// The sum of all points of the tables, with sign + where a row is marked and - elsewhere.
fn signed_sum(marks: &[bool], sums: &[RistrettoPoint]) -> RistrettoPoint {
    let mut signed = [RistrettoPoint::identity(); 2];
    for (marks, sums) in marks.chunks(SPAN * FETCHED).zip(sums.chunks(SUMS * FETCHED)) {
        let mut fetched = [(0, RistrettoPoint::identity()); FETCHED];
        let tables = marks.chunks(SPAN).zip(sums.chunks(SUMS));
        for ((marks, sums), fetched) in tables.zip(&mut fetched) {
            let (sign, sum) = choose(marks);
            *fetched = (sign, sums[sum]);
        }
        fetched.iter().for_each(|(sign, sum)| signed[*sign] += sum);
    }
    signed[1] - signed[0]
}

/// The sign of a table's sum, 1 for +, and which one it is.
fn choose(marks: &[bool]) -> (usize, usize) {
    let signs = (0..).zip(marks).fold(0, |signs, (j, mark)| signs | usize::from(*mark) << j);
    let last = signs >> (SPAN - 1);
    // Where the last point has sign -, all signs are turned.
    (last, (signs ^ last.wrapping_sub(1)) & (SUMS - 1))
}

/// As many additions as there are rows, whether to the sum or to that of the others.
fn direct_sum(marks: &[bool], start: usize) -> RistrettoPoint {
    let chunks = marks.par_chunks(ROWS_PER_TASK).enumerate();
    let sums = chunks.map(|(chunk, marks)| {
        let from = (start + chunk * ROWS_PER_TASK) as u64;
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

/// The tables of so many rows at least.
fn tables(rows: usize) -> Arc<Tables> {
    let wanted = rows.div_ceil(SPAN);
    // A poisoned lock still holds only whole tables.
    let known = Arc::clone(&TABLES.read().unwrap_or_else(|poisoned| poisoned.into_inner()));
    if known.before.len() > wanted {
        return known;
    }
    let made = Arc::new(Tables::new(&generators::first(List::A, wanted * SPAN)));
    let mut kept = TABLES.write().unwrap_or_else(|poisoned| poisoned.into_inner());
    if kept.before.len() < made.before.len() {
        *kept = Arc::clone(&made);
    }
    made
}

impl Tables {
    /// Of points that fill whole tables.
    fn new(points: &[RistrettoPoint]) -> Self {
        let sums: Vec<_> = points.par_chunks(SPAN).flat_map_iter(signed_sums).collect();
        let mut before = vec![RistrettoPoint::identity()];
        let mut all = RistrettoPoint::identity();
        for sums in sums.chunks(SUMS) {
            all += sums[SUMS - 1];
            before.push(all);
        }
        Tables { sums, before }
    }
}

fn signed_sums(points: &[RistrettoPoint]) -> Vec<RistrettoPoint> {
    let (others, last) = points.split_at(SPAN - 1);
    let minus = last[0] - others.iter().sum::<RistrettoPoint>();
    let doubled: Vec<_> = others.iter().map(|point| point + point).collect();
    subset_sums(&doubled, SPAN - 1).iter().map(|sum| minus + sum).collect()
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
        for rows in [0, 1, 2, 4, 5, 6, 50, SPAN * TABLES_PER_TASK + 1] {
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
