//! The selection argument, "selection/v1" and "selection-all/v1" (spec 4.6).

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
pub use secrets::Secrets;
pub use statement::{Instance, Statement};
pub use verifier::{verify, verify_batch};
