//! The index argument from end to end.
#![allow(clippy::unwrap_used)]

use ragaudit_adversary::honest::{Index, Random};
use ragaudit_arguments::index::{self, Rows, Statement};
use ragaudit_arguments::progress::Silent;
use ragaudit_arguments::scalars::from_integer;
use ragaudit_arguments::{Error, Result, SQUARED_NORM};

fn verify(index: &Index, proof: &[u8]) -> Result<()> {
    index::verify(&index.statement(), proof, &Silent)
}

#[test]
fn honest_indexes_of_many_shapes_are_accepted() {
    let mut random = Random(1);
    for (count, dimension) in [
        (2, 1),
        (2, 3),
        (3, 12),
        (63, 5),
        (64, 4),
        (65, 28),
        (200, 61),
        (1023, 2),
        (1024, 2),
        (1100, 3),
    ] {
        let index = Index::random(count, dimension, &mut random);
        let proof = index.prove();
        verify(&index, &proof).unwrap_or_else(|error| panic!("{count} x {dimension}: {error}"));
    }
}

#[test]
fn field_rows_prove_the_same_statement() {
    let index = Index::random(70, 9, &mut Random(2));
    let field: Vec<_> = index.rows.iter().map(|x| from_integer(i128::from(*x))).collect();
    let statement = index.statement();
    let proof = index::prove(&statement, Rows::Field(&field), &index.blindings, &Silent).unwrap();
    verify(&index, &proof).unwrap();
}

#[test]
fn every_flipped_element_is_rejected() {
    let mut random = Random(3);
    let index = Index::random(5, 4, &mut random);
    let proof = index.prove();
    for element in 0..proof.len() / 32 {
        let mut changed = proof.clone();
        changed[32 * element + (random.next() % 32) as usize] ^= 1 << (random.next() % 8);
        let result = verify(&index, &changed);
        assert!(matches!(result, Err(Error::Rejected(_))), "element {element}: {result:?}");
    }
}

#[test]
fn other_lengths_are_rejected() {
    let index = Index::random(2, 3, &mut Random(4));
    let proof = index.prove();
    for length in [0, 31, 32, proof.len() - 32, proof.len() - 1] {
        assert!(verify(&index, &proof[..length]).is_err());
    }
    assert!(verify(&index, &[&proof[..], &[0]].concat()).is_err());
    assert!(verify(&index, &[&proof[..], &[0; 32]].concat()).is_err());
}

#[test]
fn a_row_of_another_norm_is_rejected() {
    let mut random = Random(5);
    for change in [1, -1] {
        let mut rows = Index::random(6, 5, &mut random).rows;
        rows[9] += change;
        let index = Index::from_rows(rows, 5);
        assert!(verify(&index, &index.prove()).is_err());
    }
}

#[test]
fn a_short_row_is_rejected() {
    let mut random = Random(6);
    let mut rows = Index::random(6, 5, &mut random).rows;
    rows[45..54].fill(0);
    let index = Index::from_rows(rows, 5);
    assert!(verify(&index, &index.prove()).is_err());
}

#[test]
fn a_proof_is_bound_to_its_statement() {
    let mut random = Random(7);
    let index = Index::random(4, 6, &mut random);
    let proof = index.prove();
    let other = Index::from_rows(index.rows.clone(), 6);
    assert!(verify(&other, &proof).is_err(), "other blindings");
    let context = Statement::new([8; 32], 4, 6, SQUARED_NORM, &index.commitments).unwrap();
    assert!(index::verify(&context, &proof, &Silent).is_err(), "other context");
    let dimension = Statement::new([7; 32], 4, 5, SQUARED_NORM, &index.commitments).unwrap();
    assert!(index::verify(&dimension, &proof, &Silent).is_err(), "other dimension");
    let norm = Statement::new([7; 32], 4, 6, SQUARED_NORM - 1, &index.commitments).unwrap();
    assert!(index::verify(&norm, &proof, &Silent).is_err(), "other norm");
}

#[test]
fn statements_out_of_range_are_rejected() {
    let commitments = [0; 64];
    let statement = |rows, dimension, norm| {
        Statement::new([0; 32], rows, dimension, norm, &commitments).map(|_| ())
    };
    assert!(statement(2, 3, SQUARED_NORM).is_ok());
    assert!(statement(0, 3, SQUARED_NORM).is_err());
    assert!(statement(3, 3, SQUARED_NORM).is_err());
    assert!(statement(1, 3, SQUARED_NORM).is_err());
    assert!(statement(1 << 32, 3, SQUARED_NORM).is_err());
    assert!(statement(2, 0, SQUARED_NORM).is_err());
    assert!(statement(2, 1 << 16, SQUARED_NORM).is_err());
    assert!(statement(2, 3, 0).is_err());
    assert!(statement(2, 3, (1 << 24) - 1).is_ok());
    assert!(statement(2, 3, 1 << 24).is_err());
}

/// N B sqrt(d + 4) < 2^41, at the largest N that passes and one above; no commitments are needed.
#[test]
fn projections_that_may_not_fit_their_digits_are_rejected() {
    for (dimension, norm, most) in
        [(384, 4095 * 4095, 27_262_146), (3072, 4095 * 4095, 9_682_393), (3072, 16129, 312_200_026)]
    {
        let message = |rows| {
            let result = Statement::new([0; 32], rows, dimension, norm, &[]);
            result.unwrap_err().to_string()
        };
        assert!(message(most).starts_with("commitments: "), "{}", message(most));
        assert!(message(most + 1).contains("expected N² B² (d + 4) < 2^82"));
    }
}

#[test]
fn two_proofs_of_one_index_share_no_element() {
    let index = Index::random(3, 4, &mut Random(8));
    let (first, second) = (index.prove(), index.prove());
    assert!(first.chunks(32).zip(second.chunks(32)).all(|(a, b)| a != b));
}
