//! The charge argument: known answers, honest proofs, false charges.
#![allow(clippy::unwrap_used)]

mod common;

use common::{array, bytes, concatenated, integers, load};
use ragaudit_adversary::honest::Random;
use ragaudit_adversary::honest_charges::Window;
use ragaudit_arguments::charge::{self, Entry, Secrets, Statement};
use ragaudit_arguments::charges::{Charges, running_sums};
use ragaudit_arguments::commitments::{blinding, commit_selection, random_scalars};
use ragaudit_arguments::four_squares::complete_rows;
use ragaudit_arguments::progress::{Progress, Silent};
use ragaudit_arguments::{Error, Result, SQUARED_NORM};
use serde_json::Value;

#[test]
fn proofs_are_judged_as_known() {
    let vectors = load("charge");
    let cases = vectors["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 31);
    for case in cases {
        let list: &Vec<Value> = case["entries"].as_array().unwrap();
        let queries: Vec<Vec<i16>> = list.iter().map(|entry| integers(&entry["e"])).collect();
        let allowed =
            |entry: &Value| entry["allowed"].as_array().map(|_| integers(&entry["allowed"]));
        let allowed: Vec<Option<Vec<u64>>> = list.iter().map(allowed).collect();
        let entry = |(t, entry): (usize, &Value)| Entry {
            context: array(&entry["context"]),
            query: &queries[t],
            threshold: entry["tau"].as_i64().unwrap(),
            allowed: allowed[t].as_deref(),
            before: array(&entry["S"]),
            charge: array(&entry["B"]),
        };
        let entries: Vec<Entry> = list.iter().enumerate().map(entry).collect();
        let statement = Statement {
            uses: case["M"].as_u64().unwrap(),
            commitments: &concatenated(&case["C"]),
            entries: &entries,
            squared_norm: case["B2"].as_u64().unwrap() as u32,
        };
        let result = charge::verify(&statement, &bytes(&case["proof"]), &Silent);
        assert_eq!(result.is_ok(), case["expect"] == "accept", "{}: {result:?}", case["name"]);
        if let Err(error) = result {
            assert!(matches!(error, Error::Rejected(_)), "{}: {error}", case["name"]);
        }
    }
}

#[test]
fn honest_charges_are_accepted_at_every_size() {
    let mut random = Random(77);
    for rows in [1, 2, 3, 7, 8, 9] {
        for (entries, uses) in [(1, 1), (2, 1), (3, 2), (7, 3), (8, 1)] {
            Window::random(rows, entries, uses, &mut random).check().unwrap();
        }
    }
    // More entries than a byte, and than two, have bits.
    for entries in [16, 31, 40] {
        Window::random(5, entries, 4, &mut random).check().unwrap();
    }
    // More rows than a task of the prover treats.
    Window::random(600, 3, 1, &mut random).check().unwrap();
}

#[test]
fn a_group_may_be_some_of_the_entries() {
    let mut window = Window::random(6, 9, 2, &mut Random(5));
    for numbers in [vec![0], vec![8], vec![3, 4], vec![1, 5, 8]] {
        window.numbers = numbers;
        window.check().unwrap();
    }
}

#[test]
fn wide_rows_are_charged_too() {
    let norm = 4095u32 * 4095;
    let rows = complete_rows(&[4000i16, 0, -4000, 0], 2, norm).unwrap();
    let row_blindings = random_scalars(2).unwrap();
    let committed =
        ragaudit_arguments::commitments::commit_rows(&rows, 6, &row_blindings, &Silent).unwrap();
    let (charged, blindings) = ([vec![0u64]], random_scalars(1).unwrap());
    let charge_point =
        commit_selection(&charged[0], &blinding(&blindings, "rho").unwrap()).unwrap();
    let entries = [Entry {
        context: [0; 32],
        query: &[4000, 0],
        threshold: 15_000_000,
        allowed: None,
        before: [0; 32],
        charge: charge_point,
    }];
    let statement =
        Statement { uses: 1, commitments: &committed, entries: &entries, squared_norm: norm };
    let charges = Charges::new(&charged, &blindings, 2).unwrap();
    let secrets = Secrets::new(&rows, 6, &row_blindings, &charges, &[0]).unwrap();
    let proof = charge::prove(&statement, &secrets, &Silent).unwrap();
    charge::verify(&statement, &proof, &Silent).unwrap();
}

#[test]
fn a_proof_has_the_length_of_the_specification() {
    let window = Window::random(9, 2, 1, &mut Random(2));
    // mx = 2, my = 4, n = 9 + 3 + 6 + 18 = 36, k = 6
    assert_eq!(window.prove().unwrap().len(), 32 * (2 * 16 + 30 + 13 + 18 + 12));
}

#[test]
fn other_charges_than_the_due_ones_are_rejected() {
    let mut random = Random(19);
    let mut tried = 0;
    for _ in 0..6 {
        let right = Window::random(5, 3, 1, &mut random);
        for t in 0..3 {
            for row in 0..5 {
                let charged = &right.charged[t];
                let mut changed = charged.clone();
                match charged.iter().position(|i| *i == row) {
                    Some(place) => drop(changed.remove(place)),
                    // A use more than M is the budget argument's to refuse.
                    None if right.charged.iter().flatten().any(|i| *i == row) => continue,
                    None => changed.push(row),
                }
                let mut window = right.clone();
                window.charged[t] = changed;
                window.numbers = vec![t];
                let error = window.check().unwrap_err().to_string();
                assert_eq!(error, "charge/v1: proof: the verification equation does not hold");
                tried += 1;
            }
        }
    }
    assert!(tried > 30);
}

#[test]
fn a_proof_holds_for_its_statement_only() {
    let window = Window::random(4, 2, 2, &mut Random(8));
    let proof = window.prove().unwrap();
    let entries = window.entries();
    let statement = window.statement(&entries);
    charge::verify(&statement, &proof, &Silent).unwrap();
    let query = [1i16, 2, 3];
    let first = entries[0];
    for changed in [
        Entry { context: [9; 32], ..first },
        Entry { query: &query, ..first },
        Entry { threshold: first.threshold + 1, ..first },
        Entry { allowed: Some(&[0, 3]), ..first },
        Entry { before: entries[1].charge, ..first },
        Entry { charge: entries[1].charge, ..first },
    ] {
        let changed = [changed, entries[1]];
        let other = Statement { entries: &changed, ..statement };
        assert!(matches!(charge::verify(&other, &proof, &Silent), Err(Error::Rejected(_))));
    }
    let swapped = [entries[1], entries[0]];
    let rotated = [&statement.commitments[32..], &statement.commitments[..32]].concat();
    for other in [
        Statement { uses: 3, ..statement },
        Statement { squared_norm: SQUARED_NORM - 1, ..statement },
        Statement { entries: &swapped, ..statement },
        Statement { entries: &entries[..1], ..statement },
        Statement { commitments: &rotated, ..statement },
    ] {
        assert!(matches!(charge::verify(&other, &proof, &Silent), Err(Error::Rejected(_))));
    }
    // A filter that every row passes is none.
    let same = [Entry { allowed: Some(&[0, 1, 2, 3]), ..first }, entries[1]];
    if first.allowed.is_none() {
        charge::verify(&Statement { entries: &same, ..statement }, &proof, &Silent).unwrap();
    }
}

#[test]
fn statements_out_of_range_are_rejected() {
    let window = Window::random(4, 2, 2, &mut Random(8));
    let entries = window.entries();
    let statement = window.statement(&entries);
    let entry = entries[0];
    let (long, short) = ([127i16, 1, 0], [1i16, 2]);
    let reason = |other: &Statement, reason: &str| {
        let error = charge::verify(other, &[], &Silent).unwrap_err();
        assert!(matches!(&error, Error::Rejected(_)), "{error}");
        assert!(error.to_string().contains(reason), "{error}");
    };
    for (changed, why) in [
        (Entry { query: &long, ..entry }, "entry 1: query: squared norm 16130"),
        (Entry { query: &short, ..entry }, "entry 1: query of 2 entries, expected 3"),
        (Entry { threshold: -1, ..entry }, "entry 1: tau = -1"),
        (Entry { threshold: 16130, ..entry }, "entry 1: tau = 16130"),
        (Entry { allowed: Some(&[1, 1]), ..entry }, "entry 1: allowed: positions do not rise"),
        (Entry { allowed: Some(&[4]), ..entry }, "entry 1: allowed: position not below N = 4"),
    ] {
        reason(&Statement { entries: &[entry, changed], ..statement }, why);
    }
    let empty = Entry { query: &[], ..entry };
    for (other, why) in [
        (Statement { uses: 0, ..statement }, "M = 0"),
        (Statement { uses: 65537, ..statement }, "M = 65537"),
        (Statement { squared_norm: 0, ..statement }, "B² = 0"),
        (Statement { squared_norm: 1 << 24, ..statement }, "B² = 16777216"),
        (Statement { commitments: &[], ..statement }, "commitments: 0 bytes"),
        (Statement { commitments: &[0; 33], ..statement }, "commitments: 33 bytes"),
        (Statement { entries: &[], ..statement }, "0 entries"),
        (Statement { entries: &vec![entry; 65537], ..statement }, "65537 entries"),
        (Statement { entries: &[empty], ..statement }, "entry 0: expected a query"),
    ] {
        reason(&other, why);
    }
}

#[test]
fn points_of_a_statement_that_are_none_are_named() {
    let window = Window::random(3, 1, 2, &mut Random(8));
    let proof = window.prove().unwrap();
    let entries = window.entries();
    let statement = window.statement(&entries);
    let named = |other: &Statement, name: &str| {
        let error = charge::verify(other, &proof, &Silent).unwrap_err().to_string();
        assert!(error.contains(&format!("{name}: not a canonical")), "{error}");
    };
    let entry = entries[0];
    named(&Statement { entries: &[Entry { before: [255; 32], ..entry }], ..statement }, "S_0");
    named(&Statement { entries: &[Entry { charge: [255; 32], ..entry }], ..statement }, "B_0");
    let commitments = [&statement.commitments[..64], &[255; 32]].concat();
    named(&Statement { commitments: &commitments, ..statement }, "C_2");
}

#[test]
fn elements_that_are_not_canonical_are_rejected_by_place() {
    let window = Window::random(3, 2, 2, &mut Random(8));
    let proof = window.prove().unwrap();
    let entries = window.entries();
    let statement = window.statement(&entries);
    for place in 0..proof.len() / 32 {
        let mut changed = proof.clone();
        changed[32 * place..][..32].fill(255);
        let error = charge::verify(&statement, &changed, &Silent).unwrap_err();
        assert!(error.to_string().contains(&format!("proof element {place}: ")), "{error}");
    }
    for length in [0, 31, proof.len() - 32, proof.len() - 1] {
        let error = charge::verify(&statement, &proof[..length], &Silent).unwrap_err();
        assert!(error.to_string().contains("bytes, expected"), "{error}");
    }
}

#[test]
fn secrets_of_other_sizes_are_malformed() {
    let window = Window::random(3, 2, 2, &mut Random(8));
    let entries = window.entries();
    let statement = window.statement(&entries);
    let index = &window.index;
    let charges = Charges::new(&window.charged, &window.blindings, 3).unwrap();
    for numbers in [vec![1, 1], vec![1, 0], vec![2]] {
        assert!(Secrets::new(&index.rows, 7, &index.blindings, &charges, &numbers).is_err());
    }
    let refused = |rows: &[i8], width: usize, blindings: &[u8], numbers: &[usize]| {
        let secrets = Secrets::new(rows, width, blindings, &charges, numbers).unwrap();
        let error = charge::prove(&statement, &secrets, &Silent).unwrap_err();
        assert!(matches!(error, Error::Malformed(_)));
    };
    refused(&index.rows[7..], 7, &index.blindings, &[0, 1]);
    refused(&index.rows, 21, &index.blindings, &[0, 1]);
    refused(&index.rows, 7, &index.blindings[32..], &[0, 1]);
    refused(&index.rows, 7, &index.blindings, &[0]);
    assert!(running_sums(&[0; 33], &[0]).is_err());
    assert!(running_sums(&[0; 32], &[1]).is_err());
    assert!(running_sums(&[0; 64], &[1, 0]).is_err());
    assert!(running_sums(&[255; 64], &[1]).is_err());
}

struct StopAt(f64);

impl Progress for StopAt {
    fn report(&self, done: f64) -> Result<()> {
        if done >= self.0 { Err(Error::Cancelled) } else { Ok(()) }
    }
}

#[test]
fn both_sides_can_be_cancelled() {
    let window = Window::random(3, 2, 2, &mut Random(8));
    let proof = window.prove().unwrap();
    let entries = window.entries();
    for at in [0.0, 0.03, 0.1, 0.4, 0.7, 1.0] {
        assert_eq!(window.prove_reporting(&StopAt(at)), Err(Error::Cancelled));
        let verified = charge::verify(&window.statement(&entries), &proof, &StopAt(at));
        assert_eq!(verified, Err(Error::Cancelled));
    }
}
