//! Changed selection arguments: none that differs from the honest ones is accepted.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use ragaudit_adversary::cases::{SelectionCase, Verdict, judge};
use ragaudit_adversary::honest_cases::honest_selections;
use ragaudit_adversary::mutation::{Choices, mutate};

static HONEST: LazyLock<Vec<SelectionCase>> = LazyLock::new(honest_selections);

fuzz_target!(|data: &[u8]| {
    let changed = mutate(&HONEST, &mut Choices::new(data));
    assert_ne!(judge(&HONEST, &changed), Verdict::Wrong);
});
