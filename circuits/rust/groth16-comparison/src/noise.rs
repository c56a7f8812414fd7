//! The cheapest noise that can be called a sampler: one that is linear in its random bits.
//!
//! The paper asks for a discrete Gaussian, leaves its encoding open and prices it at 64 constraints
//! a sample: as many as it takes to say that 64 bits are bits. So a sample here is a sum of bits and
//! costs nothing beyond having them: 39 coins of weight `2^m` make a binomial, and a uniform word of
//! `m` bits fills the gaps between its values (without it `y mod 2^m` would give the score away).
//! Its standard deviation is that of the Gaussian it stands for, its shape is not: a sampler that is
//! close enough for the paper's Theorem 5.1 costs several times as much. The choice favours the paper.

use ark_bn254::Fr;
use ark_ff::{BigInteger, One, PrimeField, Zero};
use ark_relations::gr1cs::SynthesisError;

use crate::builder::{Builder, Part};
use crate::poseidon::Poseidon;
use crate::values::Value;

/// Bits of one sample: a uniform word, then the coins.
const WORD_BITS: usize = UNIFORM_BITS + COINS;
/// Bits set aside for the uniform word.
pub const UNIFORM_BITS: usize = 24;
const COINS: usize = 39;
/// Samples taken from one field element of the stream (4 * 63 = 252 bits of 254).
const SAMPLES_PER_ELEMENT: usize = 4;
/// The highest bits of a field element, compared with those of the modulus.
const CHECKED_BITS: u32 = 64;

/// Half the width of the range of the noise: every sample is in `[-bound, bound)`.
pub fn bound(noise_bits: u32) -> i64 {
    ((COINS as i64 + 1) / 2) << noise_bits
}

/// Standard deviation in lattice units.
pub fn deviation(noise_bits: u32) -> f64 {
    let step = (1u64 << noise_bits) as f64;
    (step * step * COINS as f64 / 4.0 + (step * step - 1.0) / 12.0).sqrt()
}

fn elements(rows: usize) -> usize {
    rows.div_ceil(SAMPLES_PER_ELEMENT)
}

/// The noise of every row, outside the circuit.
pub fn sample(wide: &Poseidon, key: &[Fr], rows: usize, noise_bits: u32) -> Vec<i64> {
    let weights = weights(noise_bits);
    let stream = wide.stream(key, elements(rows));
    (0..rows)
        .map(|row| {
            let element = stream[row / SAMPLES_PER_ELEMENT].into_bigint();
            let first = row % SAMPLES_PER_ELEMENT * WORD_BITS;
            let drawn = (0..WORD_BITS).filter(|k| element.get_bit(first + k));
            drawn.map(|k| weights[k]).sum::<i64>() - bound(noise_bits)
        })
        .collect()
}

/// The weight of each bit of a word: binary for the uniform word (its bits above `m` unused), equal
/// for the coins.
fn weights(noise_bits: u32) -> Vec<i64> {
    let uniform = (0..UNIFORM_BITS).map(|k| if k < noise_bits as usize { 1 << k } else { 0 });
    uniform.chain(std::iter::repeat_n(1 << noise_bits, COINS)).collect()
}

/// [`sample`] as constraints.
pub fn sample_in(
    builder: &mut Builder,
    wide: &Poseidon,
    key: &[Value],
    rows: usize,
    noise_bits: u32,
) -> Result<Vec<Value>, SynthesisError> {
    builder.part(Part::NoiseStream);
    let stream = wide.stream_in(builder, key, elements(rows))?;
    builder.part(Part::NoiseSamples);
    let weights: Vec<Fr> = weights(noise_bits).into_iter().map(Fr::from).collect();
    let centre = Value::constant(Fr::from(-bound(noise_bits)));
    let mut samples = Vec::with_capacity(stream.len() * SAMPLES_PER_ELEMENT);
    for element in &stream {
        let bits = canonical_bits(builder, element)?;
        for word in bits.chunks_exact(WORD_BITS).take(SAMPLES_PER_ELEMENT) {
            let weighted =
                weights.iter().copied().zip(word).filter(|(weight, _)| !weight.is_zero());
            samples.push(Value::sum(weighted).plus(&centre));
        }
    }
    samples.truncate(rows);
    Ok(samples)
}

/// The bits of the integer below the modulus that `element` stands for. Without the comparison with
/// the modulus about a third of the elements would have two decompositions to choose from. An
/// element whose highest bits equal the modulus's is refused: one in about 2^63 of them.
fn canonical_bits(builder: &mut Builder, element: &Value) -> Result<Vec<Value>, SynthesisError> {
    let two = Fr::from(2u64);
    let bits = builder.bits(element.value(), Fr::MODULUS_BIT_SIZE)?;
    builder.equal(element, &Value::positional(two, &bits))?;
    let low = Fr::MODULUS_BIT_SIZE - CHECKED_BITS;
    let highest = Value::positional(two, &bits[low as usize..]);
    let largest = Fr::from_bigint(Fr::MODULUS >> low).unwrap_or_default() - Fr::one();
    let gap = Value::constant(largest).minus(&highest);
    let range = builder.unsigned(gap.value(), CHECKED_BITS)?;
    builder.equal(&gap, &range)?;
    Ok(bits)
}
