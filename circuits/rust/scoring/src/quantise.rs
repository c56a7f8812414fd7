//! A real vector to integers of norm at most B (docs/spec/02-integers.md §2.1), exactly.
//!
//! Binary64 finds a scale a little below the largest one, and no more: rounding at that scale, and
//! every step of an entry above it, is decided by products of integers. A scale that was found
//! badly costs time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::Malformed;

/// The longest vector that has integers.
const MOST_ENTRIES: usize = 1 << 12;

/// The integers of a vector, their squared norm at most `norm_bound`²; of a bound of 64 or more they
/// are never all zero.
///
/// Refused are no entries or more than 4096, NaN or infinity, entries that are all zero, and a bound
/// of 0 or of 2^15 and more.
pub fn quantise(vector: &[f64], norm_bound: u16) -> Result<Vec<i16>, Malformed> {
    let largest = vector.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
    if !vector.iter().all(|x| x.is_finite()) || largest == 0.0 {
        return Err(Malformed("vector: zero, NaN or infinity".into()));
    }
    if vector.len() > MOST_ENTRIES || !(1..1 << 15).contains(&norm_bound) {
        let message = format!("vector: {} entries, of norm at most {norm_bound}", vector.len());
        return Err(Malformed(message));
    }
    // A power of two changes no rounding, and squares then neither overflow nor vanish. An entry
    // that vanishes itself is 2^1000 times smaller than the largest one: its integer is 0.
    let down = -exponent(largest);
    let sizes: Vec<f64> = vector
        .iter()
        .map(|x| x.abs() * power_of_two(down / 2) * power_of_two(down - down / 2))
        .collect();
    let integers = raised(&sizes, norm_bound);
    // At most B each: it fits.
    let signed = |(integer, x): (&u64, &f64)| (*integer as i16) * if *x < 0.0 { -1 } else { 1 };
    Ok(integers.iter().zip(vector).map(signed).collect())
}

/// The integers at the largest scale at which they fit.
fn raised(sizes: &[f64], norm_bound: u16) -> Vec<u64> {
    let most = u64::from(norm_bound).pow(2);
    let mut scale = nearly(sizes, norm_bound);
    // Of the scale: within it an entry or two have their next step.
    let mut margin = (2.0 / (f64::from(norm_bound) * (sizes.len() as f64).sqrt())).min(0.5);
    let entries: Vec<Parts> = sizes.iter().map(|size| Parts::of(*size)).collect();
    let (mut integers, mut squared) = loop {
        scale *= 1.0 - margin;
        let integers: Vec<u64> =
            entries.iter().map(|size| Parts::of(scale).rounded_product(*size)).collect();
        let squared: u64 = integers.iter().map(|x| x * x).sum();
        if squared <= most {
            break (integers, squared);
        }
        margin = (2.0 * margin).min(0.5);
    };
    let steps = entries.iter().zip(&integers).enumerate();
    let mut steps: BinaryHeap<Step> = steps
        .filter(|(_, (size, _))| size.mantissa != 0)
        .map(|(entry, (size, integer))| Step { twice: 2 * integer + 1, size: *size, entry })
        .collect();
    let mut together = Vec::new();
    while let Some(first) = steps.pop() {
        squared += first.twice;
        together.push(first);
        // Entries that step at one scale step together or not at all: their order decides nothing.
        while let Some(next) = steps.peek_mut().filter(|next| **next == together[0]) {
            let next = PeekMut::pop(next);
            squared += next.twice;
            together.push(next);
        }
        if squared > most {
            break;
        }
        for step in together.drain(..) {
            integers[step.entry] += 1;
            steps.push(Step { twice: step.twice + 2, ..step });
        }
    }
    integers
}

/// A scale at which the rounded sizes nearly have the norm.
fn nearly(sizes: &[f64], norm_bound: u16) -> f64 {
    let bound = f64::from(norm_bound);
    let mut scale = bound / sizes.iter().map(|size| size * size).sum::<f64>().sqrt();
    // What rounding adds to the norm changes little with the scale.
    for _ in 0..2 {
        let rounded = sizes.iter().map(|size| u64::from((size * scale + 0.5) as u32));
        let squared: u64 = rounded.map(|x| x * x).sum();
        scale *= bound / (squared.max(1) as f64).sqrt();
    }
    scale
}

/// A number: its mantissa times 2^exponent.
#[derive(Clone, Copy)]
struct Parts {
    mantissa: u64,
    exponent: i32,
}

impl Parts {
    /// The parts of a finite number that is not negative.
    fn of(number: f64) -> Self {
        let bits = number.to_bits();
        let (fraction, biased) = (bits & ((1 << 52) - 1), (bits >> 52) as i32);
        match biased {
            0 => Parts { mantissa: fraction, exponent: -1074 },
            _ => Parts { mantissa: fraction | 1 << 52, exponent: biased - 1075 },
        }
    }

    /// The product of two numbers, each below 2^52, rounded to the nearest integer, halves toward
    /// zero. It is below 2^64.
    fn rounded_product(self, other: Self) -> u64 {
        let product = u128::from(self.mantissa) * u128::from(other.mantissa);
        let shift = (self.exponent + other.exponent).unsigned_abs();
        // The product has 106 bits.
        if shift > 107 {
            return 0;
        }
        let rest = product & ((1 << shift) - 1);
        (product >> shift) as u64 + u64::from(rest > 1 << (shift - 1))
    }
}

/// The scale at which an entry steps: `twice` / 2 over its size, which is not zero.
struct Step {
    /// Twice the integer before the step, and 1.
    twice: u64,
    size: Parts,
    entry: usize,
}

impl Ord for Step {
    /// The lowest scale is the greatest step: a heap gives it first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.times_size(self).cmp(&self.times_size(other))
    }
}

impl Step {
    /// This fraction's numerator times the other's denominator, so that two are compared: the place
    /// of the highest bit, and all bits from there on.
    fn times_size(&self, other: &Self) -> (i32, u128) {
        let product = u128::from(self.twice) * u128::from(other.size.mantissa);
        let leading = product.leading_zeros();
        (other.size.exponent - leading as i32, product << leading)
    }
}

impl PartialOrd for Step {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Step {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Step {}

/// The exponent n of a positive number in [2^(n-1), 2^n).
fn exponent(number: f64) -> i32 {
    let parts = Parts::of(number);
    parts.exponent + 64 - parts.mantissa.leading_zeros() as i32
}

/// 2^n for -1022 <= n <= 1023.
fn power_of_two(n: i32) -> f64 {
    f64::from_bits(((n + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// The definition: from zero, step by step, of integers as entries.
    fn step_by_step(vector: &[i64], bound: u64) -> Vec<i16> {
        let mut integers = vec![0u64; vector.len()];
        loop {
            let scale = |j: usize| (2 * integers[j] + 1, vector[j].unsigned_abs());
            let lower = |a: (u64, u64), b: (u64, u64)| (a.0 * b.1).cmp(&(b.0 * a.1));
            let entries = (0..vector.len()).filter(|j| vector[*j] != 0);
            let first = entries.clone().map(scale).min_by(|a, b| lower(*a, *b)).unwrap();
            let together: Vec<usize> =
                entries.filter(|j| lower(scale(*j), first).is_eq()).collect();
            let mut raised = integers.clone();
            together.iter().for_each(|j| raised[*j] += 1);
            if raised.iter().map(|x| x * x).sum::<u64>() > bound * bound {
                let signed = integers.iter().zip(vector);
                return signed.map(|(x, sign)| *x as i16 * sign.signum() as i16).collect();
            }
            integers = raised;
        }
    }

    #[test]
    fn integers_are_those_of_the_definition() {
        for (length, most) in [(1, 9), (2, 3), (3, 1000), (17, 5), (64, 2), (100, 1 << 20)] {
            for seed in 1..6i64 {
                let entry =
                    |j: i64| (seed * 7919 + j * j * 104_729 + j * 31) % (2 * most + 1) - most;
                let mut vector: Vec<i64> = (0..length).map(entry).collect();
                vector[0] += i64::from(vector.iter().all(|x| *x == 0));
                for bound in [1, 127, 4095] {
                    // A power of two, however large or small, changes nothing.
                    for factor in [1.0, 2f64.powi(-1074), 2f64.powi(1000)] {
                        let real: Vec<f64> = vector.iter().map(|x| *x as f64 * factor).collect();
                        let expected = step_by_step(&vector, bound.into());
                        assert_eq!(quantise(&real, bound).unwrap(), expected, "{vector:?} {bound}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_has_no_integers_is_refused() {
        for vector in [&[] as &[f64], &[0.0, -0.0], &[1.0, f64::NAN], &[f64::INFINITY, 1.0]] {
            assert!(quantise(vector, 127).is_err());
        }
        assert!(quantise(&[1.0], 0).is_err() && quantise(&[1.0], 1 << 15).is_err());
        assert!(quantise(&[1.0; MOST_ENTRIES + 1], 127).is_err());
    }

    #[test]
    fn an_entry_far_below_the_largest_is_zero() {
        assert_eq!(quantise(&[f64::MAX, -5e-324, 1.0], 127).unwrap(), [127, 0, 0]);
        assert_eq!(quantise(&[5e-324, -1e-323], 127).unwrap(), [57, -113]);
    }
}
