//! F over x, then y, on the sparse matrix of charges: work in its nonzero entries only.

use rayon::prelude::*;
use zeroize::Zeroize;

use super::proof::MatrixChallenges;
use super::statement::Shape;
use crate::errors::Result;
use crate::field::{Element, ProductSum};
use crate::multilinear::eq_table;
use crate::sumcheck::RoundPolynomial;
use crate::tables::{MaskedTable, extend, lines};

/// Columns that one task treats.
const COLUMNS_PER_TASK: usize = 1 << 10;
/// Lines over y that one task evaluates at least.
const LINES_PER_TASK: usize = 1 << 8;

/// Nonzero entries of some neighbouring columns.
///
/// Rows are kept by the reversal of their bits: the two that meet when the most significant
/// variable is bound are neighbours, and stay so.
struct Columns {
    /// Where each column ends.
    ends: Vec<usize>,
    /// Reversed rows, rising within a column.
    rows: Vec<u32>,
    values: Vec<Element>,
}

impl Columns {
    /// Calls `each` with a column's number, and of every pair of its rows that meet the reversed
    /// row and the values at 0 and 1.
    fn for_each_pair(&self, mut each: impl FnMut(usize, u32, Element, Element)) {
        let mut start = 0;
        for (column, end) in self.ends.iter().enumerate() {
            while start < *end {
                let row = self.rows[start];
                let first = self.values[start];
                start += 1;
                let (low, high) = if row & 1 == 1 {
                    (Element::ZERO, first)
                } else if start < *end && self.rows[start] == row + 1 {
                    start += 1;
                    (first, self.values[start - 1])
                } else {
                    (first, Element::ZERO)
                };
                each(column, row >> 1, low, high);
            }
        }
    }

    /// The sums over the columns of weight (b² - b) at 0, 1, 2, 3, each times its column's weight.
    fn sums(&self, weights: &[Element], column_weights: &[Element]) -> [Element; 4] {
        let mut sums = [ProductSum::default(); 4];
        self.for_each_pair(|column, row, low, high| {
            let row = row as usize;
            let value: [Element; 4] = extend((low, high));
            let weight: [Element; 4] = extend((weights[2 * row], weights[2 * row + 1]));
            for x in 0..4 {
                let scaled = weight[x] * column_weights[column];
                sums[x].add_product(&scaled, &(value[x].square() - value[x]));
            }
        });
        sums.map(|sum| sum.reduce())
    }

    fn bind(&mut self, r: &Element) {
        let mut ends = vec![0; self.ends.len()];
        let mut rows = Vec::with_capacity(self.rows.len());
        let mut values = Vec::with_capacity(self.values.len());
        self.for_each_pair(|column, row, low, high| {
            rows.push(row);
            values.push(low + *r * (high - low));
            ends[column] = rows.len();
        });
        let mut last = 0;
        for end in &mut ends {
            last = last.max(*end);
            *end = last;
        }
        self.values.zeroize();
        *self = Columns { ends, rows, values };
    }

    /// The one value of each column after the last binding.
    fn bound(&self) -> Vec<Element> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let value = |(start, end): (usize, &usize)| {
            if start < *end { self.values[start] } else { Element::ZERO }
        };
        starts.zip(&self.ends).map(value).collect()
    }
}

impl Drop for Columns {
    fn drop(&mut self) {
        self.values.zeroize();
        self.rows.zeroize();
    }
}

/// F with some variables bound.
pub struct Polynomial {
    /// The matrix, until x is bound.
    matrix: Vec<Columns>,
    /// M_R by reversed rows, bound as far as x is.
    vector_weights: Vec<Element>,
    /// eq(u, i).
    column_weights: Vec<Element>,
    entry_variables: usize,
    row_variables: usize,
    /// b(r_x, i) and M_R(r_x) M_N(i), once x is bound.
    tables: Option<[MaskedTable; 2]>,
    bound: Vec<Element>,
}

impl Polynomial {
    /// F for the matrix whose column `i` is 1 in the rows `column(i)`, and `sigma` in the mask row
    /// of column 0.
    pub fn new(
        shape: &Shape,
        drawn: &MatrixChallenges,
        columns: &[Vec<u32>],
        sigma: Element,
    ) -> Self {
        let mx = shape.entry_variables();
        let reversed = |row: u32| row.reverse_bits() >> (u32::BITS - mx as u32);
        let collect = |(task, columns): (usize, &[Vec<u32>])| {
            let mut part = Columns { ends: Vec::new(), rows: Vec::new(), values: Vec::new() };
            for (column, ones) in columns.iter().enumerate() {
                let start = part.rows.len();
                part.rows.extend(ones.iter().map(|row| reversed(*row)));
                part.rows[start..].sort_unstable();
                part.values.resize(part.rows.len(), Element::ONE);
                if task == 0 && column == 0 {
                    // The last row: its reversal is the last one too.
                    part.rows.push(((1u64 << mx) - 1) as u32);
                    part.values.push(sigma);
                }
                part.ends.push(part.rows.len());
            }
            part
        };
        let natural = eq_table(&Element::ONE, &drawn.t, shape.vectors());
        let mut vector_weights = vec![Element::ZERO; 1 << mx];
        for (row, weight) in natural.into_iter().enumerate() {
            vector_weights[reversed(row as u32) as usize] = weight;
        }
        Polynomial {
            matrix: columns.par_chunks(COLUMNS_PER_TASK).enumerate().map(collect).collect(),
            vector_weights,
            column_weights: eq_table(&Element::ONE, &drawn.u, shape.rows),
            entry_variables: mx,
            row_variables: shape.row_variables(),
            tables: None,
            bound: Vec::new(),
        }
    }

    /// After all rounds: b(r_x, r_y).
    pub fn evaluation(&self) -> Element {
        self.tables.as_ref().map_or(Element::ZERO, |[values, _]| values.mask())
    }

    /// After all rounds: b(r_x, i) for i < N.
    pub fn bound_columns(&self) -> &[Element] {
        &self.bound
    }

    fn matrix_values(&self) -> [Element; 4] {
        self.matrix
            .par_iter()
            .zip(self.column_weights.par_chunks(COLUMNS_PER_TASK))
            .map(|(columns, weights)| columns.sums(&self.vector_weights, weights))
            .reduce(|| [Element::ZERO; 4], add)
    }

    fn start_rows(&mut self) {
        self.bound = self.matrix.iter().flat_map(Columns::bound).collect();
        self.matrix.clear();
        let scale = self.vector_weights[0];
        let weights = self.column_weights.iter().map(|weight| scale * *weight).collect();
        let table = |entries| MaskedTable::whole(entries, self.row_variables);
        self.tables = Some([table(self.bound.clone()), table(weights)]);
    }
}

fn add(left: [Element; 4], right: [Element; 4]) -> [Element; 4] {
    std::array::from_fn(|x| left[x] + right[x])
}

impl RoundPolynomial for Polynomial {
    fn values(&self) -> Vec<Element> {
        let Some([values, weights]) = &self.tables else {
            return self.matrix_values().to_vec();
        };
        let line = |i: usize| -> [Element; 4] {
            let value: [Element; 4] = extend(values.pair(i));
            let weight: [Element; 4] = extend(weights.pair(i));
            std::array::from_fn(|x| weight[x] * (value[x].square() - value[x]))
        };
        lines(weights.entries().len(), self.row_variables)
            .into_par_iter()
            .with_min_len(LINES_PER_TASK)
            .map(line)
            .reduce(|| [Element::ZERO; 4], add)
            .to_vec()
    }

    fn bind(&mut self, r: &Element) -> Result<()> {
        if let Some(tables) = &mut self.tables {
            tables.iter_mut().for_each(|table| table.bind(r));
            self.row_variables -= 1;
            return Ok(());
        }
        self.matrix.par_iter_mut().for_each(|columns| columns.bind(r));
        self.vector_weights =
            self.vector_weights.chunks(2).map(|pair| pair[0] + *r * (pair[1] - pair[0])).collect();
        self.entry_variables -= 1;
        if self.entry_variables == 0 {
            self.start_rows();
        }
        Ok(())
    }
}

impl Drop for Polynomial {
    fn drop(&mut self) {
        self.bound.zeroize();
    }
}
