//! Random statements, each proven rightly and wrongly; the verdicts are counted.

use std::ops::AddAssign;

use ragaudit_arguments::progress::Silent;
use ragaudit_arguments::selection::statement::Case;
use ragaudit_arguments::selection::verifier::BatchError;
use ragaudit_arguments::selection::{self, Instance, Statement};
use ragaudit_arguments::{Error, Result};

use crate::cases::{Argument, IndexCase, SelectionCase, Verdict, judge};
use crate::honest::{Index, Random, Record};
use crate::mutation::{Choices, Mutable, mutate};
use crate::strategies::{LIES, tell};
use ragaudit_arguments::four_squares::complete_rows;

/// One statement of this many has its index argument checked too.
const INDEX_SHARE: u64 = 50;
/// Beside one statement of this many, a window of charges is checked.
const WINDOW_SHARE: u64 = 5;
/// The false proofs of one statement of this many are in the batch: each costs a search.
const BATCH_SHARE: u64 = 40;
/// Bytes that choose a change.
const CHOICES: usize = 320;

/// What was checked; `wrong` tells how to repeat each wrong verdict.
#[derive(Default)]
pub struct Tally {
    /// Statements.
    pub statements: usize,
    /// Statements in which all allowed rows are selected.
    pub selections_of_all: usize,
    /// Statements with a filter.
    pub filtered: usize,
    /// Statements whose (K+1)-th value is a tie with a row above it in the ranking.
    pub tied: usize,
    /// Rows of all U, and the largest.
    pub uncertain: (usize, usize),
    /// Honest proofs accepted.
    pub accepted: usize,
    /// Proofs of another selection rejected.
    pub other_selections: usize,
    /// Lies of an able prover rejected.
    pub lies: usize,
    /// Changed proofs and statements rejected.
    pub mutations: usize,
    /// Changes that led back to the honest argument, accepted.
    pub unchanged: usize,
    /// Honest index arguments accepted.
    pub indexes: usize,
    /// False or changed index arguments rejected.
    pub false_indexes: usize,
    /// Windows of charges whose two honest arguments were judged.
    pub windows: usize,
    /// Charges with a row more or less, judged.
    pub other_charges: usize,
    /// Overdrawn budgets of an able prover, judged.
    pub overdrawn: usize,
    /// Wrong verdicts.
    pub wrong: Vec<String>,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.statements += other.statements;
        self.selections_of_all += other.selections_of_all;
        self.filtered += other.filtered;
        self.tied += other.tied;
        self.uncertain.0 += other.uncertain.0;
        self.uncertain.1 = self.uncertain.1.max(other.uncertain.1);
        self.accepted += other.accepted;
        self.other_selections += other.other_selections;
        self.lies += other.lies;
        self.mutations += other.mutations;
        self.unchanged += other.unchanged;
        self.indexes += other.indexes;
        self.false_indexes += other.false_indexes;
        self.windows += other.windows;
        self.other_charges += other.other_charges;
        self.overdrawn += other.overdrawn;
        self.wrong.extend(other.wrong);
    }
}

/// One of these, by chance.
fn one_of<T: Copy>(choices: &[T], random: &mut Random) -> T {
    choices[random.next() as usize % choices.len()]
}

fn index(random: &mut Random) -> Index {
    let count = match random.next() % 100 {
        0..80 => random.between(2, 40),
        80..97 => random.between(41, 300),
        _ => random.between(301, 2_000),
    } as usize;
    let dimension = random.between(1, 64) as usize;
    let vector = |random: &mut Random| -> Vec<i8> {
        random.vector(dimension).iter().map(|x| *x as i8).collect()
    };
    // Any rows, or some few again and again, among them null rows.
    let few: Vec<Vec<i8>> = match random.next() % 4 {
        0 => vec![vector(random)],
        1 => vec![vector(random), vec![0; dimension], vector(random)],
        _ => Vec::new(),
    };
    let row = |random: &mut Random| match few.len() {
        0 => vector(random),
        kinds => few[random.next() as usize % kinds].clone(),
    };
    let vectors: Vec<i8> = (0..count).flat_map(|_| row(random)).collect();
    #[allow(clippy::unwrap_used)] // Vectors are short enough by their making.
    Index::from_rows(complete_rows(&vectors, dimension, 16129).unwrap(), dimension)
}

fn record<'a>(index: &'a Index, random: &mut Random) -> Record<'a> {
    let count = index.count() as i64;
    // From no noise to noise that leaves one row of U.
    let spread = one_of(&[0, 3, 5_000, 40_000, 200_000, 1_000_000, 1 << 40], random);
    let noise = (0..count).map(|_| random.between(-spread, spread)).collect();
    let top_k = match random.next() % 8 {
        0 => one_of(&[count - 1, count, count + 3], random),
        _ => random.between(1, 10.min(count)),
    };
    let allowed = random.next().is_multiple_of(3).then(|| {
        let share = 1 + random.next() % 4;
        (0..count as u64).filter(|_| random.next() % 4 < share).collect()
    });
    let query = random.vector(index.dimension);
    let record = Record::honest(index, query, noise, top_k as u64, allowed);
    if random.next() & 1 == 1 { record.keeping_ties() } else { record }
}

/// The record with one position more or less, or a few others.
fn other_selection<'a>(record: &Record<'a>, random: &mut Random) -> Record<'a> {
    let count = record.index.count() as u64;
    let mut selected = record.selected.clone();
    for _ in 0..=random.next() % 3 {
        let position = random.next() % count;
        match selected.iter().position(|known| *known == position) {
            Some(place) => drop(selected.swap_remove(place)),
            None => selected.push(position),
        }
    }
    record.with_selection(selected)
}

fn same_selection(left: &Record, right: &Record) -> bool {
    let sorted = |record: &Record| {
        let mut selected = record.selected.clone();
        selected.sort_unstable();
        selected
    };
    sorted(left) == sorted(right)
}

/// Statements checked one by one; their proofs are then checked as one batch.
pub struct Soak {
    pub(crate) tally: Tally,
    /// Arguments and whether they are to be accepted.
    batch: Vec<(SelectionCase, bool, u64)>,
}

impl Soak {
    /// Nothing checked yet.
    pub fn new() -> Self {
        Soak { tally: Tally::default(), batch: Vec::new() }
    }

    /// Makes and checks the statement of this seed.
    pub fn check(&mut self, seed: u64) -> Result<()> {
        let mut random = Random(seed);
        let index = index(&mut random);
        let record = record(&index, &mut random);
        self.describe(&record)?;
        let honest = SelectionCase::new(&record, record.prove());
        self.expect(honest.clone(), true, seed, "the honest proof");

        let other = other_selection(&record, &mut random);
        if !same_selection(&other, &record) {
            let case = SelectionCase::new(&other, other.prove());
            self.expect(case, false, seed, "another selection");
        }
        let lie = one_of(&LIES, &mut random);
        if let Some((record, proof)) = tell(lie, &record)? {
            self.expect(SelectionCase::new(&record, proof), false, seed, &format!("{lie:?}"));
        }
        for _ in 0..2 {
            self.change(&honest, seed, &mut random);
        }
        if seed.is_multiple_of(INDEX_SHARE) {
            self.check_index(&index, seed, &mut random);
        }
        if seed.is_multiple_of(WINDOW_SHARE) {
            self.check_charges(seed)?;
        }
        Ok(())
    }

    fn describe(&mut self, record: &Record) -> Result<()> {
        self.tally.statements += 1;
        self.tally.filtered += usize::from(record.allowed.is_some());
        match Statement::new(&record.instance())?.case {
            Case::All(_) => self.tally.selections_of_all += 1,
            Case::Threshold(threshold) => {
                let (total, most) = &mut self.tally.uncertain;
                *total += threshold.uncertain.len();
                *most = threshold.uncertain.len().max(*most);
                self.tally.tied += usize::from((record.selected.len() as u64) < record.top_k);
            }
        }
        Ok(())
    }

    fn expect(&mut self, case: SelectionCase, accept: bool, seed: u64, what: &str) {
        let right = match case.verify() {
            Ok(()) => accept,
            Err(Error::Rejected(_)) => !accept,
            Err(_) => false,
        };
        let count = match (accept, what) {
            (true, _) => &mut self.tally.accepted,
            (false, "another selection") => &mut self.tally.other_selections,
            _ => &mut self.tally.lies,
        };
        *count += usize::from(right);
        if !right {
            self.tally.wrong.push(format!("seed {seed}: {what}"));
        }
        if accept || seed.is_multiple_of(BATCH_SHARE) {
            self.batch.push((case, accept, seed));
        }
    }

    pub(crate) fn change<A: Mutable>(&mut self, honest: &A, seed: u64, random: &mut Random) {
        let bytes: Vec<u8> = (0..CHOICES).map(|_| random.next() as u8).collect();
        let honest = std::slice::from_ref(honest);
        let changed = mutate(honest, &mut Choices::new(&bytes));
        match judge(honest, &changed) {
            Verdict::Honest => self.tally.unchanged += 1,
            Verdict::Rejected => self.tally.mutations += 1,
            Verdict::Wrong => self.tally.wrong.push(format!("seed {seed}: a change")),
        }
    }

    fn check_index(&mut self, index: &Index, seed: u64, random: &mut Random) {
        let honest = IndexCase::new(index, index.prove());
        if honest.verify().is_ok() {
            self.tally.indexes += 1;
        } else {
            self.tally.wrong.push(format!("seed {seed}: the honest index"));
        }
        let mut rows = index.rows.clone();
        let entry = random.next() as usize % rows.len();
        rows[entry] = if rows[entry] < 100 { rows[entry] + 1 } else { 0 };
        let wrong = Index::from_rows(rows, index.dimension);
        if matches!(IndexCase::new(&wrong, wrong.prove()).verify(), Err(Error::Rejected(_))) {
            self.tally.false_indexes += 1;
        } else {
            self.tally.wrong.push(format!("seed {seed}: an index with a row of another norm"));
        }
        self.change(&honest, seed, random);
    }

    /// Checks all proofs since the last time as one batch; what was counted since then.
    pub fn finish(&mut self) -> Tally {
        let records: Vec<(Instance, &[u8])> =
            self.batch.iter().map(|(case, _, _)| (case.instance(), &case.proof[..])).collect();
        let named: Vec<usize> = match selection::verify_batch(&records, &Silent) {
            Ok(()) => Vec::new(),
            Err(BatchError::Rejected(failed)) => failed.iter().map(|(index, _)| *index).collect(),
            Err(BatchError::Stopped(_)) => (0..records.len()).collect(),
        };
        for (index, (_, accept, seed)) in self.batch.iter().enumerate() {
            if named.contains(&index) == *accept {
                self.tally.wrong.push(format!("seed {seed}: in a batch"));
            }
        }
        self.batch.clear();
        std::mem::take(&mut self.tally)
    }
}

impl Default for Soak {
    fn default() -> Self {
        Soak::new()
    }
}
