//! The honest prover.

use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use zeroize::{Zeroize, ZeroizeOnDrop};

use super::matrix::Polynomial;
use super::proof::{At, BudgetProof, Commitments, OpeningChallenges};
use super::statement::{Shape, Statement};
use crate::charges::Charges;
use crate::commitments::bit_sums;
use crate::encoding::Point;
use crate::errors::{Error, Result, malformed};
use crate::field::{Element, inner_product};
use crate::generators::{self, List};
use crate::multiscalar::secret_sum;
use crate::opening;
use crate::progress::{Progress, Stage};
use crate::randomness::ProverRandomness;
use crate::sumcheck::{self, Mask};

/// Bits of the columns W that are summed up at once.
const BITS_AT_ONCE: usize = 1 << 24;

/// Random parts of the first message.
#[derive(Zeroize, ZeroizeOnDrop)]
struct Blindings {
    /// r_k of W_k.
    uses: Vec<Scalar>,
    /// sigma and r_m of C_m.
    sigma: Scalar,
    mask_row: Scalar,
    /// r_g of C_g.
    mask: Scalar,
    /// s of T_H.
    nonce: Scalar,
}

/// Proves that no row is charged more than M times.
///
/// `charges` are those of the statement's points; if they are not, the proof is rejected by every
/// verifier. Malformed if a row is charged more often.
pub fn prove(statement: &Statement, charges: &Charges, progress: &dyn Progress) -> Result<Vec<u8>> {
    progress.report(0.0)?;
    let shape = statement.shape().map_err(|error| match error {
        Error::Rejected(message) => Error::Malformed(message),
        other => other,
    })?;
    if charges.len() != shape.entries {
        return Err(malformed(format!(
            "charged: {} entries, expected {}",
            charges.len(),
            shape.entries
        )));
    }
    let columns = columns(&shape, charges)?;
    let rho = charges.blindings()?;
    let mut transcript = statement.begin(&shape);
    let mut randomness = ProverRandomness::new(&transcript, &charges.digest())?;

    // P1
    let degrees = shape.degrees();
    let blindings = Blindings {
        uses: randomness.scalars(shape.uses),
        sigma: randomness.scalar(),
        mask_row: randomness.scalar(),
        mask: randomness.scalar(),
        nonce: randomness.scalar(),
    };
    let mask = Mask::random(&degrees, &mut randomness);
    let mut points = generators::first(List::A, shape.rows);
    progress.report(0.02)?;
    let stage = Stage::new(progress, 0.02, 0.1);
    let commitments = commit(&shape, charges, &blindings, &mask, &points, &stage)?;
    // V1
    let drawn = commitments.challenges(&mut transcript, &shape);

    // P2
    let mut polynomial = Polynomial::new(&shape, &drawn, &columns, blindings.sigma.into());
    let stage = Stage::new(progress, 0.1, 0.4);
    let (messages, r) =
        sumcheck::prove(&mut transcript, &mut polynomial, &mask, &drawn.rho, &stage)?;
    // P3, V2
    let evaluation = Scalar::from(polynomial.evaluation());
    let challenges = OpeningChallenges::draw(&mut transcript, &evaluation);
    progress.report(0.4)?;

    // P4
    let sum = rho.iter().sum::<Scalar>() - blindings.uses.iter().sum::<Scalar>();
    let response = blindings.nonce + challenges.schnorr * sum;
    transcript.absorb_scalar("z", &response);
    // P5
    let at = At::new(&shape, &drawn, &r);
    let mut vector: Vec<Scalar> = polynomial.bound_columns().iter().map(Scalar::from).collect();
    vector.extend(mask.coefficients().iter().map(|entry| challenges.gamma * entry));
    let hidden = rho.iter().chain(&blindings.uses).map(Element::from).collect::<Vec<_>>();
    let blinding = inner_product(&hidden, &at.vectors)
        + at.mask_row * Element::from(blindings.mask_row)
        + Element::from(challenges.gamma * blindings.mask);
    points.extend(generators::first(List::BudgetR, mask.coefficients().len()));
    let form: Vec<Scalar> = at.form(&challenges.theta).iter().map(Scalar::from).collect();
    let opening = opening::prove(
        &mut transcript,
        points,
        &form,
        &challenges.x,
        opening::Secret { vector, blinding: blinding.into() },
        &mut randomness,
        &Stage::new(progress, 0.4, 1.0),
    )?;
    progress.report(1.0)?;
    Ok(BudgetProof { commitments, sumcheck: messages, evaluation, response, opening }.encode())
}

/// The rows of the matrix that hold a 1, for each column: the entries that charge a row, then as
/// many of the M vectors, the first ones.
fn columns(shape: &Shape, charges: &Charges) -> Result<Vec<Vec<u32>>> {
    let mut columns: Vec<Vec<u32>> = vec![Vec::new(); shape.rows];
    for entry in 0..shape.entries {
        for row in charges.rows(entry) {
            columns[*row as usize].push(entry as u32);
        }
    }
    for (row, column) in columns.iter_mut().enumerate() {
        let count = column.len();
        if count > shape.uses {
            return Err(malformed(format!(
                "charged: row {row} {count} times, expected at most M = {}",
                shape.uses
            )));
        }
        column.extend((0..count).map(|k| (shape.entries + k) as u32));
    }
    Ok(columns)
}

/// P1. `points` are A_0 .. A_(N-1).
fn commit(
    shape: &Shape,
    charges: &Charges,
    blindings: &Blindings,
    mask: &Mask,
    points: &[RistrettoPoint],
    progress: &dyn Progress,
) -> Result<Commitments> {
    let blind = |blinding: &Scalar| blinding * &*generators::H;
    let uses = charges.uses(shape.entries, shape.rows);
    let mut sums = Vec::with_capacity(shape.uses);
    let vectors: Vec<u32> = (0..shape.uses as u32).collect();
    for part in vectors.chunks(BITS_AT_ONCE.div_ceil(shape.rows)) {
        progress.report(sums.len() as f64 / shape.uses as f64)?;
        // w_k is 1 where a row is charged more than k times.
        let bits: Vec<Vec<bool>> =
            part.iter().map(|k| uses.iter().map(|count| count > k).collect()).collect();
        sums.extend(bit_sums(&bits, points));
    }
    let masks = generators::first(List::BudgetR, mask.coefficients().len());
    let row = blindings.sigma * points[0] + blind(&blindings.mask_row);
    Ok(Commitments {
        uses: sums
            .iter()
            .zip(&blindings.uses)
            .map(|(sum, r)| Point::from(sum + blind(r)))
            .collect(),
        mask_row: Point::from(row),
        mask: Point::from(secret_sum(mask.coefficients(), &masks) + blind(&blindings.mask)),
        nonce: Point::from(blind(&blindings.nonce)),
        mask_sum: mask.sum(),
    })
}
