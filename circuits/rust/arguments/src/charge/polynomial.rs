//! F over x, then y.

use curve25519_dalek::scalar::Scalar;
use rayon::prelude::*;

use super::planes::{Planes, RowValues, Weighing, reversed};
use super::proof::TableChallenges;
use super::relation::{Relation, Values, Weights};
use super::statement::Shape;
use crate::errors::Result;
use crate::field::Element;
use crate::multilinear::eq_table;
use crate::sumcheck::RoundPolynomial;
use crate::tables::{MaskedTable, lines};

/// Lines over y that one task evaluates at least.
const LINES_PER_TASK: usize = 1 << 6;
/// b, c, h, Y, q + sum 2^k u_k.
const OTHERS: usize = 5;
/// Y among these.
const DIFFERENCE: usize = 3;

/// F with some variables bound.
pub struct Polynomial<'a> {
    shape: Shape,
    relation: &'a Relation,
    planes: &'a Planes,
    /// Masks of b, c, h, u_0 .., in column 0, and that of Y, in every column.
    masks: Vec<Element>,
    difference_mask: Element,
    t: Vec<Element>,
    /// eq(u, i).
    row_weights: Vec<Element>,
    r_x: Vec<Element>,
    /// Once x is bound: u_k, b, c, h, Y, q + sum 2^k u_k over the rows, M_all and M_in.
    tables: Vec<MaskedTable>,
    /// What the mask row adds to Y in every column, once x is bound.
    difference_shift: Element,
    row_variables: usize,
}

impl<'a> Polynomial<'a> {
    /// F before the first round.
    pub fn new(
        shape: &Shape,
        relation: &'a Relation,
        planes: &'a Planes,
        masks: &[Scalar],
        difference_mask: &Scalar,
        drawn: &TableChallenges,
    ) -> Self {
        Polynomial {
            shape: *shape,
            relation,
            planes,
            masks: masks.iter().map(Element::from).collect(),
            difference_mask: difference_mask.into(),
            t: drawn.t.clone(),
            row_weights: eq_table(&Element::ONE, &drawn.u, shape.rows),
            r_x: Vec::new(),
            tables: Vec::new(),
            difference_shift: Element::ZERO,
            row_variables: shape.row_variables(),
        }
    }

    /// After all rounds: v_b, v_c, v_h, v_u_0 .., v_Y.
    pub fn evaluations(&self) -> Vec<Scalar> {
        let value = |number: usize| self.tables[number].mask();
        let bits = self.shape.bits;
        let unscaled = self.relation.inverse_scales();
        let mut values: Vec<Element> = (bits..bits + 3).map(value).collect();
        values.extend((0..bits).map(|k| value(k) * unscaled[k]));
        values.push(value(bits + DIFFERENCE) + self.difference_shift);
        values.iter().map(Scalar::from).collect()
    }

    /// The tables of row `i`, with their masks.
    fn row(&self, i: usize, later: usize, last: usize, weighing: &Weighing) -> (Values, Element) {
        let mut row = self.planes.values(i, later, weighing);
        if later == last {
            self.add_masks(i, &mut row, weighing);
        }
        let mut values = Values::default();
        let scaled = values.bits.iter_mut().zip(&row.bits).zip(&self.relation.scales);
        scaled.for_each(|((scaled, bit), scale)| *scaled = *bit * *scale);
        let [charged, before, exhausted, difference, distance] = row.others;
        let inside = row.inside;
        (Values { charged, before, exhausted, difference, distance, ..values }, inside)
    }

    /// Adds the share of the mask row.
    fn add_masks(&self, i: usize, row: &mut RowValues, weighing: &Weighing) {
        row.others[DIFFERENCE] += weighing.mask_row * self.difference_mask;
        if i != 0 {
            return;
        }
        let (first, bits) = self.masks.split_at(OTHERS - 2);
        for (value, mask) in row.others.iter_mut().zip(first) {
            *value += weighing.mask_row * *mask;
        }
        // q + sum 2^k u_k of the mask row.
        let mut distance = Element::ZERO;
        for mask in bits.iter().rev() {
            distance = distance.double() + *mask;
        }
        row.others[OTHERS - 1] += weighing.mask_row * (distance + first[0] + first[2]);
        for (value, mask) in row.bits.iter_mut().zip(bits) {
            *value += weighing.mask_row * *mask;
        }
    }

    fn entry_values(&self) -> [Element; 4] {
        let (bound, mx) = (self.r_x.len(), self.shape.entry_variables());
        let left = mx - bound;
        let weighing = Weighing::new(&self.r_x, &self.t);
        let later_weights = eq_table(&Element::ONE, &self.t[bound + 1..], 1 << (left - 1));
        let t = self.t[bound];
        let last = (1 << left) - 1;
        // The pairs of places that the next variable tells apart, and M_all there.
        let pairs: Vec<[(usize, Element); 2]> = (0..1usize << (left - 1))
            .map(|place| {
                let later = later_weights[reversed_or_zero(place, left - 1)];
                [(2 * place, Element::ONE - t), (2 * place + 1, t)].map(|(at, factor)| {
                    let claimed = self.planes.claimed(self.shape.entries, at, &weighing);
                    (at, factor * later * claimed)
                })
            })
            .collect();
        let factors: Vec<[Element; 2]> = (0..pairs.len())
            .map(|place| {
                let later = later_weights[reversed_or_zero(place, left - 1)];
                [(Element::ONE - t) * later, t * later]
            })
            .collect();
        let row = |i: usize| {
            let mut sum = [Element::ZERO; 4];
            for (pair, factor) in pairs.iter().zip(&factors) {
                if pair.iter().all(|(_, all)| *all == Element::ZERO) {
                    continue;
                }
                let found: [(Values, Element); 2] =
                    std::array::from_fn(|side| self.row(i, pair[side].0, last, &weighing));
                let weights = std::array::from_fn(|side| Weights {
                    all: pair[side].1,
                    inside: factor[side] * found[side].1,
                });
                let line = self.relation.line([&found[0].0, &found[1].0], weights);
                sum = add(sum, line);
            }
            sum.map(|value| value * self.row_weights[i])
        };
        (0..self.shape.rows).into_par_iter().map(row).reduce(|| [Element::ZERO; 4], add)
    }

    /// The tables over y, at r_x.
    fn start_rows(&mut self) {
        let weighing = Weighing::new(&self.r_x, &self.t);
        let rows: Vec<(Values, Element)> = (0..self.shape.rows)
            .into_par_iter()
            .map(|i| {
                let (mut values, inside) = self.row(i, 0, 0, &weighing);
                // Y's mask is the same in every column, also beyond N.
                values.difference -= weighing.mask_row * self.difference_mask;
                (values, inside * self.row_weights[i])
            })
            .collect();
        self.difference_shift = weighing.mask_row * self.difference_mask;
        let all = self.planes.claimed(self.shape.entries, 0, &weighing);
        let variables = self.row_variables;
        let table = |of: &dyn Fn(&(Values, Element)) -> Element| {
            MaskedTable::whole(rows.iter().map(of).collect(), variables)
        };
        self.tables = (0..self.shape.bits).map(|k| table(&|row| row.0.bits[k])).collect();
        self.tables.push(table(&|row| row.0.charged));
        self.tables.push(table(&|row| row.0.before));
        self.tables.push(table(&|row| row.0.exhausted));
        self.tables.push(table(&|row| row.0.difference));
        self.tables.push(table(&|row| row.0.distance));
        let weights = self.row_weights.iter().map(|weight| all * *weight).collect();
        self.tables.push(MaskedTable::whole(weights, variables));
        self.tables.push(table(&|row| row.1));
    }

    /// F along a line over y.
    fn row_line(&self, i: usize) -> [Element; 4] {
        let bits = self.shape.bits;
        let mut ends = [Values::default(); 2];
        let mut weights = [Weights::default(); 2];
        let pair = |number: usize| {
            let (low, high) = self.tables[number].pair(i);
            [low, high]
        };
        for k in 0..bits {
            let values = pair(k);
            (0..2).for_each(|side| ends[side].bits[k] = values[side]);
        }
        let others: [[Element; 2]; OTHERS + 2] = std::array::from_fn(|j| pair(bits + j));
        for side in 0..2 {
            let [charged, before, exhausted, difference, distance, all, inside] =
                others.map(|values| values[side]);
            let difference = difference + self.difference_shift;
            let bits = ends[side].bits;
            ends[side] = Values { bits, charged, before, exhausted, difference, distance };
            weights[side] = Weights { all, inside };
        }
        self.relation.line([&ends[0], &ends[1]], weights)
    }
}

/// [`reversed`], also of no bits.
fn reversed_or_zero(number: usize, bits: usize) -> usize {
    if bits == 0 { 0 } else { reversed(number, bits) }
}

fn add(left: [Element; 4], right: [Element; 4]) -> [Element; 4] {
    std::array::from_fn(|x| left[x] + right[x])
}

impl RoundPolynomial for Polynomial<'_> {
    fn values(&self) -> Vec<Element> {
        if self.tables.is_empty() {
            return self.entry_values().to_vec();
        }
        lines(self.row_weights.len(), self.row_variables)
            .into_par_iter()
            .with_min_len(LINES_PER_TASK)
            .map(|i| self.row_line(i))
            .reduce(|| [Element::ZERO; 4], add)
            .to_vec()
    }

    fn bind(&mut self, r: &Element) -> Result<()> {
        if self.tables.is_empty() {
            self.r_x.push(*r);
            if self.r_x.len() == self.shape.entry_variables() {
                self.start_rows();
            }
            return Ok(());
        }
        self.tables.iter_mut().for_each(|table| table.bind(r));
        self.row_variables -= 1;
        Ok(())
    }
}
