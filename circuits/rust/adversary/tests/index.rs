//! Attacks on the index argument.
#![allow(clippy::unwrap_used)]

use curve25519_dalek::scalar::Scalar;
use ragaudit_adversary::wrapped_rows::{commit, invisible_row};
use ragaudit_arguments::index::{self, Rows, Statement, protocol};
use ragaudit_arguments::progress::Silent;
use ragaudit_arguments::randomness::ProverRandomness;
use ragaudit_arguments::scalars::inner_product;
use ragaudit_arguments::{Error, SQUARED_NORM};

const DIMENSION: usize = 196;
const WIDTH: usize = DIMENSION + 4;

fn statement(commitments: &[u8]) -> Statement<'_> {
    Statement::new([3; 32], 2, DIMENSION as u64, SQUARED_NORM, commitments).unwrap()
}

/// Two rows: an honest null row, and one whose norm is right only modulo the group order and that
/// misses every projection drawn for a statement with the given commitments.
fn rows_for(commitments: &[u8], randomness: &mut ProverRandomness) -> Vec<Vec<Scalar>> {
    let statement = statement(commitments);
    let mut transcript = protocol::begin(&statement);
    let projections = protocol::projections(&mut transcript, &statement);
    let wrapped = invisible_row(&projections, 0, WIDTH, randomness).unwrap();
    assert_eq!(inner_product(&wrapped, &wrapped), Scalar::from(SQUARED_NORM));
    let mut null = vec![Scalar::ZERO; WIDTH];
    null[DIMENSION] = Scalar::from(127u8);
    vec![wrapped, null]
}

/// The projections are drawn after C_0 .. C_(N-1): rows made for others are seen.
#[test]
fn rows_made_for_foreseen_projections_are_rejected() {
    let mut randomness = ProverRandomness::from_system().unwrap();
    let rows = rows_for(&[0; 64], &mut randomness);
    let blindings = randomness.scalars(2);
    let commitments = commit(&rows, &blindings).unwrap();
    let statement = statement(&commitments);
    let bytes: Vec<u8> = blindings.iter().flat_map(Scalar::to_bytes).collect();
    let proof = index::prove(&statement, Rows::Field(&rows.concat()), &bytes, &Silent).unwrap();
    let result = index::verify(&statement, &proof, &Silent);
    let equation =
        Error::Rejected("index/v2: proof: the verification equation does not hold".into());
    assert_eq!(result, Err(equation));
}

/// The same prover is accepted when its rows are what they should be.
#[test]
fn null_rows_of_field_elements_are_accepted() {
    let mut randomness = ProverRandomness::from_system().unwrap();
    let mut null = vec![Scalar::ZERO; WIDTH];
    null[DIMENSION] = Scalar::from(127u8);
    let rows = vec![null.clone(), null];
    let blindings = randomness.scalars(2);
    let commitments = commit(&rows, &blindings).unwrap();
    let bytes: Vec<u8> = blindings.iter().flat_map(Scalar::to_bytes).collect();
    let statement = statement(&commitments);
    let proof = index::prove(&statement, Rows::Field(&rows.concat()), &bytes, &Silent).unwrap();
    index::verify(&statement, &proof, &Silent).unwrap();
}
