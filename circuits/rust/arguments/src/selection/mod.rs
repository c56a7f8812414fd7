//! The selection argument: "selection/v1", "selection-ties/v1" and "selection-all/v1" (spec 4.6).
//!
//! ```
//! use curve25519_dalek::scalar::Scalar;
//! use ragaudit_arguments::progress::Silent;
//! use ragaudit_arguments::selection::{self, Instance, Secrets, Ties};
//! use ragaudit_arguments::{SQUARED_NORM, commitments, four_squares};
//!
//! let rows = four_squares::complete_rows(&[100i8, 0, 0, 100, -50, 50], 2, SQUARED_NORM)?;
//! let blindings = commitments::random_scalars(3)?;
//! let committed = commitments::commit_rows(&rows, 6, &blindings, &Silent)?;
//!
//! // y = (3000, 4000, 500) + (5, 0, 7): with K = 1, row 1 is selected.
//! let selection_blinding = Scalar::from(7u8); // a random scalar elsewhere
//! let instance = Instance {
//!     context: [0; 32],
//!     rows: 3,
//!     commitments: &committed,
//!     query: &[30, 40],
//!     noise: &[5, 0, 7],
//!     top_k: 1,
//!     allowed: None,
//!     squared_norm: SQUARED_NORM,
//!     ties: Ties::Dropped,
//!     selection: commitments::commit_selection(&[1], &selection_blinding)?,
//! };
//! let secrets = Secrets::new(&rows, 6, &blindings, &[1], selection_blinding)?;
//! let proof = selection::prove(&instance, &secrets, &Silent)?;
//! selection::verify(&instance, &proof)?;
//!
//! let other = Instance { noise: &[2000, 0, 7], ..instance.clone() };
//! let batch = [(instance, &proof[..]), (other, &proof[..])];
//! assert!(selection::verify_batch(&batch, &Silent).is_err());
//! # Ok::<(), ragaudit_arguments::Error>(())
//! ```

pub mod all;
pub mod proof;
pub mod protocol;
pub mod prover;
pub mod relation;
pub mod secrets;
pub mod statement;
pub mod sumcheck_polynomial;
pub mod verifier;
pub mod witness;

pub use prover::prove;
pub use relation::Ties;
pub use secrets::Secrets;
pub use statement::{Instance, Statement};
pub use verifier::{verify, verify_batch};
