//! Selection proofs for statements of any size: decoded and encoded they are the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ragaudit_arguments::selection::proof::SelectionProof;
use ragaudit_arguments::selection::relation::{Relation, Ties};
use ragaudit_arguments::selection::statement::{Threshold, UncertainRow};
use ragaudit_arguments::SQUARED_NORM;

fuzz_target!(|data: &[u8]| {
    let [uncertain, dimension, fit, proof @ ..] = data else { return };
    let row = |position| UncertainRow { position, noise: 0 };
    let uncertain = (0..=u64::from(*uncertain)).map(row).collect();
    let squared_norm = if fit & 2 == 2 { 4095 * 4095 } else { SQUARED_NORM };
    let Some(relation) = Relation::new(squared_norm, Ties::Dropped) else { return };
    let threshold = Threshold { relation, zeta: 0, certain: Vec::new(), uncertain };
    let dimension = 1 + usize::from(*dimension);
    let mut proof = proof.to_vec();
    if fit & 1 == 1 {
        // The right length, so that the elements are reached.
        let variables = threshold.variables();
        let rounds = threshold.opened(dimension).next_power_of_two().trailing_zeros() as usize;
        let fixed = 16 + 2 * relation.distance_bits;
        proof.resize(32 * (fixed + 3 * variables + 2 * rounds), 0);
    }
    if let Ok(decoded) = SelectionProof::decode(&proof, &threshold, dimension) {
        assert_eq!(decoded.encode(), proof);
    }
});
