//! The charge argument, "charge/v1": charged are the live relevant rows, and no other (spec 4.11).
//!
//! It holds only together with the index argument for the rows and the budget argument over all
//! charge entries of the tenant and window.
//!
//! ```
//! use ragaudit_arguments::charge::{self, Entry, Secrets, Statement};
//! use ragaudit_arguments::charges::{Charges, running_sums};
//! use ragaudit_arguments::commitments::{blinding, commit_rows, commit_selection, random_scalars};
//! use ragaudit_arguments::progress::Silent;
//! use ragaudit_arguments::{SQUARED_NORM, four_squares};
//!
//! // Scores 20, 30, 10 and tau = 15: rows 0 and 1 are relevant. M = 1, so the second time none is.
//! let rows = four_squares::complete_rows(&[2i8, 3, 1], 1, SQUARED_NORM)?;
//! let row_blindings = random_scalars(3)?;
//! let committed = commit_rows(&rows, 5, &row_blindings, &Silent)?;
//! let (charged, blindings) = ([vec![0, 1], vec![]], random_scalars(2)?);
//! let points = charged.iter().zip(blindings.chunks(32)).map(|(positions, bytes)| {
//!     commit_selection(positions, &blinding(bytes, "rho")?)
//! });
//! let points = points.collect::<ragaudit_arguments::Result<Vec<_>>>()?;
//! let before = running_sums(&points.concat(), &[0, 1])?;
//! let entry = |t: usize| Entry {
//!     context: [t as u8; 32],
//!     query: &[10],
//!     threshold: 15,
//!     allowed: None,
//!     before: before[t],
//!     charge: points[t],
//! };
//! let entries = [entry(0), entry(1)];
//! let statement = Statement {
//!     uses: 1,
//!     commitments: &committed,
//!     entries: &entries,
//!     squared_norm: SQUARED_NORM,
//! };
//! let charges = Charges::new(&charged, &blindings, 3)?;
//! let secrets = Secrets::new(&rows, 5, &row_blindings, &charges, &[0, 1])?;
//! let proof = charge::prove(&statement, &secrets, &Silent)?;
//! charge::verify(&statement, &proof, &Silent)?;
//!
//! let again = [entry(0), Entry { threshold: 25, ..entry(1) }];
//! assert!(charge::verify(&Statement { entries: &again, ..statement }, &proof, &Silent).is_err());
//! # Ok::<(), ragaudit_arguments::Error>(())
//! ```

pub mod planes;
pub mod polynomial;
pub mod proof;
pub mod prover;
pub mod relation;
pub mod secrets;
pub mod statement;
pub mod verifier;

pub use prover::prove;
pub use secrets::Secrets;
pub use statement::{Entry, Statement};
pub use verifier::verify;

/// The argument's name.
pub const ARGUMENT: &str = "charge/v1";
