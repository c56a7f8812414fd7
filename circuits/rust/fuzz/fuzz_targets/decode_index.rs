//! Index proofs for statements of any size: decoded and encoded they are the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ragaudit_arguments::SQUARED_NORM;
use ragaudit_arguments::index::Statement;
use ragaudit_arguments::index::proof::IndexProof;

fuzz_target!(|data: &[u8]| {
    let [low, high, dimension, fit, proof @ ..] = data else { return };
    let rows = 1 + usize::from(u16::from_le_bytes([*low, *high & 15]));
    let commitments = vec![0; 32 * rows];
    let dimension = 1 + u64::from(*dimension);
    let statement = Statement::new([0; 32], rows as u64, dimension, SQUARED_NORM, &commitments)
        .expect("sizes in range");
    let mut proof = proof.to_vec();
    if fit & 1 == 1 {
        let messages: usize = statement.degrees().iter().sum();
        let opened = statement.generators().len();
        let rounds = opened.next_power_of_two().trailing_zeros() as usize;
        proof.resize(32 * (35 + messages + 2 * rounds), 0);
    }
    if let Ok(decoded) = IndexProof::decode(&proof, &statement) {
        assert_eq!(decoded.encode(), proof);
    }
});
