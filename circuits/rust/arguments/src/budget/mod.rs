//! The budget argument, "budget/v1": no row is charged more than M times (spec 4.10).
//!
//! ```
//! use ragaudit_arguments::budget::{self, Statement};
//! use ragaudit_arguments::charges::Charges;
//! use ragaudit_arguments::commitments::{blinding, commit_selection, random_scalars};
//! use ragaudit_arguments::progress::Silent;
//! use ragaudit_arguments::SQUARED_NORM;
//!
//! // Three entries over four rows; row 2 is charged twice.
//! let charged = [vec![0, 2], vec![], vec![2, 3]];
//! let blindings = random_scalars(3)?;
//! let points = charged.iter().zip(blindings.chunks(32)).map(|(positions, bytes)| {
//!     commit_selection(positions, &blinding(bytes, "rho")?)
//! });
//! let points = points.collect::<ragaudit_arguments::Result<Vec<_>>>()?.concat();
//! let statement = Statement {
//!     context: [0; 32],
//!     rows: 4,
//!     uses: 2,
//!     charges: &points,
//!     squared_norm: SQUARED_NORM,
//! };
//! let secrets = Charges::new(&charged, &blindings, 4)?;
//! let proof = budget::prove(&statement, &secrets, &Silent)?;
//! budget::verify(&statement, &proof, &Silent)?;
//!
//! let stricter = Statement { uses: 1, ..statement };
//! assert!(budget::verify(&stricter, &proof, &Silent).is_err());
//! # Ok::<(), ragaudit_arguments::Error>(())
//! ```

pub mod matrix;
pub mod proof;
pub mod prover;
pub mod statement;
pub mod verifier;

pub use prover::prove;
pub use statement::Statement;
pub use verifier::verify;

/// The argument's name.
pub const ARGUMENT: &str = "budget/v1";
