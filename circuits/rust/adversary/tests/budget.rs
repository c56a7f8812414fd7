//! Rows that are charged too often, and the rules of the budget argument that keep them out.
#![allow(clippy::unwrap_used)]

use ragaudit_adversary::budget::{Budget, Name, Rule};
use ragaudit_arguments::Error;

/// A false budget is refused, whether its prover reckons with all rules or lacks one.
fn assert_refused(budget: &Budget) {
    for without in [None, Some(Rule::Bits), Some(Rule::Vectors)] {
        let budget = Budget { without, ..budget.clone() };
        let result = budget.check();
        let equation = "budget/v1: proof: the verification equation does not hold";
        assert_eq!(result, Err(Error::Rejected(equation.into())), "{budget:?}");
    }
}

#[test]
fn the_truth_is_accepted() {
    for rows in 1..=3 {
        for (entries, uses) in [(1, 1), (2, 1), (2, 2), (4, 3)] {
            let charge = |t: usize| (0..rows).map(|i| i64::from(t < uses && i != t)).collect();
            Budget::honest(rows, uses, (0..entries).map(charge).collect()).check().unwrap();
        }
    }
}

#[test]
fn a_charge_that_is_no_bit_is_rejected() {
    // A charge of 2; one that gives budget back; a vector of 2 beside three uses.
    let ones = || vec![vec![1, 0], vec![1, 0]];
    assert_refused(&Budget::committing(2, vec![vec![2, 0]], ones()));
    assert_refused(&Budget::committing(
        2,
        vec![vec![1, 0], vec![1, 0], vec![1, 0], vec![-1, 0]],
        ones(),
    ));
    assert_refused(&Budget::committing(
        2,
        vec![vec![1, 0], vec![1, 0], vec![1, 1]],
        vec![vec![2, 1], vec![1, 0]],
    ));
}

#[test]
fn vectors_of_other_charges_are_rejected() {
    assert_refused(&Budget::committing(2, vec![vec![1, 0], vec![1, 0]], vec![vec![1, 0]]));
}

#[test]
fn a_vector_that_takes_every_use_is_rejected() {
    assert_refused(&Budget::committing(2, vec![vec![1, 0], vec![1, 1]], vec![vec![2, 1]]));
}

/// Every row of the table is claimed to be one less in column 0 than what is committed to.
fn shifted() -> Budget {
    let claimed = Some(vec![vec![0, 0], vec![0, 0], vec![1, 0]]);
    let charges = vec![vec![1, 0], vec![1, 0]];
    Budget { claimed, elsewhere: -1, ..Budget::committing(2, charges, vec![vec![2, 0]]) }
}

#[test]
fn a_shift_of_every_charge_in_the_mask_row_is_rejected() {
    let stray = vec![(Name::MaskRow, 0, -1)];
    assert_refused(&Budget { stray, masked: false, ..shifted() });
}

#[test]
fn a_shift_of_every_charge_in_the_mask_is_rejected() {
    assert_refused(&Budget { stray: vec![(Name::Mask, 0, -1)], ..shifted() });
}

#[test]
fn a_charge_hidden_in_the_mask_is_rejected() {
    // bud/R_0 stands after A_0, A_1; its form is 1 in every column.
    assert_refused(&Budget {
        claimed: Some(vec![vec![1, 0], vec![1, 0]]),
        stray: vec![(Name::Charge(0), 2, -1), (Name::Uses(0), 2, -1)],
        ..Budget::committing(2, vec![vec![2, 1]], vec![vec![2, 1]])
    });
}

/// No claim speaks of columns from N on, of rows after the vectors, or of the mask row; what is
/// said to be there has no generator to be opened on, and moves no claim.
#[test]
fn values_in_the_pads_are_rejected() {
    // Three rows, so that column 3 is a pad; as many entries as leave row pads, or none.
    for entries in [2, 3, 6] {
        let mut charges = vec![vec![0; 3]; entries];
        charges[0] = vec![1, 0, 1];
        let honest = Budget::honest(3, 1, charges.clone());
        let mut claimed: Vec<Vec<i64>> = charges;
        claimed.extend(honest.vectors.clone());
        for row in 0..claimed.len() {
            let mut padded = claimed.clone();
            padded[row].push(1);
            assert_refused(&Budget { claimed: Some(padded), ..honest.clone() });
        }
        assert_refused(&Budget { elsewhere: 1, ..honest });
    }
}

/// Two uses of row 0 with M = 1, told as they are or as one, with junk in any commitment at any
/// generator of the opening.
#[test]
fn junk_in_no_commitment_makes_a_false_budget_true() {
    let charges = vec![vec![1, 0], vec![1, 0]];
    let names =
        [Name::Charge(0), Name::Charge(1), Name::Uses(0), Name::MaskRow, Name::Mask, Name::Nonce];
    for name in names {
        // Another A-part of a B or a W is no junk but another budget.
        let first = if matches!(name, Name::Charge(_) | Name::Uses(_)) { 2 } else { 0 };
        for (place, junk) in (first..12).flat_map(|place| [(place, 1), (place, -1)]) {
            for claimed in [None, Some(vec![vec![1, 0], vec![0, 0], vec![1, 0]])] {
                let stray = vec![(name, place, junk)];
                let false_one = Budget::committing(2, charges.clone(), vec![vec![1, 0]]);
                assert!(
                    Budget { claimed, stray, ..false_one }.check().is_err(),
                    "{name:?} {place}"
                );
            }
        }
    }
}

/// Two entries and one vector over one row, each from -1 to 2: the three right ones pass.
#[test]
fn exactly_the_right_small_budgets_are_accepted() {
    let values = -1..=2;
    let triples = values.clone().flat_map(|first| {
        let values = values.clone();
        values.clone().flat_map(move |second| values.clone().map(move |w| (first, second, w)))
    });
    let passes = |(first, second, vector): &(i64, i64, i64)| {
        Budget::committing(1, vec![vec![*first], vec![*second]], vec![vec![*vector]])
            .check()
            .is_ok()
    };
    let accepted: Vec<(i64, i64, i64)> = triples.filter(passes).collect();
    assert_eq!(accepted, [(0, 0, 0), (0, 1, 1), (1, 0, 1)]);
}
