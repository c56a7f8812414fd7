//! The arguments of ragaudit over ristretto255: of indexes, selections, budgets and charges.
//!
//! One construction for all: a sumcheck whose messages are masked, then one opening over all
//! commitments. Letters are those of the specification (docs/spec/04-arguments.md).

pub mod budget;
pub mod charge;
pub mod charges;
pub mod commitments;
pub mod encoding;
pub mod entries;
pub mod errors;
pub mod field;
pub mod four_squares;
pub mod generators;
pub mod index;
pub mod marks;
pub mod multilinear;
pub mod multiscalar;
pub mod opening;
pub mod progress;
pub mod randomness;
pub mod scalars;
pub mod selection;
pub mod sumcheck;
pub mod tables;
pub mod ties;
pub mod transcript;

pub use errors::{Error, Result};

/// B²: the squared norm of every completed row.
pub const SQUARED_NORM: u32 = 16129;

/// Positions are below 2^32.
pub const MAX_ROWS: u64 = 1 << 32;

/// Dimensions are below 2^16: far above any embedder, and a bound for allocations.
pub const MAX_DIMENSION: u64 = 1 << 16;
