//! The two Groth16 circuits of the source paper, built to be measured. Never shipped.
//!
//! What each proves and leaves unproved is in `docs/notes/groth16-comparison.md`; the README beside
//! this crate has the command, its JSON, and every choice made where the paper is silent.

pub mod builder;
pub mod circuit;
pub mod index;
pub mod instance;
pub mod measure;
pub mod noise;
pub mod parameters;
pub mod poseidon;
pub mod process;
pub mod selection;
pub mod values;
