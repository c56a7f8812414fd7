//! Verification of an index proof.

use curve25519_dalek::scalar::Scalar;
use rayon::prelude::*;

use super::projections::{DIGIT_BITS, Projections, RANGE_ROWS};
use super::proof::IndexProof;
use super::protocol;
use super::relation::{self, Combination, Point, Weights};
use super::statement::Statement;
use crate::encoding::{self, ELEMENT_BYTES, decode_point};
use crate::errors::Result;
use crate::generators::List;
use crate::multiscalar::Equation;
use crate::progress::{Progress, Stage};
use crate::scalars::inner_product;
use crate::{opening, sumcheck};

/// Commitments decoded between two reports of progress.
const STEP: usize = 1 << 14;

/// Rejects unless `proof` proves `statement`.
pub fn verify(statement: &Statement, proof: &[u8], progress: &dyn Progress) -> Result<()> {
    progress.report(0.0)?;
    let proof = IndexProof::decode(proof, statement)?;
    let mut transcript = protocol::begin(statement);
    let projections = protocol::projections(&mut transcript, statement);
    let drawn =
        protocol::column_challenges(&mut transcript, &proof.commitments, statement.row_variables());
    let weights = Weights::new(statement, &drawn);
    let claim = weights.claimed_sum(statement) + drawn.rho * proof.commitments.mask_sum;
    let (claim, r) =
        sumcheck::verify(&mut transcript, &statement.degrees(), &proof.sumcheck, claim);
    let point = Point::new(statement, &r);
    progress.report(0.05)?;
    let at_r = polynomial_value(statement, &weights, &projections, &point, &proof);
    let mask_value = sumcheck::mask_value(&claim, &at_r, &drawn.rho)?;
    progress.report(0.2)?;

    let challenges = protocol::opening_challenges(&mut transcript, &proof.evaluations);
    let combination = Combination::new(&challenges.gamma);
    let form = relation::form(statement, &point, &challenges.theta);
    let value = relation::value(&combination, &challenges, &proof.evaluations, &mask_value);
    let mut equation = Equation::default();
    let factor = opening::verify(
        &mut transcript,
        &proof.opening,
        &statement.generators(),
        &form,
        &challenges.x,
        &mut equation,
    )?;
    for (column, power) in proof.commitments.digits.iter().zip(&combination.digits) {
        equation.add_point(column.element, factor * power);
    }
    let rows = factor * combination.rows;
    add_rows(statement, &point, &rows, &mut equation, &Stage::new(progress, 0.2, 0.5))?;
    equation.add_point(proof.commitments.rows_mask.element, rows);
    equation.add_point(proof.commitments.mask.element, factor * combination.mask);
    equation.add_generator(List::Q, 0, factor * challenges.x * value);
    equation.check(&Stage::new(progress, 0.5, 1.0))
}

/// F at (r_x, r_y), from the evaluations sent.
fn polynomial_value(
    statement: &Statement,
    weights: &Weights,
    projections: &Projections,
    point: &Point,
    proof: &IndexProof,
) -> Scalar {
    let digits = &proof.evaluations[..DIGIT_BITS];
    let row = proof.evaluations[DIGIT_BITS];
    let range_rows = &point.rows[..RANGE_ROWS];
    let range_weight = inner_product(&weights.t[..RANGE_ROWS], range_rows);
    let digit_weight = inner_product(&weights.digit_weights(), range_rows);
    let row_weights = &point.rows[..statement.rows];
    let norm_weight = inner_product(&weights.t[..statement.rows], row_weights);
    let at_rows = projections.row_evaluations(row_weights);
    let at_columns = projections.column_evaluations(&point.columns);
    let projected: Scalar = weights
        .lambdas
        .iter()
        .zip(at_rows)
        .zip(at_columns)
        .map(|((lambda, u), v)| lambda * u * v)
        .sum();
    point.columns[0] * weights.range_part(digits, &range_weight, &digit_weight)
        + weights.row_part(&norm_weight, &(row * row), &(projected * row))
}

/// Decodes C_0 .. C_(N-1) and adds `factor` sum_i eq(r_x, i) C_i.
fn add_rows(
    statement: &Statement,
    point: &Point,
    factor: &Scalar,
    equation: &mut Equation,
    progress: &dyn Progress,
) -> Result<()> {
    let steps = statement.commitments.chunks(STEP * ELEMENT_BYTES).zip(point.rows.chunks(STEP));
    for (step, (bytes, weights)) in steps.enumerate() {
        progress.report((step * STEP) as f64 / statement.rows as f64)?;
        let points = bytes
            .par_chunks(ELEMENT_BYTES)
            .enumerate()
            .map(|(row, bytes)| decode_point(bytes, &format!("C_{}", step * STEP + row)))
            .collect::<Result<Vec<encoding::Point>>>()?;
        for (point, weight) in points.iter().zip(weights) {
            equation.add_point(point.element, factor * weight);
        }
    }
    Ok(())
}
