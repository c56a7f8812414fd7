//! Changed budget arguments: none that differs from the honest ones is accepted.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use ragaudit_adversary::cases::{Verdict, judge};
use ragaudit_adversary::charge_cases::BudgetCase;
use ragaudit_adversary::honest_cases::honest_budgets;
use ragaudit_adversary::mutation::{Choices, mutate};

static HONEST: LazyLock<Vec<BudgetCase>> = LazyLock::new(honest_budgets);

fuzz_target!(|data: &[u8]| {
    let changed = mutate(&HONEST, &mut Choices::new(data));
    assert_ne!(judge(&HONEST, &changed), Verdict::Wrong);
});
