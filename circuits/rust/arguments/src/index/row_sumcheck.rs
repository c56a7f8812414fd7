//! The row part of the sumcheck over x: alpha^14 M_N X² + alpha^15 W X, summed over y.

use curve25519_dalek::scalar::Scalar;
use rayon::prelude::*;
use zeroize::Zeroize;

use super::blocks::{BLOCK_ROUNDS, Block, Quadratic, Source};
use super::projections::PROJECTIONS;
use super::relation;
use super::rows::Weights;
use crate::errors::Result;
use crate::progress::Progress;
use crate::scalars::{eq_table, inner_product};
use crate::tables::{MaskedTable, extend, lines};

/// Blocks worked on between two reports of progress.
const STEP: usize = 256;

/// The rows, as far as they are bound.
enum Stage {
    /// The first rounds: products of rows.
    Blocks(Vec<Block>),
    /// The later rounds: rows of field elements, X || X · v || lambda u each.
    Rows(RowTable),
}

/// Rows of a masked table (see [`MaskedTable`]).
struct RowTable {
    entries: Vec<Vec<Scalar>>,
    mask: Vec<Scalar>,
    variables: usize,
}

/// The row part, one variable of x bound after the other.
pub struct RowPart<'a> {
    source: Source<'a>,
    /// M_N.
    norm_weight: MaskedTable,
    stage: Stage,
    point: Vec<Scalar>,
    progress: &'a dyn Progress,
}

impl<'a> RowPart<'a> {
    /// The part before the first round. `norm_weight` holds eq(t, i) for i < N.
    pub fn new(
        source: Source<'a>,
        norm_weight: MaskedTable,
        progress: &'a dyn Progress,
    ) -> Result<Self> {
        let mut blocks = Vec::new();
        let indices = source.block_indices();
        for step in indices.chunks(STEP) {
            progress.report(0.4 * blocks.len() as f64 / indices.len() as f64)?;
            blocks.par_extend(step.par_iter().map(|index| source.block(*index)));
        }
        let stage = Stage::Blocks(blocks);
        Ok(RowPart { source, norm_weight, stage, point: Vec::new(), progress })
    }

    /// Values at 0, 1, 2, 3 of the part's round polynomial.
    pub fn values(&self, weights: &relation::Weights) -> [Scalar; 4] {
        let at = |i: usize, square: Quadratic, projected: Quadratic| {
            let weight: [Scalar; 4] = extend(self.norm_weight.pair(i));
            let (square, projected) = (square.values(), projected.values());
            std::array::from_fn(|x| weights.row_part(&weight[x], &square[x], &projected[x]))
        };
        match &self.stage {
            Stage::Blocks(blocks) => total(blocks.par_iter().map(|block| {
                let pairs = (0..block.pairs()).map(|a| {
                    let row = a * self.source.stride + block.index;
                    at(row, block.square(a), block.projected(a))
                });
                pairs.fold([Scalar::ZERO; 4], add)
            })),
            Stage::Rows(table) => {
                let indices = lines(table.entries.len(), table.variables);
                total(indices.into_par_iter().map(|i| {
                    let (square, projected) = table.products(i, self.source.width);
                    at(i, square, projected)
                }))
            }
        }
    }

    /// Binds the next variable of x.
    pub fn bind(&mut self, r: &Scalar) -> Result<()> {
        self.point.push(*r);
        self.norm_weight.bind(r);
        match &mut self.stage {
            Stage::Blocks(blocks) => blocks.par_iter_mut().for_each(|block| block.bind(r)),
            Stage::Rows(table) => table.bind(r),
        }
        if self.point.len() == BLOCK_ROUNDS {
            self.stage = Stage::Rows(self.folded()?);
        }
        Ok(())
    }

    fn folded(&mut self) -> Result<RowTable> {
        self.stage = Stage::Blocks(Vec::new());
        let eq = Weights::new(&eq_table(&self.point, 1 << BLOCK_ROUNDS));
        let mut entries = Vec::new();
        let indices = self.source.block_indices();
        for step in indices.chunks(STEP) {
            self.progress.report(0.4 + 0.4 * entries.len() as f64 / indices.len() as f64)?;
            entries.par_extend(step.par_iter().map(|index| self.source.folded_row(*index, &eq)));
        }
        let mask = entries.pop().unwrap_or_default();
        Ok(RowTable { entries, mask, variables: self.source.stride.trailing_zeros() as usize })
    }

    /// After all rounds: (X(r_x, ·), lambda^q u~_q(r_x), M_N(r_x)).
    pub fn finish(&self) -> (Vec<Scalar>, Vec<Scalar>, Scalar) {
        let Stage::Rows(table) = &self.stage else {
            unreachable!("m is at least 10, so blocks never last to the end")
        };
        let row = table.mask[..self.source.width].to_vec();
        let bits = table.mask[self.source.width + PROJECTIONS..].to_vec();
        (row, bits, self.norm_weight.mask())
    }
}

fn add(left: [Scalar; 4], right: [Scalar; 4]) -> [Scalar; 4] {
    std::array::from_fn(|x| left[x] + right[x])
}

fn total(values: impl ParallelIterator<Item = [Scalar; 4]>) -> [Scalar; 4] {
    values.reduce(|| [Scalar::ZERO; 4], add)
}

impl RowTable {
    /// X · X and W · X along the line through row `i`.
    fn products(&self, i: usize, width: usize) -> (Quadratic, Quadratic) {
        let (low, high) = self.pair(i);
        let part = |row: Option<&'_ Vec<Scalar>>, start, end| -> Vec<Scalar> {
            row.map(|row| row[start..end].to_vec()).unwrap_or_default()
        };
        let middle = width + PROJECTIONS;
        let end = middle + PROJECTIONS;
        let quadratic = |from: (usize, usize), to: (usize, usize)| {
            let [a_low, a_high] = [low, high].map(|row| part(row, from.0, from.1));
            let [b_low, b_high] = [low, high].map(|row| part(row, to.0, to.1));
            Quadratic {
                low: inner_product(&a_low, &b_low),
                mixed: inner_product(&a_low, &b_high) + inner_product(&a_high, &b_low),
                high: inner_product(&a_high, &b_high),
            }
        };
        (quadratic((0, width), (0, width)), quadratic((width, middle), (middle, end)))
    }

    fn bind(&mut self, r: &Scalar) {
        let half = 1 << (self.variables - 1);
        let mask = line(self.pair(half - 1), r, self.mask.len());
        let kept = self.entries.len().min(half - 1);
        let bound: Vec<Vec<Scalar>> =
            (0..kept).into_par_iter().map(|i| line(self.pair(i), r, mask.len())).collect();
        self.entries.zeroize();
        self.entries = bound;
        self.mask = mask;
        self.variables -= 1;
    }

    /// The rows at 0 and 1 of the line through row `i`; a missing row is zero.
    fn pair(&self, i: usize) -> (Option<&Vec<Scalar>>, Option<&Vec<Scalar>>) {
        let half = 1 << (self.variables - 1);
        let high = if i == half - 1 { Some(&self.mask) } else { self.entries.get(half + i) };
        (self.entries.get(i), high)
    }
}

fn line(
    (low, high): (Option<&Vec<Scalar>>, Option<&Vec<Scalar>>),
    r: &Scalar,
    length: usize,
) -> Vec<Scalar> {
    match (low, high) {
        (Some(low), Some(high)) => low.iter().zip(high).map(|(a, b)| a + r * (b - a)).collect(),
        (Some(low), None) => low.iter().map(|a| a - r * a).collect(),
        (None, Some(high)) => high.iter().map(|b| r * b).collect(),
        (None, None) => vec![Scalar::ZERO; length],
    }
}

impl Drop for RowTable {
    fn drop(&mut self) {
        self.entries.zeroize();
        self.mask.zeroize();
    }
}
