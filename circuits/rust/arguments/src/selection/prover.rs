//! The honest prover.

use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use rayon::prelude::*;
use zeroize::Zeroize;

use super::proof::{Commitments, SelectionProof};
use super::relation::{self, Combination, Relation, RowWeights};
use super::secrets::Secrets;
use super::statement::{Case, Instance, Statement, Threshold};
use super::sumcheck_polynomial::Polynomial;
use super::witness::{self, Witness};
use super::{all, protocol};
use crate::commitments::bit_sums;
use crate::encoding::Point;
use crate::errors::{Error, Result};
use crate::field::{Element, SmallSum, inner_product};
use crate::generators::{self, List};
use crate::multiscalar::secret_sum;
use crate::opening;
use crate::progress::{Progress, Stage};
use crate::randomness::ProverRandomness;
use crate::scalars::from_integer;
use crate::sumcheck::{self, Mask};

/// Rows of U that one task sums up.
const ROWS_PER_TASK: usize = 256;

/// Proves that the selected set is the one of `instance`.
///
/// Runs on any selection; if it is not the statement's, the proof is rejected by every verifier.
pub fn prove(instance: &Instance, secrets: &Secrets, progress: &dyn Progress) -> Result<Vec<u8>> {
    progress.report(0.0)?;
    let statement = Statement::new(instance).map_err(|error| match error {
        Error::Rejected(message) => Error::Malformed(message),
        other => other,
    })?;
    secrets.fits(&statement)?;
    let proof = match &statement.case {
        Case::All(allowed) => {
            let digest = witness::digest(std::iter::empty(), secrets);
            all::prove(&statement, allowed, &secrets.selection_blinding, &digest)?
        }
        Case::Threshold(threshold) => {
            let witness = Witness::new(&statement, threshold, secrets);
            prove_threshold(&statement, threshold, &witness, secrets, progress)?.encode()
        }
    };
    progress.report(1.0)?;
    Ok(proof)
}

/// Random parts of the first message.
struct Blindings {
    /// Mask of each boolean column.
    masks: Vec<Scalar>,
    /// Multiple of H in each column's commitment; r_0 for b.
    columns: Vec<Scalar>,
    /// s1, s2 of T_D.
    nonces: [Scalar; 2],
    /// sigma and r_t of C_t.
    sigma: Scalar,
    threshold: Scalar,
    /// r_g of C_g.
    mask: Scalar,
}

impl Blindings {
    fn random(relation: &Relation, randomness: &mut ProverRandomness) -> Self {
        Blindings {
            masks: randomness.scalars(relation.columns()),
            columns: randomness.scalars(relation.columns()),
            nonces: [randomness.scalar(), randomness.scalar()],
            sigma: randomness.scalar(),
            threshold: randomness.scalar(),
            mask: randomness.scalar(),
        }
    }
}

impl Drop for Blindings {
    fn drop(&mut self) {
        self.masks.zeroize();
        self.columns.zeroize();
        self.nonces.zeroize();
        self.sigma.zeroize();
        self.threshold.zeroize();
        self.mask.zeroize();
    }
}

/// Moves P1 to P5 (spec 4.6.4 to 4.6.7).
fn prove_threshold(
    statement: &Statement,
    threshold: &Threshold,
    witness: &Witness,
    secrets: &Secrets,
    progress: &dyn Progress,
) -> Result<SelectionProof> {
    let mut transcript = protocol::begin(statement, threshold);
    let digest = witness::digest(threshold.uncertain.iter().map(|row| row.position), secrets);
    let mut randomness = ProverRandomness::new(&transcript, &digest)?;
    let names = threshold.generators(statement.query.len());
    let points = generators::points(&names);

    // P1
    let blindings = Blindings::random(&threshold.relation, &mut randomness);
    let mask = Mask::random(&threshold.degrees(), &mut randomness);
    progress.report(0.02)?;
    let commitments = commit(threshold, witness, &blindings, &mask, &points);
    // V1
    let drawn = protocol::column_challenges(&mut transcript, &commitments, threshold.variables());
    progress.report(0.1)?;

    // P2
    let differences = witness.differences.iter().map(|y| Element::from_integer(*y)).collect();
    let masks = [&blindings.masks[..], &[blindings.sigma]].concat();
    let relation = threshold.relation;
    let mut polynomial = Polynomial::new(relation, &witness.columns, differences, &masks, &drawn);
    let (messages, r) = sumcheck::prove(
        &mut transcript,
        &mut polynomial,
        &mask,
        &drawn.rho,
        &Stage::new(progress, 0.1, 0.2),
    )?;
    // P3
    let evaluations = polynomial.evaluations();
    // V2
    let challenges = protocol::opening_challenges(&mut transcript, &evaluations);
    progress.report(0.2)?;

    // P4
    let responses = [
        blindings.nonces[0] + challenges.schnorr * blindings.masks[0],
        blindings.nonces[1] + challenges.schnorr * blindings.columns[0],
    ];
    protocol::absorb_responses(&mut transcript, &responses);
    // P5
    let weights = RowWeights::new(&drawn.t, &r, threshold.uncertain.len());
    let combination = Combination::new(&relation, &challenges.gamma);
    let form = relation::form(statement, threshold, &weights, &r, &challenges.theta);
    let vector =
        opened_vector(threshold, witness, secrets, &blindings, &mask, &weights, &combination);
    let blinding = opened_blinding(threshold, secrets, &blindings, &weights, &combination)?;
    let opening = opening::prove(
        &mut transcript,
        points,
        &form,
        &challenges.x,
        opening::Secret { vector, blinding },
        &mut randomness,
        &Stage::new(progress, 0.2, 1.0),
    )?;
    Ok(SelectionProof { commitments, sumcheck: messages, evaluations, responses, opening })
}

/// P1. `points` are the opening's generators: A_U, A*, G, M, R.
fn commit(
    threshold: &Threshold,
    witness: &Witness,
    blindings: &Blindings,
    mask: &Mask,
    points: &[RistrettoPoint],
) -> Commitments {
    let positions = &points[..threshold.uncertain.len()];
    let mask_points = &points[points.len() - mask.coefficients().len()..];
    let masked = |mask: &Scalar, blinding: &Scalar| {
        mask * &*generators::SELECTION_MASK + blinding * &*generators::H
    };
    let columns = bit_sums(&witness.columns[1..], positions)
        .into_par_iter()
        .zip(&blindings.masks[1..])
        .zip(&blindings.columns[1..])
        .map(|((bits, mask), blinding)| Point::from(bits + masked(mask, blinding)))
        .collect();
    let tau = from_integer(witness.tau);
    let thresholds = generators::first(List::SelectionM, 2);
    let threshold_point =
        secret_sum(&[tau, blindings.sigma], &thresholds) + &blindings.threshold * &*generators::H;
    let mask_point =
        secret_sum(mask.coefficients(), mask_points) + &blindings.mask * &*generators::H;
    Commitments {
        columns,
        selection_mask: Point::from(masked(&blindings.masks[0], &blindings.columns[0])),
        selection_mask_nonce: Point::from(masked(&blindings.nonces[0], &blindings.nonces[1])),
        threshold: Point::from(threshold_point),
        mask: Point::from(mask_point),
        mask_sum: mask.sum(),
    }
}

/// P5: the vector that P commits to, over A_U, A*, G, M, R.
fn opened_vector(
    threshold: &Threshold,
    witness: &Witness,
    secrets: &Secrets,
    blindings: &Blindings,
    mask: &Mask,
    weights: &RowWeights,
    combination: &Combination,
) -> Vec<Scalar> {
    let mut vector: Vec<Element> = (0..threshold.uncertain.len())
        .into_par_iter()
        .map(|q| {
            let mut sum = SmallSum::default();
            for (bits, power) in witness.columns.iter().zip(&combination.columns) {
                sum.add(&power.keep_if(u64::from(bits[q])));
            }
            sum.reduce()
        })
        .collect();
    let masks: Vec<Element> = blindings.masks.iter().map(Element::from).collect();
    vector.push(inner_product(&masks, &combination.columns));
    let rows = weighted_rows(threshold, secrets, &weights.rows);
    vector.extend(rows.iter().map(|entry| combination.rows * *entry));
    let [tau, sigma] = [Element::from(from_integer(witness.tau)), Element::from(blindings.sigma)];
    vector.extend([tau, sigma].map(|value| combination.rows * value));
    let mask = mask.coefficients().iter();
    vector.extend(mask.map(|coefficient| combination.mask * Element::from(coefficient)));
    let scalars = vector.par_iter().map(Scalar::from).collect();
    vector.zeroize();
    scalars
}

/// sum over U of weight times row, entry by entry.
fn weighted_rows(threshold: &Threshold, secrets: &Secrets, weights: &[Element]) -> Vec<Element> {
    threshold
        .uncertain
        .par_chunks(ROWS_PER_TASK)
        .zip(weights.par_chunks(ROWS_PER_TASK))
        .map(|(rows, weights)| {
            let mut sums = vec![SmallSum::default(); secrets.width];
            for (row, weight) in rows.iter().zip(weights) {
                secrets
                    .row(row.position)
                    .for_each(|place, entry| sums[place].add_product(weight, entry));
            }
            sums.iter().map(SmallSum::reduce).collect()
        })
        .reduce(
            || vec![Element::ZERO; secrets.width],
            |left: Vec<Element>, right| left.iter().zip(right).map(|(a, b)| *a + b).collect(),
        )
}

/// P5: the multiple of H in P.
fn opened_blinding(
    threshold: &Threshold,
    secrets: &Secrets,
    blindings: &Blindings,
    weights: &RowWeights,
    combination: &Combination,
) -> Result<Scalar> {
    let rows = threshold
        .uncertain
        .par_iter()
        .zip(&weights.rows)
        .map(|(row, weight)| Ok(*weight * Element::from(secrets.blinding(row.position)?)))
        .try_reduce(|| Element::ZERO, |left, right| Ok(left + right))?;
    // Col_0 carries rho_sel and r_0.
    let columns: Vec<Element> = blindings.columns.iter().map(Element::from).collect();
    let blinding = combination.columns[0] * Element::from(secrets.selection_blinding)
        + inner_product(&columns, &combination.columns)
        + combination.rows * (rows + Element::from(blindings.threshold))
        + combination.mask * Element::from(blindings.mask);
    Ok(blinding.into())
}
