//! Charge proofs for statements of any size: decoded and encoded they are the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ragaudit_arguments::charge::proof::ChargeProof;
use ragaudit_arguments::charge::statement::Shape;
use ragaudit_arguments::opening::message_length;

fuzz_target!(|data: &[u8]| {
    let [rows, dimension, entries, fit, proof @ ..] = data else { return };
    let size = |byte: &u8| 1 + usize::from(*byte);
    // Wc for rows of 8 and of 13 bits.
    let bits = if fit & 2 == 2 { 25 } else { 15 };
    let (rows, dimension, entries) = (size(rows), size(dimension), size(&(entries & 15)));
    let shape = Shape { rows, dimension, entries, bits };
    let mut proof = proof.to_vec();
    if fit & 1 == 1 {
        // The right length, so that the elements are reached.
        let messages: usize = shape.degrees().iter().sum();
        let fixed = entries * (bits + 1) + 2 * bits + 10;
        proof.resize(32 * (fixed + messages + message_length(shape.opened())), 0);
    }
    if let Ok(decoded) = ChargeProof::decode(&proof, &shape) {
        assert_eq!(decoded.encode(), proof);
    }
});
