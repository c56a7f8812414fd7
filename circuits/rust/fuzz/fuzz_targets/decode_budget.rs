//! Budget proofs for statements of any size: decoded and encoded they are the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ragaudit_arguments::budget::proof::BudgetProof;
use ragaudit_arguments::budget::statement::Shape;
use ragaudit_arguments::opening::message_length;

fuzz_target!(|data: &[u8]| {
    let [rows, entries, uses, fit, proof @ ..] = data else { return };
    let size = |byte: &u8| 1 + usize::from(*byte);
    let shape = Shape { rows: size(rows), entries: size(entries), uses: size(uses) };
    let mut proof = proof.to_vec();
    if fit & 1 == 1 {
        // The right length, so that the elements are reached.
        let messages: usize = shape.degrees().iter().sum();
        let opening = message_length(shape.opened());
        proof.resize(32 * (shape.uses + 6 + messages + opening), 0);
    }
    if let Ok(decoded) = BudgetProof::decode(&proof, &shape) {
        assert_eq!(decoded.encode(), proof);
    }
});
