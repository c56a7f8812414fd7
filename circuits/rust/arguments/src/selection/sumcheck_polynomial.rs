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
use crate::tables::{BitTable, MaskedTable, extend, lines};

/// Lines that one task evaluates at least.
const TASK: usize = 16;

/// F with some variables bound.
pub struct Polynomial<'a> {
    /// b, b3, b4, u_0 .. u_15.
    columns: Vec<BitTable<'a>>,
    /// Y.
    differences: MaskedTable,
    weight: MaskedTable,
    indicator: MaskedTable,
    alphas: Vec<Element>,
    variables: usize,
}

impl<'a> Polynomial<'a> {
    /// The polynomial for columns b, b3, b4, u_0 .. u_15 over U, the values of Y there, and the
    /// masks of all 20 columns in that order.
    pub fn new(
        bits: &'a [Vec<bool>],
        differences: Vec<Element>,
        masks: &[Scalar],
        drawn: &ColumnChallenges,
    ) -> Self {
        let rows = differences.len();
        let variables = drawn.t.len();
        let table = |entries, mask| MaskedTable::new(entries, mask, variables);
        let column = |(bits, mask): (&'a Vec<bool>, &Scalar)| {
            BitTable::Bits(bits, Element::from(mask), variables)
        };
        let t: Vec<Element> = drawn.t.iter().map(Element::from).collect();
        Polynomial {
            columns: bits.iter().zip(masks).map(column).collect(),
            differences: table(differences, Element::from(masks[COLUMNS])),
            // M and chi are zero on the mask row.
            weight: table(eq_table(&Element::ONE, &t, rows), Element::ZERO),
            indicator: table(vec![Element::ONE; rows], Element::ZERO),
            alphas: relation::alpha_powers(&drawn.alpha),
            variables,
        }
    }

    /// After all rounds: v_b, v_b3, v_b4, v_u0 .. v_u15, v_Y.
    pub fn evaluations(&self) -> Evaluations {
        let last = self.differences.mask();
        std::array::from_fn(|column| {
            Scalar::from(self.columns.get(column).map_or(last, BitTable::mask))
        })
    }

    /// F at 0, 1, 2, 3 along the line of index `i`.
    fn line(&self, i: usize) -> [Element; 4] {
        let y: [Element; 4] = extend(self.differences.pair(i));
        let weight: [Element; 4] = extend(self.weight.pair(i));
        let indicator: [Element; 4] = extend(self.indicator.pair(i));
        if self.columns[0].bits(i).is_some() {
            let ends = std::array::from_fn(|j| self.columns[j].bits(i).unwrap_or_default());
            return relation::evaluate_bits(&self.alphas, &ends, &y, &weight, &indicator);
        }
        let columns: [[Element; 4]; COLUMNS] =
            std::array::from_fn(|column| extend(self.columns[column].pair(i)));
        std::array::from_fn(|x| {
            let values =
                std::array::from_fn(|column| columns.get(column).map_or(y[x], |line| line[x]));
            relation::evaluate(&self.alphas, &values, &weight[x], &indicator[x])
        })
    }
}

impl RoundPolynomial for Polynomial<'_> {
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
        self.columns.iter_mut().for_each(|table| table.bind(r));
        self.differences.bind(r);
        self.weight.bind(r);
        self.indicator.bind(r);
        self.variables -= 1;
        Ok(())
    }
}
