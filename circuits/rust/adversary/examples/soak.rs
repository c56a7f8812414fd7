//! Random statements, honest and false, with every verdict checked:
//!
//! ```text
//! cargo run --release --package ragaudit-adversary --example soak -- [STATEMENTS] [FIRST SEED]
//! ```
//!
//! Each statement has a seed of its own, so that any of them can be repeated. Blindings and the
//! provers' randomness are fresh every time. Ends with status 1 after a wrong verdict.

use std::process::ExitCode;
use std::time::Instant;

use ragaudit_adversary::soak::{Soak, Tally};

/// Statements whose proofs make one batch.
const BATCH: u64 = 100;

fn argument(place: usize, default: u64) -> Result<u64, String> {
    let Some(text) = std::env::args().nth(place) else { return Ok(default) };
    text.parse().map_err(|_| format!("{text:?} is not a number; usage: soak [STATEMENTS] [SEED]"))
}

fn run() -> Result<Tally, String> {
    let (count, first) = (argument(1, 10_000)?, argument(2, 1)?);
    let start = Instant::now();
    let mut tally = Tally::default();
    let mut soak = Soak::new();
    for done in 0..count {
        let seed = first + done;
        soak.check(seed).map_err(|error| format!("seed {seed}: {error}"))?;
        if (done + 1) % BATCH == 0 || done + 1 == count {
            tally += soak.finish();
            let seconds = start.elapsed().as_secs();
            eprintln!(
                "{} of {count} statements, {seconds} s, {} wrong",
                done + 1,
                tally.wrong.len()
            );
        }
    }
    Ok(tally)
}

fn report(tally: &Tally) {
    println!("statements                        {}", tally.statements);
    println!("  with a filter                   {}", tally.filtered);
    println!("  with a tie at the boundary      {}", tally.tied);
    println!("  selecting all allowed rows      {}", tally.selections_of_all);
    println!("  uncertain rows, total and most  {} {}", tally.uncertain.0, tally.uncertain.1);
    println!("honest proofs accepted            {}", tally.accepted);
    println!("other selections rejected         {}", tally.other_selections);
    println!("lies of an able prover rejected   {}", tally.lies);
    println!("changed arguments rejected        {}", tally.mutations);
    println!("changes without effect, accepted  {}", tally.unchanged);
    println!("honest indexes accepted           {}", tally.indexes);
    println!("indexes of another norm rejected  {}", tally.false_indexes);
    println!("windows of charges                {}", tally.windows);
    println!("other charges, judged             {}", tally.other_charges);
    println!("overdrawn budgets, judged         {}", tally.overdrawn);
    println!("wrong verdicts                    {}", tally.wrong.len());
    tally.wrong.iter().for_each(|wrong| println!("  {wrong}"));
}

fn main() -> ExitCode {
    match run() {
        Ok(tally) => {
            report(&tally);
            if tally.wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}
