//! Sums of multiples of points: constant time for secrets, fast for public data.

use std::collections::HashMap;

use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::{Identity, MultiscalarMul, VartimeMultiscalarMul};
use rayon::prelude::*;

use crate::errors::{Result, rejected};
use crate::generators::{self, Generator, List};
use crate::progress::Progress;
use crate::randomness;

/// Fewer terms than this per task cost more in repeated doublings than parallelism gains.
const LEAST_CHUNK: usize = 32;
/// More terms than this per task leave the processor's cache (constant-time tables).
const SECRET_CHUNK: usize = 256;
/// Terms of a public sum between two reports of progress.
const PUBLIC_STEP: usize = 1 << 15;

fn chunk(terms: usize, most: usize) -> usize {
    terms.div_ceil(rayon::current_num_threads()).clamp(LEAST_CHUNK, most)
}

/// sum of scalars[i] points[i], in time that depends on the number of terms only.
pub fn secret_sum(scalars: &[Scalar], points: &[RistrettoPoint]) -> RistrettoPoint {
    let size = chunk(scalars.len(), SECRET_CHUNK);
    scalars
        .par_chunks(size)
        .zip(points.par_chunks(size))
        .map(|(scalars, points)| RistrettoPoint::multiscalar_mul(scalars, points))
        .reduce(RistrettoPoint::identity, |left, right| left + right)
}

/// sum of scalars[i] points[i]; time depends on the values.
pub fn public_sum(scalars: &[Scalar], points: &[RistrettoPoint]) -> RistrettoPoint {
    let size = chunk(scalars.len(), PUBLIC_STEP);
    scalars
        .par_chunks(size)
        .zip(points.par_chunks(size))
        .map(|(scalars, points)| RistrettoPoint::vartime_multiscalar_mul(scalars, points))
        .reduce(RistrettoPoint::identity, |left, right| left + right)
}

/// A linear combination of generators and other points that must be the identity.
///
/// Several equations are added with weights that the prover cannot foresee; the coefficients of
/// the same generator are merged.
#[derive(Default)]
pub struct Equation {
    fixed: HashMap<Generator, Scalar>,
    scalars: Vec<Scalar>,
    points: Vec<RistrettoPoint>,
}

impl Equation {
    /// Adds `scalar` times generator `index` of `list`.
    pub fn add_generator(&mut self, list: List, index: u64, scalar: Scalar) {
        *self.fixed.entry(Generator::new(list, index)).or_insert(Scalar::ZERO) += scalar;
    }

    /// Adds `scalar` times `point`.
    pub fn add_point(&mut self, point: RistrettoPoint, scalar: Scalar) {
        self.scalars.push(scalar);
        self.points.push(point);
    }

    /// Adds `weight` times another equation.
    pub fn add_equation(&mut self, other: Equation, weight: &Scalar) {
        for (generator, scalar) in other.fixed {
            self.add_generator(generator.list, generator.index, scalar * weight);
        }
        self.scalars.extend(other.scalars.iter().map(|scalar| scalar * weight));
        self.points.extend(other.points);
    }

    /// The sum of the equations with random 128-bit weights: if it holds, all of them hold,
    /// except with probability 2^-128.
    pub fn combine(equations: impl IntoIterator<Item = Equation>) -> Result<Equation> {
        let mut total = Equation::default();
        for equation in equations {
            total.add_equation(equation, &randomness::weight()?);
        }
        Ok(total)
    }

    /// Rejects unless the combination is the identity.
    pub fn check(self, progress: &dyn Progress) -> Result<()> {
        let (names, mut scalars): (Vec<Generator>, Vec<Scalar>) = self.fixed.into_iter().unzip();
        let mut points = generators::points(&names);
        scalars.extend(self.scalars);
        points.extend(self.points);
        let mut sum = RistrettoPoint::identity();
        let steps = scalars.chunks(PUBLIC_STEP).zip(points.chunks(PUBLIC_STEP));
        let count = steps.len();
        for (done, (scalars, points)) in steps.enumerate() {
            progress.report(done as f64 / count as f64)?;
            sum += public_sum(scalars, points);
        }
        progress.report(1.0)?;
        if sum == RistrettoPoint::identity() {
            Ok(())
        } else {
            Err(rejected("proof: the verification equation does not hold"))
        }
    }
}
