//! "selection-all/v1": at most K rows are allowed, so the selection is all of them.

use curve25519_dalek::scalar::Scalar;

use super::protocol;
use super::statement::Statement;
use crate::encoding::{Point, Reader, Writer};
use crate::errors::Result;
use crate::field::Element;
use crate::generators::{self, List};
use crate::multiscalar::Equation;
use crate::opening::last_challenge;
use crate::randomness::ProverRandomness;

/// Proves knowledge of rho_sel with B_sel = sum_allowed A_i + rho_sel H: T || z (spec 4.6.8).
pub fn prove(
    statement: &Statement,
    allowed: &[u64],
    blinding: &Scalar,
    witness_digest: &[u8; 64],
) -> Result<Vec<u8>> {
    let mut transcript = protocol::begin_all(statement, allowed);
    let mut randomness = ProverRandomness::new(&transcript, witness_digest)?;
    // P: T
    let nonce = randomness.scalar();
    let first = Point::from(&nonce * &*generators::H);
    // V: c
    let c = last_challenge(&mut transcript, &first);
    // P: z
    let mut writer = Writer::default();
    writer.points([&first]);
    writer.scalars([&(nonce + c * blinding)]);
    Ok(writer.finish())
}

/// Adds `weight` times (E3): z H - T - c (B_sel - sum_allowed A_i).
pub fn add_equation(
    statement: &Statement,
    allowed: &[u64],
    proof: &[u8],
    weight: &Element,
    equation: &mut Equation,
) -> Result<()> {
    let mut reader = Reader::new(proof, 2)?;
    let (first, z) = (reader.point()?, reader.scalar()?);
    reader.finish()?;
    let mut transcript = protocol::begin_all(statement, allowed);
    let factor = *weight * Element::from(last_challenge(&mut transcript, &first));
    equation.add_generator(List::H, 0, *weight * Element::from(z));
    equation.add_point(first.element, -*weight);
    equation.add_point(statement.selection.element, -factor);
    for position in allowed {
        equation.add_generator(List::A, *position, factor);
    }
    Ok(())
}
