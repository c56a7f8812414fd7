//! Charges that are not the due ones, and the rules of the charge argument that keep them out.
#![allow(clippy::unwrap_used)]

use ragaudit_adversary::charge::{BITS, Charge, Name, Told};
use ragaudit_arguments::Error;
use ragaudit_arguments::four_squares::complete_rows;

const DUE: [i64; 2] = [1, 0];
const NONE: [i64; 2] = [0, 0];
const OTHER: [i64; 2] = [0, 1];
const BOTH: [i64; 2] = [1, 1];
/// Places in the opening: A_0, A_1, G_0 .. G_4, then these.
const CHARGE_M: usize = 7;

/// One entry: scores 20 and 10 with tau = 15, so that row 0 is relevant and row 1 is not.
fn telling(charged: [i64; 2], exhausted: [i64; 2]) -> Charge {
    let rows = complete_rows(&[2i8, 1], 1, 127 * 127).unwrap();
    let entry = Told {
        query: vec![10],
        threshold: 15,
        allowed: None,
        committed: [charged.to_vec(), NONE.to_vec(), exhausted.to_vec()],
        distances: Vec::new(),
        claimed: Vec::new(),
    };
    let rows = rows.chunks(5).map(|row| row.iter().map(|x| i64::from(*x)).collect()).collect();
    let (stray, entries) = (Vec::new(), vec![entry]);
    Charge { rows, uses: 1, entries, shift: 0, stray, masked: true }.measured()
}

fn changed(mut charge: Charge, change: impl FnOnce(&mut Told)) -> Charge {
    change(&mut charge.entries[0]);
    charge
}

fn assert_refused(charge: &Charge) {
    let equation = "charge/v1: proof: the verification equation does not hold";
    assert_eq!(charge.check(), Err(Error::Rejected(equation.into())), "{charge:?}");
}

#[test]
fn the_truth_is_accepted() {
    telling(DUE, NONE).check().unwrap();
    let filtered = |entry: &mut Told| entry.allowed = Some(vec![1]);
    changed(telling(NONE, NONE), filtered).measured().check().unwrap();
    let nothing_passes = |entry: &mut Told| entry.allowed = Some(vec![]);
    changed(telling(NONE, NONE), nothing_passes).measured().check().unwrap();
    let spent = |entry: &mut Told| entry.committed[1] = BOTH.to_vec();
    changed(telling(NONE, DUE), spent).check().unwrap();
    // A row at the threshold is not above it; at tau = B² none is.
    for (threshold, due) in [(10, DUE), (20, NONE), (16129, NONE), (0, BOTH)] {
        let at = |entry: &mut Told| entry.threshold = threshold;
        changed(telling(due, NONE), at).measured().check().unwrap();
        let other = if due == NONE { DUE } else { NONE };
        assert_refused(&changed(telling(other, NONE), at).measured());
    }
}

/// One entry, and as many as leave no row between the last one and the mask row, or one.
#[test]
fn a_group_with_one_false_entry_is_rejected_at_every_size() {
    for entries in [1, 2, 3, 4, 7, 8] {
        let mut group = telling(NONE, NONE);
        group.uses = 9;
        group.entries = vec![telling(DUE, NONE).entries.remove(0); entries];
        group.check().unwrap();
        for t in [0, entries - 1] {
            for charged in [NONE, BOTH, OTHER] {
                let mut group = group.clone();
                group.entries[t] = telling(charged, NONE).entries.remove(0);
                assert_refused(&group);
            }
        }
    }
}

#[test]
fn a_distance_that_is_negative_is_rejected() {
    for charged in [NONE, BOTH, OTHER] {
        assert_refused(&telling(charged, NONE));
    }
}

#[test]
fn a_charge_without_its_distance_is_rejected() {
    for charged in [NONE, BOTH, OTHER] {
        let nothing = |entry: &mut Told| entry.distances = vec![0, 0];
        assert_refused(&changed(telling(charged, NONE), nothing));
    }
}

#[test]
fn a_live_row_called_exhausted_is_rejected() {
    assert_refused(&telling(NONE, DUE));
}

#[test]
fn a_row_that_the_filter_drops_is_not_charged() {
    let filtered = |entry: &mut Told| entry.allowed = Some(vec![1]);
    assert_refused(&changed(telling(DUE, NONE), filtered).measured());
}

#[test]
fn a_shift_of_every_score_in_the_mask_row_is_rejected() {
    for (shift, charged) in [(10, BOTH), (-10, NONE)] {
        let stray = vec![(Name::DifferenceMask, CHARGE_M, shift)];
        let hidden = Charge { shift, stray, masked: false, ..telling(charged, NONE) };
        assert_refused(&hidden.measured());
    }
}

#[test]
fn a_charge_hidden_among_the_rows_is_rejected() {
    let mut hidden = changed(telling(DUE, NONE), |entry| {
        entry.committed[0] = vec![0, -1];
        entry.claimed = vec![(0, DUE.to_vec())];
    });
    hidden.stray = vec![(Name::Charge(0), CHARGE_M, 1)];
    assert_refused(&hidden);
}

#[test]
fn a_column_that_makes_up_for_another_is_rejected() {
    assert_refused(&changed(telling(DUE, NONE), |entry| {
        entry.committed = [NONE.to_vec(), NONE.to_vec(), DUE.to_vec()];
        entry.claimed = vec![(0, DUE.to_vec()), (2, NONE.to_vec())];
    }));
}

/// With three rows, column 3 is a pad: a value there has no generator to be opened on.
#[test]
fn values_in_the_pads_are_rejected() {
    let mut three = telling(DUE, NONE);
    three.rows.push(three.rows[1].clone());
    for column in &mut three.entries[0].committed {
        column.push(0);
    }
    let three = three.measured();
    three.check().unwrap();
    for table in [0, 1, 2, 3, 2 + BITS] {
        assert_refused(&changed(three.clone(), |entry| {
            let digit = |k: usize| entry.distances.iter().map(|value| value >> k & 1).collect();
            let mut padded =
                entry.committed.get(table).cloned().unwrap_or_else(|| digit(table - 3));
            padded.push(1);
            entry.claimed = vec![(table, padded)];
        }));
    }
}

/// Junk at places of A, G, chg/M and chg/R in any commitment, beside a false charge that is told
/// as it is or as the due one.
#[test]
fn junk_in_no_commitment_makes_a_false_charge_true() {
    let due = telling(DUE, NONE).entries[0].distances.clone();
    let mut names = vec![Name::Charge(0), Name::Before(0), Name::DifferenceMask, Name::Mask];
    names.extend([Name::Row(0), Name::Row(1), Name::Column(0, 0), Name::Column(0, BITS)]);
    names.extend([0, 1, 2, 3, 2 + BITS].map(Name::MaskRow));
    for name in names {
        // Another A-part of a table, or another row, is another statement.
        let places = match name {
            Name::Charge(_) | Name::Before(_) | Name::Column(..) => vec![2, 6, 7, 8, 10],
            Name::Row(_) => vec![0, 1, 7, 8, 10],
            _ => vec![0, 1, 2, 6, 7, 8, 10],
        };
        for place in places {
            for charged in [NONE, BOTH] {
                let stray = vec![(name, place, 1)];
                let told = Charge { stray, ..telling(charged, NONE) };
                let as_due = changed(told.clone(), |entry| {
                    let digit = |k: usize| due.iter().map(|value| value >> k & 1).collect();
                    entry.claimed = (0..BITS).map(|k| (3 + k, digit(k))).collect();
                    entry.claimed.push((0, DUE.to_vec()));
                });
                assert!(told.check().is_err() && as_due.check().is_err(), "{name:?} {place}");
            }
        }
    }
}

/// What was charged before is the sum that the verifier computes, not what is said of it.
#[test]
fn uses_that_nobody_made_spend_no_row() {
    assert_refused(&changed(telling(NONE, DUE), |entry| {
        entry.claimed = vec![(1, DUE.to_vec())];
    }));
}
