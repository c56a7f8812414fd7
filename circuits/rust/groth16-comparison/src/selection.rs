//! The K largest noised scores, and the tie between claimed and opened scores.

use ark_bn254::Fr;
use ark_ff::{Field, One, Zero};
use ark_relations::gr1cs::SynthesisError;

use crate::builder::{Builder, Part};
use crate::index::Hashes;
use crate::noise;
use crate::parameters::{POSITION_BITS, Parameters};
use crate::values::Value;

/// Bits of a claimed score, stored as `s + 2^15`. A score of unit vectors is at most 127^2 < 2^15.
const SCORE_BITS: u32 = 16;
/// Claimed scores in one field element (240 bits).
const PACKED_SCORES: usize = 15;
/// Positions whose selection bits share a field element.
const PACKED_BITS: usize = 248;

fn score_offset() -> Fr {
    Fr::from(1u64 << (SCORE_BITS - 1))
}

fn positional(base: u64, digits: &[Fr]) -> Fr {
    digits.iter().rev().fold(Fr::zero(), |sum, digit| sum * Fr::from(base) + digit)
}

/// What the commitment to the claimed scores hashes.
pub fn pack_scores(scores: &[i64]) -> Vec<Fr> {
    let stored: Vec<Fr> = scores.iter().map(|s| Fr::from(*s) + score_offset()).collect();
    stored.chunks(PACKED_SCORES).map(|chunk| positional(1 << SCORE_BITS, chunk)).collect()
}

/// What the digest of the selected positions hashes: one bit per row.
pub fn pack_selection(selected: &[usize], rows: usize) -> Vec<Fr> {
    let mut bits = vec![Fr::zero(); rows];
    for row in selected {
        bits[*row] = Fr::one();
    }
    bits.chunks(PACKED_BITS).map(|chunk| positional(2, chunk)).collect()
}

fn pack_bits(bits: &[Value]) -> Vec<Value> {
    bits.chunks(PACKED_BITS).map(|chunk| Value::positional(Fr::from(2u64), chunk)).collect()
}

/// The claimed scores as private variables, and their commitment.
pub fn claimed_scores(
    builder: &mut Builder,
    hashes: &Hashes,
    scores: &[i64],
) -> Result<(Vec<Value>, Value), SynthesisError> {
    builder.part(Part::ScoreCommitment);
    let stored: Vec<Value> = scores
        .iter()
        .map(|score| builder.unsigned(Fr::from(*score) + score_offset(), SCORE_BITS))
        .collect::<Result<_, _>>()?;
    let base = Fr::from(1u64 << SCORE_BITS);
    let packed: Vec<Value> =
        stored.chunks(PACKED_SCORES).map(|chunk| Value::positional(base, chunk)).collect();
    let commitment = hashes.wide.digest_in(builder, &packed)?;
    let minus_offset = Value::constant(-score_offset());
    Ok((stored.into_iter().map(|score| score.plus(&minus_offset)).collect(), commitment))
}

/// Bits that hold the distance of any noised score from the threshold.
fn distance_bits(parameters: &Parameters) -> u32 {
    let largest = noise::bound(parameters.noise_bits) + (1 << (SCORE_BITS - 1));
    (2 * largest).ilog2() + 1
}

/// One bit per row: `K` of them set, every row set lies at or above the threshold and every other at
/// or below it. Which of several equal scores is selected is the prover's choice, as in the paper.
/// Returns the bits and the digest of the selection.
pub fn select(
    builder: &mut Builder,
    hashes: &Hashes,
    parameters: &Parameters,
    noised: &[Value],
    selected: &[usize],
    threshold: i64,
) -> Result<(Vec<Value>, Value), SynthesisError> {
    builder.part(Part::Selection);
    let mut chosen = vec![false; noised.len()];
    for row in selected {
        chosen[*row] = true;
    }
    let threshold = builder.witness(Fr::from(threshold))?;
    let one = Value::constant(Fr::one());
    let width = distance_bits(parameters);
    let mut bits = Vec::with_capacity(noised.len());
    for (score, chosen) in noised.iter().zip(chosen) {
        let bit = builder.bit(chosen)?;
        let sign = Value::sum([(Fr::from(2u64), &bit)]).minus(&one);
        let distance = score.clone().minus(&threshold);
        let magnitude = builder.unsigned(sign.value() * distance.value(), width)?;
        builder.enforce(&sign, &distance, &magnitude)?;
        bits.push(bit);
    }
    let count = Value::sum(bits.iter().map(|bit| (Fr::one(), bit)));
    builder.equal(&count, &Value::constant(Fr::from(parameters.top_k as u64)))?;
    let digest = hashes.wide.digest_in(builder, &pack_bits(&bits))?;
    Ok((bits, digest))
}

/// A position and its score in one field element.
fn key(position: &Value, score: &Value) -> Value {
    let stored = score.clone().plus(&Value::constant(score_offset()));
    position.clone().plus(&Value::sum([(Fr::from(1u64 << POSITION_BITS), &stored)]))
}

/// The claimed scores at the selected rows and at the runners-up are the `opened` ones.
///
/// With `k_i` the key of row `i`, `b_i` its selection bit, `e_i` the bit of a runner-up and `o_j` the
/// opened keys, `sum (b_i + e_i)/(g - k_i) = sum 1/(g - o_j)` at a challenge `g` that hashes
/// everything in it, so both sides hold the same keys as often (Haböck, eprint 2022/1530). One
/// constraint a row: the cheapest random access in rank-1 constraints that we know of.
pub fn tie_openings(
    builder: &mut Builder,
    hashes: &Hashes,
    claimed: &Claimed<'_>,
    runners_up: &[usize],
    opened: &[(Value, Value)],
) -> Result<(), SynthesisError> {
    builder.part(Part::ScoreOpening);
    let mut chosen = vec![false; claimed.scores.len()];
    for row in runners_up {
        chosen[*row] = true;
    }
    let extra: Vec<Value> =
        chosen.into_iter().map(|chosen| builder.bit(chosen)).collect::<Result<_, _>>()?;
    let opened: Vec<Value> = opened.iter().map(|(position, score)| key(position, score)).collect();

    let mut transcript = vec![claimed.commitment.clone(), claimed.selection.clone()];
    transcript.extend(pack_bits(&extra));
    transcript.extend_from_slice(&opened);
    let challenge = hashes.wide.digest_in(builder, &transcript)?;

    let mut difference = Value::constant(Fr::zero());
    for (row, score) in claimed.scores.iter().enumerate() {
        let weight = claimed.bits[row].clone().plus(&extra[row]);
        let position = Value::constant(Fr::from(row as u64));
        let share = quotient(builder, &weight, challenge.clone().minus(&key(&position, score)))?;
        difference.add_scaled(Fr::one(), &share);
    }
    for key in &opened {
        let one = Value::constant(Fr::one());
        let share = quotient(builder, &one, challenge.clone().minus(key))?;
        difference.add_scaled(-Fr::one(), &share);
    }
    builder.equal(&difference, &Value::constant(Fr::zero()))
}

/// What the prover claims about all rows.
pub struct Claimed<'a> {
    /// The claimed scores.
    pub scores: &'a [Value],
    /// Their commitment.
    pub commitment: &'a Value,
    /// The selection bits.
    pub bits: &'a [Value],
    /// The digest of the selection.
    pub selection: &'a Value,
}

/// `numerator / denominator`. A denominator of zero has no quotient: the challenge would equal a key.
fn quotient(
    builder: &mut Builder,
    numerator: &Value,
    denominator: Value,
) -> Result<Value, SynthesisError> {
    let inverse = denominator.value().inverse().ok_or(SynthesisError::DivisionByZero)?;
    let quotient = builder.witness(numerator.value() * inverse)?;
    builder.enforce(&quotient, &denominator, numerator)?;
    Ok(quotient)
}
