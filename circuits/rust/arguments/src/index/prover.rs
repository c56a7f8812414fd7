//! The prover.

use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use rayon::prelude::*;
use sha2::{Digest, Sha512};
use zeroize::Zeroize;

use super::blocks::{BLOCK_ROUNDS, Source};
use super::projections::{DIGIT_BITS, DIGITS, OFFSET, PROJECTIONS, Projections, RANGE_ROWS};
use super::proof::{Commitments, IndexProof};
use super::protocol;
use super::relation::{self, Combination, Point, Weights};
use super::row_sumcheck::RowPart;
use super::rows::{self, Rows, Values};
use super::statement::Statement;
use super::sumcheck_polynomial::{Polynomial, RowPhase};
use crate::commitments::{bit_sum, blinding};
use crate::encoding::{self, ELEMENT_BYTES};
use crate::errors::{Result, malformed};
use crate::generators::{self, List};
use crate::multiscalar::secret_sum;
use crate::opening;
use crate::progress::{Progress, Stage};
use crate::randomness::ProverRandomness;
use crate::scalars::{from_integer, inner_product};
use crate::sumcheck::{self, Mask};
use crate::tables::MaskedTable;

/// Rows projected between two reports of progress.
const STEP: usize = 1 << 12;

/// Random parts of the first message.
struct Blindings {
    masks: Vec<Scalar>,
    columns: Vec<Scalar>,
    sigma: Scalar,
    rows_mask: Scalar,
    mask: Scalar,
}

impl Blindings {
    fn random(randomness: &mut ProverRandomness) -> Self {
        Blindings {
            masks: randomness.scalars(DIGIT_BITS),
            columns: randomness.scalars(DIGIT_BITS),
            sigma: randomness.scalar(),
            rows_mask: randomness.scalar(),
            mask: randomness.scalar(),
        }
    }
}

impl Drop for Blindings {
    fn drop(&mut self) {
        self.masks.zeroize();
        self.columns.zeroize();
        self.sigma.zeroize();
        self.rows_mask.zeroize();
        self.mask.zeroize();
    }
}

/// Proves the statement for these completed rows and their blindings (32 bytes each).
///
/// Runs on any rows; unless each has squared norm B² over the integers and is what its
/// commitment holds, the proof is rejected by every verifier.
pub fn prove(
    statement: &Statement,
    rows: Rows,
    blindings: &[u8],
    progress: &dyn Progress,
) -> Result<Vec<u8>> {
    progress.report(0.0)?;
    let width = statement.width();
    if rows.entries() != statement.rows * width || blindings.len() != statement.rows * ELEMENT_BYTES
    {
        return Err(malformed(format!(
            "rows: {} entries and {} bytes of blindings, expected {} rows of {width}",
            rows.entries(),
            blindings.len(),
            statement.rows
        )));
    }
    let row_blindings = blindings
        .par_chunks(ELEMENT_BYTES)
        .enumerate()
        .map(|(row, bytes)| blinding(bytes, &format!("blinding {row}")))
        .collect::<Result<Vec<Scalar>>>()?;
    let row_blindings = zeroize::Zeroizing::new(row_blindings);

    let mut transcript = protocol::begin(statement);
    let mut randomness = ProverRandomness::new(&transcript, &digest(&rows, blindings))?;
    let projections = protocol::projections(&mut transcript, statement);
    let vectors = projections.column_vectors();
    let digits =
        digit_columns(statement, &rows, &projections, &vectors, &Stage::new(progress, 0.0, 0.2))?;

    let random = Blindings::random(&mut randomness);
    let mask = Mask::random(&statement.degrees(), &mut randomness);
    let points = generators::points(&statement.generators());
    let commitments = commit(&digits, &random, &mask, &points);
    let drawn =
        protocol::column_challenges(&mut transcript, &commitments, statement.row_variables());

    let weights = Weights::new(statement, &drawn);
    let source = Source {
        rows,
        count: statement.rows,
        width,
        projections: &projections,
        vectors,
        lambdas: rows::Weights::new(&weights.lambdas),
        sigma: random.sigma,
        stride: 1 << (statement.row_variables() - BLOCK_ROUNDS),
    };
    let stage = Stage::new(progress, 0.2, 0.9);
    let row_phase = row_phase(statement, &weights, source, &digits, &random, &stage)?;
    let mut polynomial = Polynomial::new(&weights, &projections, row_phase);
    let (messages, r) = sumcheck::prove(&mut transcript, &mut polynomial, &mask, &drawn.rho)?;
    let point = Point::new(statement, &r);
    let digit_values = polynomial.digit_values();
    let row_value = inner_product(polynomial.bound_row(), &point.columns);
    let evaluations = std::array::from_fn(|k| digit_values.get(k).copied().unwrap_or(row_value));
    let challenges = protocol::opening_challenges(&mut transcript, &evaluations);
    progress.report(0.9)?;

    let combination = Combination::new(&challenges.gamma);
    let form = relation::form(statement, &point, &challenges.theta);
    let mut bound_row = polynomial.bound_row().to_vec();
    bound_row[0] -= point.mask_row * random.sigma;
    let vector = opened_vector(&digits, &bound_row, &random, &mask, &combination);
    bound_row.zeroize();
    let blinding = combination.rows
        * (inner_product(&row_blindings, &point.rows) + random.rows_mask)
        + inner_product(&random.columns, &combination.digits)
        + combination.mask * random.mask;
    let opening = opening::prove(
        &mut transcript,
        points,
        &form,
        &challenges.x,
        vector,
        blinding,
        &mut randomness,
    )?;
    progress.report(1.0)?;
    Ok(IndexProof { commitments, sumcheck: messages, evaluations, opening }.encode())
}

/// SHA-512 of the secret input, for the prover's randomness.
fn digest(rows: &Rows, blindings: &[u8]) -> [u8; 64] {
    let mut hash = Sha512::new();
    match rows {
        Rows::Small(entries) => {
            for part in entries.chunks(STEP) {
                hash.update(part.iter().map(|entry| *entry as u8).collect::<Vec<u8>>());
            }
        }
        Rows::Field(entries) => entries.iter().for_each(|entry| hash.update(entry.as_bytes())),
    }
    hash.update(blindings);
    hash.finalize().into()
}

/// kap_k: bit k of the digits of p_q + 2^41, three digits for each projection.
fn digit_columns(
    statement: &Statement,
    rows: &Rows,
    projections: &Projections,
    vectors: &[Vec<i16>],
    progress: &dyn Progress,
) -> Result<Vec<Vec<bool>>> {
    let mut totals = vec![Scalar::ZERO; PROJECTIONS];
    let indices: Vec<usize> = (0..statement.rows).collect();
    for step in indices.chunks(STEP) {
        progress.report(step[0] as f64 / statement.rows as f64)?;
        let projected: Vec<Values> =
            step.par_iter().map(|row| rows.project(*row, statement.width(), vectors)).collect();
        totals.par_iter_mut().enumerate().for_each(|(q, total)| {
            let kept = step.iter().zip(&projected).filter(|(row, _)| projections.u(q, **row));
            match rows {
                Rows::Small(_) => {
                    let small = kept.map(|(_, values)| match values {
                        Values::Small(values) => i128::from(values[q]),
                        Values::Field(_) => 0,
                    });
                    *total += from_integer(small.sum());
                }
                Rows::Field(_) => {
                    *total += kept.map(|(_, values)| values.scalar(q)).sum::<Scalar>()
                }
            }
        });
    }
    // Only rows that cannot be proven leave [-2^41, 2^41); their upper bits are dropped.
    let shifted: Vec<u64> = totals
        .iter()
        .map(|total| crate::scalars::limbs(&(total + from_integer(OFFSET)))[0])
        .collect();
    let bit = |row: usize, k: usize| {
        (shifted[row / DIGITS] >> (DIGIT_BITS * (row % DIGITS) + k)) & 1 == 1
    };
    let columns =
        (0..DIGIT_BITS).map(|k| (0..RANGE_ROWS).map(|row| bit(row, k)).collect()).collect();
    totals.zeroize();
    Ok(columns)
}

/// P1. `points` are the opening's generators: idx/P, idx/P*, G, idx/M, idx/R.
fn commit(
    digits: &[Vec<bool>],
    random: &Blindings,
    mask: &Mask,
    points: &[RistrettoPoint],
) -> Commitments {
    let range_points = &points[..RANGE_ROWS];
    let mask_points = &points[points.len() - mask.coefficients().len()..];
    let columns = digits
        .par_iter()
        .zip(&random.masks)
        .zip(&random.columns)
        .map(|((bits, mask), blinding)| {
            let masked = mask * &*generators::INDEX_MASK + blinding * &*generators::H;
            encoding::Point::from(bit_sum(bits, range_points) + masked)
        })
        .collect();
    let blinded = |point: RistrettoPoint, blinding: &Scalar| {
        encoding::Point::from(point + blinding * &*generators::H)
    };
    let rows_mask = random.sigma * generators::point(List::IndexM, 0);
    Commitments {
        digits: columns,
        rows_mask: blinded(rows_mask, &random.rows_mask),
        mask: blinded(secret_sum(mask.coefficients(), mask_points), &random.mask),
        mask_sum: mask.sum(),
    }
}

fn row_phase<'a>(
    statement: &Statement,
    weights: &Weights,
    source: Source<'a>,
    digits: &[Vec<bool>],
    random: &Blindings,
    progress: &'a dyn Progress,
) -> Result<RowPhase<'a>> {
    let variables = statement.row_variables();
    let table = |entries: Vec<Scalar>, mask| MaskedTable::new(entries, mask, variables);
    let digits = digits.iter().zip(&random.masks).map(|(bits, mask)| {
        table(bits.iter().map(|bit| Scalar::from(u8::from(*bit))).collect(), *mask)
    });
    // M_R, omega and M_N are zero on the mask row.
    let norm_weight = table(weights.t[..statement.rows].to_vec(), Scalar::ZERO);
    Ok(RowPhase {
        digits: digits.collect(),
        range_weight: table(weights.t[..RANGE_ROWS].to_vec(), Scalar::ZERO),
        digit_weight: table(weights.digit_weights(), Scalar::ZERO),
        row_part: RowPart::new(source, norm_weight, progress)?,
        variables,
    })
}

/// The vector that P commits to, over idx/P, idx/P*, G, idx/M, idx/R. `bound_row` is
/// sum_i eq(r_x, i) X_i.
fn opened_vector(
    digits: &[Vec<bool>],
    bound_row: &[Scalar],
    random: &Blindings,
    mask: &Mask,
    combination: &Combination,
) -> Vec<Scalar> {
    let mut vector: Vec<Scalar> = (0..RANGE_ROWS)
        .map(|row| {
            let terms = digits.iter().zip(&combination.digits);
            terms.map(|(bits, power)| power * Scalar::from(u8::from(bits[row]))).sum()
        })
        .collect();
    vector.push(inner_product(&random.masks, &combination.digits));
    vector.extend(bound_row.iter().map(|entry| combination.rows * entry));
    vector.push(combination.rows * random.sigma);
    vector.extend(mask.coefficients().iter().map(|coefficient| combination.mask * coefficient));
    vector
}
