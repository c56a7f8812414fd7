//! Verification of one selection proof or of many at once.

use rayon::prelude::*;

use super::proof::SelectionProof;
use super::relation::{self, Combination, RowWeights};
use super::statement::{Case, Instance, Statement, Threshold};
use super::{all, protocol};
use crate::errors::{Error, Result};
use crate::generators::List;
use crate::multiscalar::Equation;
use crate::progress::{Progress, Silent};
use crate::{opening, sumcheck};

use curve25519_dalek::scalar::Scalar;

/// Proofs checked between two reports of progress.
const STEP: usize = 64;

/// Rejects unless `proof` proves the statement of `instance`.
pub fn verify(instance: &Instance, proof: &[u8]) -> Result<()> {
    equation(instance, proof)?.check(&Silent)
}

/// Why a batch was not accepted.
#[derive(Debug)]
pub enum BatchError {
    /// These proofs (indices in the batch, rising) are rejected, each with its reason.
    Rejected(Vec<(usize, Error)>),
    /// The check itself stopped.
    Stopped(Error),
}

/// Verifies all proofs by one random linear combination of their equations; when it does not
/// hold, proofs are checked one by one to name those rejected.
pub fn verify_batch(
    batch: &[(Instance, &[u8])],
    progress: &dyn Progress,
) -> std::result::Result<(), BatchError> {
    let mut failed = Vec::new();
    for (step, part) in batch.chunks(STEP).enumerate() {
        let start = step * STEP;
        progress.report(start as f64 / batch.len() as f64).map_err(BatchError::Stopped)?;
        failed.extend(rejected_proofs(part)?.into_iter().map(|(i, error)| (start + i, error)));
    }
    progress.report(1.0).map_err(BatchError::Stopped)?;
    if failed.is_empty() { Ok(()) } else { Err(BatchError::Rejected(failed)) }
}

fn rejected_proofs(
    part: &[(Instance, &[u8])],
) -> std::result::Result<Vec<(usize, Error)>, BatchError> {
    let equations: Vec<Result<Equation>> =
        part.par_iter().map(|(instance, proof)| equation(instance, proof)).collect();
    let all: Result<Vec<Equation>> = equations.into_iter().collect();
    if all.and_then(Equation::combine).and_then(|sum| sum.check(&Silent)).is_ok() {
        return Ok(Vec::new());
    }
    let singly: Vec<Result<()>> =
        part.par_iter().map(|(instance, proof)| verify(instance, proof)).collect();
    let mut failed = Vec::new();
    for (index, result) in singly.into_iter().enumerate() {
        match result {
            Ok(()) => {}
            Err(error @ (Error::Rejected(_) | Error::Malformed(_))) => failed.push((index, error)),
            Err(error) => return Err(BatchError::Stopped(error)),
        }
    }
    Ok(failed)
}

/// The equation that holds iff the proof is valid: (E1) and (E2) with random weights.
fn equation(instance: &Instance, proof: &[u8]) -> Result<Equation> {
    let statement = Statement::new(instance)?;
    match &statement.case {
        Case::All => all::equation(&statement, proof),
        Case::Threshold(threshold) => threshold_equation(&statement, threshold, proof),
    }
}

fn threshold_equation(
    statement: &Statement,
    threshold: &Threshold,
    proof: &[u8],
) -> Result<Equation> {
    let dimension = statement.query.len();
    let proof = SelectionProof::decode(proof, threshold, dimension)?;
    let mut transcript = protocol::begin(statement, threshold);
    let drawn =
        protocol::column_challenges(&mut transcript, &proof.commitments, threshold.variables());

    let alphas = relation::alpha_powers(&drawn.alpha);
    let claim = relation::claimed_sum(&alphas, threshold.remaining(statement.top_k))
        + drawn.rho * proof.commitments.mask_sum;
    let (claim, r) =
        sumcheck::verify(&mut transcript, &threshold.degrees(), &proof.sumcheck, claim);
    let weights = RowWeights::new(&drawn.t, &r, threshold.uncertain.len());
    let at_r = relation::evaluate(&alphas, &proof.evaluations, &weights.weight, &weights.indicator);
    let mask_value = sumcheck::mask_value(&claim, &at_r, &drawn.rho)?;

    let challenges = protocol::opening_challenges(&mut transcript, &proof.evaluations);
    protocol::absorb_responses(&mut transcript, &proof.responses);
    let combination = Combination::new(&challenges.gamma);
    let form = relation::form(statement, threshold, &weights, &r, &challenges.theta);
    let value = relation::value(
        threshold,
        &weights,
        &combination,
        &challenges,
        &proof.evaluations,
        &mask_value,
    );
    let mut opened = Equation::default();
    let factor = opening::verify(
        &mut transcript,
        &proof.opening,
        &threshold.generators(dimension),
        &form,
        &challenges.x,
        &mut opened,
    )?;
    add_commitment(statement, threshold, &proof, &weights, &combination, &factor, &mut opened);
    opened.add_generator(List::Q, 0, factor * challenges.x * value);
    Equation::combine([opened, mask_equation(&proof, &challenges.schnorr)])
}

/// Adds `factor` times P, without its term in Q.
fn add_commitment(
    statement: &Statement,
    threshold: &Threshold,
    proof: &SelectionProof,
    weights: &RowWeights,
    combination: &Combination,
    factor: &Scalar,
    equation: &mut Equation,
) {
    let commitments = &proof.commitments;
    // Col_0 = B_sel - sum_F A_i + D_m.
    let selection = factor * combination.columns[0];
    equation.add_point(statement.selection.element, selection);
    for position in &threshold.certain {
        equation.add_generator(List::A, *position, -selection);
    }
    equation.add_point(commitments.selection_mask.element, selection);
    for (column, power) in commitments.columns.iter().zip(&combination.columns[1..]) {
        equation.add_point(column.element, factor * power);
    }
    let rows = factor * combination.rows;
    for (row, weight) in threshold.uncertain.iter().zip(&weights.rows) {
        equation.add_point(row.commitment.element, rows * weight);
    }
    equation.add_point(commitments.threshold.element, rows);
    equation.add_point(commitments.mask.element, factor * combination.mask);
}

/// (E2): D_m lies in the span of A* and H, so b is exactly what B_sel holds on U.
fn mask_equation(proof: &SelectionProof, schnorr: &Scalar) -> Equation {
    let mut equation = Equation::default();
    equation.add_generator(List::SelectionMask, 0, proof.responses[0]);
    equation.add_generator(List::H, 0, proof.responses[1]);
    equation.add_point(proof.commitments.selection_mask_nonce.element, -Scalar::ONE);
    equation.add_point(proof.commitments.selection_mask.element, -schnorr);
    equation
}
