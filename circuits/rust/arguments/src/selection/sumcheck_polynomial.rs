//! F, one variable bound after the other.

use curve25519_dalek::scalar::Scalar;
use rayon::prelude::*;

use super::proof::Evaluations;
use super::protocol::ColumnChallenges;
use super::relation;
use crate::errors::Result;
use crate::scalars::{eq_table, interpolate};
use crate::sumcheck::RoundPolynomial;
use crate::tables::{MaskedTable, extend, lines};

/// F with some variables bound.
pub struct Polynomial {
    /// b, b3, b4, u_0 .. u_15, Y.
    columns: Vec<MaskedTable>,
    weight: MaskedTable,
    indicator: MaskedTable,
    alphas: Vec<Scalar>,
    variables: usize,
}

impl Polynomial {
    /// The polynomial for columns b, b3, b4, u_0 .. u_15 over U, the values of Y there, and the
    /// masks of all 20 columns in that order.
    pub fn new(
        bits: &[Vec<bool>],
        differences: Vec<Scalar>,
        masks: &[Scalar],
        drawn: &ColumnChallenges,
    ) -> Self {
        let rows = differences.len();
        let variables = drawn.t.len();
        let table = |entries, mask| MaskedTable::new(entries, mask, variables);
        let entries = bits
            .iter()
            .map(|bits| bits.iter().map(|bit| Scalar::from(u8::from(*bit))).collect())
            .chain([differences]);
        Polynomial {
            columns: entries.zip(masks).map(|(entries, mask)| table(entries, *mask)).collect(),
            // M and chi are zero on the mask row.
            weight: table(eq_table(&drawn.t, rows), Scalar::ZERO),
            indicator: table(vec![Scalar::ONE; rows], Scalar::ZERO),
            alphas: relation::alpha_powers(&drawn.alpha),
            variables,
        }
    }

    /// After all rounds: v_b, v_b3, v_b4, v_u0 .. v_u15, v_Y.
    pub fn values(&self) -> Evaluations {
        std::array::from_fn(|column| self.columns[column].mask())
    }

    /// F at 0, 1, 2, 3 along the line of index `i`.
    fn line(&self, i: usize) -> [Scalar; 4] {
        let columns: Vec<[Scalar; 4]> =
            self.columns.iter().map(|table| extend(table.pair(i))).collect();
        let weight: [Scalar; 4] = extend(self.weight.pair(i));
        let indicator: [Scalar; 4] = extend(self.indicator.pair(i));
        std::array::from_fn(|x| {
            let values = std::array::from_fn(|column| columns[column][x]);
            relation::evaluate(&self.alphas, &values, &weight[x], &indicator[x])
        })
    }
}

impl RoundPolynomial for Polynomial {
    fn coefficients(&self) -> Vec<Scalar> {
        let values = lines(self.weight.entries().len(), self.variables)
            .into_par_iter()
            .map(|i| self.line(i))
            .reduce(
                || [Scalar::ZERO; 4],
                |left, right| std::array::from_fn(|x| left[x] + right[x]),
            );
        interpolate(&values)
    }

    fn bind(&mut self, r: &Scalar) -> Result<()> {
        self.columns.par_iter_mut().for_each(|table| table.bind(r));
        self.weight.bind(r);
        self.indicator.bind(r);
        self.variables -= 1;
        Ok(())
    }
}
