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

/// The bits of the integer below the modulus that `element` stands for.
fn canonical_bits(builder: &mut Builder, element: &Value) -> Result<Vec<Value>, SynthesisError> {
    let bits = builder.bits(element.value(), Fr::MODULUS_BIT_SIZE)?;
    constrain_canonical(builder, element, &bits)?;
    Ok(bits)
}

/// `bits` are those of `element`, and of no larger integer: without the comparison with the modulus
/// about a third of the elements would have two decompositions to choose from. An element whose
/// highest bits equal the modulus's is refused: fewer than one in 2^63 of them.
fn constrain_canonical(
    builder: &mut Builder,
    element: &Value,
    bits: &[Value],
) -> Result<(), SynthesisError> {
    let two = Fr::from(2u64);
    builder.equal(element, &Value::positional(two, bits))?;
    let low = Fr::MODULUS_BIT_SIZE - CHECKED_BITS;
    let highest = Value::positional(two, &bits[low as usize..]);
    let largest = Fr::from_bigint(Fr::MODULUS >> low).unwrap_or_default() - Fr::one();
    let gap = Value::constant(largest).minus(&highest);
    let range = builder.unsigned(gap.value(), CHECKED_BITS)?;
    builder.equal(&gap, &range)
}

#[cfg(test)]
mod tests {
    use ark_relations::gr1cs::ConstraintSystem;

    use super::*;

    /// Whether an element may be decomposed into its own bits, or into those of itself plus the modulus.
    fn accepted(element: u64, plus_modulus: bool) -> bool {
        let system = ConstraintSystem::<Fr>::new_ref();
        let mut builder = Builder::new(system.clone());
        let value = builder.witness(Fr::from(element)).unwrap();
        let mut integer = value.value().into_bigint();
        if plus_modulus {
            assert!(!integer.add_with_carry(&Fr::MODULUS));
        }
        let bits: Vec<Value> = (0..Fr::MODULUS_BIT_SIZE)
            .map(|k| builder.bit(integer.get_bit(k as usize)).unwrap())
            .collect();
        assert_eq!(Value::positional(Fr::from(2u64), &bits).value(), value.value());
        constrain_canonical(&mut builder, &value, &bits).unwrap();
        system.finalize();
        system.is_satisfied().unwrap()
    }

    #[test]
    fn only_the_decomposition_below_the_modulus_is_accepted() {
        for element in [0, 5, u64::MAX] {
            assert!(accepted(element, false));
            assert!(!accepted(element, true));
        }
    }

    #[test]
    fn samples_have_the_stated_range_mean_and_deviation() {
        // 4000 samples: the mean has a standard error of 1/63 of a deviation, the deviation about
        // 1/89 of itself; five standard errors are allowed for a fixed seed.
        let (rows, noise_bits) = (4000, 10);
        let samples = sample(&Poseidon::wide(), &[Fr::one(); 3], rows, noise_bits);
        assert!(samples.iter().all(|z| (-bound(noise_bits)..bound(noise_bits)).contains(z)));
        let count = rows as f64;
        let mean = samples.iter().map(|z| *z as f64).sum::<f64>() / count;
        let variance = samples.iter().map(|z| (*z as f64 - mean).powi(2)).sum::<f64>() / count;
        let deviation = deviation(noise_bits);
        assert!(mean.abs() < 5.0 * deviation / count.sqrt());
        assert!((variance.sqrt() / deviation - 1.0).abs() < 5.0 / (2.0 * count).sqrt());
    }
}
