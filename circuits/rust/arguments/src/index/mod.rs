//! The index argument, [`ARGUMENT`]: every committed row is an integer vector of squared norm B²
//! (spec 4.7).

mod blocks;
pub mod projections;
pub mod proof;
pub mod protocol;
pub mod prover;
pub mod relation;
mod row_sumcheck;
pub mod rows;
pub mod statement;
mod sumcheck_polynomial;
pub mod verifier;

/// The argument's name, the first thing in its transcript. Proofs of index/v1 prove less and are
/// refused.
pub const ARGUMENT: &str = "index/v2";

pub use prover::prove;
pub use rows::Rows;
pub use statement::Statement;
pub use verifier::verify;
