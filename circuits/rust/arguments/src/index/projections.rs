//! The random binary projections u^T X v that show that nothing wraps around.

use curve25519_dalek::scalar::Scalar;
use rayon::prelude::*;

use crate::scalars::{SmallSum, limbs};

/// Pairs (u, v): an entry of absolute value >= 2^43 escapes each with probability <= 3/4.
pub const PROJECTIONS: usize = 309;
/// Digits of one projection.
pub const DIGITS: usize = 3;
/// Bits of one digit.
pub const DIGIT_BITS: usize = 14;
/// R: rows of the range columns.
pub const RANGE_ROWS: usize = PROJECTIONS * DIGITS;
/// p + 2^41 is what the digits hold.
pub const OFFSET: i128 = 1 << 41;

/// The vectors u_q of N bits and v_q of d + 4 bits.
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

    /// v_q as integers, one vector per projection.
    pub fn column_vectors(&self) -> Vec<Vec<i16>> {
        let vector = |q| (0..self.width).map(|column| i16::from(self.v(q, column))).collect();
        (0..PROJECTIONS).map(vector).collect()
    }

    /// u~_q at r for every q, from eq(r, i) of all rows.
    pub fn row_evaluations(&self, weights: &[Scalar]) -> Vec<Scalar> {
        self.evaluations(weights, |q, row| self.u(q, row))
    }

    /// v~_q at r for every q, from eq(r, j) of all columns.
    pub fn column_evaluations(&self, weights: &[Scalar]) -> Vec<Scalar> {
        self.evaluations(weights, |q, column| self.v(q, column))
    }

    fn evaluations(
        &self,
        weights: &[Scalar],
        bit: impl Fn(usize, usize) -> bool + Sync,
    ) -> Vec<Scalar> {
        let weights: Vec<[u64; 4]> = weights.par_iter().map(limbs).collect();
        (0..PROJECTIONS)
            .into_par_iter()
            .map(|q| {
                let mut sum = SmallSum::default();
                for (index, weight) in weights.iter().enumerate() {
                    if bit(q, index) {
                        sum.add_product(weight, 1);
                    }
                }
                sum.reduce()
            })
            .collect()
    }

    #[inline]
    fn bit(&self, index: usize) -> bool {
        (self.bits[index >> 3] >> (index & 7)) & 1 == 1
    }
}
