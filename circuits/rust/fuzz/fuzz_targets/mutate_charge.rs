//! Changed charge arguments: none that differs from the honest ones is accepted.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use ragaudit_adversary::cases::{Verdict, judge};
use ragaudit_adversary::charge_cases::ChargeCase;
use ragaudit_adversary::honest_cases::honest_charges;
use ragaudit_adversary::mutation::{Choices, mutate};

static HONEST: LazyLock<Vec<ChargeCase>> = LazyLock::new(honest_charges);

fuzz_target!(|data: &[u8]| {
    let changed = mutate(&HONEST, &mut Choices::new(data));
    assert_ne!(judge(&HONEST, &changed), Verdict::Wrong);
});
