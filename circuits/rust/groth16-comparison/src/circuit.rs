//! The two circuits, put together from their parts.

use ark_bn254::Fr;
use ark_ff::One;
use ark_relations::gr1cs::{ConstraintSynthesizer, ConstraintSystemRef, SynthesisError};

use crate::builder::{Builder, Part};
use crate::index::{Hashes, Vector, path_in, root_in};
use crate::instance::Instance;
use crate::noise;
use crate::parameters::Circuit;
use crate::selection::{Claimed, claimed_scores, select, tie_openings};
use crate::values::Value;

/// A circuit with its witness, as arkworks wants it.
#[derive(Clone, Copy)]
pub struct AuditCircuit<'a> {
    /// The permutations.
    pub hashes: &'a Hashes,
    /// Statement and witness.
    pub instance: &'a Instance,
}

impl ConstraintSynthesizer<Fr> for AuditCircuit<'_> {
    fn generate_constraints(self, system: ConstraintSystemRef<Fr>) -> Result<(), SynthesisError> {
        self.write(&mut Builder::new(system))
    }
}

/// The public inputs as variables, in the order of `PublicInputs::elements`.
struct Inputs {
    index: Option<Value>,
    query: Value,
    seed: Value,
    record: Value,
    scores: Option<Value>,
    selection: Value,
}

impl AuditCircuit<'_> {
    /// Writes every constraint.
    pub fn write(&self, builder: &mut Builder) -> Result<(), SynthesisError> {
        let inputs = self.inputs(builder)?;
        let query = self.query(builder, &inputs)?;
        let noise = self.noise(builder, &inputs)?;
        match self.instance.parameters.circuit {
            Circuit::Naive => self.naive(builder, &inputs, &query, &noise),
            Circuit::Optimised => self.optimised(builder, &inputs, &query, &noise),
        }
    }

    fn inputs(&self, builder: &mut Builder) -> Result<Inputs, SynthesisError> {
        let public = &self.instance.public;
        Ok(Inputs {
            index: public.index.map(|root| builder.input(root)).transpose()?,
            query: builder.input(public.query)?,
            seed: builder.input(public.seed)?,
            record: builder.input(public.record)?,
            scores: public.scores.map(|digest| builder.input(digest)).transpose()?,
            selection: builder.input(public.selection)?,
        })
    }

    fn query(&self, builder: &mut Builder, inputs: &Inputs) -> Result<Vector, SynthesisError> {
        let query = Vector::ranged(builder, Part::Query, &self.instance.witness.query)?;
        let digest = query.digest(builder, Part::Query, &self.hashes.wide)?;
        builder.equal(&digest, &inputs.query)?;
        Ok(query)
    }

    /// A2: the noise of every row follows from the committed seed and the record.
    fn noise(&self, builder: &mut Builder, inputs: &Inputs) -> Result<Vec<Value>, SynthesisError> {
        builder.part(Part::NoiseStream);
        let [first, second] = self.instance.witness.seed;
        let seed = [builder.witness(first)?, builder.witness(second)?];
        let commitment = self.hashes.narrow.digest_in(builder, &seed)?;
        builder.equal(&commitment, &inputs.seed)?;
        let [first, second] = seed;
        let key = [first, second, inputs.record.clone()];
        let parameters = &self.instance.parameters;
        let (rows, bits) = (parameters.rows, parameters.noise_bits);
        noise::sample_in(builder, &self.hashes.wide, &key, rows, bits)
    }

    /// A3 for every row: scores are inner products with the rows of the index.
    fn naive(
        &self,
        builder: &mut Builder,
        inputs: &Inputs,
        query: &Vector,
        noise: &[Value],
    ) -> Result<(), SynthesisError> {
        let witness = &self.instance.witness;
        let mut leaves = Vec::new();
        let mut noised = Vec::with_capacity(noise.len());
        for (row, noise) in witness.rows.chunks(query.coordinates.len()).zip(noise) {
            let vector = self.row(builder, row)?;
            if inputs.index.is_some() {
                leaves.push(vector.digest(builder, Part::IndexOpening, &self.hashes.wide)?);
            }
            noised.push(vector.inner_product(builder, query)?.plus(noise));
        }
        if let Some(index) = &inputs.index {
            let root = root_in(builder, self.hashes, leaves)?;
            builder.equal(&root, index)?;
        }
        self.selection(builder, inputs, &noised).map(drop)
    }

    /// A3 for the opened rows only; the scores of all others are the prover's word.
    fn optimised(
        &self,
        builder: &mut Builder,
        inputs: &Inputs,
        query: &Vector,
        noise: &[Value],
    ) -> Result<(), SynthesisError> {
        let witness = &self.instance.witness;
        let (scores, commitment) = claimed_scores(builder, self.hashes, &witness.scores)?;
        if let Some(published) = &inputs.scores {
            builder.equal(&commitment, published)?;
        }
        let noised: Vec<Value> =
            scores.iter().zip(noise).map(|(score, noise)| score.clone().plus(noise)).collect();
        let bits = self.selection(builder, inputs, &noised)?;
        let opened: Vec<(Value, Value)> = witness
            .selected
            .iter()
            .chain(&witness.runners_up)
            .map(|position| self.open(builder, inputs, query, *position))
            .collect::<Result<_, _>>()?;
        let claimed = Claimed {
            scores: &scores,
            commitment: &commitment,
            bits: &bits,
            selection: &inputs.selection,
        };
        tie_openings(builder, self.hashes, &claimed, &witness.runners_up, &opened)
    }

    fn row(&self, builder: &mut Builder, row: &[i8]) -> Result<Vector, SynthesisError> {
        match self.instance.tree {
            Some(_) => Vector::ranged(builder, Part::EmbeddingRange, row),
            None => Vector::free(builder, row),
        }
    }

    /// A row of the index: its position and its score.
    fn open(
        &self,
        builder: &mut Builder,
        inputs: &Inputs,
        query: &Vector,
        position: usize,
    ) -> Result<(Value, Value), SynthesisError> {
        let width = query.coordinates.len();
        let row = &self.instance.witness.rows[position * width..][..width];
        let vector = self.row(builder, row)?;
        let score = vector.inner_product(builder, query)?;
        let (Some(tree), Some(index)) = (&self.instance.tree, &inputs.index) else {
            let depth = self.instance.parameters.depth() as u32;
            return Ok((builder.unsigned(Fr::from(position as u64), depth)?, score));
        };
        let leaf = vector.digest(builder, Part::IndexOpening, &self.hashes.wide)?;
        let (root, position) = path_in(builder, self.hashes, tree, leaf, position)?;
        builder.equal(&root, index)?;
        Ok((position, score))
    }

    fn selection(
        &self,
        builder: &mut Builder,
        inputs: &Inputs,
        noised: &[Value],
    ) -> Result<Vec<Value>, SynthesisError> {
        let Instance { parameters, witness, .. } = self.instance;
        let (selected, threshold) = (&witness.selected, witness.threshold);
        let (bits, digest) = select(builder, self.hashes, parameters, noised, selected, threshold)?;
        builder.enforce(&digest, &Value::constant(Fr::one()), &inputs.selection)?;
        Ok(bits)
    }
}
