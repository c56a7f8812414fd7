//! Public input of any lengths and values: refused, or a statement that keeps its promises; no
//! proof of any bytes is accepted for it, alone or in a batch, but where there is nothing to prove.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ragaudit_adversary::mutation::Choices;
use ragaudit_arguments::progress::Silent;
use ragaudit_arguments::selection::statement::Case;
use ragaudit_arguments::selection::{self, Instance, Statement, Ties};
use ragaudit_arguments::{SQUARED_NORM, budget, charge, index};

fn integer(choices: &mut Choices) -> i64 {
    let bytes: [u8; 8] = std::array::from_fn(|_| choices.byte());
    match choices.below(4) {
        0 => i64::from_le_bytes(bytes),
        1 => i64::from(bytes[0]),
        2 => i64::from(i16::from_le_bytes([bytes[0], bytes[1]])),
        _ => [0, 1 << 32, (1 << 32) - 1, i64::MAX, i64::MIN, 4 * 16129][choices.below(6)],
    }
}

/// Mostly `value`, which is right.
fn near(value: u64, choices: &mut Choices) -> u64 {
    if choices.byte() < 240 { value } else { integer(choices) as u64 }
}

fuzz_target!(|data: &[u8]| {
    let choices = &mut Choices::new(data);
    let count = choices.below(12);
    let noise: Vec<i64> = (0..count).map(|_| integer(choices)).collect();
    let query: Vec<i16> = (0..choices.below(6)).map(|_| choices.byte() as i8 as i16).collect();
    let allowed: Vec<u64> =
        (0..choices.below(8)).map(|_| near(choices.below(12) as u64, choices)).collect();
    let mut commitments = vec![0; near(32 * count as u64, choices).min(4096) as usize];
    commitments.iter_mut().step_by(32).for_each(|byte| *byte = choices.byte());
    let instance = Instance {
        context: choices.element(),
        rows: near(count as u64, choices),
        commitments: &commitments,
        query: &query,
        noise: &noise,
        top_k: near(1 + choices.below(6) as u64, choices),
        allowed: (choices.byte() & 1 == 1).then_some(&allowed[..]),
        squared_norm: near(u64::from(SQUARED_NORM), choices) as u32,
        ties: if choices.byte() & 1 == 1 { Ties::Kept } else { Ties::Dropped },
        selection: if choices.byte() & 1 == 1 { choices.element() } else { [0; 32] },
    };
    let mut proof = vec![0; if choices.byte() & 1 == 1 { 64 } else { 32 * choices.below(160) }];
    proof.iter_mut().step_by(16).for_each(|byte| *byte = choices.byte());

    let statement = Statement::new(&instance);
    let mut nothing = false;
    if let Ok(statement) = &statement {
        assert!(
            statement.rows == noise.len() as u64 && statement.commitments.len() == 32 * noise.len()
        );
        match &statement.case {
            Case::All(positions) => {
                // B_sel is nothing, blinded by nothing: true, and 64 zero bytes prove it.
                nothing = positions.is_empty() && instance.selection == [0; 32] && proof == [0; 64];
                assert!(positions.is_sorted() && positions.len() as u64 <= statement.top_k);
            }
            Case::Threshold(threshold) => {
                let (certain, uncertain) = (&threshold.certain, &threshold.uncertain);
                assert!(certain.is_sorted() && uncertain.is_sorted_by_key(|row| row.position));
                assert!(certain.len() as u64 <= statement.top_k && !uncertain.is_empty());
                assert!((certain.len() + uncertain.len()) as u64 >= statement.top_k);
            }
        }
    }
    assert_eq!(selection::verify(&instance, &proof).is_ok(), nothing);
    let batch = [(instance.clone(), &proof[..]), (instance.clone(), &proof[..])];
    assert_eq!(selection::verify_batch(&batch, &Silent).is_ok(), nothing);
    let statement = index::Statement::new(
        instance.context,
        instance.rows,
        query.len() as u64,
        instance.squared_norm,
        &commitments,
    );
    if let Ok(statement) = statement {
        assert!(index::verify(&statement, &proof, &Silent).is_err());
    }
    let uses = near(1 + choices.below(3) as u64, choices);
    let budget = budget::Statement {
        context: instance.context,
        rows: instance.rows,
        uses,
        charges: &commitments,
        squared_norm: instance.squared_norm,
    };
    // Points that are all the identity charge nothing, blinded by nothing; zeros prove it.
    let blank = commitments.iter().all(|byte| *byte == 0);
    if budget::verify(&budget, &proof, &Silent).is_ok() {
        assert!(blank);
    }
    let entry = |_| charge::Entry {
        context: choices.element(),
        query: &query,
        threshold: integer(choices),
        allowed: instance.allowed,
        before: [0; 32],
        charge: instance.selection,
    };
    let entries: Vec<charge::Entry> = (0..3).map(entry).collect();
    let squared_norm = instance.squared_norm;
    let charges =
        charge::Statement { uses, commitments: &commitments, entries: &entries, squared_norm };
    if charge::verify(&charges, &proof, &Silent).is_ok() {
        assert!(blank && instance.selection == [0; 32]);
    }
});
