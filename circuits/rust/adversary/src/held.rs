//! What the commitments of a dishonest prover hold, and the sumcheck over what it says of them.

use std::collections::BTreeMap;

use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use ragaudit_arguments::encoding::Point;
use ragaudit_arguments::errors::Result;
use ragaudit_arguments::field::Element;
use ragaudit_arguments::generators::{self, List};
use ragaudit_arguments::multiscalar::public_sum;
use ragaudit_arguments::randomness::ProverRandomness;
use ragaudit_arguments::scalars::from_integer;
use ragaudit_arguments::sumcheck::RoundPolynomial;

/// The degree of every variable of both arguments about charges.
const DEGREE: usize = 3;

/// What one commitment holds on the generators of the opening, by their places, and on H.
#[derive(Clone)]
pub struct Held {
    parts: BTreeMap<usize, Scalar>,
    blinding: Scalar,
}

impl Held {
    /// These parts under a fresh blinding.
    pub fn new(
        parts: impl IntoIterator<Item = (usize, Scalar)>,
        randomness: &mut ProverRandomness,
    ) -> Self {
        let mut held = Held { parts: BTreeMap::new(), blinding: randomness.scalar() };
        parts.into_iter().for_each(|(place, part)| held.add(place, part));
        held
    }

    /// Puts something beside what is there.
    pub fn add(&mut self, place: usize, part: Scalar) {
        *self.parts.entry(place).or_insert(Scalar::ZERO) += part;
    }

    /// Its multiple of H.
    pub fn blinding(&self) -> Scalar {
        self.blinding
    }

    /// The commitment. `basis` are the generators of the opening.
    pub fn point(&self, basis: &[RistrettoPoint]) -> Point {
        let mut scalars: Vec<Scalar> = self.parts.values().copied().collect();
        let mut points: Vec<RistrettoPoint> =
            self.parts.keys().map(|place| basis[*place]).collect();
        scalars.push(self.blinding);
        points.push(generators::point(List::H, 0));
        Point::from(public_sum(&scalars, &points))
    }
}

/// The sum of what is opened.
pub struct Opened {
    /// On the generators of the opening.
    pub vector: Vec<Scalar>,
    /// On H.
    pub blinding: Scalar,
}

impl Opened {
    /// Nothing yet, of this many generators.
    pub fn new(length: usize) -> Self {
        Opened { vector: vec![Scalar::ZERO; length], blinding: Scalar::ZERO }
    }

    /// Adds what a commitment holds, with its weight in the equation.
    pub fn add(&mut self, held: &Held, weight: &Element) {
        let weight = Scalar::from(*weight);
        for (place, part) in &held.parts {
            self.vector[*place] += weight * part;
        }
        self.blinding += weight * held.blinding;
    }
}

/// Integers with their places from `first` on, as parts of a commitment.
pub fn parts(first: usize, values: &[i64]) -> impl Iterator<Item = (usize, Scalar)> {
    values.iter().enumerate().map(move |(place, value)| (first + place, scalar(*value)))
}

/// The residue of a small integer.
pub fn scalar(value: i64) -> Scalar {
    from_integer(i128::from(value))
}

/// F over whole tables, the first variable the most significant one: slow, and of any F.
pub struct Dense<F> {
    tables: Vec<Vec<Element>>,
    value: F,
}

impl<F: Fn(&[Element]) -> Element> Dense<F> {
    /// `value` is F at a point, from what the tables are there; all of one length 2^n.
    pub fn new(tables: Vec<Vec<Element>>, value: F) -> Self {
        Dense { tables, value }
    }

    /// What the tables are at the bound point, after all rounds.
    pub fn evaluations(&self) -> Vec<Element> {
        self.tables.iter().map(|table| table[0]).collect()
    }
}

impl<F: Fn(&[Element]) -> Element> RoundPolynomial for Dense<F> {
    fn values(&self) -> Vec<Element> {
        let half = self.tables[0].len() / 2;
        let at = |x: i64| -> Element {
            let x = Element::from_integer(x);
            let point = |i: usize| -> Element {
                let folded: Vec<Element> =
                    self.tables.iter().map(|table| fold(table, i, &x)).collect();
                (self.value)(&folded)
            };
            (0..half).map(point).sum()
        };
        (0..=DEGREE as i64).map(at).collect()
    }

    fn bind(&mut self, r: &Element) -> Result<()> {
        for table in &mut self.tables {
            *table = (0..table.len() / 2).map(|i| fold(table, i, r)).collect();
        }
        Ok(())
    }
}

/// The table with its first variable at `x`, at place `i`.
fn fold(table: &[Element], i: usize, x: &Element) -> Element {
    let (low, high) = (table[i], table[table.len() / 2 + i]);
    low + *x * (high - low)
}
