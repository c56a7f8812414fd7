//! Sixteen rows that meet in the first four rounds, as products of pairs of rows.
//!
//! The round polynomials of the row part are quadratic in the rows, so the first rounds need
//! only the products of rows that the rounds combine: X_a · X_b and, for the projections,
//! sum_q lambda^q u_q(a) (X_b · v_q). Both are integer products of the committed rows. The table
//! of 2^(m + md) field elements never exists (spec 4.7.4).

use curve25519_dalek::scalar::Scalar;

use super::projections::{PROJECTIONS, Projections};
use super::rows::{Rows, Values, Weights, fold};

/// Rounds that blocks cover.
pub const BLOCK_ROUNDS: usize = 4;
/// Rows of a block.
pub const BLOCK_ROWS: usize = 1 << BLOCK_ROUNDS;

/// What every block is made from.
pub struct Source<'a> {
    /// The secret rows.
    pub rows: Rows<'a>,
    /// N.
    pub count: usize,
    /// d + 4.
    pub width: usize,
    /// u_q and v_q.
    pub projections: &'a Projections,
    /// v_q as integers.
    pub vectors: Vec<Vec<i16>>,
    /// lambda^q.
    pub lambdas: Weights,
    /// sigma, the entry of the mask row in column 0.
    pub sigma: Scalar,
    /// Rows of neighbours in a block are this far apart: 2^(m-4).
    pub stride: usize,
}

/// The products of the rows of one block.
pub struct Block {
    /// Index of the block's first row, below the stride.
    pub index: usize,
    size: usize,
    /// X_a · X_b at a · size + b.
    gram: Vec<Scalar>,
    /// sum_q lambda^q u_q(a) (X_b · v_q) at a · size + b.
    cross: Vec<Scalar>,
}

/// A quadratic polynomial along a line, by its values at 0 and 1 and its mixed term.
pub struct Quadratic {
    /// Value at 0.
    pub low: Scalar,
    /// Coefficient of X(1 - X).
    pub mixed: Scalar,
    /// Value at 1.
    pub high: Scalar,
}

impl Quadratic {
    /// (1-X)² low + X(1-X) mixed + X² high at X = 0, 1, 2, 3.
    pub fn values(&self) -> [Scalar; 4] {
        let double = self.mixed + self.mixed;
        let four = Scalar::from(4u8);
        [
            self.low,
            self.high,
            self.low - double + four * self.high,
            four * self.low - double - double - double + Scalar::from(9u8) * self.high,
        ]
    }
}

impl Source<'_> {
    /// Indices of blocks that are not entirely zero: those of rows, and that of the mask row.
    pub fn block_indices(&self) -> Vec<usize> {
        let last = self.stride - 1;
        (0..self.count.min(last)).chain([last]).collect()
    }

    /// (place in the block, row) of the block's committed rows.
    fn members(&self, index: usize) -> Vec<(usize, usize)> {
        let places = (0..BLOCK_ROWS).map(|c| (c, index + c * self.stride));
        places.filter(|(_, row)| *row < self.count).collect()
    }

    fn has_mask(&self, index: usize) -> bool {
        index == self.stride - 1
    }

    /// The projections q with u_q(row) = 1.
    fn kept(&self, row: usize) -> Vec<usize> {
        (0..PROJECTIONS).filter(|q| self.projections.u(*q, row)).collect()
    }

    /// The products of the rows of block `index`.
    pub fn block(&self, index: usize) -> Block {
        let members = self.members(index);
        let rows: Vec<Values> =
            members.iter().map(|(_, row)| self.rows.row(*row, self.width)).collect();
        let projected: Vec<Values> = members
            .iter()
            .map(|(_, row)| self.rows.project(*row, self.width, &self.vectors))
            .collect();
        let mut gram = vec![Scalar::ZERO; BLOCK_ROWS * BLOCK_ROWS];
        let mut cross = vec![Scalar::ZERO; BLOCK_ROWS * BLOCK_ROWS];
        for (i, (a, row)) in members.iter().enumerate() {
            let kept = self.kept(*row);
            for (j, (b, _)) in members.iter().enumerate() {
                if j <= i {
                    let product = rows[i].product(&rows[j]);
                    gram[a * BLOCK_ROWS + b] = product;
                    gram[b * BLOCK_ROWS + a] = product;
                }
                cross[a * BLOCK_ROWS + b] = projected[j].weighted_sum(&self.lambdas, &kept);
            }
            if self.has_mask(index) {
                let last = BLOCK_ROWS - 1;
                let product = self.sigma * rows[i].scalar(0);
                gram[a * BLOCK_ROWS + last] = product;
                gram[last * BLOCK_ROWS + a] = product;
                cross[a * BLOCK_ROWS + last] = self.sigma * self.mask_projection(&kept);
            }
        }
        if self.has_mask(index) {
            gram[BLOCK_ROWS * BLOCK_ROWS - 1] = self.sigma * self.sigma;
        }
        Block { index, size: BLOCK_ROWS, gram, cross }
    }

    /// sum of lambda^q v_q(0) over the kept q: column 0 is where the mask row is not zero.
    fn mask_projection(&self, kept: &[usize]) -> Scalar {
        let lambdas = self.lambdas.scalars();
        kept.iter().filter(|q| self.vectors[**q][0] == 1).map(|q| lambdas[*q]).sum()
    }

    /// The one row that is left of block `index` after four rounds with eq weights `eq`:
    /// X (d + 4 entries), X · v_q and lambda^q u_q (309 each).
    pub fn folded_row(&self, index: usize, eq: &Weights) -> Vec<Scalar> {
        let members = self.members(index);
        let values = |of: &dyn Fn(usize) -> Values| -> Vec<(usize, Values)> {
            members.iter().map(|(c, row)| (*c, of(*row))).collect()
        };
        let rows = values(&|row| self.rows.row(row, self.width));
        let projected = values(&|row| self.rows.project(row, self.width, &self.vectors));
        let bits = values(&|row| {
            let bit = |q| i32::from(self.projections.u(q, row));
            Values::Small((0..PROJECTIONS).map(bit).collect())
        });
        let mut folded = fold(&rows, eq, self.width);
        let mut products = fold(&projected, eq, PROJECTIONS);
        if self.has_mask(index) {
            let mask = eq.scalars()[BLOCK_ROWS - 1] * self.sigma;
            folded[0] += mask;
            for (product, vector) in products.iter_mut().zip(&self.vectors) {
                *product += mask * Scalar::from(vector[0] as u16);
            }
        }
        folded.extend(products);
        let bits = fold(&bits, eq, PROJECTIONS);
        folded.extend(bits.iter().zip(self.lambdas.scalars()).map(|(bit, lambda)| bit * lambda));
        folded
    }
}

impl Block {
    /// Pairs of rows that the next round combines.
    pub fn pairs(&self) -> usize {
        self.size / 2
    }

    /// X · X along the line of pair `a`.
    pub fn square(&self, a: usize) -> Quadratic {
        self.quadratic(&self.gram, a)
    }

    /// W · X along the line of pair `a`.
    pub fn projected(&self, a: usize) -> Quadratic {
        self.quadratic(&self.cross, a)
    }

    fn quadratic(&self, products: &[Scalar], a: usize) -> Quadratic {
        let b = a + self.pairs();
        let at = |i: usize, j: usize| products[i * self.size + j];
        Quadratic { low: at(a, a), mixed: at(a, b) + at(b, a), high: at(b, b) }
    }

    /// Replaces every pair of rows by its point at `r`.
    pub fn bind(&mut self, r: &Scalar) {
        let half = self.pairs();
        let s = Scalar::ONE - r;
        let (ss, rs, rr) = (s * s, r * s, r * r);
        for products in [&mut self.gram, &mut self.cross] {
            let at = |i: usize, j: usize| products[i * 2 * half + j];
            let bound = (0..half * half).map(|entry| {
                let (i, j) = (entry / half, entry % half);
                ss * at(i, j)
                    + rs * (at(i, j + half) + at(i + half, j))
                    + rr * at(i + half, j + half)
            });
            *products = bound.collect();
        }
        self.size = half;
    }
}
