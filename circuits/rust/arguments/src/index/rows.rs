//! The secret rows: small integers in honest use, any field elements when a test cheats.

use curve25519_dalek::scalar::Scalar;
use zeroize::Zeroize;

use crate::scalars::{SmallSum, from_integer, inner_product, limbs};

/// N rows of d + 4 entries, row by row.
#[derive(Clone, Copy)]
pub enum Rows<'a> {
    /// Entries as an honest prover has them.
    Small(&'a [i8]),
    /// Entries as field elements; slower, and provable only if they are small after all.
    Field(&'a [Scalar]),
}

/// A vector of small integers or of field elements.
pub enum Values {
    /// Integers; absolute values below 2^31.
    Small(Vec<i32>),
    /// Field elements.
    Field(Vec<Scalar>),
}

/// Scalars in the two forms that [`Values`] needs to weight its entries.
pub struct Weights {
    scalars: Vec<Scalar>,
    limbs: Vec<[u64; 4]>,
}

impl Weights {
    /// Weights with these values.
    pub fn new(scalars: &[Scalar]) -> Self {
        Weights { scalars: scalars.to_vec(), limbs: scalars.iter().map(limbs).collect() }
    }

    /// The values.
    pub fn scalars(&self) -> &[Scalar] {
        &self.scalars
    }
}

impl Rows<'_> {
    /// The number of entries of all rows.
    pub fn entries(&self) -> usize {
        match self {
            Rows::Small(entries) => entries.len(),
            Rows::Field(entries) => entries.len(),
        }
    }

    /// Row `i` of rows of `width` entries.
    pub fn row(&self, i: usize, width: usize) -> Values {
        let range = i * width..(i + 1) * width;
        match self {
            Rows::Small(entries) => {
                Values::Small(entries[range].iter().map(|entry| i32::from(*entry)).collect())
            }
            Rows::Field(entries) => Values::Field(entries[range].to_vec()),
        }
    }

    /// <row i, v> for binary vectors v.
    pub fn project(&self, i: usize, width: usize, vectors: &[Vec<i16>]) -> Values {
        let range = i * width..(i + 1) * width;
        match self {
            Rows::Small(entries) => {
                let row: Vec<i16> = entries[range].iter().map(|entry| i16::from(*entry)).collect();
                Values::Small(vectors.iter().map(|vector| small_product(&row, vector)).collect())
            }
            Rows::Field(entries) => {
                let row = &entries[range];
                let project = |vector: &Vec<i16>| {
                    let kept = row.iter().zip(vector).filter(|(_, bit)| **bit == 1);
                    kept.map(|(entry, _)| entry).sum()
                };
                Values::Field(vectors.iter().map(project).collect())
            }
        }
    }
}

/// Wrapping arithmetic lets the compiler use vector instructions; with |row| <= 2^7, |v| <= 1 and
/// fewer than 2^17 entries nothing wraps.
fn small_product(row: &[i16], vector: &[i16]) -> i32 {
    row.iter()
        .zip(vector)
        .map(|(x, v)| i32::from(*x).wrapping_mul(i32::from(*v)))
        .fold(0, i32::wrapping_add)
}

impl Values {
    /// Entry `index` as a field element.
    pub fn scalar(&self, index: usize) -> Scalar {
        match self {
            Values::Small(values) => from_integer(i128::from(values[index])),
            Values::Field(values) => values[index],
        }
    }

    fn scalars(&self) -> Vec<Scalar> {
        match self {
            Values::Small(values) => {
                values.iter().map(|value| from_integer(i128::from(*value))).collect()
            }
            Values::Field(values) => values.clone(),
        }
    }

    /// <self, other>.
    pub fn product(&self, other: &Values) -> Scalar {
        match (self, other) {
            (Values::Small(left), Values::Small(right)) => {
                let terms = left.iter().zip(right).map(|(a, b)| i64::from(*a) * i64::from(*b));
                from_integer(i128::from(terms.sum::<i64>()))
            }
            _ => inner_product(&self.scalars(), &other.scalars()),
        }
    }

    /// The sum of weight times value over the indices that `keep` names.
    pub fn weighted_sum(&self, weights: &Weights, keep: &[usize]) -> Scalar {
        match self {
            Values::Small(values) => {
                let mut sum = SmallSum::default();
                for index in keep {
                    sum.add_product(&weights.limbs[*index], i64::from(values[*index]));
                }
                sum.reduce()
            }
            Values::Field(values) => {
                keep.iter().map(|index| weights.scalars[*index] * values[*index]).sum()
            }
        }
    }
}

/// sum_c weights[c] vectors[c], entry by entry; vectors left out are zero.
pub fn fold(vectors: &[(usize, Values)], weights: &Weights, length: usize) -> Vec<Scalar> {
    let mut small = vec![SmallSum::default(); length];
    let mut field = vec![Scalar::ZERO; length];
    for (c, values) in vectors {
        match values {
            Values::Small(values) => {
                for (sum, value) in small.iter_mut().zip(values) {
                    sum.add_product(&weights.limbs[*c], i64::from(*value));
                }
            }
            Values::Field(values) => {
                for (sum, value) in field.iter_mut().zip(values) {
                    *sum += weights.scalars[*c] * value;
                }
            }
        }
    }
    small.iter().zip(field).map(|(small, field)| small.reduce() + field).collect()
}

impl Drop for Values {
    fn drop(&mut self) {
        match self {
            Values::Small(values) => values.zeroize(),
            Values::Field(values) => values.zeroize(),
        }
    }
}
