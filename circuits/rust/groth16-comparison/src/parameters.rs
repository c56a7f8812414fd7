//! Which circuit, at which size.

use std::fmt;

use serde::Serialize;

use crate::noise::UNIFORM_BITS;

/// The two circuits of the paper's section 5.8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Circuit {
    /// Every inner product is computed in the circuit.
    Naive,
    /// Scores are claimed; `K + ceil(log2 N)` of them are checked against the index.
    Optimised,
}

/// Whether the embeddings in the circuit are those of the committed index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Index {
    /// Every embedding the circuit uses is opened from the committed index: claims A3 and A4.
    Committed,
    /// Embeddings are whatever the prover likes: what the paper's Table 1 puts a price on.
    Free,
}

/// Sizes and variants. Everything else about a circuit follows from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Parameters {
    /// Naive or optimised.
    pub circuit: Circuit,
    /// Committed or free.
    pub index: Index,
    /// N, from 2 to 2^20.
    pub rows: usize,
    /// d, from 1 to 4096.
    pub dimension: usize,
    /// K, at least 1; `K + ceil(log2 N) <= N`.
    pub top_k: usize,
    /// m: the noise has a standard deviation of about `3.14 * 2^m` lattice units, 0 to 24.
    pub noise_bits: u32,
}

/// A parameter out of its range.
#[derive(Debug)]
pub struct OutOfRange(String);

impl fmt::Display for OutOfRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for OutOfRange {}

impl Parameters {
    /// Refuses sizes for which the circuit would not be sound.
    pub fn check(&self) -> Result<(), OutOfRange> {
        let within = |name, value: usize, low: usize, high: usize| {
            if (low..=high).contains(&value) {
                return Ok(());
            }
            Err(OutOfRange(format!("{name} is {value}; it must be from {low} to {high}")))
        };
        within("rows", self.rows, 2, 1 << POSITION_BITS)?;
        within("dimension", self.dimension, 1, 4096)?;
        within("noise-bits", self.noise_bits as usize, 0, UNIFORM_BITS)?;
        within("top-k", self.top_k, 1, self.rows.saturating_sub(self.depth()))
    }

    /// `ceil(log2 N)`: the height of the index's tree, and the number of runners-up that are opened.
    pub fn depth(&self) -> usize {
        self.rows.next_power_of_two().trailing_zeros() as usize
    }

    /// Rows whose claimed score is checked against the index in the optimised circuit.
    pub fn openings(&self) -> usize {
        self.top_k + self.depth()
    }

    /// Rows whose score the circuit compares with the committed index.
    pub fn rows_checked(&self) -> usize {
        match (self.index, self.circuit) {
            (Index::Free, _) => 0,
            (Index::Committed, Circuit::Naive) => self.rows,
            (Index::Committed, Circuit::Optimised) => self.openings(),
        }
    }
}

/// Bits of a row's position.
pub const POSITION_BITS: u32 = 20;
