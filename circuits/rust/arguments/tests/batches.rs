//! Verification of many records at once against verification one by one.
#![allow(clippy::unwrap_used)]

use curve25519_dalek::scalar::Scalar;
use ragaudit_adversary::cases::{Argument, SelectionCase};
use ragaudit_adversary::honest::{Index, Random, Record};
use ragaudit_arguments::progress::Silent;
use ragaudit_arguments::selection::verifier::BatchError;
use ragaudit_arguments::selection::{self, Instance};

/// Indices of the records that the batch names; none if it is accepted.
fn rejected(batch: &[(Instance, &[u8])]) -> Vec<usize> {
    match selection::verify_batch(batch, &Silent) {
        Ok(()) => Vec::new(),
        Err(BatchError::Rejected(failed)) => {
            assert!(!failed.is_empty());
            failed.iter().map(|(index, _)| *index).collect()
        }
        Err(BatchError::Stopped(error)) => panic!("stopped: {error}"),
    }
}

/// Records of one commitments slice each, as far as they have one index.
struct Batch<'a> {
    records: Vec<Record<'a>>,
    proofs: Vec<Vec<u8>>,
}

impl<'a> Batch<'a> {
    fn new(records: Vec<Record<'a>>) -> Self {
        let proofs = records.iter().map(Record::prove).collect();
        Batch { records, proofs }
    }

    fn check(&self, proofs: &[Vec<u8>]) -> Vec<usize> {
        let instances = self.records.iter().map(Record::instance);
        rejected(&instances.zip(proofs.iter().map(Vec::as_slice)).collect::<Vec<_>>())
    }

    /// Breaks the proof of each record of `broken` in its own way, and compares.
    fn assert_named(&self, broken: &[usize]) {
        let mut proofs = self.proofs.clone();
        for record in broken {
            break_proof(&mut proofs[*record], *record);
        }
        let single: Vec<usize> =
            (0..proofs.len()).filter(|i| self.records[*i].verify(&proofs[*i]).is_err()).collect();
        assert_eq!(single, broken);
        assert_eq!(self.check(&proofs), broken);
    }
}

/// A proof that is refused at once, or only by its equation.
fn break_proof(proof: &mut Vec<u8>, way: usize) {
    let last = proof.len() - 32;
    match way % 3 {
        0 => {
            // Another last scalar, which nothing absorbs.
            let bytes: [u8; 32] = proof[last..].try_into().unwrap();
            let scalar = Scalar::from_canonical_bytes(bytes).unwrap() + Scalar::ONE;
            proof[last..].copy_from_slice(&scalar.to_bytes());
        }
        1 => proof.push(0),
        _ => proof[last..].fill(0xff),
    }
}

/// Records that use the index in every way: all rows uncertain, few of them, none.
fn records<'a>(index: &'a Index, random: &mut Random) -> Vec<Record<'a>> {
    let count = index.count();
    let mut record = |noise: Vec<i64>, top_k, allowed| {
        Record::honest(index, random.vector(index.dimension), noise, top_k, allowed)
    };
    let spread = (0..count as i64).map(|i| i * 200_000).collect();
    vec![
        record(vec![0; count], 2, None),
        record(spread, 2, None),
        record(vec![0; count], count as u64, None),
        record(vec![0; count], 1, Some(vec![count as u64 - 1, 0, 1])),
    ]
}

/// Indexes of different N in one batch, in both orders: position i is one point for all of them.
#[test]
fn records_of_several_indexes_are_judged_as_one_by_one() {
    let mut random = Random(51);
    let indexes = [3, 20, 90].map(|count| Index::random(count, 3, &mut random));
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [1, 2, 0]] {
        let chosen = order.iter().flat_map(|i| records(&indexes[*i], &mut random));
        let batch = Batch::new(chosen.collect());
        batch.assert_named(&[]);
        batch.assert_named(&[5]);
        batch.assert_named(&[0, 2, 7, 11]);
        batch.assert_named(&(0..12).collect::<Vec<_>>());
    }
}

/// A record of a large index that selects a wrong row far above the rows of a small one.
#[test]
fn a_position_beyond_another_index_is_checked() {
    let mut random = Random(52);
    let [small, large] = [4, 40].map(|count| Index::random(count, 2, &mut random));
    for reversed in [false, true] {
        let honest = |index| Record::honest(index, vec![1, 1], vec![0; 4], 1, None);
        let right = Record::honest(&large, vec![1, 1], vec![0; 40], 1, None);
        let wrong = if right.selected == [39] { 38 } else { 39 };
        let lie = Record::selecting(&large, vec![1, 1], vec![0; 40], 1, None, vec![wrong]);
        let mut records = vec![honest(&small), honest(&small), right, lie];
        if reversed {
            records.reverse();
        }
        let batch = Batch::new(records);
        assert_eq!(batch.check(&batch.proofs), [if reversed { 0 } else { 3 }]);
    }
}

#[test]
fn every_subset_of_bad_records_is_named() {
    let mut random = Random(53);
    let indexes = [6, 11].map(|count| Index::random(count, 2, &mut random));
    let mut chosen = records(&indexes[0], &mut random);
    chosen.truncate(3);
    chosen.extend(records(&indexes[1], &mut random).into_iter().take(2));
    let batch = Batch::new(chosen);
    for subset in 0..1u32 << 5 {
        let broken: Vec<usize> = (0..5).filter(|i| (subset >> i) & 1 == 1).collect();
        batch.assert_named(&broken);
    }
}

/// Two records whose equations are wrong by opposite terms: only weights of their own keep them
/// from cancelling.
#[test]
fn errors_that_cancel_without_weights_are_found() {
    let mut random = Random(54);
    let index = Index::random(5, 2, &mut random);
    let record = Record::honest(&index, vec![3, 4], vec![0; 5], 2, None);
    let all = Record::honest(&index, vec![3, 4], vec![0; 5], 5, None);
    for record in [record, all] {
        let proof = record.prove();
        let shifted = |by: Scalar| {
            let mut proof = proof.clone();
            let last = proof.len() - 32;
            let bytes: [u8; 32] = proof[last..].try_into().unwrap();
            let scalar = Scalar::from_canonical_bytes(bytes).unwrap() + by;
            proof[last..].copy_from_slice(&scalar.to_bytes());
            proof
        };
        // z2 (or z) times H is in the equation and in no challenge.
        let (plus, minus) = (shifted(Scalar::ONE), shifted(-Scalar::ONE));
        let pair = [(record.instance(), plus.as_slice()), (record.instance(), &minus)];
        assert_eq!(rejected(&pair), [0, 1]);
    }
}

#[test]
fn records_with_their_own_copies_of_an_index_are_judged_alike() {
    let mut random = Random(55);
    let index = Index::random(9, 2, &mut random);
    let cases: Vec<SelectionCase> = records(&index, &mut random)
        .iter()
        .map(|record| SelectionCase::new(record, record.prove()))
        .collect();
    let batch: Vec<_> = cases.iter().map(|case| (case.instance(), &case.proof[..])).collect();
    assert_eq!(rejected(&batch), []);
    let mut changed = cases.clone();
    // A commitment of U that is another point, and one that is none.
    changed[0].commitments.rotate_left(32);
    changed[3].commitments[..32].fill(0xff);
    let batch: Vec<_> = changed.iter().map(|case| (case.instance(), &case.proof[..])).collect();
    let single: Vec<usize> = (0..4).filter(|i| changed[*i].verify().is_err()).collect();
    assert_eq!(rejected(&batch), single);
    assert_eq!(single, [0, 3]);
}
