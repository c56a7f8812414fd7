//! The row part of the sumcheck over x: alpha^14 M_N X² + alpha^15 W X, summed over y.

use rayon::prelude::*;
use zeroize::Zeroize;

use super::blocks::{BLOCK_ROUNDS, Block, Quadratic, Source};
use super::projections::PROJECTIONS;
use super::relation;
use crate::errors::Result;
use crate::field::{Element, inner_product};
use crate::multilinear::eq_table;
use crate::progress::Progress;
use crate::tables::{MaskedTable, extend, lines};

/// Blocks worked on between two reports of progress.
const STEP: usize = 256;
/// Blocks of one task.
const TASK: usize = 16;

/// The rows, as far as they are bound.
enum Stage {
    /// The first rounds: products of rows.
    Blocks(Vec<Block>),
    /// The later rounds: rows of field elements, X || X · v || lambda u each.
    Rows(RowTable),
}

/// Rows of a masked table (see [`MaskedTable`]).
struct RowTable {
    entries: Vec<Vec<Element>>,
    mask: Vec<Element>,
    variables: usize,
}

/// The row part, one variable of x bound after the other.
pub struct RowPart<'a> {
    source: Source<'a>,
    /// M_N.
    norm_weight: MaskedTable,
    stage: Stage,
    point: Vec<Element>,
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
            blocks.par_extend(step.par_chunks(TASK).flat_map_iter(|part| source.blocks(part)));
        }
        let stage = Stage::Blocks(blocks);
        Ok(RowPart { source, norm_weight, stage, point: Vec::new(), progress })
    }

    /// Values at 0, 1, 2, 3 of the part's round polynomial.
    pub fn values(&self, weights: &relation::Weights) -> [Element; 4] {
        let at = |i: usize, square: Quadratic, projected: Quadratic| {
            let weight: [Element; 4] = extend(self.norm_weight.pair(i));
            let (square, projected) = (square.values(), projected.values());
            std::array::from_fn(|x| weights.row_part(&weight[x], &square[x], &projected[x]))
        };
        match &self.stage {
            Stage::Blocks(blocks) => total(blocks.par_iter().map(|block| {
                let pairs = (0..block.pairs()).map(|a| {
                    let row = a * self.source.stride + block.index;
                    at(row, block.square(a), block.projected(a))
                });
                pairs.fold([Element::ZERO; 4], add)
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
    pub fn bind(&mut self, r: &Element) -> Result<()> {
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
        let eq = eq_table(&Element::ONE, &self.point, 1 << BLOCK_ROUNDS);
        let mut entries = Vec::new();
        let indices = self.source.block_indices();
        for step in indices.chunks(STEP) {
            self.progress.report(0.4 + 0.4 * entries.len() as f64 / indices.len() as f64)?;
            let folded = |part| self.source.folded_rows(part, &eq);
            entries.par_extend(step.par_chunks(TASK).flat_map_iter(folded));
        }
        let mask = entries.pop().unwrap_or_default();
        Ok(RowTable { entries, mask, variables: self.source.stride.trailing_zeros() as usize })
    }

    /// After all rounds: (X(r_x, ·), lambda^q u~_q(r_x), M_N(r_x)).
    pub fn finish(&self) -> (Vec<Element>, Vec<Element>, Element) {
        let Stage::Rows(table) = &self.stage else {
            unreachable!("m is at least 10, so blocks never last to the end")
        };
        let row = table.mask[..self.source.width].to_vec();
        let bits = table.mask[self.source.width + PROJECTIONS..].to_vec();
        (row, bits, self.norm_weight.mask())
    }
}

fn add(left: [Element; 4], right: [Element; 4]) -> [Element; 4] {
    std::array::from_fn(|x| left[x] + right[x])
}

fn total(values: impl ParallelIterator<Item = [Element; 4]>) -> [Element; 4] {
    values.reduce(|| [Element::ZERO; 4], add)
}

impl RowTable {
    /// X · X and W · X along the line through row `i`.
    fn products(&self, i: usize, width: usize) -> (Quadratic, Quadratic) {
        let (low, high) = self.pair(i);
        let middle = width + PROJECTIONS;
        let end = middle + PROJECTIONS;
        let [x_low, x_high] = [low, high].map(|row| part(row, 0, width));
        let [y_low, y_high] = [low, high].map(|row| part(row, width, middle));
        let [w_low, w_high] = [low, high].map(|row| part(row, middle, end));
        let square = Quadratic {
            low: inner_product(x_low, x_low),
            mixed: inner_product(x_low, x_high).double(),
            high: inner_product(x_high, x_high),
        };
        let projected = Quadratic {
            low: inner_product(y_low, w_low),
            mixed: inner_product(y_low, w_high) + inner_product(y_high, w_low),
            high: inner_product(y_high, w_high),
        };
        (square, projected)
    }

    fn bind(&mut self, r: &Element) {
        let half = 1 << (self.variables - 1);
        let mask = line(self.pair(half - 1), r, self.mask.len());
        let kept = self.entries.len().min(half - 1);
        let stored = self.entries.len();
        let (low, high) = self.entries.split_at_mut(half.min(stored));
        let high = &*high;
        low[..kept].par_iter_mut().enumerate().for_each(|(i, low)| match high.get(i) {
            Some(high) => low.iter_mut().zip(high).for_each(|(a, b)| *a += *r * (*b - *a)),
            None => low.iter_mut().for_each(|a| *a -= *r * *a),
        });
        self.entries[kept..].iter_mut().for_each(Zeroize::zeroize);
        self.entries.truncate(kept);
        self.mask = mask;
        self.variables -= 1;
    }

    /// The rows at 0 and 1 of the line through row `i`; a missing row is zero.
    fn pair(&self, i: usize) -> (Option<&Vec<Element>>, Option<&Vec<Element>>) {
        let half = 1 << (self.variables - 1);
        let high = if i == half - 1 { Some(&self.mask) } else { self.entries.get(half + i) };
        (self.entries.get(i), high)
    }
}

/// Entries of a row that may be missing.
fn part(row: Option<&Vec<Element>>, start: usize, end: usize) -> &[Element] {
    row.map(|row| &row[start..end]).unwrap_or_default()
}

fn line(
    (low, high): (Option<&Vec<Element>>, Option<&Vec<Element>>),
    r: &Element,
    length: usize,
) -> Vec<Element> {
    match (low, high) {
        (Some(low), Some(high)) => low.iter().zip(high).map(|(a, b)| *a + *r * (*b - *a)).collect(),
        (Some(low), None) => low.iter().map(|a| *a - *r * *a).collect(),
        (None, Some(high)) => high.iter().map(|b| *r * *b).collect(),
        (None, None) => vec![Element::ZERO; length],
    }
}

impl Drop for RowTable {
    fn drop(&mut self) {
        self.entries.zeroize();
        self.mask.zeroize();
    }
}
