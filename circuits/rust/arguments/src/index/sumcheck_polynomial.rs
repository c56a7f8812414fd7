//! F over x, then y, one variable bound after the other.

use rayon::prelude::*;
use zeroize::Zeroize;

use super::projections::{DIGIT_BITS, Projections};
use super::relation::Weights;
use super::row_sumcheck::RowPart;
use crate::errors::Result;
use crate::field::Element;
use crate::sumcheck::RoundPolynomial;
use crate::tables::{MaskedTable, extend, lines};

/// The tables over x.
pub struct RowPhase<'a> {
    /// kap_0 .. kap_13.
    pub digits: Vec<MaskedTable>,
    /// M_R.
    pub range_weight: MaskedTable,
    /// omega.
    pub digit_weight: MaskedTable,
    /// The part that depends on the rows.
    pub row_part: RowPart<'a>,
    /// Variables of x that are left.
    pub variables: usize,
}

/// The tables over y, at r_x.
struct ColumnPhase {
    /// X(r_x, ·).
    row: Vec<Element>,
    /// W(r_x, ·).
    projected: Vec<Element>,
    /// eq(·, 0).
    first: Vec<Element>,
    /// The bracket of F at r_x.
    range_part: Element,
    /// M_N(r_x).
    norm_weight: Element,
}

/// F with some variables bound.
pub struct Polynomial<'a> {
    weights: &'a Weights,
    projections: &'a Projections,
    row_phase: RowPhase<'a>,
    column_phase: Option<ColumnPhase>,
    /// X(r_x, ·) without pads, once x is bound.
    bound_row: Vec<Element>,
}

impl<'a> Polynomial<'a> {
    /// F before the first round.
    pub fn new(
        weights: &'a Weights,
        projections: &'a Projections,
        row_phase: RowPhase<'a>,
    ) -> Self {
        Polynomial { weights, projections, row_phase, column_phase: None, bound_row: Vec::new() }
    }

    /// After all rounds: v_kap0 .. v_kap13.
    pub fn digit_values(&self) -> Vec<Element> {
        self.row_phase.digits.iter().map(MaskedTable::mask).collect()
    }

    /// After all rounds: X(r_x, j) for j < d + 4.
    pub fn bound_row(&self) -> &[Element] {
        &self.bound_row
    }

    fn row_values(&self) -> Vec<Element> {
        let phase = &self.row_phase;
        let stored = phase.range_weight.entries().len();
        let mut values = phase.row_part.values(self.weights);
        for i in lines(stored, phase.variables) {
            let digits: [[Element; 4]; DIGIT_BITS] =
                std::array::from_fn(|k| extend(phase.digits[k].pair(i)));
            let weight: [Element; 4] = extend(phase.range_weight.pair(i));
            let digit_weight: [Element; 4] = extend(phase.digit_weight.pair(i));
            for (x, value) in values.iter_mut().enumerate() {
                let at_x: [Element; DIGIT_BITS] = std::array::from_fn(|k| digits[k][x]);
                *value += self.weights.range_part(&at_x, &weight[x], &digit_weight[x]);
            }
        }
        values.to_vec()
    }

    /// W(r_x, y) = sum_q lambda^q u~_q(r_x) v_q(y), and the other tables over y.
    fn start_columns(&mut self) {
        let (row, bits, norm_weight) = self.row_phase.row_part.finish();
        let projected: Vec<Element> = (0..row.len())
            .into_par_iter()
            .map(|column| {
                let kept = bits.iter().enumerate().filter(|(q, _)| self.projections.v(*q, column));
                kept.map(|(_, bit)| bit).sum()
            })
            .collect();
        let length = row.len().next_power_of_two();
        let padded = |mut table: Vec<Element>| {
            table.resize(length, Element::ZERO);
            table
        };
        let range_part = self.weights.range_part(
            &self.digit_values(),
            &self.row_phase.range_weight.mask(),
            &self.row_phase.digit_weight.mask(),
        );
        self.bound_row = row.clone();
        self.column_phase = Some(ColumnPhase {
            row: padded(row),
            projected: padded(projected),
            first: padded(vec![Element::ONE]),
            range_part,
            norm_weight,
        });
    }
}

impl ColumnPhase {
    fn values(&self, weights: &Weights) -> Vec<Element> {
        let half = self.row.len() / 2;
        let mut values = [Element::ZERO; 3];
        for i in 0..half {
            let line = |table: &[Element]| extend::<3>((table[i], table[half + i]));
            let (row, projected, first) =
                (line(&self.row), line(&self.projected), line(&self.first));
            for (x, value) in values.iter_mut().enumerate() {
                let square = row[x].square();
                *value += first[x] * self.range_part
                    + weights.row_part(&self.norm_weight, &square, &(projected[x] * row[x]));
            }
        }
        values.to_vec()
    }

    fn bind(&mut self, r: &Element) {
        for table in [&mut self.row, &mut self.projected, &mut self.first] {
            let half = table.len() / 2;
            let bound = (0..half).map(|i| table[i] + *r * (table[half + i] - table[i])).collect();
            table.zeroize();
            *table = bound;
        }
    }
}

impl RoundPolynomial for Polynomial<'_> {
    fn values(&self) -> Vec<Element> {
        match &self.column_phase {
            Some(phase) => phase.values(self.weights),
            None => self.row_values(),
        }
    }

    fn bind(&mut self, r: &Element) -> Result<()> {
        if let Some(phase) = &mut self.column_phase {
            phase.bind(r);
            return Ok(());
        }
        let phase = &mut self.row_phase;
        phase.digits.iter_mut().for_each(|table| table.bind(r));
        phase.range_weight.bind(r);
        phase.digit_weight.bind(r);
        phase.row_part.bind(r)?;
        phase.variables -= 1;
        if phase.variables == 0 {
            self.start_columns();
        }
        Ok(())
    }
}

impl Drop for ColumnPhase {
    fn drop(&mut self) {
        self.row.zeroize();
        self.projected.zeroize();
    }
}

impl Drop for Polynomial<'_> {
    fn drop(&mut self) {
        self.bound_row.zeroize();
    }
}
