//! The honest prover.

use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use rayon::prelude::*;
use zeroize::{Zeroize, ZeroizeOnDrop};

use super::planes::{Cell, Planes};
use super::polynomial::Polynomial;
use super::proof::{At, ChargeProof, Commitments, OpeningChallenges};
use super::relation::Relation;
use super::secrets::Secrets;
use super::statement::{Shape, Statement};
use crate::commitments::bit_sums;
use crate::encoding::Point;
use crate::errors::{Error, Result};
use crate::field::{Element, SmallSum, inner_product};
use crate::generators::{self, List};
use crate::multiscalar::secret_sum;
use crate::opening;
use crate::progress::{Progress, Stage};
use crate::randomness::ProverRandomness;
use crate::sumcheck::{self, Mask};

/// Bits of columns that are summed up at once.
const BITS_AT_ONCE: usize = 1 << 25;
/// Rows that one task sums up.
const ROWS_PER_TASK: usize = 256;

/// Random parts of the first message.
#[derive(Zeroize, ZeroizeOnDrop)]
struct Blindings {
    /// Multiple of H of every entry's h, u_0 .., entry after entry.
    columns: Vec<Scalar>,
    /// Mask of b, c, h, u_0 .., and the multiple of H beside it.
    masks: Vec<Scalar>,
    mask_blindings: Vec<Scalar>,
    /// sigma and r_m of C_m.
    sigma: Scalar,
    sigma_blinding: Scalar,
    /// r_g of C_g.
    mask: Scalar,
}

/// Proves that the charged rows of every entry are the live relevant ones.
///
/// Runs on any charges; if they are not those, the proof is rejected by every verifier.
pub fn prove(statement: &Statement, secrets: &Secrets, progress: &dyn Progress) -> Result<Vec<u8>> {
    progress.report(0.0)?;
    let shape = statement.shape().map_err(|error| match error {
        Error::Rejected(message) => Error::Malformed(message),
        other => other,
    })?;
    secrets.fits(statement, &shape)?;
    let charge_blindings = secrets.charge_blindings()?;
    let cells = cells(statement, &shape, secrets);
    progress.report(0.03)?;
    let mut transcript = statement.begin(&shape);
    let mut randomness = ProverRandomness::new(&transcript, &secrets.digest())?;

    // P1
    let degrees = shape.degrees();
    let blindings = Blindings {
        columns: randomness.scalars(shape.entries * (shape.bits + 1)),
        masks: randomness.scalars(shape.columns()),
        mask_blindings: randomness.scalars(shape.columns()),
        sigma: randomness.scalar(),
        sigma_blinding: randomness.scalar(),
        mask: randomness.scalar(),
    };
    let mask = Mask::random(&degrees, &mut randomness);
    let mut points = generators::first(List::A, shape.rows);
    let stage = Stage::new(progress, 0.05, 0.3);
    let commitments = commit(&shape, &cells, &blindings, &mask, &points, &stage)?;
    // V1
    let drawn = commitments.challenges(&mut transcript, &shape);

    // P2
    let most_before = cells.iter().flatten().map(|cell| cell.before).max().unwrap_or(0);
    let planes = Planes::new(shape.rows, shape.entry_variables(), shape.bits, most_before, &cells);
    drop(cells);
    let relation = Relation::new(&shape, statement.uses, &drawn);
    let (masks, sigma) = (&blindings.masks, &blindings.sigma);
    let mut polynomial = Polynomial::new(&shape, &relation, &planes, masks, sigma, &drawn);
    let stage = Stage::new(progress, 0.3, 0.6);
    let (messages, r) =
        sumcheck::prove(&mut transcript, &mut polynomial, &mask, &drawn.rho, &stage)?;
    // P3, V2
    let evaluations = polynomial.evaluations();
    drop(polynomial);
    let challenges = OpeningChallenges::draw(&mut transcript, &shape, &evaluations);

    // P4
    let at = At::new(&shape, &r);
    let r_x: Vec<Element> = r[..shape.entry_variables()].iter().map(Element::from).collect();
    let mut vector = opened_positions(&shape, &planes, &blindings, &r_x, &challenges);
    vector.extend(opened_rows(&shape, secrets, &at).iter().map(|x| challenges.rows() * *x));
    vector.push(challenges.rows() * at.mask_row * Element::from(blindings.sigma));
    let coefficients = mask.coefficients().iter();
    vector.extend(coefficients.map(|entry| challenges.mask() * Element::from(entry)));
    let blinding =
        opened_blinding(&shape, secrets, &blindings, &charge_blindings, &at, &challenges)?;
    points.extend(generators::first(List::G, shape.width()));
    points.push(generators::point(List::ChargeM, 0));
    points.extend(generators::first(List::ChargeR, mask.coefficients().len()));
    let form = at.form(statement, &shape, &challenges.theta);
    let form: Vec<Scalar> = form.iter().map(Scalar::from).collect();
    let secret = opening::Secret {
        vector: vector.iter().map(Scalar::from).collect(),
        blinding: blinding.into(),
    };
    vector.zeroize();
    let opening = opening::prove(
        &mut transcript,
        points,
        &form,
        &challenges.x,
        secret,
        &mut randomness,
        &Stage::new(progress, 0.6, 1.0),
    )?;
    progress.report(1.0)?;
    Ok(ChargeProof { commitments, sumcheck: messages, evaluations, opening }.encode())
}

/// The tables of every entry, row after row.
fn cells(statement: &Statement, shape: &Shape, secrets: &Secrets) -> Vec<Vec<Cell>> {
    let uses = secrets.uses_before(shape.rows);
    let entries = statement.entries.iter().zip(uses).enumerate();
    let all = entries.map(|(t, (entry, before))| {
        let mut charged = vec![false; shape.rows];
        secrets.charged(t).iter().for_each(|row| charged[*row as usize] = true);
        let mut allowed = vec![entry.allowed.is_none(); shape.rows];
        let positions = entry.allowed.unwrap_or_default();
        positions.iter().for_each(|position| allowed[*position as usize] = true);
        let cell = |i: usize| {
            let score = secrets.row(i).inner_product(entry.query);
            let difference = score - entry.threshold;
            let relevant = difference > 0;
            let exhausted = allowed[i] & relevant & (u64::from(before[i]) == statement.uses);
            // s - tau - 1 where q = b + h is 1, tau - s = !(s - tau - 1) where it is 0.
            let flip = i64::from(charged[i] | exhausted) - 1;
            let distance = (difference - 1) ^ flip;
            let kept = ((1i64 << shape.bits) - 1) & -i64::from(allowed[i]);
            Cell {
                charged: charged[i],
                exhausted,
                allowed: allowed[i],
                before: before[i],
                difference: difference as i32,
                distance: (distance & kept) as u32,
            }
        };
        (0..shape.rows).into_par_iter().with_min_len(ROWS_PER_TASK).map(cell).collect()
    });
    all.collect()
}

/// P1. `points` are A_0 .. A_(N-1).
fn commit(
    shape: &Shape,
    cells: &[Vec<Cell>],
    blindings: &Blindings,
    mask: &Mask,
    points: &[RistrettoPoint],
    progress: &dyn Progress,
) -> Result<Commitments> {
    let blind = |blinding: &Scalar| blinding * &*generators::H;
    let mut sums = Vec::with_capacity(shape.entries * (shape.bits + 1));
    for part in cells.chunks(BITS_AT_ONCE.div_ceil(shape.rows * (shape.bits + 1))) {
        progress.report(sums.len() as f64 / (shape.entries * (shape.bits + 1)) as f64)?;
        let columns: Vec<Vec<bool>> =
            part.par_iter()
                .flat_map_iter(|cells| {
                    let exhausted =
                        std::iter::once(cells.iter().map(|cell| cell.exhausted).collect());
                    exhausted.chain((0..shape.bits).map(move |k| {
                        cells.iter().map(|cell| cell.distance >> k & 1 == 1).collect()
                    }))
                })
                .collect();
        sums.extend(bit_sums(&columns, points));
    }
    let columns = sums
        .par_iter()
        .zip(&blindings.columns)
        .map(|(sum, blinding)| Point::from(sum + blind(blinding)))
        .collect();
    let mask_row = |mask: &Scalar, blinding: &Scalar| mask * points[0] + blind(blinding);
    let pairs = blindings.masks.iter().zip(&blindings.mask_blindings);
    let coefficients = generators::first(List::ChargeR, mask.coefficients().len());
    let difference = blindings.sigma * generators::point(List::ChargeM, 0);
    Ok(Commitments {
        columns,
        masks: pairs.map(|(mask, blinding)| Point::from(mask_row(mask, blinding))).collect(),
        difference_mask: Point::from(difference + blind(&blindings.sigma_blinding)),
        mask: Point::from(secret_sum(mask.coefficients(), &coefficients) + blind(&blindings.mask)),
        mask_sum: mask.sum(),
    })
}

/// P4: the part of the opened vector over A.
fn opened_positions(
    shape: &Shape,
    planes: &Planes,
    blindings: &Blindings,
    r_x: &[Element],
    challenges: &OpeningChallenges,
) -> Vec<Element> {
    // The weights of claims are not read.
    let weighing = super::planes::Weighing::new(r_x, r_x);
    let row = |i: usize| {
        let values = planes.values(i, 0, &weighing);
        let gammas = &challenges.gammas;
        inner_product(&values.others[..3], &gammas[..3])
            + inner_product(&values.bits[..shape.bits], &gammas[3..])
    };
    let mut vector: Vec<Element> = (0..shape.rows).into_par_iter().map(row).collect();
    let masks: Vec<Element> = blindings.masks.iter().map(Element::from).collect();
    vector[0] += weighing.mask_row * inner_product(&masks, &challenges.gammas);
    vector
}

/// P4: sum_i eq(r_y, i) X_i, entry by entry.
fn opened_rows(shape: &Shape, secrets: &Secrets, at: &At) -> Vec<Element> {
    let zero = || vec![Element::ZERO; shape.width()];
    let part = |(task, weights): (usize, &[Element])| {
        let mut sums = vec![SmallSum::default(); shape.width()];
        for (offset, weight) in weights.iter().enumerate() {
            let row = secrets.row(task * ROWS_PER_TASK + offset);
            row.for_each(|place, entry| sums[place].add_product(weight, entry));
        }
        sums.iter().map(SmallSum::reduce).collect()
    };
    at.rows
        .par_chunks(ROWS_PER_TASK)
        .enumerate()
        .map(part)
        .reduce(zero, |left: Vec<Element>, right| {
            left.iter().zip(right).map(|(a, b)| *a + b).collect()
        })
}

/// P4: the multiple of H in P.
fn opened_blinding(
    shape: &Shape,
    secrets: &Secrets,
    blindings: &Blindings,
    charge_blindings: &[[Scalar; 2]],
    at: &At,
    challenges: &OpeningChallenges,
) -> Result<Element> {
    let gammas = &challenges.gammas;
    let columns = blindings.columns.chunks(shape.bits + 1).zip(charge_blindings).zip(&at.entries);
    let entries: Element = columns
        .map(|((columns, known), weight)| {
            let all: Vec<Element> = known.iter().chain(columns).map(Element::from).collect();
            *weight * inner_product(&all, gammas)
        })
        .sum();
    let masks: Vec<Element> = blindings.mask_blindings.iter().map(Element::from).collect();
    let rows = (0..shape.rows)
        .into_par_iter()
        .map(|i| Ok(at.rows[i] * Element::from(secrets.blinding(i)?)))
        .try_reduce(|| Element::ZERO, |left, right| Ok(left + right))?;
    Ok(entries
        + at.mask_row * inner_product(&masks, gammas)
        + challenges.rows() * (rows + at.mask_row * Element::from(blindings.sigma_blinding))
        + challenges.mask() * Element::from(blindings.mask))
}
