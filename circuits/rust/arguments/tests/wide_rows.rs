//! Rows of 16 bits through both arguments.
#![allow(clippy::unwrap_used)]

use curve25519_dalek::scalar::Scalar;
use ragaudit_adversary::honest::Random;
use ragaudit_arguments::Error;
use ragaudit_arguments::commitments::{commit_rows, commit_selection, random_scalars};
use ragaudit_arguments::four_squares::complete_rows;
use ragaudit_arguments::index::{self, Rows, Statement};
use ragaudit_arguments::progress::Silent;
use ragaudit_arguments::selection::{self, Instance, Secrets, Ties};

const BOUND: i64 = 4095;
const SQUARED_NORM: u32 = 4095 * 4095;

fn vectors(count: usize, dimension: usize, random: &mut Random) -> Vec<i16> {
    let reach = (BOUND as f64 / (dimension as f64).sqrt()) as i64;
    (0..count * dimension).map(|_| random.between(-reach, reach) as i16).collect()
}

#[test]
fn honest_indexes_are_accepted_and_other_norms_rejected() {
    let mut random = Random(91);
    for (count, dimension) in [(2, 1), (3, 12), (65, 28), (1024, 2)] {
        let vectors = vectors(count, dimension, &mut random);
        let mut rows = complete_rows(&vectors, dimension, SQUARED_NORM).unwrap();
        let width = dimension + 4;
        let blindings = random_scalars(count).unwrap();
        for wrong in [false, true] {
            if wrong {
                rows[width - 1] += 1;
            }
            let commitments = commit_rows(&rows, width, &blindings, &Silent).unwrap();
            let (n, d) = (count as u64, dimension as u64);
            let statement = Statement::new([7; 32], n, d, SQUARED_NORM, &commitments).unwrap();
            let proof = index::prove(&statement, Rows::Wide(&rows), &blindings, &Silent).unwrap();
            let result = index::verify(&statement, &proof, &Silent);
            assert_eq!(result.is_ok(), !wrong, "{count} x {dimension}: {result:?}");
        }
    }
}

#[test]
fn rows_too_long_for_any_bound_are_malformed() {
    let (rows, blindings) = ([4096i16, 0, 0, 0, 0], random_scalars(1).unwrap());
    let commitments = commit_rows(&rows, 5, &blindings, &Silent).unwrap();
    let statement = Statement::new([7; 32], 1, 1, SQUARED_NORM, &commitments).unwrap();
    let result = index::prove(&statement, Rows::Wide(&rows), &blindings, &Silent);
    assert!(matches!(result, Err(Error::Malformed(_))), "{result:?}");
}

#[test]
fn selections_of_wide_rows_are_the_right_ones_only() {
    let mut random = Random(92);
    let (count, dimension, top_k) = (6usize, 3usize, 2usize);
    let mut entries = vectors(count, dimension, &mut random);
    entries.copy_within(0..dimension, 3 * dimension); // a tie
    let rows = complete_rows(&entries, dimension, SQUARED_NORM).unwrap();
    let blindings = random_scalars(count).unwrap();
    let commitments = commit_rows(&rows, dimension + 4, &blindings, &Silent).unwrap();
    let query = vectors(1, dimension, &mut random);
    let scores: Vec<i64> = entries
        .chunks(dimension)
        .map(|row| row.iter().zip(&query).map(|(x, e)| i64::from(*x) * i64::from(*e)).sum())
        .collect();
    let mut sorted = scores.clone();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    let kept: Vec<u64> =
        (0..count as u64).filter(|i| scores[*i as usize] >= sorted[top_k - 1]).collect();
    let blinding = Scalar::from(77u8);
    for subset in 0u64..64 {
        let selected: Vec<u64> = (0..6).filter(|i| (subset >> i) & 1 == 1).collect();
        let instance = Instance {
            context: [9; 32],
            rows: count as u64,
            commitments: &commitments,
            query: &query,
            noise: &[0; 6],
            top_k: top_k as u64,
            allowed: None,
            squared_norm: SQUARED_NORM,
            ties: Ties::Kept,
            selection: commit_selection(&selected, &blinding).unwrap(),
        };
        let secrets = Secrets::new(&rows, dimension + 4, &blindings, &selected, blinding).unwrap();
        let proof = selection::prove(&instance, &secrets, &Silent).unwrap();
        assert_eq!(selection::verify(&instance, &proof).is_ok(), selected == kept, "{subset:b}");
    }
}
