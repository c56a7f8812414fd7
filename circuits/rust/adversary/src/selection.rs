//! A selection prover that follows any strategy.

use curve25519_dalek::scalar::Scalar;
use ragaudit_arguments::commitments::bit_sum;
use ragaudit_arguments::encoding::{Point, decode_scalar};
use ragaudit_arguments::errors::{Result, malformed};
use ragaudit_arguments::field::Element;
use ragaudit_arguments::generators::{self, List};
use ragaudit_arguments::multiscalar::secret_sum;
use ragaudit_arguments::progress::Silent;
use ragaudit_arguments::randomness::ProverRandomness;
use ragaudit_arguments::scalars::{from_integer, inner_product};
use ragaudit_arguments::selection::proof::{Commitments, SelectionProof};
use ragaudit_arguments::selection::protocol;
use ragaudit_arguments::selection::relation::{self, Combination, RowWeights};
use ragaudit_arguments::selection::statement::{Case, Statement, Threshold};
use ragaudit_arguments::selection::sumcheck_polynomial::Polynomial;
use ragaudit_arguments::sumcheck::{self, Mask};
use ragaudit_arguments::{opening, scalars};

/// What the prover knows of the index.
pub struct Rows<'a> {
    /// Completed rows.
    pub entries: &'a [i8],
    /// Their blindings, 32 bytes each.
    pub blindings: &'a [u8],
    /// d + 4.
    pub width: usize,
}

impl Rows<'_> {
    fn row(&self, position: u64) -> &[i8] {
        &self.entries[position as usize * self.width..][..self.width]
    }

    fn blinding(&self, position: u64) -> Result<Scalar> {
        decode_scalar(&self.blindings[position as usize * 32..][..32], "blinding")
    }
}

/// What the prover claims about the rows of U, true or not.
pub struct Strategy {
    /// b, b3, b4.
    pub bits: [Vec<bool>; 3],
    /// The threshold in C_t.
    pub tau: i64,
    /// Y - (y - tau) for every row: a threshold of its own, hidden in C_t along A_U.
    pub shifts: Vec<i64>,
    /// Coefficients along A_U hidden in D_m: what b has and B_sel lacks.
    pub selection_difference: Vec<Scalar>,
    /// Masks of the first boolean columns; random where there is none.
    pub masks: Vec<Option<Scalar>>,
    /// Added to z_H and taken from z2: errors of (E2) and (E1) that cancel in their plain sum.
    pub response_error: Scalar,
}

impl Strategy {
    /// These bits and this threshold, no other deviation.
    pub fn new(bits: [Vec<bool>; 3], tau: i64) -> Self {
        let rows = bits[0].len();
        Strategy {
            bits,
            tau,
            shifts: vec![0; rows],
            selection_difference: vec![Scalar::ZERO; rows],
            masks: Vec::new(),
            response_error: Scalar::ZERO,
        }
    }
}

/// A proof by this strategy for a statement with an uncertain row. `noised` is y for every row.
pub fn prove(
    statement: &Statement,
    rows: &Rows,
    noised: &[i64],
    selection_blinding: &Scalar,
    strategy: &Strategy,
) -> Result<Vec<u8>> {
    let Case::Threshold(threshold) = &statement.case else {
        return Err(malformed("nothing to choose"));
    };
    let mut transcript = protocol::begin(statement, threshold);
    let mut randomness = ProverRandomness::new(&transcript, &[0; 64])?;
    let points = generators::points(&threshold.generators(statement.query.len()));
    let positions = &points[..threshold.uncertain.len()];
    let differences: Vec<i64> = threshold
        .uncertain
        .iter()
        .zip(&strategy.shifts)
        .map(|(row, shift)| noised[row.position as usize] - strategy.tau + shift)
        .collect();
    let relation = threshold.relation;
    let count = relation.columns();
    let columns = columns(strategy, &differences, relation.distance_bits);

    let mut masks = randomness.scalars(count + 1);
    for (mask, chosen) in masks.iter_mut().zip(&strategy.masks) {
        *mask = chosen.unwrap_or(*mask);
    }
    let hidden = randomness.scalars(count);
    let nonces = [randomness.scalar(), randomness.scalar()];
    let [threshold_blinding, mask_blinding] = [randomness.scalar(), randomness.scalar()];
    let mask = Mask::random(&threshold.degrees(), &mut randomness);
    let shifts: Vec<Scalar> =
        strategy.shifts.iter().map(|shift| from_integer(i128::from(*shift))).collect();

    let h = |scalar: &Scalar| scalar * &*generators::H;
    let masked =
        |mask: &Scalar, blinding: &Scalar| mask * &*generators::SELECTION_MASK + h(blinding);
    let tau = from_integer(i128::from(strategy.tau));
    let thresholds = generators::first(List::SelectionM, 2);
    let mask_points = &points[points.len() - mask.coefficients().len()..];
    let commitments = Commitments {
        columns: (1..count)
            .map(|j| Point::from(bit_sum(&columns[j], positions) + masked(&masks[j], &hidden[j])))
            .collect(),
        selection_mask: Point::from(
            masked(&masks[0], &hidden[0]) + secret_sum(&strategy.selection_difference, positions),
        ),
        selection_mask_nonce: Point::from(masked(&nonces[0], &nonces[1])),
        threshold: Point::from(
            secret_sum(&[tau, masks[count]], &thresholds)
                + secret_sum(&shifts, positions)
                + h(&threshold_blinding),
        ),
        mask: Point::from(secret_sum(mask.coefficients(), mask_points) + h(&mask_blinding)),
        mask_sum: mask.sum(),
    };
    let drawn = protocol::column_challenges(&mut transcript, &commitments, threshold.variables());
    let values = differences.iter().map(|value| Element::from_integer(*value)).collect();
    let mut polynomial = Polynomial::new(relation, &columns, values, &masks, &drawn);
    let (messages, r) =
        sumcheck::prove(&mut transcript, &mut polynomial, &mask, &drawn.rho, &Silent)?;
    let evaluations = polynomial.evaluations();
    let challenges = protocol::opening_challenges(&mut transcript, &evaluations);
    let responses = [
        nonces[0] + challenges.schnorr * masks[0],
        nonces[1] + challenges.schnorr * hidden[0] + strategy.response_error,
    ];
    protocol::absorb_responses(&mut transcript, &responses);

    let weights = RowWeights::new(&drawn.t, &r, threshold.uncertain.len());
    let row_weights: Vec<Scalar> = weights.rows.iter().map(Scalar::from).collect();
    let combination = Combination::new(&relation, &challenges.gamma);
    let columns_factors: Vec<Scalar> = combination.columns.iter().map(Scalar::from).collect();
    let rows_factor = Scalar::from(combination.rows);
    let mask_factor = Scalar::from(combination.mask);
    let form = relation::form(statement, threshold, &weights, &r, &challenges.theta);
    let mut vector: Vec<Scalar> = (0..positions.len())
        .map(|q| {
            let bits: Scalar = columns
                .iter()
                .zip(&columns_factors)
                .map(|(bits, power)| power * Scalar::from(u8::from(bits[q])))
                .sum();
            bits + rows_factor * shifts[q]
        })
        .collect();
    vector.push(inner_product(&masks[..count], &columns_factors));
    vector.extend(row_combination(threshold, rows, &row_weights, &rows_factor));
    vector.extend([tau, masks[count]].map(|value| rows_factor * value));
    vector.extend(mask.coefficients().iter().map(|coefficient| mask_factor * coefficient));
    let mut row_blinding = threshold_blinding;
    for (row, weight) in threshold.uncertain.iter().zip(&row_weights) {
        row_blinding += weight * rows.blinding(row.position)?;
    }
    let blinding = selection_blinding
        + inner_product(&hidden, &columns_factors)
        + rows_factor * row_blinding
        + mask_factor * mask_blinding;
    let opening = opening::prove(
        &mut transcript,
        points,
        &form,
        &challenges.x,
        opening::Secret { vector, blinding },
        &mut randomness,
        &Silent,
    )?;
    let proof = SelectionProof { commitments, sumcheck: messages, evaluations, responses, opening };
    let mut encoded = proof.encode();
    let last = encoded.len() - 32;
    let z2 = decode_scalar(&encoded[last..], "z2")? - strategy.response_error;
    encoded[last..].copy_from_slice(z2.as_bytes());
    Ok(encoded)
}

/// b, b3, b4 and the bits of the distances that b implies.
fn columns(strategy: &Strategy, differences: &[i64], distance_bits: usize) -> Vec<Vec<bool>> {
    let distances: Vec<i64> = differences
        .iter()
        .zip(&strategy.bits[0])
        .map(|(difference, selected)| if *selected { *difference } else { -1 - difference })
        .collect();
    let bits = (0..distance_bits)
        .map(|k| distances.iter().map(|distance| (distance >> k) & 1 == 1).collect());
    strategy.bits.iter().cloned().chain(bits).collect()
}

fn row_combination(
    threshold: &Threshold,
    rows: &Rows,
    weights: &[Scalar],
    rows_factor: &Scalar,
) -> Vec<Scalar> {
    let mut sums = vec![Scalar::ZERO; rows.width];
    for (row, weight) in threshold.uncertain.iter().zip(weights) {
        for (sum, entry) in sums.iter_mut().zip(rows.row(row.position)) {
            *sum += weight * scalars::from_integer(i128::from(*entry));
        }
    }
    sums.iter().map(|sum| rows_factor * sum).collect()
}
