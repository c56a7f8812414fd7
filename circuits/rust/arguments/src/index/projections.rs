//! The random binary projections u^T X v that show that nothing wraps around.

use rayon::prelude::*;

use crate::field::{Element, SmallSum};

/// Pairs (u, v): an entry of absolute value >= 2^43 escapes each with probability <= 3/4.
pub const PROJECTIONS: usize = 309;
/// Digits of one projection.
pub const DIGITS: usize = 3;
/// Bits of one digit.
pub const DIGIT_BITS: usize = 14;
/// R: rows of the range columns.
pub const RANGE_ROWS: usize = PROJECTIONS * DIGITS;
/// p + 2^41 is what the digits hold.
pub const OFFSET: i64 = 1 << 41;

/// Weights whose subset sums are looked up together.
const SPAN: usize = 8;
/// Weights that one task sums up.
const TASK: usize = 1 << 12;

/// The u_q of one row: bit q says whether projection q keeps the row.
#[derive(Clone, Copy, Default)]
pub struct Kept([u64; PROJECTIONS.div_ceil(64)]);

impl Kept {
    /// The projections that keep the row, rising.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.into_iter().enumerate().flat_map(|(word, bits)| {
            let rest = std::iter::successors(Some(bits), |bits| Some(bits & bits.wrapping_sub(1)));
            rest.take_while(|bits| *bits != 0)
                .map(move |bits| 64 * word + bits.trailing_zeros() as usize)
        })
    }
}

/// The vectors u_q of N bits and v_q of d + 4 bits.
///
/// ```
/// use ragaudit_arguments::index::projections::{PROJECTIONS, Projections};
///
/// let bits = vec![0b101; Projections::bit_count(5, 3).div_ceil(8)]; // u_q of 5 bits, v_q of 3
/// let projections = Projections::new(bits, 5, 3);
/// assert_eq!((projections.u(0, 0), projections.u(0, 1)), (true, false));
/// assert_eq!(projections.kept(&[2])[0].iter().count(), PROJECTIONS);
/// ```
pub struct Projections {
    bits: Vec<u8>,
    rows: usize,
    width: usize,
}

impl Projections {
    /// Bits needed for N rows of `width` entries.
    pub fn bit_count(rows: usize, width: usize) -> usize {
        PROJECTIONS * (rows + width)
    }

    /// The vectors u_0, v_0, u_1, v_1, .. in these packed bits.
    pub fn new(bits: Vec<u8>, rows: usize, width: usize) -> Self {
        Projections { bits, rows, width }
    }

    /// Entry `row` of u_q.
    #[inline]
    pub fn u(&self, q: usize, row: usize) -> bool {
        self.bit(q * (self.rows + self.width) + row)
    }

    /// Entry `column` of v_q.
    #[inline]
    pub fn v(&self, q: usize, column: usize) -> bool {
        self.bit(q * (self.rows + self.width) + self.rows + column)
    }

    /// The projections that keep each of these rows.
    pub fn kept(&self, rows: &[usize]) -> Vec<Kept> {
        let mut kept = vec![Kept::default(); rows.len()];
        for q in 0..PROJECTIONS {
            for (kept, row) in kept.iter_mut().zip(rows) {
                kept.0[q / 64] |= u64::from(self.u(q, *row)) << (q % 64);
            }
        }
        kept
    }

    /// u~_q at r for every q, from eq(r, i) of all rows.
    pub fn row_evaluations(&self, weights: &[Element]) -> Vec<Element> {
        self.evaluations(weights, 0)
    }

    /// v~_q at r for every q, from eq(r, j) of all columns.
    pub fn column_evaluations(&self, weights: &[Element]) -> Vec<Element> {
        self.evaluations(weights, self.rows)
    }

    /// For every q the sum of the weights whose bit, from bit `start` of its vectors on, is set.
    ///
    /// Eight weights at a time: their 256 subset sums serve all projections.
    fn evaluations(&self, weights: &[Element], start: usize) -> Vec<Element> {
        let partial = weights.par_chunks(TASK).enumerate().map(|(task, weights)| {
            let mut sums = vec![SmallSum::default(); PROJECTIONS];
            let mut subsets = [Element::ZERO; 1 << SPAN];
            for (group, weights) in weights.chunks(SPAN).enumerate() {
                for (j, weight) in weights.iter().enumerate() {
                    for subset in 0..1 << j {
                        subsets[1 << j | subset] = subsets[subset] + *weight;
                    }
                }
                let first = start + task * TASK + group * SPAN;
                let used = (1 << weights.len()) - 1;
                for (q, sum) in sums.iter_mut().enumerate() {
                    sum.add(&subsets[self.eight_bits(q, first) & used]);
                }
            }
            sums.iter().map(SmallSum::reduce).collect()
        });
        partial.reduce(
            || vec![Element::ZERO; PROJECTIONS],
            |left: Vec<Element>, right| left.iter().zip(right).map(|(a, b)| *a + b).collect(),
        )
    }

    /// Eight bits of u_q || v_q from bit `first` on; bits after the last projection are zero.
    #[inline]
    fn eight_bits(&self, q: usize, first: usize) -> usize {
        let index = q * (self.rows + self.width) + first;
        let byte = |offset| usize::from(*self.bits.get((index >> 3) + offset).unwrap_or(&0));
        ((byte(0) | byte(1) << 8) >> (index & 7)) & 0xff
    }

    #[inline]
    fn bit(&self, index: usize) -> bool {
        (self.bits[index >> 3] >> (index & 7)) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evaluations_are_the_sums_of_the_kept_weights() {
        let (rows, width) = (TASK + 13, 5);
        let bits = (0..Projections::bit_count(rows, width).div_ceil(8))
            .map(|i| (i * i / 7 + i) as u8)
            .collect();
        let projections = Projections::new(bits, rows, width);
        let weights: Vec<Element> =
            (0..rows as i64).map(|i| Element::from_integer(i * i)).collect();
        let at_rows = projections.row_evaluations(&weights);
        let at_columns = projections.column_evaluations(&weights[..width]);
        let kept = projections.kept(&(0..rows).collect::<Vec<_>>());
        for q in [0, 1, 150, PROJECTIONS - 1] {
            let row_sum = (0..rows).filter(|row| projections.u(q, *row)).map(|row| weights[row]);
            assert_eq!(at_rows[q], row_sum.sum());
            let column_sum = (0..width).filter(|j| projections.v(q, *j)).map(|j| weights[j]);
            assert_eq!(at_columns[q], column_sum.sum());
            for (row, kept) in kept.iter().enumerate() {
                assert_eq!(kept.iter().any(|kept| kept == q), projections.u(q, row));
            }
        }
    }
}
