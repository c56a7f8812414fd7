//! Rows, blindings and positions of any lengths: refused, or committed to as they are.
#![no_main]

use curve25519_dalek::scalar::Scalar;
use libfuzzer_sys::fuzz_target;
use ragaudit_adversary::mutation::Choices;
use ragaudit_arguments::commitments::{blinding, commit_rows, commit_selection, reblind_rows};
use ragaudit_arguments::encoding::{decode_point, decode_scalar};
use ragaudit_arguments::entries::Entry;
use ragaudit_arguments::four_squares::complete_rows;
use ragaudit_arguments::generators::{self, List};
use ragaudit_arguments::multiscalar::public_sum;
use ragaudit_arguments::progress::Silent;
use ragaudit_arguments::scalars::from_integer;

fn blindings(count: usize, choices: &mut Choices) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..count).flat_map(|_| choices.element()).collect();
    if choices.byte() < 200 {
        // Canonical ones.
        bytes.iter_mut().skip(31).step_by(32).for_each(|byte| *byte &= 15);
    }
    if choices.byte() > 250 {
        bytes.pop();
    }
    bytes
}

/// Rows of these entries: completed to B², and committed to as they are.
fn check<E: Entry>(rows: &[E], width: usize, squared_norm: u32, old: &[u8], new: &[u8]) {
    let wide = |entry: &E| -> i64 { (*entry).into() };
    if let Ok(completed) = complete_rows(rows, width, squared_norm) {
        assert_eq!(completed.len(), rows.len() / width * (width + 4));
        for row in completed.chunks(width + 4) {
            let norm: i64 = row.iter().map(|entry| wide(entry).pow(2)).sum();
            assert_eq!(norm, i64::from(squared_norm));
        }
    }
    match commit_rows(rows, width, old, &Silent) {
        Ok(commitments) => {
            let mut points = generators::first(List::G, width);
            points.push(generators::point(List::H, 0));
            for (i, commitment) in commitments.chunks(32).enumerate() {
                let entries = rows[i * width..(i + 1) * width].iter();
                let mut scalars: Vec<Scalar> =
                    entries.map(|entry| from_integer(i128::from(wide(entry)))).collect();
                scalars.push(decode_scalar(&old[32 * i..][..32], "blinding").expect("canonical"));
                assert_eq!(commitment, public_sum(&scalars, &points).compress().as_bytes());
            }
            if let Ok(renewed) = reblind_rows(&commitments, old, new, &Silent) {
                assert_eq!(renewed, commit_rows(rows, width, new, &Silent).expect("as before"));
            }
        }
        Err(_) => {
            let canonical = old.chunks(32).all(|bytes| blinding(bytes, "blinding").is_ok());
            assert!(!canonical || width == 0 || rows.len() != old.len() / 32 * width);
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let choices = &mut Choices::new(data);
    let (count, width) = (choices.below(4), choices.below(12));
    let [old, new] = [blindings(count, choices), blindings(count, choices)];
    let entries = (count * width + choices.below(20).saturating_sub(18)).max(0);
    let rows: Vec<i8> = (0..entries).map(|_| choices.byte() as i8).collect();
    check(&rows, width, 16129, &old, &new);
    let shift = choices.below(9);
    let wide: Vec<i16> = rows
        .iter()
        .map(|entry| (i16::from(*entry) << shift).wrapping_add(choices.byte().into()))
        .collect();
    check(&wide, width, 4095 * 4095, &old, &new);
    // Any bytes as commitments.
    let any: Vec<u8> = (0..count).flat_map(|_| choices.element()).collect();
    if reblind_rows(&any, &old, &new, &Silent).is_ok() {
        assert!(any.chunks(32).all(|bytes| decode_point(bytes, "commitment").is_ok()));
    }
    let positions: Vec<u64> = (0..choices.below(6))
        .map(|_| if choices.byte() > 250 { u64::MAX } else { choices.below(300) as u64 })
        .collect();
    let mut distinct = positions.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let right = distinct.len() == positions.len() && !positions.contains(&u64::MAX);
    assert_eq!(commit_selection(&positions, &Scalar::ONE).is_ok(), right);
});
