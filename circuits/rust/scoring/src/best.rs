//! The best rows, certified by what is known of all rows after a first look.
//!
//! With integers `m >= |e|` and `r_i >= |l_i|`, the bound `u_i = w_i <h_i, e> + r_i m` is no less
//! than the score `s_i = w_i <h_i, e> + <l_i, e>` (Cauchy-Schwarz). Of each group of neighboring
//! rows the largest bound of an allowed row counts. The `L` groups with the largest are scored
//! exactly; let `u` be the largest bound of the others. If the K-th best score `s` of the allowed
//! rows that were scored is above `u`, then every other one has `s_i <= u_i <= u < s`: `s` is the
//! K-th best of all, and all rows of that score or a better one were scored, ties included.
//! Otherwise all rows are scored.
//!
//! `L` follows from N and K alone. So the time does not tell how many other rows came near, but
//! whether they were in more than `L` groups (docs/notes/zero-knowledge.md §5).

use multiversion::multiversion;
use rayon::prelude::*;

use crate::products::Queries;
use crate::{Low, Malformed, Rows, length, squared_norm};

/// Rows of a group: their `l` are read one after the other.
const GROUP: usize = 8;

/// One group of so many is scored exactly, but not fewer than `LEAST`: then the first look takes
/// most of the time.
const SHARE: usize = 64;
const LEAST: usize = 1 << 7;

/// The bound of a row that the filter does not allow; no other one is so low.
const NONE: i32 = i32::MIN;

/// What one query asks for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// K, at least 1.
    pub top_k: usize,
    /// The positions that pass the filter, rising; None for all.
    pub allowed: Option<&'a [i64]>,
}

impl Wanted<'_> {
    fn check(&self, count: usize) -> Result<(), Malformed> {
        if self.top_k == 0 {
            return Err(Malformed("top_k: 0, expected at least 1".into()));
        }
        let Some(allowed) = self.allowed else { return Ok(()) };
        let rising = allowed.windows(2).all(|pair| pair[0] < pair[1]);
        let within = |position: &i64| (0..count as i64).contains(position);
        if !rising || !allowed.first().is_none_or(within) || !allowed.last().is_none_or(within) {
            let message = format!("allowed: expected rising positions below {count}");
            return Err(Malformed(message));
        }
        Ok(())
    }

    /// The allowed ones of all rows.
    fn positions(&self, count: usize) -> Vec<i64> {
        self.allowed.map_or_else(|| (0..count as i64).collect(), <[i64]>::to_vec)
    }
}

impl Rows {
    /// For each query the positions of at least the K-th best score, rising; all that are allowed
    /// where these are at most K (docs/spec/04-arguments.md §4.6.9).
    ///
    /// `queries` as for [`Rows::scores`]; of `wanted` there is one for each.
    pub fn best(&self, queries: &[i16], wanted: &[Wanted<'_>]) -> Result<Vec<Vec<i64>>, Malformed> {
        let queries = self.checked(queries)?;
        if wanted.len() != queries.count {
            let (found, expected) = (wanted.len(), queries.count);
            return Err(Malformed(format!("wanted: {found}, expected {expected}")));
        }
        wanted.iter().try_for_each(|wanted| wanted.check(self.count))?;
        let bounds = self.bounds(&queries);
        let best = |(number, wanted): (usize, &Wanted<'_>)| {
            if wanted.allowed.map_or(self.count, <[i64]>::len) <= wanted.top_k {
                return wanted.positions(self.count);
            }
            let query =
                Queries::new(&queries.entries[number * self.width..][..self.width], self.width);
            let bounds = &bounds[number * self.count..][..self.count];
            self.certified(&query, bounds, wanted).unwrap_or_else(|| {
                let scores = self.all_scores(&query);
                let scored = wanted.positions(self.count).into_iter();
                at_least_the(wanted.top_k, scored.map(|at| (at, scores[at as usize])).collect())
            })
        };
        Ok(wanted.par_iter().enumerate().map(best).collect())
    }

    /// `u_i` for each query: of rows of bytes the scores.
    fn bounds(&self, queries: &Queries<'_>) -> Vec<i32> {
        let lengths: Vec<i32> = queries.each().map(rounded_up).collect();
        self.in_blocks(queries, |rows, bounds: &mut [&mut [i32]]| {
            let sums = self.products(&self.high, &rows, queries);
            for ((bounds, sums), m) in
                bounds.iter_mut().zip(sums.chunks_exact(rows.len())).zip(&lengths)
            {
                match &self.low {
                    None => bounds.copy_from_slice(sums),
                    Some(Low { steps, lengths, .. }) => {
                        let (steps, lengths) = (&steps[rows.clone()], &lengths[rows.clone()]);
                        bound(sums, steps, lengths, *m, bounds);
                    }
                }
            }
        })
    }

    /// The best rows; None if the first look does not suffice. More rows than K are allowed.
    fn certified(
        &self,
        query: &Queries<'_>,
        bounds: &[i32],
        wanted: &Wanted<'_>,
    ) -> Option<Vec<i64>> {
        let allowed = wanted.allowed.map(|allowed| {
            let mut masked = vec![NONE; bounds.len()];
            allowed.iter().for_each(|at| masked[*at as usize] = bounds[*at as usize]);
            masked
        });
        let bounds = allowed.as_deref().unwrap_or(bounds);
        let largest = maxima(bounds);
        let most = (largest.len() / SHARE).max(LEAST).max(2 * wanted.top_k);
        let rest = largest
            .len()
            .checked_sub(most + 1)
            .map(|at| *largest.clone().select_nth_unstable(at).1);
        let mut scored = Vec::with_capacity(most * GROUP);
        for (number, _) in
            largest.iter().enumerate().filter(|(_, u)| rest.is_none_or(|rest| **u > rest))
        {
            let rows = number * GROUP..self.count.min((number + 1) * GROUP);
            let m = rounded_up(query.entries);
            let scores = self.low.as_ref().map(|low| {
                let mut scores = self.products(&low.entries, &rows, query);
                for ((score, bound), length) in
                    scores.iter_mut().zip(&bounds[rows.clone()]).zip(&low.lengths[rows.clone()])
                {
                    *score = score.wrapping_add(bound.wrapping_sub(i32::from(*length) * m));
                }
                scores
            });
            let scores = scores.as_deref().unwrap_or(&bounds[rows.clone()]);
            let allowed = rows.zip(scores).filter(|(at, _)| bounds[*at] != NONE);
            scored.extend(allowed.map(|(at, score)| (at as i64, *score)));
        }
        if let Some(rest) = rest
            && scored.iter().filter(|(_, score)| *score > rest).count() < wanted.top_k
        {
            return None;
        }
        Some(at_least_the(wanted.top_k, scored))
    }
}

/// The positions, in the order given, of the K-th best value or a better one, of at least K.
fn at_least_the<T: Copy + Ord>(top_k: usize, scored: Vec<(i64, T)>) -> Vec<i64> {
    let mut values: Vec<T> = scored.iter().map(|(_, value)| *value).collect();
    let at = values.len() - top_k;
    let least = *values.select_nth_unstable(at).1;
    scored.into_iter().filter(|(_, value)| *value >= least).map(|(at, _)| at).collect()
}

/// `m`: at most 4096.
fn rounded_up(query: &[i16]) -> i32 {
    length(squared_norm(query)) as i32
}

/// `w <h, e> + r m`, below 2^25 + 2^24.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512vl+avx512vnni", "x86_64+avx2"))]
fn bound(sums: &[i32], steps: &[i16], lengths: &[i16], m: i32, bounds: &mut [i32]) {
    for (((bound, sum), step), length) in bounds.iter_mut().zip(sums).zip(steps).zip(lengths) {
        *bound =
            i32::from(*step).wrapping_mul(*sum).wrapping_add(i32::from(*length).wrapping_mul(m));
    }
}

/// The largest bound of each group.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512vl+avx512vnni", "x86_64+avx2"))]
fn maxima(bounds: &[i32]) -> Vec<i32> {
    bounds
        .chunks(GROUP)
        .map(|group| group.iter().fold(NONE, |most, bound| most.max(*bound)))
        .collect()
}
