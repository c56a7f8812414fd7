//! Dishonest provers, to be rejected.
//!
//! Each deviates from the protocol in one place and is otherwise as able as the honest prover, so
//! that a verifier without the one check that stops it accepts the proof. They use the shipped
//! transcript, relation and opening: a change to those changes the attack with them.

pub mod selection;
pub mod wrapped_rows;
