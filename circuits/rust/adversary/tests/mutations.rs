//! No change to an honest argument is accepted: what the fuzz targets do, from a fixed seed.
#![allow(clippy::unwrap_used)]

use ragaudit_adversary::cases::{Verdict, judge};
use ragaudit_adversary::honest::Random;
use ragaudit_adversary::honest_cases::{
    honest_budgets, honest_charges, honest_indexes, honest_selections, honest_selections_of_all,
};
use ragaudit_adversary::mutation::{Choices, Mutable, mutate};

/// Changes made one after the other; how many led back to an honest argument.
fn judge_changes<A: Mutable>(honest: &[A], count: usize, seed: u64) -> usize {
    let mut random = Random(seed);
    for (i, argument) in honest.iter().enumerate() {
        assert_eq!(judge(honest, argument), Verdict::Honest, "honest argument {i}");
    }
    let verdicts = (0..count).map(|case| {
        let bytes: Vec<u8> = (0..40).flat_map(|_| random.next().to_le_bytes()).collect();
        let verdict = judge(honest, &mutate(honest, &mut Choices::new(&bytes)));
        assert_ne!(verdict, Verdict::Wrong, "case {case}: {}", hex(&bytes));
        verdict
    });
    verdicts.filter(|verdict| *verdict == Verdict::Honest).count()
}

/// An input of the fuzz target.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn no_changed_selection_is_accepted() {
    let unchanged = judge_changes(&honest_selections(), 5_000, 71);
    // Some changes change nothing, or what does not matter: noise far from the boundary.
    assert!((1..500).contains(&unchanged), "{unchanged}");
}

#[test]
fn no_changed_selection_of_all_is_accepted() {
    let unchanged = judge_changes(&honest_selections_of_all(), 5_000, 72);
    assert!((1..1_000).contains(&unchanged), "{unchanged}");
}

#[test]
fn no_changed_index_is_accepted() {
    judge_changes(&honest_indexes(), 400, 73);
}

#[test]
fn no_changed_budget_is_accepted() {
    judge_changes(&honest_budgets(), 2_000, 74);
}

#[test]
fn no_changed_charge_is_accepted() {
    let unchanged = judge_changes(&honest_charges(), 2_000, 75);
    // A filter that all rows pass is none.
    assert!((1..400).contains(&unchanged), "{unchanged}");
}
