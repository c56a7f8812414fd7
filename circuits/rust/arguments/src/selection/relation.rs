//! The relation: constraints, claimed sum, linear form and value of the opening.

use curve25519_dalek::scalar::Scalar;

use super::proof::Evaluations;
use super::protocol::OpeningChallenges;
use super::statement::{Statement, Threshold};
use crate::scalars::{eq_mask_row, eq_table, from_integer, inner_product, powers};
use crate::sumcheck::mask_form;

/// Bits of |y - tau| or |tau - 1 - y|: both are at most 4B² < 2^16.
pub const DISTANCE_BITS: usize = 16;

/// Boolean columns: b, b3, b4, u_0 .. u_15.
pub const COLUMNS: usize = 3 + DISTANCE_BITS;

/// Exponents of alpha after the boolean constraints c_0 .. c_18.
const DISJOINT: usize = COLUMNS;
const TIED: usize = COLUMNS + 1;
const DISTANCE: usize = COLUMNS + 2;
const ONE_TIE: usize = COLUMNS + 3;
const COUNT: usize = COLUMNS + 4;

/// The powers of alpha that [`evaluate`] and [`claimed_sum`] use.
pub fn alpha_powers(alpha: &Scalar) -> Vec<Scalar> {
    powers(alpha, COUNT + 1)
}

/// F at a point where the columns have these values, M the value `weight` and chi `indicator`.
pub fn evaluate(
    alphas: &[Scalar],
    values: &Evaluations,
    weight: &Scalar,
    indicator: &Scalar,
) -> Scalar {
    let (columns, y) = (&values[..COLUMNS], values[COLUMNS]);
    let (b, b3, b4, bits) = (columns[0], columns[1], columns[2], &columns[3..]);
    let boolean: Scalar =
        columns.iter().zip(alphas).map(|(value, alpha)| alpha * (value * value - value)).sum();
    let distance = bits.iter().rev().fold(Scalar::ZERO, |sum, bit| sum + sum + bit);
    let constraints = boolean
        + alphas[DISJOINT] * b3 * b4
        + alphas[TIED] * (b3 + b4) * (y + Scalar::ONE)
        + alphas[DISTANCE] * ((b + b - Scalar::ONE) * y - (Scalar::ONE - b) - distance);
    let sums = alphas[ONE_TIE] * b3 + alphas[COUNT] * (b + b4);
    weight * constraints + indicator * sums
}

/// S_0: what F sums to over the hypercube. `remaining` is K - f.
pub fn claimed_sum(alphas: &[Scalar], remaining: u64) -> Scalar {
    alphas[ONE_TIE] + alphas[COUNT] * Scalar::from(remaining)
}

/// M and chi at r: the sums of eq(t, q) eq(r, q) and of eq(r, q) over the rows q of U.
pub struct RowWeights {
    /// eq(r, q) for q < u.
    pub rows: Vec<Scalar>,
    /// eq(r, 2^m - 1).
    pub mask_row: Scalar,
    /// M(r).
    pub weight: Scalar,
    /// chi(r).
    pub indicator: Scalar,
}

impl RowWeights {
    /// The weights at `r` for the challenges `t`.
    pub fn new(t: &[Scalar], r: &[Scalar], count: usize) -> Self {
        let rows = eq_table(r, count);
        RowWeights {
            mask_row: eq_mask_row(r),
            weight: inner_product(&eq_table(t, count), &rows),
            indicator: rows.iter().sum(),
            rows,
        }
    }
}

/// The factors of the commitments in P: gamma^0 .. gamma^18 for the columns, gamma^19 for the
/// rows and the threshold, gamma^20 for the sumcheck's mask.
pub struct Combination {
    /// One factor per boolean column.
    pub columns: Vec<Scalar>,
    /// Factor of sum_q eq(r, q) C_U[q] + C_t.
    pub rows: Scalar,
    /// Factor of C_g.
    pub mask: Scalar,
}

impl Combination {
    /// The factors for this gamma.
    pub fn new(gamma: &Scalar) -> Self {
        let mut columns = powers(gamma, COLUMNS + 2);
        let (rows, mask) = (columns[COLUMNS], columns[COLUMNS + 1]);
        columns.truncate(COLUMNS);
        Combination { columns, rows, mask }
    }
}

/// L: the blocks (A_U, A*), (G, M) and (R), kept apart by theta.
pub fn form(
    statement: &Statement,
    threshold: &Threshold,
    weights: &RowWeights,
    r: &[Scalar],
    theta: &Scalar,
) -> Vec<Scalar> {
    let mut form = weights.rows.clone();
    form.push(weights.mask_row);
    form.extend(statement.query.iter().map(|e| theta * from_integer(i128::from(*e))));
    form.extend([Scalar::ZERO; crate::four_squares::COMPLETION]);
    form.push(-(theta * weights.indicator));
    form.push(theta * weights.mask_row);
    let square = theta * theta;
    form.extend(mask_form(&threshold.degrees(), r).iter().map(|power| square * power));
    form
}

/// V: the value of the form, from the evaluations sent and the mask's value v_g.
pub fn value(
    threshold: &Threshold,
    weights: &RowWeights,
    combination: &Combination,
    challenges: &OpeningChallenges,
    evaluations: &Evaluations,
    mask_value: &Scalar,
) -> Scalar {
    let noise: Scalar = threshold
        .uncertain
        .iter()
        .zip(&weights.rows)
        .map(|(row, weight)| weight * from_integer(i128::from(row.noise)))
        .sum();
    let theta = challenges.theta;
    inner_product(&combination.columns, &evaluations[..COLUMNS])
        + theta * combination.rows * (evaluations[COLUMNS] - noise)
        + theta * theta * combination.mask * mask_value
}
