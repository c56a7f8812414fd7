//! Verification of one selection proof or of many at once.

use rayon::prelude::*;

use super::proof::SelectionProof;
use super::relation::{Combination, RowWeights, form_after_rows, value};
use super::statement::{Case, Instance, Statement, Threshold};
use super::{all, protocol};
use crate::errors::{Error, Result};
use crate::field::{Element, inner_product};
use crate::generators::List;
use crate::multiscalar::Equation;
use crate::progress::{Progress, Silent, Stage};
use crate::{opening, randomness, sumcheck};

use curve25519_dalek::scalar::Scalar;

/// Proofs added up between two reports of progress.
const STEP: usize = 64;

/// Rejects unless `proof` proves the statement of `instance`.
pub fn verify(instance: &Instance, proof: &[u8]) -> Result<()> {
    let mut equation = Equation::default();
    add_equation(instance, proof, &mut equation)?;
    equation.check(&Silent)
}

/// Why a batch was not accepted.
#[derive(Debug)]
pub enum BatchError {
    /// These proofs (indices in the batch, rising) are rejected, each with its reason.
    Rejected(Vec<(usize, Error)>),
    /// The check itself stopped.
    Stopped(Error),
}

/// An instance with its proof.
type Record<'a> = (Instance<'a>, &'a [u8]);

/// Verifies all proofs by one random linear combination of their equations. The weights of the
/// rows of one index (one `commitments` slice) are added in the field before they meet a point.
/// A combination that does not hold is halved until the proofs rejected are found.
pub fn verify_batch(
    batch: &[Record],
    progress: &dyn Progress,
) -> std::result::Result<(), BatchError> {
    let mut failed = Vec::new();
    let records = batch.iter().enumerate().collect();
    find_rejected(records, progress, &mut failed).map_err(BatchError::Stopped)?;
    failed.sort_unstable_by_key(|(index, _)| *index);
    if failed.is_empty() { Ok(()) } else { Err(BatchError::Rejected(failed)) }
}

/// Adds to `failed` the records that are rejected; an error means that the search stopped.
fn find_rejected(
    records: Vec<(usize, &Record)>,
    progress: &dyn Progress,
    failed: &mut Vec<(usize, Error)>,
) -> Result<()> {
    let (equation, sound) = combine(&records, &Stage::new(progress, 0.0, 0.5), failed)?;
    let error = match equation.check(&Stage::new(progress, 0.5, 1.0)) {
        Ok(()) => return Ok(()),
        Err(error @ (Error::Rejected(_) | Error::Malformed(_))) => error,
        Err(stopped) => return Err(stopped),
    };
    if let [(index, _)] = sound[..] {
        failed.push((index, error));
        return Ok(());
    }
    // Progress is at its end already; the parts can still be stopped.
    let stage = Stage::new(progress, 1.0, 1.0);
    let (first, second) = sound.split_at(sound.len() / 2);
    find_rejected(first.to_vec(), &stage, failed)?;
    find_rejected(second.to_vec(), &stage, failed)
}

/// The sum of the equations, and the records in it: those that no other check rejects.
fn combine<'a, 'b>(
    records: &[(usize, &'b Record<'a>)],
    progress: &dyn Progress,
    failed: &mut Vec<(usize, Error)>,
) -> Result<(Equation<'a>, Vec<(usize, &'b Record<'a>)>)> {
    let mut sums: Vec<Equation> = Vec::new();
    sums.resize_with(rayon::current_num_threads(), Equation::default);
    let mut sound = Vec::with_capacity(records.len());
    for (step, part) in records.chunks(STEP).enumerate() {
        progress.report((step * STEP) as f64 / records.len() as f64)?;
        let share = part.len().div_ceil(sums.len());
        let add = |(sum, part): (&mut Equation<'a>, &[(usize, &Record<'a>)])| -> Vec<Result<()>> {
            part.iter().map(|(_, (instance, proof))| add_equation(instance, proof, sum)).collect()
        };
        let results: Vec<Result<()>> =
            sums.par_iter_mut().zip(part.par_chunks(share)).map(add).flatten_iter().collect();
        for (record, result) in part.iter().zip(results) {
            match result {
                Ok(()) => sound.push(*record),
                Err(error @ (Error::Rejected(_) | Error::Malformed(_))) => {
                    failed.push((record.0, error));
                }
                Err(stopped) => return Err(stopped),
            }
        }
    }
    let mut total = Equation::default();
    sums.into_iter().for_each(|sum| total.merge(sum));
    Ok((total, sound))
}

/// Adds the equations (E1) and (E2) of a proof with random weights. When the proof is rejected
/// already, nothing is added.
fn add_equation<'a>(
    instance: &Instance<'a>,
    proof: &[u8],
    equation: &mut Equation<'a>,
) -> Result<()> {
    let statement = Statement::new(instance)?;
    let weight = randomness::weight()?;
    match &statement.case {
        Case::All(allowed) => all::add_equation(&statement, allowed, proof, &weight, equation),
        Case::Threshold(threshold) => {
            add_threshold_equation(&statement, threshold, proof, &weight, equation)
        }
    }
}

/// Follows the moves P1 to P5 and draws V1, V2 as the prover must have (spec 4.6.4 to 4.6.7).
fn add_threshold_equation<'a>(
    statement: &Statement<'a>,
    threshold: &Threshold,
    proof: &[u8],
    weight: &Element,
    equation: &mut Equation<'a>,
) -> Result<()> {
    let dimension = statement.query.len();
    let proof = SelectionProof::decode(proof, threshold, dimension)?;
    let mut transcript = protocol::begin(statement, threshold);
    // P1, V1
    let drawn =
        protocol::column_challenges(&mut transcript, &proof.commitments, threshold.variables());

    // P2
    let relation = &threshold.relation;
    let alphas = relation.alpha_powers(&drawn.alpha);
    let claim = relation.claimed_sum(&alphas, threshold.remaining(statement.top_k))
        + drawn.rho * proof.commitments.mask_sum;
    let (claim, r) =
        sumcheck::verify(&mut transcript, &threshold.degrees(), &proof.sumcheck, claim);
    let weights = RowWeights::new(&drawn.t, &r, threshold.uncertain.len());
    // P3
    let values: Vec<Element> = proof.evaluations.iter().map(Element::from).collect();
    let at_r = relation.evaluate(&alphas, &values, &weights.weight, &weights.indicator);
    let mask_value = sumcheck::mask_value(&claim, &at_r.into(), &drawn.rho)?;

    // V2
    let challenges = protocol::opening_challenges(&mut transcript, &proof.evaluations);
    // P4
    protocol::absorb_responses(&mut transcript, &proof.responses);
    // P5
    let folding = opening::follow(&mut transcript, &proof.opening)?;
    let mask_weight = randomness::weight()?;
    // (E1) and (E2). Nothing can fail from here on.
    let combination = Combination::new(relation, &challenges.gamma);
    let theta = &challenges.theta;
    let value = value(threshold, &weights, &combination, theta, &values, &mask_value);
    let factor = *weight * folding.factor();
    let x = Element::from(challenges.x);
    folding.add_messages(weight, equation);
    let form = form_after_rows(statement, threshold, &weights, &r, theta);
    let products = folding.products(weight, threshold.opened(dimension));
    let (at_rows, after_rows) = products.split_at(threshold.uncertain.len());
    let formed = inner_product(at_rows, &weights.rows) + inner_product(after_rows, &form);
    let positions = threshold.uncertain.iter().map(|row| row.position as usize);
    equation.add_positions(statement.rows as usize, positions.zip(at_rows.iter().copied()));
    for (name, product) in threshold.generators_after_rows(dimension).iter().zip(after_rows) {
        equation.add_generator(name.list, name.index, *product);
    }
    equation.add_generator(List::Q, 0, x * (formed + factor * value));
    add_commitment(statement, threshold, &proof, &weights, &combination, &factor, equation);
    add_mask_equation(&proof, &challenges.schnorr, &mask_weight, equation);
    Ok(())
}

/// Adds `factor` times P, without its term in Q.
fn add_commitment<'a>(
    statement: &Statement<'a>,
    threshold: &Threshold,
    proof: &SelectionProof,
    weights: &RowWeights,
    combination: &Combination,
    factor: &Element,
    equation: &mut Equation<'a>,
) {
    let commitments = &proof.commitments;
    // Col_0 = B_sel - sum_F A_i + D_m.
    let selection = *factor * combination.columns[0];
    equation.add_point(statement.selection.element, selection);
    for position in &threshold.certain {
        equation.add_generator(List::A, *position, -selection);
    }
    equation.add_point(commitments.selection_mask.element, selection);
    for (column, power) in commitments.columns.iter().zip(&combination.columns[1..]) {
        equation.add_point(column.element, *factor * *power);
    }
    let rows = *factor * combination.rows;
    let terms = threshold.uncertain.iter().zip(&weights.rows);
    equation.add_rows(
        statement.commitments,
        terms.map(|(row, weight)| (row.position as usize, rows * *weight)),
    );
    equation.add_point(commitments.threshold.element, rows);
    equation.add_point(commitments.mask.element, *factor * combination.mask);
}

/// Adds `weight` times (E2): D_m lies in the span of A* and H, so b is exactly what B_sel holds
/// on U.
fn add_mask_equation(
    proof: &SelectionProof,
    schnorr: &Scalar,
    weight: &Element,
    equation: &mut Equation,
) {
    let [z_a, z_h] = proof.responses.map(Element::from);
    equation.add_generator(List::SelectionMask, 0, *weight * z_a);
    equation.add_generator(List::H, 0, *weight * z_h);
    equation.add_point(proof.commitments.selection_mask_nonce.element, -*weight);
    equation
        .add_point(proof.commitments.selection_mask.element, -(*weight * Element::from(schnorr)));
}
