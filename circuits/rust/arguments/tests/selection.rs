//! The selection argument from end to end.
#![allow(clippy::unwrap_used)]

use ragaudit_adversary::honest::{Index, Random, Record, mechanism, noised};
use ragaudit_arguments::progress::Silent;
use ragaudit_arguments::selection::verifier::BatchError;
use ragaudit_arguments::selection::{self, Instance, Statement, statement::Case};
use ragaudit_arguments::{Error, SQUARED_NORM};

const MARGIN: i64 = 2 * SQUARED_NORM as i64;

fn noise(count: usize, spread: i64, random: &mut Random) -> Vec<i64> {
    (0..count).map(|_| random.between(-spread, spread)).collect()
}

fn uncertain(record: &Record) -> usize {
    match Statement::new(&record.instance()).unwrap().case {
        Case::All(_) => 0,
        Case::Threshold(threshold) => threshold.uncertain.len(),
    }
}

fn certain(record: &Record) -> usize {
    match Statement::new(&record.instance()).unwrap().case {
        Case::All(_) => 0,
        Case::Threshold(threshold) => threshold.certain.len(),
    }
}

#[test]
fn honest_records_of_many_shapes_are_accepted() {
    let mut random = Random(11);
    for count in [2, 3, 5, 8, 17, 40] {
        let dimension = 1 + (random.next() % 20) as usize;
        let index = Index::random(count, dimension, &mut random);
        for spread in [0, 100, 40_000, 1_000_000] {
            for top_k in [1, count as u64 / 2, count as u64 - 1] {
                let noise = noise(count, spread, &mut random);
                let query = random.vector(dimension);
                let record = Record::honest(&index, query, noise, top_k.max(1), None);
                record.verify(&record.prove()).unwrap();
            }
        }
    }
}

#[test]
fn a_single_uncertain_row_is_provable() {
    let mut random = Random(12);
    let index = Index::random(6, 7, &mut random);
    let noise = (0..6).map(|i| i * 4 * MARGIN).collect();
    let record = Record::honest(&index, random.vector(7), noise, 2, None);
    assert_eq!((uncertain(&record), certain(&record)), (1, 2));
    assert_eq!(record.selected, [4, 5]);
    record.verify(&record.prove()).unwrap();
}

#[test]
fn noise_exactly_at_the_margin_is_uncertain() {
    let mut random = Random(13);
    let index = Index::random(5, 3, &mut random);
    let noise = vec![0, MARGIN, MARGIN + 1, -MARGIN, -MARGIN - 1];
    let record = Record::honest(&index, random.vector(3), noise, 2, None);
    assert_eq!((uncertain(&record), certain(&record)), (3, 1));
    record.verify(&record.prove()).unwrap();
}

#[test]
fn extreme_noise_does_not_overflow() {
    let mut random = Random(14);
    let index = Index::random(4, 3, &mut random);
    let noise = vec![i64::MAX, i64::MIN, i64::MAX - MARGIN, i64::MIN + MARGIN];
    for top_k in 1..4 {
        let record = Record::selecting(
            &index,
            random.vector(3),
            noise.clone(),
            top_k,
            None,
            vec![0, 2, 3][..top_k as usize].to_vec(),
        );
        let _ = record.verify(&record.prove());
    }
}

#[test]
fn ties_at_the_boundary_are_dropped() {
    let mut random = Random(15);
    let row = random.vector(4).iter().map(|x| *x as i8).collect::<Vec<i8>>();
    let vectors = row.repeat(7);
    let rows = ragaudit_arguments::four_squares::complete_rows(&vectors, 4, 16129).unwrap();
    let index = Index::from_rows(rows, 4);
    for (noise, top_k, size) in [
        (vec![5, 5, 5, 5, 5, 5, 5], 3, 0),
        (vec![9, 5, 5, 5, 5, 5, 1], 3, 1),
        (vec![9, 9, 5, 5, 5, 5, 1], 3, 2),
        (vec![9, 9, 9, 5, 5, 5, 1], 3, 3),
        (vec![9, 9, 9, 9, 5, 5, 1], 3, 0),
        (vec![9, 9, 9, 9, 5, 5, 1], 6, 6),
    ] {
        let record = Record::honest(&index, random.vector(4), noise, top_k, None);
        assert_eq!(record.selected.len(), size);
        record.verify(&record.prove()).unwrap();
    }
}

#[test]
fn filters_restrict_the_selection() {
    let mut random = Random(16);
    let index = Index::random(12, 6, &mut random);
    for allowed in [vec![11, 0, 5, 7, 2], vec![3, 4], vec![9], vec![], (0..12).rev().collect()] {
        let record = Record::honest(
            &index,
            random.vector(6),
            noise(12, 30_000, &mut random),
            2,
            Some(allowed.clone()),
        );
        let proof = record.prove();
        assert_eq!(proof.len() == 64, allowed.len() <= 2);
        record.verify(&proof).unwrap();
        let unfiltered = Instance { allowed: None, ..record.instance() };
        if allowed.len() < 12 {
            assert!(selection::verify(&unfiltered, &proof).is_err());
        }
    }
}

#[test]
fn a_filter_with_a_repeated_or_unknown_position_is_rejected() {
    let mut random = Random(17);
    let index = Index::random(4, 3, &mut random);
    let record = Record::honest(&index, random.vector(3), vec![0; 4], 1, None);
    let proof = record.prove();
    for allowed in [&[0, 1, 1][..], &[0, 4], &[u64::MAX, 0]] {
        let instance = Instance { allowed: Some(allowed), ..record.instance() };
        assert!(matches!(selection::verify(&instance, &proof), Err(Error::Rejected(_))));
    }
}

#[test]
fn every_other_selection_is_rejected() {
    let mut random = Random(18);
    let index = Index::random(6, 5, &mut random);
    for spread in [1_000, 40_000, 200_000] {
        let query = random.vector(5);
        let noise = noise(6, spread, &mut random);
        let right = mechanism(&index, &query, &noise, 2, None);
        for subset in 0u64..64 {
            let selected: Vec<u64> = (0..6).filter(|i| (subset >> i) & 1 == 1).collect();
            let accept = selected == right;
            let record = Record::selecting(&index, query.clone(), noise.clone(), 2, None, selected);
            assert_eq!(record.verify(&record.prove()).is_ok(), accept);
        }
    }
}

#[test]
fn every_flipped_element_is_rejected() {
    let mut random = Random(19);
    let index = Index::random(9, 4, &mut random);
    let noise = noise(9, 30_000, &mut random);
    let record = Record::honest(&index, random.vector(4), noise, 3, None);
    let proof = record.prove();
    for element in 0..proof.len() / 32 {
        for _ in 0..3 {
            let mut changed = proof.clone();
            changed[32 * element + (random.next() % 32) as usize] ^= 1 << (random.next() % 8);
            let result = record.verify(&changed);
            assert!(matches!(result, Err(Error::Rejected(_))), "element {element}: {result:?}");
        }
    }
}

#[test]
fn other_lengths_are_rejected() {
    let mut random = Random(20);
    let index = Index::random(3, 4, &mut random);
    let threshold = Record::honest(&index, random.vector(4), vec![0, 3, 5], 1, None);
    let all = Record::honest(&index, random.vector(4), vec![0, 3, 5], 1, Some(vec![2]));
    for record in [threshold, all] {
        let proof = record.prove();
        for length in [0, 32, proof.len() - 32, proof.len() - 1] {
            assert!(record.verify(&proof[..length]).is_err());
        }
        assert!(record.verify(&[&proof[..], &[0]].concat()).is_err());
        assert!(record.verify(&[&proof[..], &[0; 32]].concat()).is_err());
    }
}

#[test]
fn a_proof_is_bound_to_every_part_of_its_statement() {
    let mut random = Random(21);
    let index = Index::random(5, 4, &mut random);
    let noise = vec![10, -400, 900, 33, 5];
    let record = Record::honest(&index, vec![10, -20, 30, -40], noise, 2, None);
    let proof = record.prove();
    let instance = record.instance();
    record.verify(&proof).unwrap();

    let rejected = |instance: Instance, what: &str| {
        assert!(selection::verify(&instance, &proof).is_err(), "{what}");
    };
    rejected(Instance { context: [10; 32], ..instance.clone() }, "context");
    rejected(Instance { query: &[10, -20, 30, -41], ..instance.clone() }, "query");
    rejected(Instance { noise: &[10, -400, 901, 33, 5], ..instance.clone() }, "noise");
    rejected(Instance { top_k: 3, ..instance.clone() }, "K");
    rejected(Instance { squared_norm: SQUARED_NORM - 1, ..instance.clone() }, "B²");
    rejected(Instance { allowed: Some(&[0, 1, 2, 3]), ..instance.clone() }, "allowed");
    let other = Record::honest(&index, record.query.clone(), record.noise.clone(), 2, None);
    rejected(Instance { selection: other.selection, ..instance.clone() }, "selection");
    let mut swapped = index.commitments.clone();
    swapped.rotate_left(32);
    rejected(Instance { commitments: &swapped, ..instance }, "commitments");
}

#[test]
fn statements_out_of_range_are_rejected() {
    let mut random = Random(22);
    let index = Index::random(3, 2, &mut random);
    let record = Record::honest(&index, vec![3, 4], vec![0, 1, 2], 1, None);
    let proof = record.prove();
    let instance = record.instance();
    let rejected = |instance: Instance| {
        assert!(matches!(selection::verify(&instance, &proof), Err(Error::Rejected(_))));
    };
    rejected(Instance { top_k: 0, ..instance.clone() });
    rejected(Instance { top_k: 1 << 32, ..instance.clone() });
    rejected(Instance { rows: 0, ..instance.clone() });
    rejected(Instance { rows: 4, ..instance.clone() });
    rejected(Instance { noise: &[0, 1], ..instance.clone() });
    rejected(Instance { query: &[], ..instance.clone() });
    rejected(Instance { query: &[127, 1], ..instance.clone() });
    rejected(Instance { query: &[i16::MIN, i16::MIN], ..instance.clone() });
    rejected(Instance { squared_norm: 0, ..instance.clone() });
    rejected(Instance { squared_norm: 1 << 14, ..instance.clone() });
    rejected(Instance { commitments: &index.commitments[..95], ..instance });
}

/// What is beyond the N-th entry is read by nothing: only the length can refuse it.
#[test]
fn lists_that_are_too_long_are_rejected() {
    let mut random = Random(23);
    let index = Index::random(5, 4, &mut random);
    let record = Record::honest(&index, random.vector(4), vec![10, -400, 900, 33, 5], 2, None);
    let proof = record.prove();
    let instance = record.instance();
    selection::verify(&instance, &proof).unwrap();
    let commitments = [&index.commitments[..], &index.commitments[..32]].concat();
    let longer = Instance { commitments: &commitments, ..instance.clone() };
    assert!(selection::verify(&longer, &proof).is_err(), "commitments");
    let noise = [instance.noise, &[7]].concat();
    let longer = Instance { noise: &noise, ..instance.clone() };
    assert!(selection::verify(&longer, &proof).is_err(), "noise");
}

#[test]
fn a_commitment_outside_u_need_not_decode() {
    let mut random = Random(23);
    let mut index = Index::random(3, 2, &mut random);
    index.commitments[64..].fill(0xff);
    let noise = vec![0, 0, -5 * MARGIN];
    let record = Record::honest(&index, vec![3, 4], noise, 1, None);
    record.verify(&record.prove()).unwrap();
}

#[test]
fn a_batch_names_the_rejected_records() {
    let mut random = Random(24);
    let index = Index::random(8, 5, &mut random);
    let records: Vec<Record> = (0..70)
        .map(|_| {
            let noise = noise(8, 30_000, &mut random);
            Record::honest(&index, random.vector(5), noise, 3, None)
        })
        .collect();
    let mut proofs: Vec<Vec<u8>> = records.iter().map(Record::prove).collect();
    let check = |proofs: &[Vec<u8>]| {
        let batch: Vec<(Instance, &[u8])> = records
            .iter()
            .zip(proofs)
            .map(|(record, proof)| (record.instance(), proof.as_slice()))
            .collect();
        selection::verify_batch(&batch, &Silent)
    };
    check(&proofs).unwrap();
    check(&[]).unwrap();
    proofs[2][40] ^= 1;
    proofs[66].push(0);
    let Err(BatchError::Rejected(failed)) = check(&proofs) else { panic!("accepted") };
    assert_eq!(failed.iter().map(|(index, _)| *index).collect::<Vec<_>>(), [2, 66]);
}

#[test]
fn two_proofs_of_one_record_share_no_element() {
    let mut random = Random(25);
    let index = Index::random(9, 4, &mut random);
    let record = Record::honest(&index, random.vector(4), noise(9, 9_000, &mut random), 3, None);
    let (first, second) = (record.prove(), record.prove());
    assert!(first.chunks(32).zip(second.chunks(32)).all(|(a, b)| a != b));
}

#[test]
fn the_length_of_a_proof_depends_on_public_data_only() {
    let mut random = Random(26);
    let (query, noise) = (random.vector(4), noise(9, 9_000, &mut random));
    let lengths: Vec<usize> = (0..3)
        .map(|_| {
            let index = Index::random(9, 4, &mut random);
            Record::honest(&index, query.clone(), noise.clone(), 3, None).prove().len()
        })
        .collect();
    assert!(lengths.iter().all(|length| *length == lengths[0]));
    // 32 (48 + 3m + 2k) with u = 9, m = 4, k = ceil(log2(u + d + 3m + 8)) = 6.
    assert_eq!(lengths[0], 32 * (48 + 12 + 12));
}

#[test]
fn the_mechanism_orders_by_noised_score() {
    let mut random = Random(27);
    let index = Index::random(9, 4, &mut random);
    let (query, noise) = (random.vector(4), noise(9, 90_000, &mut random));
    let values = noised(&index, &query, &noise);
    let selected = mechanism(&index, &query, &noise, 4, None);
    let least = selected.iter().map(|i| values[*i as usize]).min().unwrap();
    let outside = (0..9).filter(|i| !selected.contains(i)).map(|i| values[i as usize]);
    assert!(outside.max().unwrap() < least);
}
