//! Sums of multiples of points: constant time for secrets, fast for public data.

use std::collections::HashMap;

use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::{Identity, MultiscalarMul, VartimeMultiscalarMul};
use rayon::prelude::*;

use crate::encoding::{ELEMENT_BYTES, decode_point};
use crate::errors::{Result, rejected};
use crate::field::Element;
use crate::generators::{self, Generator, List};
use crate::progress::Progress;

/// Fewer terms than this per task cost more in repeated doublings than parallelism gains.
const LEAST_CHUNK: usize = 32;
/// More terms than this per task leave the processor's cache (constant-time tables).
const SECRET_CHUNK: usize = 256;
/// Terms of a public sum between two reports of progress.
const PUBLIC_STEP: usize = 1 << 16;
/// A list of coefficients is kept whole once one record fills this share of it.
const DENSE_SHARE: usize = 8;

/// Terms of each task: as many tasks for every thread, none with more than `most` terms.
fn chunk(terms: usize, most: usize) -> usize {
    let tasks = terms.div_ceil(most).next_multiple_of(rayon::current_num_threads());
    terms.div_ceil(tasks.max(1)).max(LEAST_CHUNK)
}

/// sum of scalars[i] points[i], in time that depends on the number of terms only.
///
/// ```
/// use curve25519_dalek::scalar::Scalar;
/// use ragaudit_arguments::generators::{List, first};
/// use ragaudit_arguments::multiscalar::{public_sum, secret_sum};
///
/// let (scalars, points) = ([2u8, 3].map(Scalar::from), first(List::G, 2));
/// let sum = scalars[0] * points[0] + scalars[1] * points[1];
/// assert_eq!((secret_sum(&scalars, &points), public_sum(&scalars, &points)), (sum, sum));
/// ```
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

/// Coefficients of a long list of points, most of which may be zero.
#[derive(Default)]
struct Coefficients {
    dense: Vec<Element>,
    sparse: HashMap<usize, Element>,
}

impl Coefficients {
    /// Adds to the coefficients at some of `length` positions.
    fn add(&mut self, length: usize, terms: impl ExactSizeIterator<Item = (usize, Element)>) {
        if !self.dense.is_empty() || terms.len() >= length / DENSE_SHARE {
            self.grow(length);
        }
        if self.dense.is_empty() {
            for (position, coefficient) in terms {
                *self.sparse.entry(position).or_default() += coefficient;
            }
        } else {
            for (position, coefficient) in terms {
                self.dense[position] += coefficient;
            }
        }
    }

    /// Keeps the coefficients of the first `length` positions whole, if not more already.
    fn grow(&mut self, length: usize) {
        self.dense.resize(self.dense.len().max(length), Element::ZERO);
    }

    fn merge(&mut self, mut other: Coefficients) {
        if self.dense.len() < other.dense.len() {
            std::mem::swap(&mut self.dense, &mut other.dense);
        }
        self.dense.par_iter_mut().zip(other.dense).for_each(|(sum, more)| *sum += more);
        for (position, coefficient) in other.sparse {
            *self.sparse.entry(position).or_default() += coefficient;
        }
    }

    /// (position, coefficient), every position once, those with coefficient 0 left out.
    fn terms(mut self) -> Vec<(usize, Element)> {
        if !self.dense.is_empty() {
            let positions = self.sparse.keys().max().map_or(0, |most| most + 1);
            self.grow(positions);
            for (position, coefficient) in self.sparse.drain() {
                self.dense[position] += coefficient;
            }
        }
        let dense = self.dense.into_iter().enumerate();
        dense.chain(self.sparse).filter(|(_, coefficient)| *coefficient != Element::ZERO).collect()
    }
}

/// A linear combination of generators and other points that must be the identity.
///
/// Equations of any number of proofs are added up with weights that the provers cannot foresee,
/// coefficients of the same point merged: A_i of all records, C_i of all records of one index.
///
/// ```
/// use ragaudit_arguments::field::Element;
/// use ragaudit_arguments::generators::{List, point};
/// use ragaudit_arguments::multiscalar::Equation;
/// use ragaudit_arguments::progress::Silent;
///
/// let doubled = point(List::H, 0) + point(List::H, 0);
/// let mut equation = Equation::default();
/// equation.add_generator(List::H, 0, Element::from_integer(2));
/// equation.add_point(doubled, Element::from_integer(-1));
/// equation.check(&Silent)?;
/// # Ok::<(), ragaudit_arguments::Error>(())
/// ```
#[derive(Default)]
pub struct Equation<'a> {
    generators: HashMap<Generator, Element>,
    positions: Coefficients,
    rows: Vec<(&'a [u8], Coefficients)>,
    scalars: Vec<Scalar>,
    points: Vec<RistrettoPoint>,
}

impl<'a> Equation<'a> {
    /// Adds `scalar` times generator `index` of `list`.
    pub fn add_generator(&mut self, list: List, index: u64, scalar: Element) {
        *self.generators.entry(Generator::new(list, index)).or_default() += scalar;
    }

    /// Adds `scalar` times `point`.
    pub fn add_point(&mut self, point: RistrettoPoint, scalar: Element) {
        self.scalars.push(scalar.into());
        self.points.push(point);
    }

    /// Adds coefficients of A_i for positions i below `length`.
    pub fn add_positions(
        &mut self,
        length: usize,
        terms: impl ExactSizeIterator<Item = (usize, Element)>,
    ) {
        self.positions.add(length, terms);
    }

    /// Adds coefficients of C_i, the i-th of these encoded points.
    ///
    /// Points are decoded when the equation is checked: those of one index once, however many
    /// records refer to it.
    pub fn add_rows(
        &mut self,
        commitments: &'a [u8],
        terms: impl ExactSizeIterator<Item = (usize, Element)>,
    ) {
        self.coefficients(commitments).add(commitments.len() / ELEMENT_BYTES, terms);
    }

    fn coefficients(&mut self, commitments: &'a [u8]) -> &mut Coefficients {
        let known = self.rows.iter().position(|(bytes, _)| std::ptr::eq(*bytes, commitments));
        let index = known.unwrap_or_else(|| {
            self.rows.push((commitments, Coefficients::default()));
            self.rows.len() - 1
        });
        &mut self.rows[index].1
    }

    /// Adds another combination of equations.
    pub fn merge(&mut self, other: Equation<'a>) {
        for (generator, scalar) in other.generators {
            self.add_generator(generator.list, generator.index, scalar);
        }
        self.positions.merge(other.positions);
        for (commitments, coefficients) in other.rows {
            self.coefficients(commitments).merge(coefficients);
        }
        self.scalars.extend(other.scalars);
        self.points.extend(other.points);
    }

    /// Rejects unless the combination is the identity and every C_i used is canonical.
    pub fn check(self, progress: &dyn Progress) -> Result<()> {
        let terms = |(bytes, rows): (&'a [u8], Coefficients)| (bytes, rows.terms());
        let rows: Vec<_> = self.rows.into_iter().map(terms).collect();
        let positions = self.positions.terms();
        let count = positions.len() + rows.iter().map(|(_, terms)| terms.len()).sum::<usize>();
        let mut done = 0;
        let mut report = |more: usize| {
            done += more;
            progress.report(done as f64 / count.max(1) as f64)
        };
        let (names, scalars): (Vec<Generator>, Vec<Element>) = self.generators.into_iter().unzip();
        let scalars: Vec<Scalar> = scalars.iter().map(Scalar::from).collect();
        let mut sum = public_sum(&scalars, &generators::points(&names));
        sum += public_sum(&self.scalars, &self.points);
        for terms in positions.chunks(PUBLIC_STEP) {
            report(0)?;
            let name = |(index, _): &(usize, Element)| Generator::new(List::A, *index as u64);
            let names: Vec<Generator> = terms.iter().map(name).collect();
            sum += public_sum(&scalars_of(terms), &generators::points(&names));
            report(terms.len())?;
        }
        for (commitments, terms) in &rows {
            for terms in terms.chunks(PUBLIC_STEP) {
                let points = decoded(commitments, terms)?;
                sum += public_sum(&scalars_of(terms), &points);
                report(terms.len())?;
            }
        }
        progress.report(1.0)?;
        if sum == RistrettoPoint::identity() {
            Ok(())
        } else {
            Err(rejected("proof: the verification equation does not hold"))
        }
    }
}

fn scalars_of(terms: &[(usize, Element)]) -> Vec<Scalar> {
    terms.par_iter().map(|(_, coefficient)| Scalar::from(coefficient)).collect()
}

fn decoded(commitments: &[u8], terms: &[(usize, Element)]) -> Result<Vec<RistrettoPoint>> {
    let decode = |(row, _): &(usize, Element)| {
        let bytes = &commitments[row * ELEMENT_BYTES..][..ELEMENT_BYTES];
        Ok(decode_point(bytes, &format!("C_{row}"))?.element)
    };
    terms.par_iter().map(decode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Silent;

    fn encoded(count: u64) -> Vec<u8> {
        (0..count).flat_map(|i| generators::point(List::A, i).compress().to_bytes()).collect()
    }

    #[test]
    fn coefficients_of_one_point_are_merged_however_they_come() {
        let commitments = encoded(64);
        let term = |position, value| (position, Element::from_integer(value));
        for positions in [vec![5usize], (0..64).collect()] {
            let mut equation = Equation::default();
            equation.add_positions(64, positions.iter().map(|i| term(*i, -3)));
            equation.add_rows(&commitments, positions.iter().map(|i| term(*i, 1)));
            let mut other = Equation::default();
            other.add_rows(&commitments, [term(5, 2)].into_iter());
            for i in positions.iter().filter(|i| **i != 5) {
                other.add_point(generators::point(List::A, *i as u64), Element::from_integer(2));
            }
            equation.merge(other);
            assert_eq!(equation.rows.len(), 1);
            equation.check(&Silent).unwrap();
        }
    }

    #[test]
    fn lists_of_different_lengths_are_added() {
        for (first, second) in [(3, 64), (64, 3)] {
            let all =
                |count: usize, value| (0..count).map(move |i| (i, Element::from_integer(value)));
            let mut equation = Equation::default();
            equation.add_positions(first, all(first, 1));
            equation.add_positions(second, all(second, 1));
            let mut other = Equation::default();
            other.add_positions(second, all(second, -1));
            other.add_positions(200, [(199, Element::ONE)].into_iter());
            equation.merge(other);
            equation.add_positions(first, all(first, -1));
            equation.add_generator(List::A, 199, -Element::ONE);
            equation.check(&Silent).unwrap();
        }
    }

    #[test]
    fn a_combination_that_is_not_the_identity_is_rejected() {
        let commitments = encoded(3);
        let mut equation = Equation::default();
        equation.add_rows(&commitments, [(2, Element::ONE)].into_iter());
        equation.add_generator(List::A, 1, -Element::ONE);
        assert!(equation.check(&Silent).is_err());
    }

    #[test]
    fn a_commitment_that_is_not_canonical_is_named() {
        let mut commitments = encoded(3);
        commitments[32..64].fill(0xff);
        let mut equation = Equation::default();
        equation.add_rows(&commitments, [(1, Element::ONE)].into_iter());
        let error = equation.check(&Silent).unwrap_err();
        assert!(error.to_string().contains("C_1"), "{error}");
    }
}
