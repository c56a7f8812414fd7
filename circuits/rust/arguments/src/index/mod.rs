//! The index argument, [`ARGUMENT`]: every committed row is an integer vector of squared norm B²
//! (spec 4.7).
//!
//! ```
//! use ragaudit_arguments::index::{self, Rows, Statement};
//! use ragaudit_arguments::progress::Silent;
//! use ragaudit_arguments::{SQUARED_NORM, commitments, four_squares};
//!
//! let rows = four_squares::complete_rows(&[3i8, 4, 100, -50], 2, SQUARED_NORM)?;
//! let blindings = commitments::random_scalars(2)?;
//! let committed = commitments::commit_rows(&rows, 6, &blindings, &Silent)?;
//!
//! let statement = Statement::new([0; 32], 2, 2, SQUARED_NORM, &committed)?;
//! let proof = index::prove(&statement, Rows::Small(&rows), &blindings, &Silent)?;
//! index::verify(&statement, &proof, &Silent)?;
//!
//! let other = Statement { context: [1; 32], ..statement };
//! assert!(index::verify(&other, &proof, &Silent).is_err());
//! # Ok::<(), ragaudit_arguments::Error>(())
//! ```

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
