//! The ties opening: known answers, honest openings, false ones.
#![allow(clippy::unwrap_used)]

mod common;

use common::{array, bytes, concatenated, integers, load};
use ragaudit_arguments::commitments::{commit_rows, random_scalars};
use ragaudit_arguments::four_squares::complete_rows;
use ragaudit_arguments::progress::Silent;
use ragaudit_arguments::ties::{self, Ranked, Statement};
use ragaudit_arguments::{Error, SQUARED_NORM};
use serde_json::Value;

fn ranked(value: &Value) -> Vec<Ranked> {
    let pairs = value.as_array().unwrap().iter().map(integers::<i64>);
    pairs.map(|pair| Ranked { position: pair[0] as u64, score: pair[1] }).collect()
}

#[test]
fn openings_are_judged_as_known() {
    let vectors = load("ties");
    let cases = vectors["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 43);
    for case in cases {
        let statement = Statement {
            context: array(&case["context"]),
            rows: case["N"].as_u64().unwrap(),
            query: &integers::<i16>(&case["e"]),
            top_k: case["K"].as_u64().unwrap(),
            served: &ranked(&case["served"]),
            withdrawn: &ranked(&case["withdrawn"]),
            others: &integers::<u64>(&case["others"]),
            commitments: &concatenated(&case["C"]),
            squared_norm: case["B2"].as_u64().unwrap() as u32,
        };
        let result = ties::verify(&statement, &bytes(&case["proof"]));
        assert_eq!(result.is_ok(), case["expect"] == "accept", "{}: {result:?}", case["name"]);
        if let Err(error) = result {
            assert!(matches!(error, Error::Rejected(_)), "{}: {error}", case["name"]);
        }
    }
}

/// Scores 5, 5, 9, 5, 2 with K = 2.
struct Tied {
    rows: Vec<i16>,
    blindings: Vec<u8>,
    commitments: Vec<u8>,
}

impl Tied {
    fn new() -> Self {
        let rows = complete_rows(&[5i16, 5, 9, 5, 2], 1, SQUARED_NORM).unwrap();
        let blindings = random_scalars(5).unwrap();
        let commitments = commit_rows(&rows, 5, &blindings, &Silent).unwrap();
        Tied { rows, blindings, commitments }
    }

    /// Proves and verifies the claim that these are the first rows and those the others.
    fn check(&self, served: &[Ranked], withdrawn: &[Ranked], others: &[u64]) -> Result<(), Error> {
        let mut unserved: Vec<u64> = withdrawn.iter().map(|row| row.position).collect();
        unserved.extend(others);
        unserved.sort_unstable();
        let part = |bytes: &[u8], width: usize| -> Vec<u8> {
            unserved.iter().flat_map(|i| bytes[*i as usize * width..][..width].to_vec()).collect()
        };
        let rows: Vec<i16> =
            unserved.iter().flat_map(|i| self.rows[*i as usize * 5..][..5].to_vec()).collect();
        let statement = Statement {
            context: [7; 32],
            rows: 5,
            query: &[1],
            top_k: 2,
            served,
            withdrawn,
            others,
            commitments: &part(&self.commitments, 32),
            squared_norm: SQUARED_NORM,
        };
        let proof = ties::prove(&statement, &rows, &part(&self.blindings, 32), &Silent)?;
        ties::verify(&statement, &proof)
    }
}

fn row(position: u64, score: i64) -> Ranked {
    Ranked { position, score }
}

#[test]
fn honest_openings_are_accepted() {
    let tied = Tied::new();
    tied.check(&[row(0, 5), row(2, 9)], &[], &[1, 3]).unwrap();
    tied.check(&[row(0, 5)], &[row(2, 9)], &[1, 3]).unwrap();
    tied.check(&[row(2, 9)], &[row(0, 5)], &[1, 3]).unwrap();
    tied.check(&[], &[row(0, 5), row(2, 9)], &[1, 3]).unwrap();
}

#[test]
fn other_rows_than_the_first_are_rejected() {
    let tied = Tied::new();
    let equation = || Err(Error::Rejected("proof: the verification equation does not hold".into()));
    // The best row kept back, with and without a withdrawn row before it.
    assert_eq!(tied.check(&[row(0, 5), row(1, 5)], &[], &[2, 3]), equation());
    assert_eq!(tied.check(&[row(0, 5)], &[row(1, 5)], &[2, 3]), equation());
    // A worse row among the others, and scores that are not those of the withdrawn row.
    assert_eq!(tied.check(&[row(0, 5), row(2, 9)], &[], &[1, 3, 4]), equation());
    assert_eq!(tied.check(&[row(0, 5)], &[row(2, 8)], &[1, 3]), equation());
    assert_eq!(tied.check(&[row(2, 9)], &[row(0, 4)], &[1, 3]), equation());
    assert_eq!(tied.check(&[row(0, 5)], &[row(1, 6)], &[2, 3]), equation());
}

#[test]
fn an_order_that_is_none_is_not_even_proven() {
    let tied = Tied::new();
    for (served, withdrawn) in [
        (vec![row(1, 5), row(2, 9)], vec![]),
        (vec![row(2, 9)], vec![row(1, 5)]),
        (vec![row(2, 9)], vec![row(3, 5)]),
        (vec![], vec![row(1, 5), row(2, 9)]),
    ] {
        let result = tied.check(&served, &withdrawn, &[0]);
        assert!(matches!(result, Err(Error::Malformed(_))), "{result:?}");
    }
}
