//! The index argument, "index/v1": every committed row is an integer vector of squared norm B²
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

pub use prover::prove;
pub use rows::Rows;
pub use statement::Statement;
pub use verifier::verify;
