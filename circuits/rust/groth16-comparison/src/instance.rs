//! A statement with its witness: what a prover, honest or not, puts into the circuit.

use ark_bn254::Fr;
use ark_ff::PrimeField;
use ark_std::rand::rngs::StdRng;
use ark_std::rand::{Rng, SeedableRng};

use crate::index::{Hashes, Tree, digest_vector};
use crate::noise;
use crate::parameters::{Circuit, Index, Parameters};
use crate::selection::{pack_scores, pack_selection};

/// What the prover knows. Scores are in lattice units, `1/127^2` of a cosine.
#[derive(Clone, Debug)]
pub struct Witness {
    /// N rows of d coordinates.
    pub rows: Vec<i8>,
    /// The embedding of the query.
    pub query: Vec<i8>,
    /// The seed of the window, 256 bits or more in two field elements.
    pub seed: [Fr; 2],
    /// The digest of the ledger's record of the query.
    pub record: Fr,
    /// The claimed score of each row. The naive circuit does not use them.
    pub scores: Vec<i64>,
    /// The K positions that are claimed to be the largest.
    pub selected: Vec<usize>,
    /// No selected noised score is below it and no other is above.
    pub threshold: i64,
    /// The `ceil(log2 N)` further positions whose scores are checked in the optimised circuit.
    pub runners_up: Vec<usize>,
}

/// What the verifier knows.
#[derive(Clone, Debug)]
pub struct PublicInputs {
    /// The root of the committed index; absent when the index is free.
    pub index: Option<Fr>,
    /// The digest of the query embedding.
    pub query: Fr,
    /// The commitment to the seed.
    pub seed: Fr,
    /// The digest of the ledger's record.
    pub record: Fr,
    /// The commitment to the claimed scores; only in the optimised circuit.
    pub scores: Option<Fr>,
    /// The digest of the selected positions.
    pub selection: Fr,
}

impl PublicInputs {
    /// In the order in which the circuit declares them.
    pub fn elements(&self) -> Vec<Fr> {
        let always = [self.query, self.seed, self.record];
        self.index.into_iter().chain(always).chain(self.scores).chain([self.selection]).collect()
    }
}

/// A circuit filled in.
pub struct Instance {
    /// Which circuit.
    pub parameters: Parameters,
    /// The prover's side.
    pub witness: Witness,
    /// The verifier's side.
    pub public: PublicInputs,
    pub(crate) tree: Option<Tree>,
}

impl Instance {
    /// The commitments and digests that a prover with this witness would publish.
    pub fn new(hashes: &Hashes, parameters: Parameters, witness: Witness) -> Self {
        let committed = parameters.index == Index::Committed;
        let tree = committed.then(|| Tree::new(hashes, &witness.rows, parameters.dimension));
        let optimised = parameters.circuit == Circuit::Optimised;
        let public = PublicInputs {
            index: tree.as_ref().map(Tree::root),
            query: digest_vector(&hashes.wide, &witness.query),
            seed: hashes.narrow.digest(&witness.seed),
            record: witness.record,
            scores: optimised.then(|| hashes.wide.digest(&pack_scores(&witness.scores))),
            selection: hashes.wide.digest(&pack_selection(&witness.selected, parameters.rows)),
        };
        Self { parameters, witness, public, tree }
    }
}

impl Witness {
    /// The honest witness for a random index and query, reproducible from `seed`.
    pub fn honest(hashes: &Hashes, parameters: &Parameters, seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let Parameters { rows, dimension, .. } = *parameters;
        let vectors: Vec<i8> =
            (0..rows).flat_map(|_| unit_vector(&mut random, dimension)).collect();
        let query = unit_vector(&mut random, dimension);
        let mut element = || Fr::from_le_bytes_mod_order(&random.r#gen::<[u8; 32]>());
        let mut witness = Self {
            rows: vectors,
            query,
            seed: [element(), element()],
            record: element(),
            scores: Vec::new(),
            selected: Vec::new(),
            threshold: 0,
            runners_up: Vec::new(),
        };
        witness.scores = witness.true_scores();
        witness.select(hashes, parameters);
        witness
    }

    /// `<q, x_i>` of every row.
    pub fn true_scores(&self) -> Vec<i64> {
        let product = |row: &[i8]| {
            row.iter().zip(&self.query).map(|(x, q)| i64::from(*x) * i64::from(*q)).sum()
        };
        self.rows.chunks(self.query.len()).map(product).collect()
    }

    /// The noise that the seed and the record fix for every row.
    pub fn noise(&self, hashes: &Hashes, parameters: &Parameters) -> Vec<i64> {
        let key = [self.seed[0], self.seed[1], self.record];
        noise::sample(&hashes.wide, &key, parameters.rows, parameters.noise_bits)
    }

    /// Selects the K largest of claimed score plus noise, and the rows that follow as runners-up.
    pub fn select(&mut self, hashes: &Hashes, parameters: &Parameters) {
        let noise = self.noise(hashes, parameters);
        let noised: Vec<i64> = self.scores.iter().zip(noise).map(|(s, z)| s + z).collect();
        let mut order: Vec<usize> = (0..parameters.rows).collect();
        order.sort_by_key(|row| std::cmp::Reverse(noised[*row]));
        self.selected = order[..parameters.top_k].to_vec();
        self.threshold = noised[order[parameters.top_k - 1]];
        self.runners_up = order[parameters.top_k..parameters.openings()].to_vec();
    }
}

/// A random direction scaled to norm 127 and rounded toward zero.
fn unit_vector(random: &mut StdRng, dimension: usize) -> Vec<i8> {
    // A sum of twelve uniform values is close enough to a normal one.
    let normal = |random: &mut StdRng| (0..12).map(|_| random.r#gen::<f64>() - 0.5).sum::<f64>();
    let direction: Vec<f64> = (0..dimension).map(|_| normal(random)).collect();
    let norm = direction.iter().map(|x| x * x).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
    direction.iter().map(|x| (127.0 * x / norm) as i8).collect()
}
