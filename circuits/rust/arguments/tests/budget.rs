//! The budget argument: known answers, honest proofs, false charges.
#![allow(clippy::unwrap_used)]

mod common;

use common::{array, bytes, concatenated, load};
use ragaudit_adversary::honest::Random;
use ragaudit_arguments::budget::{self, Statement};
use ragaudit_arguments::charges::Charges;
use ragaudit_arguments::commitments::{blinding, commit_selection, random_scalars};
use ragaudit_arguments::progress::{Progress, Silent};
use ragaudit_arguments::{Error, Result, SQUARED_NORM};

#[test]
fn proofs_are_judged_as_known() {
    let vectors = load("budget");
    let cases = vectors["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 17);
    for case in cases {
        let statement = Statement {
            context: array(&case["context"]),
            rows: case["N"].as_u64().unwrap(),
            uses: case["M"].as_u64().unwrap(),
            charges: &concatenated(&case["B"]),
            squared_norm: case["B2"].as_u64().unwrap() as u32,
        };
        let result = budget::verify(&statement, &bytes(&case["proof"]), &Silent);
        assert_eq!(result.is_ok(), case["expect"] == "accept", "{}: {result:?}", case["name"]);
        if let Err(error) = result {
            assert!(matches!(error, Error::Rejected(_)), "{}: {error}", case["name"]);
        }
    }
}

/// Charge entries with their points.
struct Window {
    rows: usize,
    uses: u64,
    charged: Vec<Vec<u64>>,
    blindings: Vec<u8>,
    points: Vec<u8>,
}

impl Window {
    fn new(rows: usize, uses: u64, charged: Vec<Vec<u64>>) -> Self {
        let blindings = random_scalars(charged.len()).unwrap();
        let point = |(positions, bytes): (&Vec<u64>, &[u8])| {
            commit_selection(positions, &blinding(bytes, "rho").unwrap()).unwrap()
        };
        let points = charged.iter().zip(blindings.chunks(32)).flat_map(point).collect();
        Window { rows, uses, charged, blindings, points }
    }

    /// Entries that charge random live rows.
    fn random(rows: usize, entries: usize, uses: u64, random: &mut Random) -> Self {
        let mut left = vec![uses; rows];
        let mut charge = || -> Vec<u64> {
            let mut charged = Vec::new();
            for (row, left) in left.iter_mut().enumerate() {
                if *left > 0 && random.between(0, 2) == 0 {
                    *left -= 1;
                    charged.push(row as u64);
                }
            }
            charged
        };
        let charged = (0..entries).map(|_| charge()).collect();
        Window::new(rows, uses, charged)
    }

    fn statement(&self) -> Statement<'_> {
        Statement {
            context: [9; 32],
            rows: self.rows as u64,
            uses: self.uses,
            charges: &self.points,
            squared_norm: SQUARED_NORM,
        }
    }

    fn prove(&self) -> Result<Vec<u8>> {
        let charges = Charges::new(&self.charged, &self.blindings, self.rows)?;
        budget::prove(&self.statement(), &charges, &Silent)
    }
}

#[test]
fn honest_budgets_are_accepted_at_every_size() {
    let mut random = Random(41);
    let sizes = [1, 2, 3, 4, 5, 8, 9, 16, 17, 33];
    for rows in sizes {
        for (entries, uses) in [(1, 1), (2, 1), (3, 2), (5, 3), (6, 2), (13, 4)] {
            let window = Window::random(rows, entries, uses, &mut random);
            let proof = window.prove().unwrap();
            budget::verify(&window.statement(), &proof, &Silent).unwrap();
        }
    }
    // More columns than a task of the prover treats.
    let window = Window::random(2500, 7, 3, &mut random);
    budget::verify(&window.statement(), &window.prove().unwrap(), &Silent).unwrap();
}

#[test]
fn nothing_charged_is_within_every_budget() {
    let window = Window::new(4, 1, vec![vec![], vec![]]);
    budget::verify(&window.statement(), &window.prove().unwrap(), &Silent).unwrap();
}

#[test]
fn a_proof_has_the_length_of_the_specification() {
    let window = Window::random(9, 5, 2, &mut Random(3));
    // mx = 3, my = 4, n = 9 + 1 + 21 = 31, k = 5
    assert_eq!(window.prove().unwrap().len(), 32 * (9 + 2 + 21 + 10));
}

#[test]
fn overdrawn_budgets_are_not_even_proven() {
    let window = Window::new(3, 2, vec![vec![1]; 3]);
    let error = window.prove().unwrap_err().to_string();
    assert_eq!(error, "charged: row 1 3 times, expected at most M = 2");
}

#[test]
fn a_proof_for_other_charges_is_rejected() {
    let window = Window::new(3, 2, vec![vec![0], vec![1, 2]]);
    let mut other = Window::new(3, 2, vec![vec![0], vec![1]]);
    other.points = window.points.clone();
    other.blindings = window.blindings.clone();
    let proof = other.prove().unwrap();
    let error = budget::verify(&window.statement(), &proof, &Silent).unwrap_err().to_string();
    assert_eq!(error, "budget/v1: proof: the verification equation does not hold");
}

#[test]
fn a_proof_holds_for_its_statement_only() {
    let window = Window::random(5, 3, 2, &mut Random(8));
    let proof = window.prove().unwrap();
    let statement = window.statement();
    let swapped = [&window.points[32..64], &window.points[..32], &window.points[64..]].concat();
    let again = [&window.points[..], &window.points[64..]].concat();
    for other in [
        Statement { context: [8; 32], ..statement },
        Statement { rows: 6, ..statement },
        Statement { rows: 4, ..statement },
        Statement { uses: 3, ..statement },
        Statement { uses: 1, ..statement },
        Statement { squared_norm: SQUARED_NORM - 1, ..statement },
        Statement { charges: &swapped, ..statement },
        Statement { charges: &again, ..statement },
        Statement { charges: &window.points[..64], ..statement },
    ] {
        assert!(matches!(budget::verify(&other, &proof, &Silent), Err(Error::Rejected(_))));
    }
}

#[test]
fn statements_out_of_range_are_rejected() {
    let window = Window::new(3, 2, vec![vec![0]]);
    let statement = window.statement();
    let charges = Charges::new(&window.charged, &window.blindings, 3).unwrap();
    for (other, reason) in [
        (Statement { rows: 0, ..statement }, "N = 0"),
        (Statement { rows: 1 << 32, ..statement }, "N = 4294967296"),
        (Statement { uses: 0, ..statement }, "M = 0"),
        (Statement { uses: 65537, ..statement }, "M = 65537"),
        (Statement { squared_norm: 0, ..statement }, "B² = 0"),
        (Statement { squared_norm: 1 << 24, ..statement }, "B² = 16777216"),
        (Statement { charges: &[], ..statement }, "charges: 0 bytes"),
        (Statement { charges: &window.points[..31], ..statement }, "charges: 31 bytes"),
    ] {
        let error = budget::verify(&other, &[], &Silent).unwrap_err();
        assert!(matches!(&error, Error::Rejected(_)) && error.to_string().contains(reason));
        let error = budget::prove(&other, &charges, &Silent).unwrap_err();
        assert!(matches!(&error, Error::Malformed(_)) && error.to_string().contains(reason));
    }
    let two = random_scalars(2).unwrap();
    let more = Charges::new(&[vec![], vec![]], &two, 3).unwrap();
    assert!(budget::prove(&statement, &more, &Silent).is_err());
}

#[test]
fn charges_out_of_range_are_malformed() {
    let blindings = random_scalars(1).unwrap();
    for charged in [vec![3], vec![1, 1], vec![1 << 32]] {
        assert!(matches!(Charges::new(&[charged], &blindings, 3), Err(Error::Malformed(_))));
    }
    assert!(Charges::new(&[vec![]], &blindings[..31], 3).is_err());
    let charges = Charges::new(&[vec![]], &[255; 32], 3).unwrap();
    assert!(matches!(charges.blinding(0), Err(Error::Malformed(_))));
}

#[test]
fn a_charge_that_is_no_point_is_named() {
    let window = Window::new(3, 2, vec![vec![0], vec![]]);
    let proof = window.prove().unwrap();
    let charges = [&window.points[..32], &[255; 32]].concat();
    let statement = Statement { charges: &charges, ..window.statement() };
    let error = budget::verify(&statement, &proof, &Silent).unwrap_err().to_string();
    assert_eq!(error, "budget/v1: B_1: not a canonical ristretto255 encoding");
}

#[test]
fn elements_that_are_not_canonical_are_rejected_by_place() {
    let window = Window::new(3, 2, vec![vec![0]]);
    let proof = window.prove().unwrap();
    for place in 0..proof.len() / 32 {
        let mut changed = proof.clone();
        changed[32 * place..][..32].fill(255);
        let error = budget::verify(&window.statement(), &changed, &Silent).unwrap_err();
        assert!(error.to_string().contains(&format!("proof element {place}: ")), "{error}");
    }
    for length in [0, 31, proof.len() - 32, proof.len() - 1] {
        let error = budget::verify(&window.statement(), &proof[..length], &Silent).unwrap_err();
        assert!(error.to_string().contains("bytes, expected"), "{error}");
    }
}

struct StopAt(f64);

impl Progress for StopAt {
    fn report(&self, done: f64) -> Result<()> {
        if done >= self.0 { Err(Error::Cancelled) } else { Ok(()) }
    }
}

#[test]
fn both_sides_can_be_cancelled() {
    let window = Window::new(3, 2, vec![vec![0]]);
    let charges = Charges::new(&window.charged, &window.blindings, 3).unwrap();
    let proof = window.prove().unwrap();
    for at in [0.0, 0.02, 0.2, 0.5, 1.0] {
        let stop = StopAt(at);
        let proven = budget::prove(&window.statement(), &charges, &stop);
        assert_eq!(proven, Err(Error::Cancelled));
        assert_eq!(budget::verify(&window.statement(), &proof, &stop), Err(Error::Cancelled));
    }
}
