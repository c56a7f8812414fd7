//! The Poseidon permutation as constraints: three for each S-box `x^5`, nothing for the linear layers.
//!
//! Round numbers for BN254 and 128 bits are those of the Poseidon paper (Grassi and others, USENIX
//! Security 2021, eprint 2019/458, table 7 and its script); constants and matrices come from
//! `ark-crypto-primitives`, whose sponge also computes every digest outside the circuit, so that
//! an error here shows as a circuit that no honest witness satisfies.

use ark_bn254::Fr;
use ark_crypto_primitives::sponge::poseidon::{
    PoseidonConfig, PoseidonSponge, find_poseidon_ark_and_mds,
};
use ark_crypto_primitives::sponge::{CryptographicSponge, FieldBasedCryptographicSponge};
use ark_ff::{One, PrimeField, Zero};
use ark_relations::gr1cs::SynthesisError;

use crate::builder::Builder;
use crate::values::Value;

const FULL_ROUNDS: usize = 8;
const S_BOX: u64 = 5;

/// An affine form over the inputs of a permutation and the outputs of its earlier S-boxes.
#[derive(Clone)]
struct Form {
    constant: Fr,
    /// `(coefficient, index)`; the inputs come first, then the S-boxes.
    terms: Vec<(Fr, usize)>,
}

/// A sponge over one width, with its permutation unrolled once.
pub struct Poseidon {
    config: PoseidonConfig<Fr>,
    s_boxes: Vec<Form>,
    outputs: Vec<Form>,
}

impl Poseidon {
    /// Width 3: two field elements in, for the nodes of a tree.
    pub fn narrow() -> Self {
        Self::new(2, 57)
    }

    /// Width 17: sixteen field elements at a time, for long inputs and for streams.
    pub fn wide() -> Self {
        Self::new(16, 68)
    }

    fn new(rate: usize, partial_rounds: usize) -> Self {
        let (ark, mds) = find_poseidon_ark_and_mds::<Fr>(
            u64::from(Fr::MODULUS_BIT_SIZE),
            rate,
            FULL_ROUNDS as u64,
            partial_rounds as u64,
            0,
        );
        let config = PoseidonConfig::new(FULL_ROUNDS, partial_rounds, S_BOX, mds, ark, rate, 1);
        let (s_boxes, outputs) = unroll(&config);
        Self { config, s_boxes, outputs }
    }

    /// The digest of `inputs`, outside the circuit.
    pub fn digest(&self, inputs: &[Fr]) -> Fr {
        self.stream(inputs, 1)[0]
    }

    /// The first `count` field elements of the stream that `inputs` seed, outside the circuit.
    pub fn stream(&self, inputs: &[Fr], count: usize) -> Vec<Fr> {
        let mut sponge = PoseidonSponge::new(&self.config);
        for input in inputs {
            sponge.absorb(input);
        }
        sponge.squeeze_native_field_elements(count)
    }

    /// [`Self::digest`] as constraints.
    pub fn digest_in(
        &self,
        builder: &mut Builder,
        inputs: &[Value],
    ) -> Result<Value, SynthesisError> {
        Ok(self.stream_in(builder, inputs, 1)?.swap_remove(0))
    }

    /// [`Self::stream`] as constraints.
    pub fn stream_in(
        &self,
        builder: &mut Builder,
        inputs: &[Value],
        count: usize,
    ) -> Result<Vec<Value>, SynthesisError> {
        let rate = self.config.rate;
        let mut state = vec![Value::constant(Fr::zero()); rate + 1];
        for block in inputs.chunks(rate) {
            for (element, input) in state[1..].iter_mut().zip(block) {
                element.add_scaled(Fr::one(), input);
            }
            state = self.permute(builder, &state)?;
        }
        let mut stream = state[1..].to_vec();
        while stream.len() < count {
            state = self.permute(builder, &state)?;
            stream.extend_from_slice(&state[1..]);
        }
        stream.truncate(count);
        Ok(stream)
    }

    fn permute(
        &self,
        builder: &mut Builder,
        state: &[Value],
    ) -> Result<Vec<Value>, SynthesisError> {
        let mut basis = state.to_vec();
        for form in &self.s_boxes {
            let input = evaluate(form, &basis);
            let square = builder.product(&input, &input)?;
            let fourth = builder.product(&square, &square)?;
            basis.push(builder.product(&fourth, &input)?);
        }
        Ok(self.outputs.iter().map(|form| evaluate(form, &basis)).collect())
    }
}

fn evaluate(form: &Form, basis: &[Value]) -> Value {
    let mut value = Value::constant(form.constant);
    for (coefficient, index) in &form.terms {
        value.add_scaled(*coefficient, &basis[*index]);
    }
    value
}

/// Runs the permutation on affine forms: what goes into each S-box, and what comes out at the end.
fn unroll(config: &PoseidonConfig<Fr>) -> (Vec<Form>, Vec<Form>) {
    let width = config.rate + config.capacity;
    let half = config.full_rounds / 2;
    let rounds = config.full_rounds + config.partial_rounds;
    let unit = |index: usize| {
        let mut form = vec![Fr::zero(); index + 2];
        form[index + 1] = Fr::one();
        form
    };
    // Dense forms: the constant, then one coefficient per basis element.
    let mut state: Vec<Vec<Fr>> = (0..width).map(unit).collect();
    let mut s_boxes = Vec::new();
    for round in 0..rounds {
        for (form, constant) in state.iter_mut().zip(&config.ark[round]) {
            form[0] += constant;
        }
        let full = round < half || round >= half + config.partial_rounds;
        for form in state.iter_mut().take(if full { width } else { 1 }) {
            s_boxes.push(sparse(form));
            *form = unit(width + s_boxes.len() - 1);
        }
        let length = width + s_boxes.len() + 1;
        state = config
            .mds
            .iter()
            .map(|row| {
                let mut mixed = vec![Fr::zero(); length];
                for (coefficient, form) in row.iter().zip(&state) {
                    for (sum, term) in mixed.iter_mut().zip(form) {
                        *sum += *coefficient * term;
                    }
                }
                mixed
            })
            .collect();
    }
    (s_boxes, state.iter().map(|form| sparse(form)).collect())
}

fn sparse(form: &[Fr]) -> Form {
    let terms = form[1..]
        .iter()
        .enumerate()
        .filter(|(_, coefficient)| !coefficient.is_zero())
        .map(|(index, coefficient)| (*coefficient, index))
        .collect();
    Form { constant: form[0], terms }
}
