//! The selection argument that keeps ties, from end to end.
#![allow(clippy::unwrap_used)]

use ragaudit_adversary::honest::{Index, Random, Record, mechanism, mechanism_with_ties};
use ragaudit_arguments::SQUARED_NORM;
use ragaudit_arguments::four_squares::complete_rows;
use ragaudit_arguments::selection::{self, Instance, Statement, Ties, statement::Case};

/// Rows of which many are the same.
fn index_with_duplicates(count: usize, kinds: usize, random: &mut Random) -> Index {
    let few: Vec<Vec<i16>> = (0..kinds).map(|_| random.vector(4)).collect();
    let entries = (0..count).flat_map(|_| few[random.next() as usize % kinds].clone());
    let vectors: Vec<i8> = entries.map(|entry| entry as i8).collect();
    Index::from_rows(complete_rows(&vectors, 4, 16129).unwrap(), 4)
}

fn kept<'a>(
    index: &'a Index,
    query: Vec<i16>,
    noise: Vec<i64>,
    top_k: u64,
    allowed: Option<Vec<u64>>,
) -> Record<'a> {
    Record::honest(index, query, noise, top_k, allowed).keeping_ties()
}

#[test]
fn honest_records_of_many_shapes_are_accepted() {
    let mut random = Random(71);
    for count in [2, 3, 6, 17, 40] {
        for kinds in [1, 2, count] {
            let index = index_with_duplicates(count, kinds, &mut random);
            for spread in [0, 3, 40_000, 1_000_000] {
                for top_k in [1, count as u64 / 2, count as u64 - 1] {
                    let noise = (0..count).map(|_| random.between(-spread, spread)).collect();
                    let query = random.vector(4);
                    let record = kept(&index, query, noise, top_k.max(1), None);
                    assert!(record.selected.len() as u64 >= top_k.max(1));
                    record.verify(&record.prove()).unwrap();
                }
            }
        }
    }
}

/// What both arguments make of three rows that tie for two places.
#[test]
fn ties_at_the_boundary_are_kept() {
    let index = Index::from_rows(complete_rows(&[9i8, 9, 9, 8, 100], 1, 16129).unwrap(), 1);
    let record = kept(&index, vec![10], vec![0; 5], 3, None);
    assert_eq!(record.selected, [0, 1, 2, 4]);
    assert_eq!(mechanism(&index, &[10], &[0; 5], 3, None), [4]);
    let Case::Threshold(threshold) = Statement::new(&record.instance()).unwrap().case else {
        panic!("nothing to choose")
    };
    assert_eq!((threshold.zeta, threshold.uncertain.len()), (0, 5));
    record.verify(&record.prove()).unwrap();
}

#[test]
fn every_other_selection_is_rejected() {
    let mut random = Random(72);
    for kinds in [1, 2, 6] {
        let index = index_with_duplicates(6, kinds, &mut random);
        for (spread, top_k) in [(0, 2), (0, 5), (2, 1), (40_000, 2), (200_000, 3)] {
            let query = random.vector(4);
            let noise: Vec<i64> = (0..6).map(|_| random.between(-spread, spread)).collect();
            let honest = kept(&index, query.clone(), noise.clone(), top_k, None);
            let right = mechanism_with_ties(&index, &query, &noise, top_k, None);
            assert_eq!(honest.selected, right);
            for subset in 0u64..64 {
                let selected: Vec<u64> = (0..6).filter(|i| (subset >> i) & 1 == 1).collect();
                let accept = selected == right;
                let record = honest.with_selection(selected);
                assert_eq!(record.verify(&record.prove()).is_ok(), accept, "{subset:b}");
            }
        }
    }
}

/// Where no two scores tie, both arguments select the same; their proofs are not exchanged.
#[test]
fn a_proof_belongs_to_one_of_the_arguments() {
    let mut random = Random(73);
    let index = Index::random(5, 4, &mut random);
    let noise = vec![10, -400, 900, 33, 5];
    let dropping = Record::honest(&index, vec![10, -20, 30, -40], noise, 2, None);
    let keeping = Record { ties: Ties::Kept, ..dropping.clone() };
    assert_eq!(dropping.selected, dropping.clone().keeping_ties().selected);
    let proofs = [dropping.prove(), keeping.prove()];
    for (record, accepted) in [(&dropping, 0), (&keeping, 1)] {
        for (i, proof) in proofs.iter().enumerate() {
            assert_eq!(record.verify(proof).is_ok(), i == accepted);
        }
    }
    // A statement as wide as that of B = 4095 has other columns and another length.
    let wide = Instance { squared_norm: 4095 * 4095, ..keeping.instance() };
    assert!(selection::verify(&wide, &proofs[1]).is_err());
    let beyond = Instance { squared_norm: 1 << 24, ..keeping.instance() };
    assert!(selection::verify(&beyond, &proofs[1]).is_err());
    assert_eq!(keeping.instance().squared_norm, SQUARED_NORM);
}
