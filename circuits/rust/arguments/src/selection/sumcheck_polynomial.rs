//! F, one variable bound after the other.

use curve25519_dalek::scalar::Scalar;
use rayon::prelude::*;

use super::proof::Evaluations;
use super::protocol::ColumnChallenges;
use super::relation::{self, COLUMNS};
use crate::errors::Result;
use crate::field::Element;
use crate::multilinear::eq_table;
use crate::sumcheck::RoundPolynomial;
use crate::tables::{MaskedTable, extend, lines};

/// Lines that one task evaluates at least.
const TASK: usize = 16;

/// F with some variables bound.
pub struct Polynomial {
    /// b, b3, b4, u_0 .. u_15, Y.
    columns: Vec<MaskedTable>,
    weight: MaskedTable,
    indicator: MaskedTable,
    alphas: Vec<Element>,
    variables: usize,
}

impl Polynomial {
    /// The polynomial for columns b, b3, b4, u_0 .. u_15 over U, the values of Y there, and the
    /// masks of all 20 columns in that order.
    pub fn new(
        bits: &[Vec<bool>],
        differences: Vec<Element>,
        masks: &[Scalar],
        drawn: &ColumnChallenges,
    ) -> Self {
        let rows = differences.len();
        let variables = drawn.t.len();
        let table = |entries, mask| MaskedTable::new(entries, mask, variables);
        let entries = bits
            .iter()
            .map(|bits| bits.iter().map(|bit| Element::from_bit(*bit)).collect())
            .chain([differences]);
        let t: Vec<Element> = drawn.t.iter().map(Element::from).collect();
        let masked = entries.zip(masks);
        Polynomial {
            columns: masked.map(|(entries, mask)| table(entries, Element::from(mask))).collect(),
            // M and chi are zero on the mask row.
            weight: table(eq_table(&Element::ONE, &t, rows), Element::ZERO),
            indicator: table(vec![Element::ONE; rows], Element::ZERO),
            alphas: relation::alpha_powers(&drawn.alpha),
            variables,
        }
    }

    /// After all rounds: v_b, v_b3, v_b4, v_u0 .. v_u15, v_Y.
    pub fn evaluations(&self) -> Evaluations {
        std::array::from_fn(|column| Scalar::from(self.columns[column].mask()))
    }

    /// F at 0, 1, 2, 3 along the line of index `i`.
    fn line(&self, i: usize) -> [Element; 4] {
        let columns: [[Element; 4]; COLUMNS + 1] =
            std::array::from_fn(|column| extend(self.columns[column].pair(i)));
        let weight: [Element; 4] = extend(self.weight.pair(i));
        let indicator: [Element; 4] = extend(self.indicator.pair(i));
        std::array::from_fn(|x| {
            let values = columns.map(|column| column[x]);
            relation::evaluate(&self.alphas, &values, &weight[x], &indicator[x])
        })
    }
}

impl RoundPolynomial for Polynomial {
    fn values(&self) -> Vec<Element> {
        lines(self.weight.entries().len(), self.variables)
            .into_par_iter()
            .with_min_len(TASK)
            .map(|i| self.line(i))
            .reduce(
                || [Element::ZERO; 4],
                |left, right| std::array::from_fn(|x| left[x] + right[x]),
            )
            .to_vec()
    }

    fn bind(&mut self, r: &Element) -> Result<()> {
        self.columns.par_iter_mut().for_each(|table| table.bind(r));
        self.weight.bind(r);
        self.indicator.bind(r);
        self.variables -= 1;
        Ok(())
    }
}
