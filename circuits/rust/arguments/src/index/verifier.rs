//! Verification of an index proof.

use curve25519_dalek::scalar::Scalar;

use super::ARGUMENT;
use super::projections::{DIGIT_BITS, Projections, RANGE_ROWS};
use super::proof::IndexProof;
use super::protocol;
use super::relation::{self, Combination, Point, Weights};
use super::statement::Statement;
use crate::errors::{Error, Result, rejected};
use crate::field::{Element, inner_product};
use crate::generators::List;
use crate::multiscalar::Equation;
use crate::progress::{Progress, Stage};
use crate::{opening, sumcheck};

/// Rejects unless `proof` proves `statement`; the reason names the argument.
pub fn verify(statement: &Statement, proof: &[u8], progress: &dyn Progress) -> Result<()> {
    check(statement, proof, progress).map_err(|error| match error {
        Error::Rejected(reason) => rejected(format!("{ARGUMENT}: {reason}")),
        other => other,
    })
}

fn check(statement: &Statement, proof: &[u8], progress: &dyn Progress) -> Result<()> {
    progress.report(0.0)?;
    let proof = IndexProof::decode(proof, statement)?;
    let mut transcript = protocol::begin(statement);
    // V0
    let projections = protocol::projections(&mut transcript, statement);
    // P1, V1
    let drawn =
        protocol::column_challenges(&mut transcript, &proof.commitments, statement.row_variables());
    // P2
    let weights = Weights::new(&drawn);
    let claim =
        Scalar::from(weights.claimed_sum(statement)) + drawn.rho * proof.commitments.mask_sum;
    let (claim, r) =
        sumcheck::verify(&mut transcript, &statement.degrees(), &proof.sumcheck, claim);
    let point = Point::new(statement, &r);
    progress.report(0.05)?;
    // P3
    let values = proof.evaluations.map(Element::from);
    let at_r = polynomial_value(statement, &weights, &projections, &point, &values);
    let mask_value = sumcheck::mask_value(&claim, &at_r.into(), &drawn.rho)?;
    progress.report(0.1)?;

    // V2
    let challenges = protocol::opening_challenges(&mut transcript, &proof.evaluations);
    // P4
    let folding = opening::follow(&mut transcript, &proof.opening)?;
    let combination = Combination::new(&challenges.gamma);
    let form = relation::form(statement, &point, &challenges.theta);
    let value = relation::value(&combination, &challenges, &values, &mask_value);
    let factor = folding.factor();
    // (E1)
    let mut equation = Equation::default();
    folding.add_messages(&Element::ONE, &mut equation);
    let names = statement.generators();
    let products = folding.products(&Element::ONE, names.len());
    for (name, product) in names.iter().zip(&products) {
        equation.add_generator(name.list, name.index, *product);
    }
    let formed = inner_product(&products, &form);
    equation.add_generator(List::Q, 0, Element::from(challenges.x) * (formed + factor * value));
    for (column, power) in proof.commitments.digits.iter().zip(&combination.digits) {
        equation.add_point(column.element, factor * *power);
    }
    let rows = factor * combination.rows;
    let row_weights = point.rows[..statement.rows].iter().enumerate();
    equation.add_rows(statement.commitments, row_weights.map(|(i, weight)| (i, rows * *weight)));
    // C_m is the mask row and has that row's weight: with weight 1 a vector in it would be added to
    // every row, and rows of any size would pass.
    equation.add_point(proof.commitments.rows_mask.element, rows * point.mask_row);
    equation.add_point(proof.commitments.mask.element, factor * combination.mask);
    equation.check(&Stage::new(progress, 0.1, 1.0))
}

/// F at (r_x, r_y), from the evaluations sent.
fn polynomial_value(
    statement: &Statement,
    weights: &Weights,
    projections: &Projections,
    point: &Point,
    evaluations: &[Element],
) -> Element {
    let (digits, row) = (&evaluations[..DIGIT_BITS], evaluations[DIGIT_BITS]);
    let range_weight = weights.rows_at(&point.row_coordinates, RANGE_ROWS);
    let digit_weight = inner_product(&weights.digit_weights(), &point.rows[..RANGE_ROWS]);
    let norm_weight = weights.rows_at(&point.row_coordinates, statement.rows);
    let at_rows = projections.row_evaluations(&point.rows[..statement.rows]);
    let at_columns = projections.column_evaluations(&point.columns);
    let projected: Element = weights
        .lambdas
        .iter()
        .zip(at_rows)
        .zip(at_columns)
        .map(|((lambda, u), v)| *lambda * u * v)
        .sum();
    point.columns[0] * weights.range_part(digits, &range_weight, &digit_weight)
        + weights.row_part(&norm_weight, &row.square(), &(projected * row))
}
