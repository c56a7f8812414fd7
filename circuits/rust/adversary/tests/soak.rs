//! A few statements of the soak (examples/soak.rs).
#![allow(clippy::unwrap_used)]

use ragaudit_adversary::soak::Soak;

#[test]
fn random_statements_are_judged_rightly() {
    let mut soak = Soak::new();
    (0..30).for_each(|seed| soak.check(seed).unwrap());
    let tally = soak.finish();
    assert_eq!(tally.wrong, [""; 0]);
    assert_eq!((tally.statements, tally.accepted), (30, 30));
    assert!(tally.other_selections > 20 && tally.lies > 5 && tally.mutations > 30);
    assert_eq!((tally.indexes, tally.false_indexes), (1, 1));
    assert!(tally.windows == 6 && tally.other_charges > 2 && tally.overdrawn > 2);
}
