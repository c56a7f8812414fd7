//! Values of a circuit: a linear combination of its variables together with what it evaluates to.

use ark_bn254::Fr;
use ark_ff::{One, Zero};
use ark_relations::gr1cs::Variable;

/// A linear combination of circuit variables and its value under the witness.
#[derive(Clone, Debug)]
pub struct Value {
    pub(crate) terms: Vec<(Fr, Variable)>,
    pub(crate) value: Fr,
}

impl Value {
    /// The constant `value`.
    pub fn constant(value: Fr) -> Self {
        let terms = if value.is_zero() { Vec::new() } else { vec![(value, Variable::One)] };
        Self { terms, value }
    }

    /// One variable of the circuit.
    pub(crate) fn variable(variable: Variable, value: Fr) -> Self {
        Self { terms: vec![(Fr::one(), variable)], value }
    }

    /// What the linear combination evaluates to.
    pub fn value(&self) -> Fr {
        self.value
    }

    /// `self + coefficient * other`, in place.
    pub fn add_scaled(&mut self, coefficient: Fr, other: &Self) {
        self.value += coefficient * other.value;
        self.terms.extend(other.terms.iter().map(|(c, variable)| (*c * coefficient, *variable)));
    }

    /// `self + other`.
    pub fn plus(mut self, other: &Self) -> Self {
        self.add_scaled(Fr::one(), other);
        self
    }

    /// `self - other`.
    pub fn minus(mut self, other: &Self) -> Self {
        self.add_scaled(-Fr::one(), other);
        self
    }

    /// `sum of coefficient * value`.
    pub fn sum<'a>(terms: impl IntoIterator<Item = (Fr, &'a Self)>) -> Self {
        let mut sum = Self::constant(Fr::zero());
        for (coefficient, value) in terms {
            sum.add_scaled(coefficient, value);
        }
        sum
    }

    /// `sum of base^k * digits[k]`: digits read in base `base`, the least significant first.
    pub fn positional<'a>(base: Fr, digits: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut sum = Self::constant(Fr::zero());
        let mut power = Fr::one();
        for digit in digits {
            sum.add_scaled(power, digit);
            power *= base;
        }
        sum
    }
}
