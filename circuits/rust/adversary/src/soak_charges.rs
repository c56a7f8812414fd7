//! Random windows of charges: both arguments about them, proven rightly and wrongly.

use ragaudit_arguments::Error;
use ragaudit_arguments::progress::Silent;
use ragaudit_arguments::{Result, budget, charge};

use crate::budget::Budget;
use crate::cases::Argument;
use crate::charge_cases::{BudgetCase, ChargeCase};
use crate::honest::{Index, Random};
use crate::honest_charges::Window;
use crate::soak::Soak;

/// Rows up to which budgets are forged: that prover's tables are dense.
const MOST_FORGED: usize = 40;

fn window(random: &mut Random) -> Window {
    let rows = match random.next() % 10 {
        0 => 1,
        1..9 => random.between(2, 40),
        _ => random.between(41, 400),
    } as usize;
    let dimension = random.between(1, 8) as usize;
    let entries = random.between(1, 17) as usize;
    let index = Index::random(rows, dimension, random);
    let queries = (0..entries).map(|_| random.vector(dimension)).collect();
    let threshold = |random: &mut Random| match random.next() % 8 {
        0 => 0,
        1 => 127 * 127,
        _ => random.between(0, 4_000),
    };
    let thresholds = (0..entries).map(|_| threshold(random)).collect();
    let filter = |random: &mut Random| {
        let share = random.next() % 4;
        let passes = |random: &mut Random| random.next() % 4 < share;
        random
            .next()
            .is_multiple_of(3)
            .then(|| (0..rows as u64).filter(|_| passes(random)).collect())
    };
    let allowed = (0..entries).map(|_| filter(random)).collect();
    let mut window = Window::new(index, random.next() % 4 + 1, queries, thresholds, allowed);
    // All entries, or some of them.
    if random.next().is_multiple_of(2) {
        let chosen = random.next() as usize % entries;
        window.numbers = (0..entries).filter(|t| *t == chosen || random.next() & 1 == 1).collect();
    }
    window
}

/// The window with a row more or less in one entry of the group; `None` where that would be one
/// use more than M, which is the budget argument's to refuse.
fn other_charge(window: &Window, random: &mut Random) -> Option<Window> {
    let row = random.next() % window.index.count() as u64;
    let mut other = window.clone();
    let t = other.numbers[random.next() as usize % other.numbers.len()];
    let charged = &mut other.charged[t];
    match charged.iter().position(|known| *known == row) {
        Some(place) => drop(charged.remove(place)),
        None => charged.push(row),
    }
    let count = other.charged.iter().flatten().filter(|known| **known == row).count();
    (count as u64 <= window.uses).then_some(other)
}

/// The budget of the window with a row charged once more than M allows, or given back.
fn overdrawn(window: &Window, random: &mut Random) -> Budget {
    let rows = window.index.count();
    let bits = |positions: &Vec<u64>| {
        (0..rows as u64).map(|i| i64::from(positions.contains(&i))).collect()
    };
    let charges: Vec<Vec<i64>> = window.charged.iter().map(bits).collect();
    let mut false_one = Budget::honest(rows, window.uses as usize, charges);
    let row = random.next() as usize % rows;
    let used: i64 = false_one.charges.iter().map(|charge| charge[row]).sum();
    let more = window.uses as i64 + 1 - used;
    match random.next() % 3 {
        0 => false_one.charges[0][row] += more,
        1 => {
            false_one.charges[0][row] += more;
            false_one.vectors[0][row] += more;
        }
        _ => {
            false_one.charges[0][row] -= used + 1;
            false_one.vectors[0][row] -= used + 1;
        }
    }
    false_one
}

fn is_rejected(result: &Result<()>) -> bool {
    matches!(result, Err(Error::Rejected(_)))
}

impl Soak {
    /// Makes and checks the window of this seed.
    pub(crate) fn check_charges(&mut self, seed: u64) -> Result<()> {
        let random = &mut Random(seed ^ (1 << 63));
        let window = window(random);
        self.tally.windows += 1;
        let charges = ChargeCase::new(&window, window.prove()?);
        let budgets = BudgetCase::new(&window, window.prove_budget()?);
        for (name, result) in
            [("the honest charges", charges.verify()), ("the honest budget", budgets.verify())]
        {
            self.note(result.is_ok(), seed, name);
        }
        if let Some(other) = other_charge(&window, random) {
            let entries = other.entries();
            let rejected = charge::verify(&other.statement(&entries), &other.prove()?, &Silent);
            self.tally.other_charges += 1;
            self.note(is_rejected(&rejected), seed, "another charge");
        }
        if window.index.count() <= MOST_FORGED {
            let false_one = overdrawn(&window, random);
            let (points, proof) = false_one.prove()?;
            let rejected = budget::verify(&false_one.statement(&points), &proof, &Silent);
            self.tally.overdrawn += 1;
            self.note(is_rejected(&rejected), seed, "an overdrawn budget");
        }
        self.change(&charges, seed, random);
        self.change(&budgets, seed, random);
        Ok(())
    }

    fn note(&mut self, right: bool, seed: u64, what: &str) {
        if !right {
            self.tally.wrong.push(format!("seed {seed}: {what}"));
        }
    }
}
