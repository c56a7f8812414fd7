//! Honest windows of charge entries, for tests: wrong input panics.
#![allow(clippy::unwrap_used)]

use ragaudit_arguments::charge::{self, Entry, Secrets, Statement};
use ragaudit_arguments::charges::{Charges, running_sums};
use ragaudit_arguments::commitments::{blinding, commit_selection, random_scalars};
use ragaudit_arguments::progress::{Progress, Silent};
use ragaudit_arguments::{Result, SQUARED_NORM, budget};

use crate::honest::{Index, Random, noised};

/// An index, the charge entries of a window over it, and some of them as a group.
#[derive(Clone)]
pub struct Window {
    /// The index asked.
    pub index: Index,
    /// M.
    pub uses: u64,
    /// e of every entry.
    pub queries: Vec<Vec<i16>>,
    /// tau of every entry.
    pub thresholds: Vec<i64>,
    /// The positions that pass each entry's filter; `None` for all.
    pub allowed: Vec<Option<Vec<u64>>>,
    /// The positions that each entry charges.
    pub charged: Vec<Vec<u64>>,
    /// rho_t, 32 bytes each.
    pub blindings: Vec<u8>,
    /// The places of the group's entries.
    pub numbers: Vec<usize>,
}

impl Window {
    /// Entries of random questions that charge as they should, all of them the group.
    pub fn random(rows: usize, entries: usize, uses: u64, random: &mut Random) -> Self {
        let index = Index::random(rows, 3, random);
        let queries: Vec<Vec<i16>> = (0..entries).map(|_| random.vector(3)).collect();
        let thresholds = (0..entries).map(|_| random.between(0, 3000)).collect();
        let filter = |random: &mut Random| match random.between(0, 2) {
            0 => Some((0..rows as u64).filter(|_| random.between(0, 1) == 0).collect()),
            _ => None,
        };
        let allowed = (0..entries).map(|_| filter(random)).collect();
        Window::new(index, uses, queries, thresholds, allowed)
    }

    /// Entries that charge as they should, all of them the group.
    pub fn new(
        index: Index,
        uses: u64,
        queries: Vec<Vec<i16>>,
        thresholds: Vec<i64>,
        allowed: Vec<Option<Vec<u64>>>,
    ) -> Self {
        let (blindings, numbers) =
            (random_scalars(queries.len()).unwrap(), (0..queries.len()).collect());
        let charged = Vec::new();
        let mut window =
            Window { index, uses, queries, thresholds, allowed, charged, blindings, numbers };
        window.charge();
        window
    }

    /// The definition: allowed, above tau, and charged fewer than M times before.
    fn charge(&mut self) {
        let nothing = vec![0; self.index.count()];
        let mut left = vec![self.uses; self.index.count()];
        for (t, query) in self.queries.iter().enumerate() {
            let scores = noised(&self.index, query, &nothing);
            let allowed = self.allowed[t].as_deref();
            let passes = |i: &u64| allowed.is_none_or(|allowed| allowed.contains(i));
            let due: Vec<u64> = (0..left.len() as u64)
                .filter(|i| {
                    let place = *i as usize;
                    passes(i) && left[place] > 0 && scores[place] > self.thresholds[t]
                })
                .collect();
            due.iter().for_each(|i| left[*i as usize] -= 1);
            self.charged.push(due);
        }
    }

    /// B_t of every entry.
    pub fn points(&self) -> Vec<[u8; 32]> {
        let point = |(positions, bytes): (&Vec<u64>, &[u8])| {
            commit_selection(positions, &blinding(bytes, "rho").unwrap()).unwrap()
        };
        self.charged.iter().zip(self.blindings.chunks(32)).map(point).collect()
    }

    /// What is public of the group's entries.
    pub fn entries(&self) -> Vec<Entry<'_>> {
        let points = self.points();
        let before = running_sums(&points.concat(), &self.numbers).unwrap();
        let entry = |(t, before): (&usize, [u8; 32])| Entry {
            context: [*t as u8; 32],
            query: &self.queries[*t],
            threshold: self.thresholds[*t],
            allowed: self.allowed[*t].as_deref(),
            before,
            charge: points[*t],
        };
        self.numbers.iter().zip(before).map(entry).collect()
    }

    /// What the charge argument says of these entries.
    pub fn statement<'a>(&'a self, entries: &'a [Entry<'a>]) -> Statement<'a> {
        Statement {
            uses: self.uses,
            commitments: &self.index.commitments,
            entries,
            squared_norm: SQUARED_NORM,
        }
    }

    /// A charge proof of the group by the shipped prover, true or not.
    pub fn prove_reporting(&self, progress: &dyn Progress) -> Result<Vec<u8>> {
        let entries = self.entries();
        let charges = Charges::new(&self.charged, &self.blindings, self.index.count())?;
        let (index, width) = (&self.index, self.index.dimension + 4);
        let secrets = Secrets::new(&index.rows, width, &index.blindings, &charges, &self.numbers)?;
        charge::prove(&self.statement(&entries), &secrets, progress)
    }

    /// The same, without progress.
    pub fn prove(&self) -> Result<Vec<u8>> {
        self.prove_reporting(&Silent)
    }

    /// The shipped verifier's verdict on the group.
    pub fn check(&self) -> Result<()> {
        let proof = self.prove()?;
        charge::verify(&self.statement(&self.entries()), &proof, &Silent)
    }

    /// What the budget argument says of all entries; `points` are theirs, one after the other.
    pub fn budget<'a>(&self, points: &'a [u8]) -> budget::Statement<'a> {
        budget::Statement {
            context: [5; 32],
            rows: self.index.count() as u64,
            uses: self.uses,
            charges: points,
            squared_norm: SQUARED_NORM,
        }
    }

    /// A budget proof by the shipped prover; malformed where a row is charged too often.
    pub fn prove_budget(&self) -> Result<Vec<u8>> {
        let charges = Charges::new(&self.charged, &self.blindings, self.index.count())?;
        budget::prove(&self.budget(&self.points().concat()), &charges, &Silent)
    }
}
