//! Exact scores of all rows of an index (docs/spec/02-integers.md §2.3), and the rows of the best
//! ones: integers only, for one query or many, which read the rows once. And the integers of the
//! query's vector ([`quantise()`]).
//!
//! Rows of 16 bits are kept as two of bytes, `x = w h + l` with a step `w` for each row, chosen as
//! small as `|h_j| <= 127` allows; so `|l_j| <= w/2` and `|l_j| <= |x_j|`. Scores are
//! `w <h, e> + <l, e>`. [`Rows::best`] looks at `h` of all rows first, and at `l` of few
//! ([`best`] says why that is exact).
//!
//! No sum overflows 32 bits. In products of bytes with a query a partial sum is at most
//! `128 sum |e_j|`, refused at `2^31`; for rows of 16 bits `sum |e_j| <= |e|² < 2^24`, as all are
//! integers. There also `|<x, e>| <= |x| |e| < 2^24`, `|<l, e>| <= |l| |e| <= |x| |e| < 2^24`, and
//! so `|w <h, e>| < 2^25`.

mod best;
mod products;
mod quantise;

use std::fmt;
use std::ops::Range;

use multiversion::multiversion;
use rayon::prelude::*;

pub use best::Wanted;
use products::{Kernel, Queries, fastest, narrower, portable};
pub use quantise::quantise;

/// Rows scored by one task: 200 kB at d = 384.
const BLOCK: usize = 1 << 9;

/// So few products are made sooner than another thread wakes up.
const ALONE: usize = 1 << 20;

/// An input that breaks the contract of [`Rows`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed(pub String);

impl fmt::Display for Malformed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Malformed {}

/// The instructions that products are made with; the results are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instructions {
    /// The best that this processor has.
    Fastest,
    /// Those of AVX2, or what every processor has; for tests.
    Narrower,
    /// What every processor has; for tests.
    Portable,
}

/// The rows of an index, kept to be scored.
pub struct Rows {
    width: usize,
    count: usize,
    kernel: Kernel,
    /// Two's complement bytes: the rows, or `h` of rows of 16 bits.
    high: Vec<u8>,
    /// Of rows of 16 bits.
    low: Option<Low>,
}

/// What is left of rows of 16 bits.
struct Low {
    /// `l`, two's complement bytes.
    entries: Vec<u8>,
    /// `w` of each row, from 1 to 33.
    steps: Vec<i16>,
    /// `|l|` of each row, rounded up: at most 4096.
    lengths: Vec<i16>,
}

/// B² where B = 4095, and a little more: the squared norm of a row or query of 16 bits is below
/// 2^24, and so is every score (Cauchy-Schwarz).
const MOST_SQUARED_NORM: u64 = (1 << 24) - 1;

impl Rows {
    /// Rows of `width` two's complement bytes.
    pub fn narrow(entries: Vec<u8>, width: usize) -> Result<Self, Malformed> {
        let count = whole(entries.len(), width)?;
        Ok(Rows { width, count, kernel: fastest, high: entries, low: None })
    }

    /// Rows of `width` integers of 16 bits; refused unless their squared norms are below 2^24.
    pub fn wide(entries: &[i16], width: usize) -> Result<Self, Malformed> {
        let count = whole(entries.len(), width)?;
        let mut high = vec![0; entries.len()];
        let mut low = vec![0; entries.len()];
        let parts: Result<Vec<(i16, i16)>, usize> = entries
            .par_chunks(width)
            .zip(high.par_chunks_mut(width).zip(low.par_chunks_mut(width)))
            .enumerate()
            .map(|(at, (row, (high, low)))| split(row, high, low).ok_or(at))
            .collect();
        let (steps, lengths) = parts
            .map_err(|row| Malformed(format!("row {row}: squared norm of 2^24 or more")))?
            .into_iter()
            .unzip();
        let low = Some(Low { entries: low, steps, lengths });
        Ok(Rows { width, count, kernel: fastest, high, low })
    }

    /// The same rows, multiplied with these instructions.
    pub fn with(self, instructions: Instructions) -> Self {
        let kernel = match instructions {
            Instructions::Fastest => fastest,
            Instructions::Narrower => narrower,
            Instructions::Portable => portable,
        };
        Rows { kernel, ..self }
    }

    /// The inner products of all rows with each query: those with the first one, then the next.
    ///
    /// `queries` holds whole queries. Refused is one so large that a sum of 32 bits might not hold
    /// a score: for rows of bytes 128 sum |e_j| >= 2^31, for rows of 16 bits a squared norm of 2^24
    /// or more.
    pub fn scores(&self, queries: &[i16]) -> Result<Vec<i64>, Malformed> {
        Ok(self.all_scores(&self.checked(queries)?))
    }

    fn all_scores(&self, queries: &Queries<'_>) -> Vec<i64> {
        self.in_blocks(queries, |rows, scores: &mut [&mut [i64]]| {
            let sums = self.products(&self.high, &rows, queries);
            let rest = self.low.as_ref().map(|low| self.products(&low.entries, &rows, queries));
            for (number, scores) in scores.iter_mut().enumerate() {
                let these = number * rows.len()..(number + 1) * rows.len();
                if let (Some(low), Some(rest)) = (&self.low, &rest) {
                    join(&sums[these.clone()], &low.steps[rows.clone()], &rest[these], scores);
                } else {
                    scores.iter_mut().zip(&sums[these]).for_each(|(s, sum)| *s = (*sum).into());
                }
            }
        })
    }

    /// The products of some rows with all queries.
    fn products(&self, entries: &[u8], rows: &Range<usize>, queries: &Queries<'_>) -> Vec<i32> {
        let mut sums = vec![0; rows.len() * queries.count];
        let entries = &entries[rows.start * self.width..rows.end * self.width];
        (self.kernel)(entries, queries, &mut sums);
        sums
    }

    /// For each query a result for each row. `work` is told a block of rows, and gets the places of
    /// its results, for one query after the other.
    fn in_blocks<T: Clone + Default + Send>(
        &self,
        queries: &Queries<'_>,
        work: impl Fn(Range<usize>, &mut [&mut [T]]) + Sync,
    ) -> Vec<T> {
        let mut results = vec![T::default(); queries.count * self.count];
        let mut parts: Vec<_> =
            results.chunks_mut(self.count.max(1)).map(|all| all.chunks_mut(BLOCK)).collect();
        let blocks: Vec<Vec<&mut [T]>> = (0..self.count.div_ceil(BLOCK))
            .map(|_| parts.iter_mut().filter_map(Iterator::next).collect())
            .collect();
        let task = |(number, mut places): (usize, Vec<&mut [T]>)| {
            let rows = number * BLOCK..self.count.min((number + 1) * BLOCK);
            work(rows, &mut places);
        };
        if queries.count * self.high.len() <= ALONE {
            blocks.into_iter().enumerate().for_each(task);
        } else {
            blocks.into_par_iter().enumerate().for_each(task);
        }
        results
    }

    fn checked<'a>(&self, entries: &'a [i16]) -> Result<Queries<'a>, Malformed> {
        if !entries.len().is_multiple_of(self.width) {
            let (found, width) = (entries.len(), self.width);
            return Err(Malformed(format!("query: {found} entries, expected {width}")));
        }
        let queries = Queries::new(entries, self.width);
        let too_large = |query: &[i16]| match self.low {
            None => 128 * sum_of_sizes(query) > i32::MAX as u64,
            Some(_) => squared_norm(query) > MOST_SQUARED_NORM,
        };
        if queries.each().any(too_large) {
            return Err(Malformed("query: too large for exact scores".into()));
        }
        Ok(queries)
    }
}

/// The inner products of some of many rows of bytes with a query.
///
/// `rows` are `width` two's complement bytes each, of which the first ones, as many as the query
/// has entries, are multiplied. Refused is what [`Rows::scores`] refuses.
pub fn scores_of(
    rows: &[u8],
    width: usize,
    positions: &[i64],
    query: &[i16],
) -> Result<Vec<i64>, Malformed> {
    let count = whole(rows.len(), width)?;
    if query.is_empty() || query.len() > width {
        let found = query.len();
        return Err(Malformed(format!("query: {found} entries, expected 1 to {width}")));
    }
    if 128 * sum_of_sizes(query) > i32::MAX as u64 {
        return Err(Malformed("query: too large for exact scores".into()));
    }
    if !positions.iter().all(|at| (0..count as i64).contains(at)) {
        return Err(Malformed(format!("positions: expected each below {count}")));
    }
    let queries = Queries::new(query, query.len());
    let mut scores = vec![0; positions.len()];
    let task = |(scores, positions): (&mut [i64], &[i64])| {
        let mut copied = Vec::with_capacity(positions.len() * query.len());
        for at in positions {
            copied.extend_from_slice(&rows[*at as usize * width..][..query.len()]);
        }
        let mut sums = vec![0; positions.len()];
        fastest(&copied, &queries, &mut sums);
        scores.iter_mut().zip(sums).for_each(|(score, sum)| *score = sum.into());
    };
    if positions.len() * query.len() <= ALONE {
        scores.chunks_mut(BLOCK).zip(positions.chunks(BLOCK)).for_each(task);
    } else {
        scores.par_chunks_mut(BLOCK).zip(positions.par_chunks(BLOCK)).for_each(task);
    }
    Ok(scores)
}

/// The number of rows.
fn whole(entries: usize, width: usize) -> Result<usize, Malformed> {
    if width == 0 || !entries.is_multiple_of(width) {
        let message = format!("rows: {entries} entries, expected {width} in each row");
        return Err(Malformed(message));
    }
    Ok(entries / width)
}

fn sum_of_sizes(vector: &[i16]) -> u64 {
    vector.iter().map(|entry| u64::from(entry.unsigned_abs())).sum()
}

fn squared_norm(vector: &[i16]) -> u64 {
    vector.iter().map(|entry| u64::from(entry.unsigned_abs()).pow(2)).sum()
}

/// A norm from its square, rounded up.
fn length(squared: u64) -> u64 {
    let root = squared.isqrt();
    root + u64::from(root * root < squared)
}

/// `w <h, e> + <l, e>`, of sizes below 2^25 and 2^24.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512vl+avx512vnni", "x86_64+avx2"))]
fn join(high: &[i32], steps: &[i16], low: &[i32], scores: &mut [i64]) {
    for (((score, high), step), low) in scores.iter_mut().zip(high).zip(steps).zip(low) {
        *score = i64::from(i32::from(*step).wrapping_mul(*high).wrapping_add(*low));
    }
}

/// Write `h` and `l` of a row, and return `w` and `|l|`; None if its squared norm is 2^24 or more.
fn split(row: &[i16], high: &mut [u8], low: &mut [u8]) -> Option<(i16, i16)> {
    if squared_norm(row) > MOST_SQUARED_NORM {
        return None;
    }
    let largest = row.iter().fold(0, |largest, x| largest.max(x.unsigned_abs()));
    let step = i32::from(largest.div_ceil(127).max(1));
    // n / w is n inverse / 2^20 in integers where n w < 2^20, and here n < 4112 and w <= 33.
    let inverse = ((1 << 20) + step - 1) / step;
    let mut squared = 0u32;
    for ((x, high), low) in row.iter().zip(high).zip(low) {
        let size = i32::from(x.unsigned_abs());
        let rounded = (size + step / 2).wrapping_mul(inverse) >> 20;
        let h = i32::from(x.signum()).wrapping_mul(rounded);
        let l = i32::from(*x).wrapping_sub(step.wrapping_mul(h));
        (*high, *low) = (h as u8, l as u8);
        squared = squared.wrapping_add(l.wrapping_mul(l) as u32);
    }
    Some((step as i16, length(squared.into()) as i16))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const ALL: [Instructions; 3] =
        [Instructions::Fastest, Instructions::Narrower, Instructions::Portable];

    /// Numbers that look random, the same in each run.
    pub(crate) struct Draws(pub u64);

    impl Draws {
        pub fn below(&mut self, bound: u64) -> u64 {
            // xorshift64*
            self.0 ^= self.0 >> 12;
            self.0 ^= self.0 << 25;
            self.0 ^= self.0 >> 27;
            (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
        }

        pub fn within(&mut self, reach: i64) -> i16 {
            (self.below(2 * reach as u64 + 1) as i64 - reach) as i16
        }

        pub fn vector(&mut self, width: usize, reach: i64) -> Vec<i16> {
            (0..width).map(|_| self.within(reach)).collect()
        }
    }

    /// The definition.
    fn defined(rows: &[i16], queries: &[i16], width: usize) -> Vec<i64> {
        let product = |(x, e): (&i16, &i16)| i64::from(*x) * i64::from(*e);
        let score = |row: &[i16], query: &[i16]| row.iter().zip(query).map(product).sum();
        let of = |query| rows.chunks(width).map(move |row| score(row, query));
        queries.chunks(width).flat_map(of).collect()
    }

    fn bytes(rows: &[i16]) -> Vec<u8> {
        rows.iter().map(|entry| *entry as u8).collect()
    }

    /// Widths around those of vectors, numbers of rows around those of tiles and tasks, numbers of
    /// queries around those of groups.
    fn sizes() -> impl Iterator<Item = (usize, usize, usize)> {
        let widths = [1, 2, 5, 31, 32, 33, 63, 64, 65, 100, 384];
        let counts = [0, 1, 3, 4, 5, 7, BLOCK + 1];
        let each = move |width| counts.into_iter().map(move |count| (width, count));
        let sizes = widths.into_iter().flat_map(each).chain([(64, 40 * BLOCK + 5)]);
        sizes
            .flat_map(|(width, count)| [0, 1, 2, 3, 4, 5, 9].map(|queries| (width, count, queries)))
    }

    #[test]
    fn scores_are_inner_products() {
        let mut draws = Draws(1);
        for (width, count, asked) in sizes() {
            let queries = draws.vector(width * asked, 8191);
            let rows: Vec<i16> = draws.vector(count * width, 127);
            let expected = defined(&rows, &queries, width);
            for instructions in ALL {
                let kept = Rows::narrow(bytes(&rows), width).unwrap().with(instructions);
                assert_eq!(kept.scores(&queries).unwrap(), expected, "{width} {count} {asked}");
            }
        }
    }

    #[test]
    fn scores_of_wide_rows_are_inner_products() {
        let mut draws = Draws(2);
        for (width, count, asked) in sizes() {
            let reach = (4095.0 / (width as f64).sqrt()) as i64;
            let (queries, rows) =
                (draws.vector(width * asked, reach), draws.vector(count * width, reach));
            let expected = defined(&rows, &queries, width);
            for instructions in ALL {
                let kept = Rows::wide(&rows, width).unwrap().with(instructions);
                assert_eq!(kept.scores(&queries).unwrap(), expected, "{width} {count} {asked}");
            }
        }
    }

    #[test]
    fn the_largest_accepted_query_is_exact() {
        let width = 512;
        let mut query = vec![i16::MIN; width];
        let rows = [vec![-128; width], vec![127; width]].concat();
        for instructions in ALL {
            let kept = Rows::narrow(bytes(&rows), width).unwrap().with(instructions);
            query[0] = i16::MIN;
            assert!(kept.scores(&query).is_err());
            assert!(kept.scores(&[vec![0; width], query.clone()].concat()).is_err());
            query[0] = i16::MIN + 1;
            assert_eq!(kept.scores(&query).unwrap(), defined(&rows, &query, width));
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
            for instructions in ALL {
                let rows = [vector.clone(), negated.clone()].concat();
                let rows = Rows::wide(&rows, width).unwrap().with(instructions);
                assert_eq!(rows.scores(&vector).unwrap(), [norm, -norm]);
                assert!(rows.scores(&vec![i16::MIN; width]).is_err());
                assert!(width == 1 || rows.scores(&[&vector[..], &[0]].concat()).is_err());
            }
        }
        assert!(Rows::wide(&[0, 0, 4096, 0], 2).is_err());
        assert!(Rows::wide(&[256; 256], 256).is_err());
        assert!(Rows::wide(&[i16::MIN], 1).is_err());
        assert!(Rows::wide(&[0; 3], 2).is_err());
    }

    #[test]
    fn malformed_rows_and_queries_are_refused() {
        assert!(Rows::narrow(vec![1; 3], 2).is_err());
        assert!(Rows::narrow(vec![], 0).is_err());
        let rows = Rows::narrow(vec![1, 2, 0xff, 4], 2).unwrap();
        assert_eq!(rows.scores(&[10, 1]).unwrap(), [12, -6]);
        assert!(rows.scores(&[1]).is_err());
    }

    #[test]
    fn scores_of_some_rows_are_those_among_all() {
        let mut draws = Draws(5);
        for (count, width, cut) in [(1, 1, 0), (50, 40, 3), (4000, 388, 4)] {
            let rows = draws.vector(count * width, 127);
            let query = draws.vector(width - cut, 127);
            let padded = [&query[..], &vec![0; cut]].concat();
            let all = defined(&rows, &padded, width);
            for asked in [0, 1, 700, 3000] {
                let positions: Vec<i64> =
                    (0..asked).map(|_| draws.below(count as u64) as i64).collect();
                let expected: Vec<i64> = positions.iter().map(|at| all[*at as usize]).collect();
                let found = scores_of(&bytes(&rows), width, &positions, &query).unwrap();
                assert_eq!(found, expected);
            }
        }
        for (positions, query) in
            [(&[2][..], &[1i16][..]), (&[-1], &[1]), (&[0], &[]), (&[0], &[1; 3])]
        {
            assert!(scores_of(&[1; 4], 2, positions, query).is_err());
        }
        assert!(scores_of(&[1; 1024], 512, &[0], &[i16::MIN; 512]).is_err());
        assert!(scores_of(&[1; 3], 2, &[0], &[1]).is_err());
    }

    #[test]
    fn a_split_row_is_put_together_again() {
        let (mut draws, mut high, mut low) = (Draws(3), vec![0; 9], vec![0; 9]);
        for reach in [0, 1, 63, 127, 128, 254, 255, 700, 1365] {
            for _ in 0..200 {
                let mut row = draws.vector(9, reach);
                row[draws.below(9) as usize] = if draws.below(2) == 0 { 0 } else { reach as i16 };
                let (step, length) = split(&row, &mut high, &mut low).unwrap();
                let mut squared = 0;
                for ((x, h), l) in row.iter().zip(&high).zip(&low) {
                    let (h, l) = (i16::from(h.cast_signed()), i16::from(l.cast_signed()));
                    assert_eq!(*x, step * h + l);
                    assert!(h.abs() <= 127 && 2 * l.abs() <= step && l.abs() <= x.abs());
                    squared += i64::from(l).pow(2);
                }
                let length = i64::from(length);
                assert!(squared <= length.pow(2) && (length == 0 || (length - 1).pow(2) < squared));
            }
        }
    }

    /// The definition (docs/spec/04-arguments.md §4.6.9).
    fn best(scores: &[i64], wanted: &Wanted<'_>) -> Vec<i64> {
        let all: Vec<i64> = (0..scores.len() as i64).collect();
        let allowed = wanted.allowed.unwrap_or(&all);
        let mut ranked: Vec<i64> = allowed.iter().map(|at| scores[*at as usize]).collect();
        ranked.sort_unstable_by(|a, b| b.cmp(a));
        let least = ranked.get(wanted.top_k - 1).copied().unwrap_or(i64::MIN);
        allowed.iter().copied().filter(|at| scores[*at as usize] >= least).collect()
    }

    /// Rows of many kinds: spread out, near each other, few of them different.
    fn kinds(draws: &mut Draws, count: usize, width: usize) -> Vec<Vec<i16>> {
        let reach = (4095.0 / (width as f64).sqrt()) as i64;
        let center = draws.vector(width, 9 * reach / 10);
        let near = |x: i16, draws: &mut Draws| x + draws.within(reach / 10);
        vec![
            draws.vector(count * width, reach),
            draws.vector(count * width, 1),
            (0..count).flat_map(|_| center.clone()).collect(),
            (0..count * width).map(|at| near(center[at % width], draws)).collect(),
        ]
    }

    #[test]
    fn the_best_rows_are_those_of_all_scores() {
        let mut draws = Draws(4);
        for (count, width) in [(1, 1), (2, 3), (40, 7), (1500, 40), (5000, 33)] {
            for rows in kinds(&mut draws, count, width) {
                let reach = (4095.0 / (width as f64).sqrt()) as i64;
                let mut queries = draws.vector(6 * width, reach);
                queries.extend_from_slice(&rows[..width]);
                let some: Vec<i64> = (0..count as i64).filter(|_| draws.below(3) == 0).collect();
                let wanted: Vec<_> = (0..7)
                    .map(|number| Wanted {
                        top_k: [1, 3, count, 10][number % 4],
                        allowed: [None, Some(&some[..]), Some(&[][..])][number % 3],
                    })
                    .collect();
                let expected: Vec<_> = queries
                    .chunks(width)
                    .zip(&wanted)
                    .map(|(query, wanted)| best(&defined(&rows, query, width), wanted))
                    .collect();
                for instructions in ALL {
                    let kept = Rows::wide(&rows, width).unwrap().with(instructions);
                    assert_eq!(kept.best(&queries, &wanted).unwrap(), expected);
                }
                let cut: Vec<i16> = rows.iter().map(|x| x % 128).collect();
                let expected: Vec<_> = queries
                    .chunks(width)
                    .zip(&wanted)
                    .map(|(query, wanted)| best(&defined(&cut, query, width), wanted))
                    .collect();
                let kept = Rows::narrow(bytes(&cut), width).unwrap();
                assert_eq!(kept.best(&queries, &wanted).unwrap(), expected);
            }
        }
    }

    /// Rows with a high bound and a lower score come before one with an exact bound.
    #[test]
    fn a_first_look_that_misleads_is_found_out() {
        let misleading = |last| [3000, 10, 10, last];
        let mut rows: Vec<i16> = (0..5000).flat_map(|_| misleading(0)).collect();
        rows[4 * 4000..][..4].copy_from_slice(&[0, 10, 11, 0]);
        rows[4..8].copy_from_slice(&misleading(900));
        let kept = Rows::wide(&rows, 4).unwrap();
        let ask = |top_k| kept.best(&[0, 2000, 2000, 2000], &[Wanted { top_k, allowed: None }]);
        assert_eq!(ask(1).unwrap(), [[1]]);
        assert_eq!(ask(2).unwrap(), [[1, 4000]]);
        assert_eq!(ask(3).unwrap()[0].len(), 5000);
    }

    #[test]
    fn ties_with_rows_of_other_groups_are_kept() {
        let mut rows = vec![7; 5000];
        rows[..50].iter_mut().step_by(10).for_each(|x| *x = 8);
        for kept in [Rows::wide(&rows, 1).unwrap(), Rows::narrow(bytes(&rows), 1).unwrap()] {
            let ask = |top_k| kept.best(&[3], &[Wanted { top_k, allowed: None }]).unwrap();
            assert_eq!(ask(5), [[0, 10, 20, 30, 40]]);
            assert_eq!(ask(6)[0].len(), 5000);
        }
    }

    #[test]
    fn malformed_wishes_are_refused() {
        let rows = Rows::wide(&[1, 2, 3], 1).unwrap();
        let ask = |top_k, allowed| rows.best(&[1], &[Wanted { top_k, allowed }]);
        assert_eq!(ask(1, None).unwrap(), [[2]]);
        assert_eq!(ask(1, Some(&[0, 1][..])).unwrap(), [[1]]);
        assert!(ask(0, None).is_err());
        for wrong in [&[1, 1][..], &[2, 1], &[-1], &[3], &[0, 5]] {
            assert!(ask(1, Some(wrong)).is_err());
        }
        assert!(rows.best(&[1, 1], &[Wanted { top_k: 1, allowed: None }]).is_err());
        assert!(
            Rows::wide(&[], 1).unwrap().best(&[1], &[Wanted { top_k: 1, allowed: None }]).unwrap()
                [0]
            .is_empty()
        );
    }
}
