//! Writes constraints, counts them by part, and keeps them or only counts them.

use std::collections::BTreeMap;

use ark_bn254::Fr;
use ark_ff::{BigInteger, One, PrimeField, Zero};
use ark_relations::gr1cs::{ConstraintSystemRef, LinearCombination, SynthesisError, Variable};
use serde::Serialize;

use crate::values::Value;

/// What a constraint is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The query embedding, its range and its digest.
    Query,
    /// Every opened coordinate is an 8-bit integer, so that packing it is injective.
    EmbeddingRange,
    /// Leaves and paths (or the whole tree) of the committed index.
    IndexOpening,
    /// `<q, x_i>`.
    InnerProducts,
    /// The commitment to the seed and the stream derived from it.
    NoiseStream,
    /// From the stream to one noise value per row.
    NoiseSamples,
    /// The range of the claimed scores and their commitment; only the optimised circuit.
    ScoreCommitment,
    /// The K largest noised scores and the digest of their positions.
    Selection,
    /// Opened scores equal claimed scores; only the optimised circuit.
    ScoreOpening,
}

/// Either a constraint system of arkworks or a count.
pub struct Builder {
    system: Option<ConstraintSystemRef<Fr>>,
    part: Part,
    counts: BTreeMap<Part, usize>,
    witnesses: usize,
    inputs: usize,
}

impl Builder {
    /// Writes into `system`.
    pub fn new(system: ConstraintSystemRef<Fr>) -> Self {
        Self { system: Some(system), ..Self::counting() }
    }

    /// Counts and keeps nothing: for circuits that fit in no memory.
    pub fn counting() -> Self {
        Self { system: None, part: Part::Query, counts: BTreeMap::new(), witnesses: 0, inputs: 0 }
    }

    /// What follows is for `part`.
    pub fn part(&mut self, part: Part) {
        self.part = part;
    }

    /// Constraints by part.
    pub fn counts(&self) -> &BTreeMap<Part, usize> {
        &self.counts
    }

    /// Number of witness variables.
    pub fn witnesses(&self) -> usize {
        self.witnesses
    }

    /// Number of public inputs.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// A public input.
    pub fn input(&mut self, value: Fr) -> Result<Value, SynthesisError> {
        self.inputs += 1;
        let variable = match &self.system {
            Some(system) => system.new_input_variable(|| Ok(value))?,
            None => Variable::One,
        };
        Ok(Value::variable(variable, value))
    }

    /// A private value of the prover's choice.
    pub fn witness(&mut self, value: Fr) -> Result<Value, SynthesisError> {
        self.witnesses += 1;
        let variable = match &self.system {
            Some(system) => system.new_witness_variable(|| Ok(value))?,
            None => Variable::One,
        };
        Ok(Value::variable(variable, value))
    }

    /// `a * b = c`.
    pub fn enforce(&mut self, a: &Value, b: &Value, c: &Value) -> Result<(), SynthesisError> {
        *self.counts.entry(self.part).or_default() += 1;
        let Some(system) = &self.system else { return Ok(()) };
        let combination = |value: &Value| LinearCombination(value.terms.clone());
        system.enforce_r1cs_constraint(|| combination(a), || combination(b), || combination(c))
    }

    /// `a = b`.
    pub fn equal(&mut self, a: &Value, b: &Value) -> Result<(), SynthesisError> {
        self.enforce(a, &Value::constant(Fr::one()), b)
    }

    /// `a * b`.
    pub fn product(&mut self, a: &Value, b: &Value) -> Result<Value, SynthesisError> {
        let product = self.witness(a.value * b.value)?;
        self.enforce(a, b, &product)?;
        Ok(product)
    }

    /// A private bit.
    pub fn bit(&mut self, bit: bool) -> Result<Value, SynthesisError> {
        let value = self.witness(Fr::from(bit))?;
        let minus_one = value.clone().minus(&Value::constant(Fr::one()));
        self.enforce(&value, &minus_one, &Value::constant(Fr::zero()))?;
        Ok(value)
    }

    /// The lowest `count` bits of `value`, the least significant first, each constrained to be a bit.
    /// Nothing binds them to `value`: the caller uses their sum, or equates it.
    pub fn bits(&mut self, value: Fr, count: u32) -> Result<Vec<Value>, SynthesisError> {
        let integer = value.into_bigint();
        (0..count).map(|k| self.bit(integer.get_bit(k as usize))).collect()
    }

    /// A private integer in `[0, 2^count)`: the sum of its bits, one constraint each.
    pub fn unsigned(&mut self, value: Fr, count: u32) -> Result<Value, SynthesisError> {
        Ok(Value::positional(Fr::from(2u64), &self.bits(value, count)?))
    }
}
