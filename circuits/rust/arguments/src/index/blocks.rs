//! Sixteen rows that meet in the first four rounds, as products of pairs of rows.
//!
//! The round polynomials of the row part are quadratic in the rows, so the first rounds need
//! only the products of rows that the rounds combine: X_a · X_b and, for the projections,
//! sum_q lambda^q u_q(a) (X_b · v_q). Both are integer products of the committed rows. The table
//! of 2^(m + md) field elements never exists (spec 4.7.4).

use super::projections::{Kept, PROJECTIONS, Projections};
use super::rows::{ColumnVectors, Products, Rows, Values, fold};
use crate::field::{Element, SmallSum};

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
    /// v_q.
    pub vectors: &'a ColumnVectors,
    /// <X_i, v_q>.
    pub products: &'a Products,
    /// lambda^q.
    pub lambdas: &'a [Element],
    /// sigma, the entry of the mask row in column 0.
    pub sigma: Element,
    /// Rows of neighbors in a block are this far apart: 2^(m-4).
    pub stride: usize,
}

/// The committed rows of one block.
struct Members {
    index: usize,
    /// Place in the block, row, its projections and the projections that keep it.
    places: Vec<usize>,
    rows: Vec<Values>,
    projected: Vec<Values>,
    kept: Vec<Kept>,
}

/// The products of the rows of one block.
pub struct Block {
    /// Index of the block's first row, below the stride.
    pub index: usize,
    size: usize,
    /// X_a · X_b at a · size + b.
    gram: Vec<Element>,
    /// sum_q lambda^q u_q(a) (X_b · v_q) at a · size + b.
    cross: Vec<Element>,
}

/// A quadratic polynomial along a line, by its values at 0 and 1 and its mixed term.
pub struct Quadratic {
    /// Value at 0.
    pub low: Element,
    /// Coefficient of X(1 - X).
    pub mixed: Element,
    /// Value at 1.
    pub high: Element,
}

impl Quadratic {
    /// (1-X)² low + X(1-X) mixed + X² high at X = 0, 1, 2, 3.
    pub fn values(&self) -> [Element; 4] {
        let Quadratic { low, mixed, high } = self;
        let double = mixed.double();
        let (four_low, four_high) = (low.double().double(), high.double().double());
        [
            *low,
            *high,
            *low - double + four_high,
            four_low - double.double() - double + four_high.double() + *high,
        ]
    }
}

impl Source<'_> {
    /// Indices of blocks that are not entirely zero: those of rows, and that of the mask row.
    pub fn block_indices(&self) -> Vec<usize> {
        let last = self.stride - 1;
        (0..self.count.min(last)).chain([last]).collect()
    }

    /// The committed rows of these blocks.
    fn members(&self, indices: &[usize]) -> Vec<Members> {
        let places = |index: usize| {
            let places = (0..BLOCK_ROWS).map(move |c| (c, index + c * self.stride));
            places.filter(|(_, row)| *row < self.count)
        };
        let rows: Vec<usize> =
            indices.iter().flat_map(|index| places(*index).map(|(_, row)| row)).collect();
        let mut kept = self.projections.kept(&rows).into_iter();
        let members = |index: &usize| {
            let (places, rows): (Vec<usize>, Vec<usize>) = places(*index).unzip();
            Members {
                index: *index,
                projected: rows.iter().map(|row| self.products.of(*row)).collect(),
                kept: kept.by_ref().take(rows.len()).collect(),
                rows: rows.iter().map(|row| self.rows.row(*row, self.width)).collect(),
                places,
            }
        };
        indices.iter().map(members).collect()
    }

    fn has_mask(&self, index: usize) -> bool {
        index == self.stride - 1
    }

    /// The products of the rows of these blocks.
    pub fn blocks(&self, indices: &[usize]) -> Vec<Block> {
        self.members(indices).iter().map(|members| self.block(members)).collect()
    }

    fn block(&self, members: &Members) -> Block {
        let mut gram = vec![Element::ZERO; BLOCK_ROWS * BLOCK_ROWS];
        let mut cross = vec![Element::ZERO; BLOCK_ROWS * BLOCK_ROWS];
        for (j, b) in members.places.iter().enumerate() {
            for (i, a) in members.places[..=j].iter().enumerate() {
                let product = members.rows[i].product(&members.rows[j]);
                gram[a * BLOCK_ROWS + b] = product;
                gram[b * BLOCK_ROWS + a] = product;
            }
            let weighted = members.projected[j].weighted(self.lambdas);
            for (kept, a) in members.kept.iter().zip(&members.places) {
                cross[a * BLOCK_ROWS + b] = sum_of(kept, &weighted);
            }
        }
        if self.has_mask(members.index) {
            let last = BLOCK_ROWS - 1;
            let bits = self.vectors.at_column(0).zip(self.lambdas);
            let first_column: Vec<Element> =
                bits.map(|(bit, lambda)| lambda.keep_if(u64::from(bit))).collect();
            for (i, a) in members.places.iter().enumerate() {
                let product = self.sigma * members.rows[i].element(0);
                gram[a * BLOCK_ROWS + last] = product;
                gram[last * BLOCK_ROWS + a] = product;
                cross[a * BLOCK_ROWS + last] = self.sigma * sum_of(&members.kept[i], &first_column);
            }
            gram[BLOCK_ROWS * BLOCK_ROWS - 1] = self.sigma.square();
        }
        Block { index: members.index, size: BLOCK_ROWS, gram, cross }
    }

    /// The one row that is left of each of these blocks after four rounds with eq weights `eq`:
    /// X (d + 4 entries), X · v_q and lambda^q u_q (309 each).
    pub fn folded_rows(&self, indices: &[usize], eq: &[Element]) -> Vec<Vec<Element>> {
        self.members(indices).into_iter().map(|members| self.folded_row(members, eq)).collect()
    }

    fn folded_row(&self, members: Members, eq: &[Element]) -> Vec<Element> {
        let Members { index, places, rows, projected, kept } = members;
        let placed = |values: Vec<Values>| -> Vec<(usize, Values)> {
            places.iter().copied().zip(values).collect()
        };
        let mut folded = fold(&placed(rows), eq, self.width);
        let mut products = fold(&placed(projected), eq, PROJECTIONS);
        if self.has_mask(index) {
            let mask = eq[BLOCK_ROWS - 1] * self.sigma;
            folded[0] += mask;
            for (product, bit) in products.iter_mut().zip(self.vectors.at_column(0)) {
                *product += mask.keep_if(u64::from(bit));
            }
        }
        folded.extend(products);
        let mut bits = vec![SmallSum::default(); PROJECTIONS];
        for (place, kept) in places.iter().zip(&kept) {
            kept.iter().for_each(|q| bits[q].add(&eq[*place]));
        }
        folded.extend(bits.iter().zip(self.lambdas).map(|(bit, lambda)| bit.reduce() * *lambda));
        folded
    }
}

/// The sum of the values that are kept.
fn sum_of(kept: &Kept, values: &[Element]) -> Element {
    let mut sum = SmallSum::default();
    kept.iter().for_each(|q| sum.add(&values[q]));
    sum.reduce()
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

    fn quadratic(&self, products: &[Element], a: usize) -> Quadratic {
        let b = a + self.pairs();
        let at = |i: usize, j: usize| products[i * self.size + j];
        Quadratic { low: at(a, a), mixed: at(a, b) + at(b, a), high: at(b, b) }
    }

    /// Replaces every pair of rows by its point at `r`.
    pub fn bind(&mut self, r: &Element) {
        let half = self.pairs();
        let s = Element::ONE - *r;
        let (ss, rs, rr) = (s.square(), *r * s, r.square());
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
