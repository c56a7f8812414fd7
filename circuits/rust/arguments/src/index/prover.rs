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
use super::rows::{ColumnVectors, Products, Rows, Values};
use super::statement::Statement;
use super::sumcheck_polynomial::{Polynomial, RowPhase};
use crate::commitments::{bit_sums, blinding};
use crate::encoding::{self, ELEMENT_BYTES};
use crate::errors::{Result, malformed};
use crate::field::{Element, inner_product};
use crate::generators::{self, List};
use crate::multilinear::eq_table;
use crate::multiscalar::secret_sum;
use crate::opening;
use crate::progress::{Progress, Silent, Stage};
use crate::randomness::ProverRandomness;
use crate::sumcheck::{self, Mask};
use crate::tables::MaskedTable;

/// Rows whose projections one task adds up.
const TASK: usize = 1 << 8;

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
        .map(|(row, bytes)| Ok(blinding(bytes, &format!("blinding {row}"))?.into()))
        .collect::<Result<Vec<Element>>>()?;
    let row_blindings = zeroize::Zeroizing::new(row_blindings);

    let mut transcript = protocol::begin(statement);
    let mut randomness = ProverRandomness::new(&transcript, &digest(&rows, blindings))?;
    // V0
    let projections = protocol::projections(&mut transcript, statement);
    // P1
    let vectors = ColumnVectors::new(&projections, width);
    let products = Products::new(&rows, &vectors, &Stage::new(progress, 0.0, 0.15))?;
    let digits = digit_columns(statement, &projections, &products);
    progress.report(0.2)?;

    let random = Blindings::random(&mut randomness);
    let mask = Mask::random(&statement.degrees(), &mut randomness);
    let points = generators::points(&statement.generators());
    let commitments = commit(&digits, &random, &mask, &points);
    // V1
    let drawn =
        protocol::column_challenges(&mut transcript, &commitments, statement.row_variables());

    // P2
    let weights = Weights::new(&drawn);
    let source = Source {
        rows,
        count: statement.rows,
        width,
        projections: &projections,
        vectors: &vectors,
        products: &products,
        lambdas: &weights.lambdas,
        sigma: random.sigma.into(),
        stride: 1 << (statement.row_variables() - BLOCK_ROUNDS),
    };
    let stage = Stage::new(progress, 0.2, 0.9);
    let row_phase = row_phase(statement, &weights, source, &digits, &random, &stage)?;
    let mut polynomial = Polynomial::new(&weights, &projections, row_phase);
    let (messages, r) = sumcheck::prove(
        &mut transcript,
        &mut polynomial,
        &mask,
        &drawn.rho,
        // The row part reports its own progress.
        &Silent,
    )?;
    // P3
    let point = Point::new(statement, &r);
    let digit_values = polynomial.digit_values();
    let row_value = inner_product(polynomial.bound_row(), &point.columns);
    let evaluations = std::array::from_fn(|k| digit_values.get(k).unwrap_or(&row_value).into());
    // V2
    let challenges = protocol::opening_challenges(&mut transcript, &evaluations);
    progress.report(0.9)?;

    // P4
    let combination = Combination::new(&challenges.gamma);
    let form = relation::form(statement, &point, &challenges.theta);
    let form: Vec<Scalar> = form.iter().map(Scalar::from).collect();
    let vector = opened_vector(&digits, polynomial.bound_row(), &random, &mask, &combination);
    let columns: Vec<Element> = random.columns.iter().map(Element::from).collect();
    let row_blinding = inner_product(&row_blindings, &point.rows);
    let blinding = combination.rows
        * (row_blinding + point.mask_row * Element::from(random.rows_mask))
        + inner_product(&columns, &combination.digits)
        + combination.mask * Element::from(random.mask);
    let opening = opening::prove(
        &mut transcript,
        points,
        &form,
        &challenges.x,
        opening::Secret { vector, blinding: blinding.into() },
        &mut randomness,
        &Stage::new(progress, 0.9, 1.0),
    )?;
    progress.report(1.0)?;
    Ok(IndexProof { commitments, sumcheck: messages, evaluations, opening }.encode())
}

/// SHA-512 of the secret input, for the prover's randomness.
fn digest(rows: &Rows, blindings: &[u8]) -> [u8; 64] {
    let mut hash = Sha512::new();
    match rows {
        Rows::Small(entries) => hash.update(bytemuck::cast_slice::<i8, u8>(entries)),
        Rows::Wide(entries) => hash.update(bytemuck::cast_slice::<i16, u8>(entries)),
        Rows::Field(entries) => entries.iter().for_each(|entry| hash.update(entry.as_bytes())),
    }
    hash.update(blindings);
    hash.finalize().into()
}

/// P1: kap_k, bit k of the digits of p_q + 2^41, three digits for each projection.
fn digit_columns(
    statement: &Statement,
    projections: &Projections,
    products: &Products,
) -> Vec<Vec<bool>> {
    let mut totals = vec![Element::ZERO; PROJECTIONS];
    let indices: Vec<usize> = (0..statement.rows).collect();
    let partial = indices.par_chunks(TASK).map(|part| projected_sums(projections, products, part));
    for sums in partial.collect::<Vec<_>>() {
        totals.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
    }
    // Only rows that cannot be proven leave [-2^41, 2^41); their upper bits are dropped.
    let offset = Element::from_integer(OFFSET);
    let shifted: Vec<u64> =
        totals.iter().map(|total| crate::scalars::limbs(&(*total + offset).into())[0]).collect();
    let bit = |row: usize, k: usize| {
        (shifted[row / DIGITS] >> (DIGIT_BITS * (row % DIGITS) + k)) & 1 == 1
    };
    let columns =
        (0..DIGIT_BITS).map(|k| (0..RANGE_ROWS).map(|row| bit(row, k)).collect()).collect();
    totals.zeroize();
    columns
}

/// The parts of p_q = sum_i u_q(i) <X_i, v_q> that come from these rows.
fn projected_sums(
    projections: &Projections,
    products: &Products,
    indices: &[usize],
) -> Vec<Element> {
    let mut small = vec![0i64; PROJECTIONS];
    let mut field = vec![Element::ZERO; PROJECTIONS];
    for (row, kept) in indices.iter().zip(projections.kept(indices)) {
        match &products.of(*row) {
            Values::Small(values) => kept.iter().for_each(|q| small[q] += i64::from(values[q])),
            Values::Field(values) => kept.iter().for_each(|q| field[q] += values[q]),
        }
    }
    small.iter().zip(field).map(|(small, field)| Element::from_integer(*small) + field).collect()
}

/// P1. `points` are the opening's generators: idx/P, idx/P*, G, idx/R.
fn commit(
    digits: &[Vec<bool>],
    random: &Blindings,
    mask: &Mask,
    points: &[RistrettoPoint],
) -> Commitments {
    let range_points = &points[..RANGE_ROWS];
    let mask_points = &points[points.len() - mask.coefficients().len()..];
    let columns = bit_sums(digits, range_points)
        .into_par_iter()
        .zip(&random.masks)
        .zip(&random.columns)
        .map(|((bits, mask), blinding)| {
            let masked = mask * &*generators::INDEX_MASK + blinding * &*generators::H;
            encoding::Point::from(bits + masked)
        })
        .collect();
    let blinded = |point: RistrettoPoint, blinding: &Scalar| {
        encoding::Point::from(point + blinding * &*generators::H)
    };
    let rows_mask = random.sigma * generators::point(List::G, 0);
    Commitments {
        digits: columns,
        rows_mask: blinded(rows_mask, &random.rows_mask),
        mask: blinded(secret_sum(mask.coefficients(), mask_points), &random.mask),
        mask_sum: mask.sum(),
    }
}

/// P2: F while a variable of x is unbound.
fn row_phase<'a>(
    statement: &Statement,
    weights: &Weights,
    source: Source<'a>,
    digits: &[Vec<bool>],
    random: &Blindings,
    progress: &'a dyn Progress,
) -> Result<RowPhase<'a>> {
    let variables = statement.row_variables();
    let table = |entries: Vec<Element>, mask| MaskedTable::new(entries, mask, variables);
    let digits = digits.iter().zip(&random.masks).map(|(bits, mask)| {
        table(bits.iter().map(|bit| Element::from_bit(*bit)).collect(), Element::from(mask))
    });
    // M_R, omega and M_N are zero on the mask row.
    let eq_t = |count| table(eq_table(&Element::ONE, &weights.t, count), Element::ZERO);
    let norm_weight = eq_t(statement.rows);
    Ok(RowPhase {
        digits: digits.collect(),
        range_weight: eq_t(RANGE_ROWS),
        digit_weight: table(weights.digit_weights(), Element::ZERO),
        row_part: RowPart::new(source, norm_weight, progress)?,
        variables,
    })
}

/// P4: the vector that P commits to, over idx/P, idx/P*, G, idx/R. `bound_row` is X(r_x, ·), the
/// mask row included.
fn opened_vector(
    digits: &[Vec<bool>],
    bound_row: &[Element],
    random: &Blindings,
    mask: &Mask,
    combination: &Combination,
) -> Vec<Scalar> {
    let digit = |row: usize| -> Element {
        let terms = digits.iter().zip(&combination.digits);
        terms.map(|(bits, power)| power.keep_if(u64::from(bits[row]))).sum()
    };
    let mut vector: Vec<Element> = (0..RANGE_ROWS).map(digit).collect();
    let masks: Vec<Element> = random.masks.iter().map(Element::from).collect();
    vector.push(inner_product(&masks, &combination.digits));
    vector.extend(bound_row.iter().map(|entry| combination.rows * *entry));
    let mask = mask.coefficients().iter();
    vector.extend(mask.map(|coefficient| combination.mask * Element::from(coefficient)));
    let scalars = vector.iter().map(Scalar::from).collect();
    vector.zeroize();
    scalars
}

#[cfg(test)]
mod definition_tests;
