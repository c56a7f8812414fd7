//! Dishonest provers, to be rejected, and the honest ones that they are compared with.
//!
//! Each dishonest prover deviates from the protocol in one place and is otherwise as able as the
//! honest one, so that a verifier without the one check that stops it accepts the proof. They use
//! the shipped transcript, relation and opening: a change to those changes the attack with them.

pub mod budget;
pub mod cases;
pub mod charge;
pub mod charge_cases;
pub mod held;
pub mod honest;
pub mod honest_cases;
pub mod honest_charges;
pub mod mutation;
pub mod selection;
pub mod soak;
mod soak_charges;
pub mod strategies;
pub mod wrapped_rows;
