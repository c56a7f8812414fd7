//! Attacks on the argument that keeps ties, each stopped by one check of the verifier.
#![allow(clippy::unwrap_used)]

use ragaudit_adversary::honest::{Index, Random, Record};
use ragaudit_adversary::strategies::{Lie, tell, tell_the_truth};
use ragaudit_arguments::Error;
use ragaudit_arguments::selection::Ties;

/// Records in which every row is uncertain: without noise and with it, with one tie and none.
fn records<'a>(index: &'a Index, random: &mut Random) -> Vec<Record<'a>> {
    let count = index.count();
    [0, 2, 9_000]
        .into_iter()
        .flat_map(|spread| [2, 4].map(|top_k| (spread, top_k)))
        .map(|(spread, top_k)| {
            let noise = (0..count).map(|_| random.between(-spread, spread)).collect();
            Record::honest(index, random.vector(6), noise, top_k, None).keeping_ties()
        })
        .collect()
}

fn assert_rejected(lie: Lie) {
    let mut random = Random(81);
    let index = Index::random(9, 6, &mut random);
    for record in records(&index, &mut random) {
        let (told, proof) = tell(lie, &record).unwrap().unwrap();
        assert_eq!(told.ties, Ties::Kept);
        let equation = Error::Rejected("proof: the verification equation does not hold".into());
        assert_eq!(told.verify(&proof), Err(equation));
    }
}

/// The prover of these attacks is as able as the honest one, also where rows tie.
#[test]
fn the_honest_strategy_is_accepted() {
    let mut random = Random(82);
    let mut rows = Index::random(9, 6, &mut random).rows;
    rows.copy_within(0..30, 30);
    let index = Index::from_rows(rows, 6);
    for record in records(&index, &mut random) {
        record.verify(&tell_the_truth(&record).unwrap().unwrap()).unwrap();
    }
}

/// theta keeps a threshold for every single row, hidden along A_U in C_t, out of v_Y.
#[test]
fn a_threshold_per_row_is_rejected() {
    assert_rejected(Lie::OwnThresholds);
}

/// (E2) keeps the difference between B_sel and the proven b out of D_m.
#[test]
fn a_selection_other_than_the_proven_one_is_rejected() {
    assert_rejected(Lie::OtherSelection);
}

/// c_(3+W): one row cannot count both as the tied one and as one beyond K.
#[test]
fn a_row_tied_twice_is_rejected() {
    assert_rejected(Lie::TiedTwice);
}

/// c_(4+W): a row beyond K has y = tau, so a better one cannot make room for the next.
#[test]
fn a_tie_that_is_none_is_rejected() {
    assert_rejected(Lie::NoTie);
}

/// sum b3 = 1: some selected row has y = tau that is not beyond K.
#[test]
fn a_threshold_without_its_row_is_rejected() {
    assert_rejected(Lie::NoThresholdRow);
}

/// chi: the mask row counts in neither sum.
#[test]
fn a_tie_on_the_mask_row_is_rejected() {
    assert_rejected(Lie::TieOnTheMaskRow);
}

/// f + sum (b - b4) = K: neither one row more nor one less than the truth.
#[test]
fn another_number_of_rows_is_rejected() {
    assert_rejected(Lie::TooFew);
    assert_rejected(Lie::TooMany);
}
