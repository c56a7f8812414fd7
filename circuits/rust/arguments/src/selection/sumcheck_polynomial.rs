//! F, one variable bound after the other.

use curve25519_dalek::scalar::Scalar;
use rayon::prelude::*;

use super::protocol::ColumnChallenges;
use super::relation::{MAX_COLUMNS, Relation};
use crate::errors::Result;
use crate::field::Element;
use crate::multilinear::eq_table;
use crate::sumcheck::RoundPolynomial;
use crate::tables::{BitTable, MaskedTable, extend, lines};

/// Lines that one task evaluates at least.
const TASK: usize = 16;

/// F with some variables bound.
pub struct Polynomial<'a> {
    relation: Relation,
    /// b, b3, b4, u_0 .. u_(W-1).
    columns: Vec<BitTable<'a>>,
    /// Y.
    differences: MaskedTable,
    weight: MaskedTable,
    indicator: MaskedTable,
    alphas: Vec<Element>,
    variables: usize,
}

impl<'a> Polynomial<'a> {
    /// The polynomial for columns b, b3, b4, u_0 .. u_(W-1) over U, the values of Y there, and
    /// the masks of all these in that order.
    pub fn new(
        relation: Relation,
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
            relation,
            columns: bits.iter().zip(masks).map(column).collect(),
            differences: table(differences, Element::from(masks[relation.columns()])),
            // M and chi are zero on the mask row.
            weight: table(eq_table(&Element::ONE, &t, rows), Element::ZERO),
            indicator: table(vec![Element::ONE; rows], Element::ZERO),
            alphas: relation.alpha_powers(&drawn.alpha),
            variables,
        }
    }

    /// After all rounds: v_b, v_b3, v_b4, v_u_0 .. v_u_(W-1), v_Y.
    pub fn evaluations(&self) -> Vec<Scalar> {
        let columns = self.columns.iter().map(BitTable::mask);
        columns.chain([self.differences.mask()]).map(Scalar::from).collect()
    }

    /// F at 0, 1, 2, 3 along the line of index `i`.
    fn line(&self, i: usize) -> [Element; 4] {
        let y: [Element; 4] = extend(self.differences.pair(i));
        let weight: [Element; 4] = extend(self.weight.pair(i));
        let indicator: [Element; 4] = extend(self.indicator.pair(i));
        let count = self.columns.len();
        if self.columns[0].bits(i).is_some() {
            let mut ends = [(false, false); MAX_COLUMNS];
            for (ends, column) in ends.iter_mut().zip(&self.columns) {
                *ends = column.bits(i).unwrap_or_default();
            }
            let ends = &ends[..count];
            return self.relation.evaluate_bits(&self.alphas, ends, &y, &weight, &indicator);
        }
        let mut values = [[Element::ZERO; MAX_COLUMNS + 1]; 4];
        for (j, column) in self.columns.iter().enumerate() {
            let line: [Element; 4] = extend(column.pair(i));
            (0..4).for_each(|x| values[x][j] = line[x]);
        }
        std::array::from_fn(|x| {
            values[x][count] = y[x];
            let values = &values[x][..=count];
            self.relation.evaluate(&self.alphas, values, &weight[x], &indicator[x])
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
