//! Verification of a budget proof.

use rayon::prelude::*;

use super::ARGUMENT;
use super::proof::{At, BudgetProof, OpeningChallenges};
use super::statement::Statement;
use crate::encoding::{ELEMENT_BYTES, Point, decode_point};
use crate::errors::{Error, Result, rejected};
use crate::field::{Element, inner_product};
use crate::generators::List;
use crate::multiscalar::Equation;
use crate::progress::{Progress, Stage};
use crate::{opening, randomness, sumcheck};

/// Rejects unless `proof` proves `statement`; the reason names the argument.
pub fn verify(statement: &Statement, proof: &[u8], progress: &dyn Progress) -> Result<()> {
    check(statement, proof, progress).map_err(|error| match error {
        Error::Rejected(reason) => rejected(format!("{ARGUMENT}: {reason}")),
        other => other,
    })
}

/// Decodes points of a statement.
fn points(bytes: &[u8], name: &str) -> Result<Vec<Point>> {
    let decode = |(t, bytes): (usize, &[u8])| decode_point(bytes, &format!("{name}_{t}"));
    bytes.par_chunks(ELEMENT_BYTES).enumerate().map(decode).collect()
}

fn check(statement: &Statement, proof: &[u8], progress: &dyn Progress) -> Result<()> {
    progress.report(0.0)?;
    let shape = statement.shape()?;
    let proof = BudgetProof::decode(proof, &shape)?;
    let charges = points(statement.charges, "B")?;
    let mut transcript = statement.begin(&shape);
    // P1, V1
    let drawn = proof.commitments.challenges(&mut transcript, &shape);
    // P2
    let claim = drawn.rho * proof.commitments.mask_sum;
    let (claim, r) = sumcheck::verify(&mut transcript, &shape.degrees(), &proof.sumcheck, claim);
    // P3, V2
    let at = At::new(&shape, &drawn, &r);
    let value = Element::from(proof.evaluation);
    let at_r = at.weight * (value.square() - value);
    let mask_value = sumcheck::mask_value(&claim, &at_r.into(), &drawn.rho)?;
    let challenges = OpeningChallenges::draw(&mut transcript, &proof.evaluation);
    // P4
    transcript.absorb_scalar("z", &proof.response);
    // P5
    let folding = opening::follow(&mut transcript, &proof.opening)?;
    progress.report(0.1)?;

    // (E1), and the equation of the sums with a weight of its own.
    let factor = folding.factor();
    let [gamma, theta] = [challenges.gamma, challenges.theta].map(Element::from);
    let mut equation = Equation::default();
    folding.add_messages(&Element::ONE, &mut equation);
    let products = folding.products(&Element::ONE, shape.opened());
    let formed = inner_product(&products, &at.form(&challenges.theta));
    let opened = value + theta * gamma * Element::from(mask_value);
    equation.add_generator(List::Q, 0, Element::from(challenges.x) * (formed + factor * opened));
    let (at_rows, at_mask) = products.split_at(shape.rows);
    equation.add_positions(shape.rows, at_rows.iter().copied().enumerate());
    for (index, product) in at_mask.iter().enumerate() {
        equation.add_generator(List::BudgetR, index as u64, *product);
    }
    let weight = randomness::weight()?;
    let challenge = weight * Element::from(challenges.schnorr);
    let (at_charges, at_uses) = at.vectors.split_at(shape.entries);
    for (point, eq) in charges.iter().zip(at_charges) {
        equation.add_point(point.element, factor * *eq - challenge);
    }
    for (point, eq) in proof.commitments.uses.iter().zip(at_uses) {
        equation.add_point(point.element, factor * *eq + challenge);
    }
    // C_m is the mask row and has that row's weight: with weight 1 it could move every value.
    equation.add_point(proof.commitments.mask_row.element, factor * at.mask_row);
    equation.add_point(proof.commitments.mask.element, factor * gamma);
    equation.add_generator(List::H, 0, weight * Element::from(proof.response));
    equation.add_point(proof.commitments.nonce.element, -weight);
    equation.check(&Stage::new(progress, 0.1, 1.0))
}
