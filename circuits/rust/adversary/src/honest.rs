//! Honest provers over generated inputs, for tests: wrong input panics.
#![allow(clippy::unwrap_used)]

use curve25519_dalek::scalar::Scalar;
use ragaudit_arguments::commitments::{commit_rows, commit_selection, random_scalars};
use ragaudit_arguments::encoding::decode_scalar;
use ragaudit_arguments::four_squares::complete_rows;
use ragaudit_arguments::index::{self, Rows, Statement};
use ragaudit_arguments::progress::Silent;
use ragaudit_arguments::selection::{self, Instance, Secrets, Ties};
use ragaudit_arguments::{Result, SQUARED_NORM};

/// A small deterministic generator (splitmix64); tests need reproducible inputs, not secrecy.
#[derive(Clone)]
pub struct Random(pub u64);

impl Random {
    /// 64 uniform bits.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [low, high].
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + (self.next() % (high - low + 1) as u64) as i64
    }

    /// A uniform scalar.
    pub fn scalar(&mut self) -> Scalar {
        let mut bytes = [0; 64];
        bytes.chunks_mut(8).for_each(|part| part.copy_from_slice(&self.next().to_le_bytes()));
        Scalar::from_bytes_mod_order_wide(&bytes)
    }

    /// Uniform scalars.
    pub fn scalars(&mut self, count: usize) -> Vec<Scalar> {
        (0..count).map(|_| self.scalar()).collect()
    }

    /// A vector of squared norm at most B².
    pub fn vector(&mut self, dimension: usize) -> Vec<i16> {
        let bound = (127.0 / (dimension as f64).sqrt()).floor() as i64;
        (0..dimension).map(|_| self.between(-bound, bound) as i16).collect()
    }
}

/// An index with everything its prover knows.
#[derive(Clone)]
pub struct Index {
    /// d.
    pub dimension: usize,
    /// Completed rows of d + 4 entries.
    pub rows: Vec<i8>,
    /// Their blindings, 32 bytes each.
    pub blindings: Vec<u8>,
    /// C_0 || .. || C_(N-1).
    pub commitments: Vec<u8>,
}

impl Index {
    /// Random rows, completed and committed to.
    pub fn random(count: usize, dimension: usize, random: &mut Random) -> Self {
        let vectors: Vec<i8> =
            (0..count).flat_map(|_| random.vector(dimension)).map(|x| x as i8).collect();
        Self::from_rows(complete_rows(&vectors, dimension, SQUARED_NORM).unwrap(), dimension)
    }

    /// These completed rows, whatever their norm, under fresh blindings.
    pub fn from_rows(rows: Vec<i8>, dimension: usize) -> Self {
        let blindings = random_scalars(rows.len() / (dimension + 4)).unwrap();
        let commitments = commit_rows(&rows, dimension + 4, &blindings, &Silent).unwrap();
        Index { dimension, rows, blindings, commitments }
    }

    /// N.
    pub fn count(&self) -> usize {
        self.blindings.len() / 32
    }

    /// What the index argument says of it.
    pub fn statement(&self) -> Statement<'_> {
        let (count, dimension) = (self.count() as u64, self.dimension as u64);
        Statement::new([7; 32], count, dimension, SQUARED_NORM, &self.commitments).unwrap()
    }

    /// An index proof by the shipped prover.
    pub fn prove(&self) -> Vec<u8> {
        index::prove(&self.statement(), Rows::Small(&self.rows), &self.blindings, &Silent).unwrap()
    }
}

/// A record: an instance with what its prover knows.
#[derive(Clone)]
pub struct Record<'a> {
    /// The index asked.
    pub index: &'a Index,
    /// e.
    pub query: Vec<i16>,
    /// z.
    pub noise: Vec<i64>,
    /// K.
    pub top_k: u64,
    /// The positions that pass the filter; `None` for all.
    pub allowed: Option<Vec<u64>>,
    /// What becomes of rows at the boundary.
    pub ties: Ties,
    /// The positions in B_sel.
    pub selected: Vec<u64>,
    /// rho_sel.
    pub blinding: Vec<u8>,
    /// B_sel.
    pub selection: [u8; 32],
}

impl<'a> Record<'a> {
    /// A record that selects what the mechanism selects.
    pub fn honest(
        index: &'a Index,
        query: Vec<i16>,
        noise: Vec<i64>,
        top_k: u64,
        allowed: Option<Vec<u64>>,
    ) -> Self {
        let selected = mechanism(index, &query, &noise, top_k, allowed.as_deref());
        Self::selecting(index, query, noise, top_k, allowed, selected)
    }

    /// A record that selects the given positions.
    pub fn selecting(
        index: &'a Index,
        query: Vec<i16>,
        noise: Vec<i64>,
        top_k: u64,
        allowed: Option<Vec<u64>>,
        selected: Vec<u64>,
    ) -> Self {
        let blinding = random_scalars(1).unwrap();
        let scalar = decode_scalar(&blinding, "blinding").unwrap();
        let selection = commit_selection(&selected, &scalar).unwrap();
        let ties = Ties::Dropped;
        Record { index, query, noise, top_k, allowed, ties, selected, blinding, selection }
    }

    /// The same record under the argument that keeps ties, selecting what that demands.
    pub fn keeping_ties(self) -> Self {
        let Record { index, query, noise, top_k, allowed, .. } = &self;
        let selected = mechanism_with_ties(index, query, noise, *top_k, allowed.as_deref());
        Record { ties: Ties::Kept, ..self }.with_selection(selected)
    }

    /// The same statement but for the selected positions.
    pub fn with_selection(&self, selected: Vec<u64>) -> Self {
        let Record { index, query, noise, top_k, allowed, ties, .. } = self.clone();
        let record = Self::selecting(index, query, noise, top_k, allowed, selected);
        Record { ties, ..record }
    }

    /// Its public input.
    pub fn instance(&self) -> Instance<'_> {
        Instance {
            context: [9; 32],
            rows: self.index.count() as u64,
            commitments: &self.index.commitments,
            query: &self.query,
            noise: &self.noise,
            top_k: self.top_k,
            allowed: self.allowed.as_deref(),
            squared_norm: SQUARED_NORM,
            ties: self.ties,
            selection: self.selection,
        }
    }

    /// Its secret input.
    pub fn secrets(&self) -> Secrets<'_> {
        let blinding = decode_scalar(&self.blinding, "blinding").unwrap();
        let width = self.index.dimension + 4;
        let Index { rows, blindings, .. } = self.index;
        Secrets::new(rows, width, blindings, &self.selected, blinding).unwrap()
    }

    /// A selection proof by the shipped prover, true or not.
    pub fn prove(&self) -> Vec<u8> {
        selection::prove(&self.instance(), &self.secrets(), &Silent).unwrap()
    }

    /// The shipped verifier's verdict.
    pub fn verify(&self, proof: &[u8]) -> Result<()> {
        selection::verify(&self.instance(), proof)
    }
}

/// y_i for every row.
pub fn noised(index: &Index, query: &[i16], noise: &[i64]) -> Vec<i64> {
    let rows = index.rows.chunks(index.dimension + 4);
    rows.zip(noise)
        .map(|(row, z)| {
            let score: i64 =
                row.iter().zip(query).map(|(x, e)| i64::from(*x) * i64::from(*e)).sum();
            score + z
        })
        .collect()
}

/// Noise-then-select, straight from its definition.
pub fn mechanism(
    index: &Index,
    query: &[i16],
    noise: &[i64],
    top_k: u64,
    allowed: Option<&[u64]>,
) -> Vec<u64> {
    above(index, query, noise, top_k, allowed, |sorted, value| value > sorted[top_k as usize])
}

/// The selection that keeps ties, straight from its definition.
pub fn mechanism_with_ties(
    index: &Index,
    query: &[i16],
    noise: &[i64],
    top_k: u64,
    allowed: Option<&[u64]>,
) -> Vec<u64> {
    above(index, query, noise, top_k, allowed, |sorted, value| value >= sorted[top_k as usize - 1])
}

/// All allowed rows if there are at most K, otherwise those that `keeps` takes, given the noised
/// scores of all allowed rows, falling, and the row's own.
fn above(
    index: &Index,
    query: &[i16],
    noise: &[i64],
    top_k: u64,
    allowed: Option<&[u64]>,
    keeps: impl Fn(&[i64], i64) -> bool,
) -> Vec<u64> {
    let values = noised(index, query, noise);
    let all: Vec<u64> = (0..index.count() as u64).collect();
    let allowed = allowed.unwrap_or(&all);
    if allowed.len() as u64 <= top_k {
        return allowed.to_vec();
    }
    let mut sorted: Vec<i64> = allowed.iter().map(|i| values[*i as usize]).collect();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    allowed.iter().copied().filter(|i| keeps(&sorted, values[*i as usize])).collect()
}
