//! The relation: constraints, claimed sum, linear form and value of the opening.

use curve25519_dalek::scalar::Scalar;

use super::projections::{DIGIT_BITS, DIGITS, OFFSET, PROJECTIONS, RANGE_ROWS};
use super::proof::Evaluations;
use super::protocol::{ColumnChallenges, OpeningChallenges};
use super::statement::Statement;
use crate::scalars::{eq_mask_row, eq_table, from_integer, inner_product, powers};
use crate::sumcheck::mask_form;

/// Powers of alpha and lambda and the public weights that the sumcheck's polynomial is made of.
pub struct Weights {
    /// alpha^0 .. alpha^13 for the boolean constraints.
    pub alphas: Vec<Scalar>,
    /// alpha^14, of the norms.
    pub norm: Scalar,
    /// alpha^15, of the projections.
    pub projection: Scalar,
    /// lambda^q.
    pub lambdas: Vec<Scalar>,
    /// eq(t, i) for i < max(N, R).
    pub t: Vec<Scalar>,
}

impl Weights {
    /// The weights for these challenges.
    pub fn new(statement: &Statement, drawn: &ColumnChallenges) -> Self {
        let mut alphas = powers(&drawn.alpha, DIGIT_BITS + 2);
        let (norm, projection) = (alphas[DIGIT_BITS], alphas[DIGIT_BITS + 1]);
        alphas.truncate(DIGIT_BITS);
        Weights {
            alphas,
            norm,
            projection,
            lambdas: powers(&drawn.lambda, PROJECTIONS),
            t: eq_table(&drawn.t, statement.rows.max(RANGE_ROWS)),
        }
    }

    /// omega on the range rows: lambda^q 2^(14 l) at row 3q + l.
    pub fn digit_weights(&self) -> Vec<Scalar> {
        let scales = powers(&Scalar::from(1u64 << DIGIT_BITS), DIGITS);
        self.lambdas.iter().flat_map(|lambda| scales.iter().map(move |s| lambda * s)).collect()
    }

    /// S_0.
    pub fn claimed_sum(&self, statement: &Statement) -> Scalar {
        let rows: Scalar = self.t[..statement.rows].iter().sum();
        let offsets = from_integer(OFFSET) * self.lambdas.iter().sum::<Scalar>();
        self.norm * Scalar::from(statement.squared_norm) * rows - self.projection * offsets
    }

    /// The bracket of F at a point where M_R has the value `weight` and omega `digit_weight`.
    pub fn range_part(&self, digits: &[Scalar], weight: &Scalar, digit_weight: &Scalar) -> Scalar {
        let boolean: Scalar = digits
            .iter()
            .zip(&self.alphas)
            .map(|(value, alpha)| alpha * (value * value - value))
            .sum();
        let digit = digits.iter().rev().fold(Scalar::ZERO, |sum, bit| sum + sum + bit);
        weight * boolean - self.projection * digit_weight * digit
    }

    /// alpha^14 M_N X² + alpha^15 (W X), given X² and W X (or their sums over y).
    pub fn row_part(&self, weight: &Scalar, square: &Scalar, projected: &Scalar) -> Scalar {
        self.norm * weight * square + self.projection * projected
    }
}

/// Everything public at the sumcheck's point (r_x, r_y).
pub struct Point {
    /// eq(r_x, i) for i < max(N, R).
    pub rows: Vec<Scalar>,
    /// eq(r_x, 2^m - 1).
    pub mask_row: Scalar,
    /// eq(r_y, j) for j < d + 4.
    pub columns: Vec<Scalar>,
    /// r_x and r_y.
    pub coordinates: Vec<Scalar>,
}

impl Point {
    /// The weights at `r` = (r_x, r_y).
    pub fn new(statement: &Statement, r: &[Scalar]) -> Self {
        let (r_x, r_y) = r.split_at(statement.row_variables());
        Point {
            rows: eq_table(r_x, statement.rows.max(RANGE_ROWS)),
            mask_row: eq_mask_row(r_x),
            columns: eq_table(r_y, statement.width()),
            coordinates: r.to_vec(),
        }
    }
}

/// The factors of the commitments in P.
pub struct Combination {
    /// gamma^0 .. gamma^13 for Kap_0 .. Kap_13.
    pub digits: Vec<Scalar>,
    /// gamma^14, of sum_i eq(r_x, i) C_i + C_m.
    pub rows: Scalar,
    /// gamma^15, of C_g.
    pub mask: Scalar,
}

impl Combination {
    /// The factors for this gamma.
    pub fn new(gamma: &Scalar) -> Self {
        let mut digits = powers(gamma, DIGIT_BITS + 2);
        let (rows, mask) = (digits[DIGIT_BITS], digits[DIGIT_BITS + 1]);
        digits.truncate(DIGIT_BITS);
        Combination { digits, rows, mask }
    }
}

/// L: the blocks (idx/P, idx/P*), (G, idx/M) and (idx/R), kept apart by theta.
pub fn form(statement: &Statement, point: &Point, theta: &Scalar) -> Vec<Scalar> {
    let mut form = point.rows[..RANGE_ROWS].to_vec();
    form.push(point.mask_row);
    form.extend(point.columns.iter().map(|weight| theta * weight));
    form.push(theta * point.mask_row * point.columns[0]);
    let square = theta * theta;
    let mask = mask_form(&statement.degrees(), &point.coordinates);
    form.extend(mask.iter().map(|power| square * power));
    form
}

/// V: the value of the form, from the evaluations sent and the mask's value v_g.
pub fn value(
    combination: &Combination,
    challenges: &OpeningChallenges,
    evaluations: &Evaluations,
    mask_value: &Scalar,
) -> Scalar {
    let theta = challenges.theta;
    inner_product(&combination.digits, &evaluations[..DIGIT_BITS])
        + theta * combination.rows * evaluations[DIGIT_BITS]
        + theta * theta * combination.mask * mask_value
}
