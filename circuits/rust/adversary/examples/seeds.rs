//! First inputs of the fuzz targets, and a dictionary of encodings that matter:
//!
//! ```text
//! cargo run --release --package ragaudit-adversary --example seeds -- FOLDER
//! ```
//!
//! writes `FOLDER/corpus/TARGET/NUMBER` and `FOLDER/encodings.dict`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

use ragaudit_adversary::honest::Random;
use ragaudit_adversary::honest_cases::{
    honest_budgets, honest_charges, honest_indexes, honest_selections, honest_selections_of_all,
};
use ragaudit_adversary::mutation::special_encodings;
use ragaudit_arguments::generators::{self, LISTS};
use ragaudit_arguments::selection::Statement;
use ragaudit_arguments::selection::statement::Case;

/// Bytes of a choice of changes.
const CHOICES: usize = 200;
/// Choices for each target that makes changes.
const SEEDS: usize = 32;

/// Targets whose input is a sequence of choices.
const CHOOSING: [&str; 8] = [
    "mutate_selection",
    "mutate_selection_all",
    "mutate_index",
    "mutate_budget",
    "mutate_charge",
    "statements",
    "commitments",
    "sampler",
];

fn write(folder: &Path, target: &str, number: usize, input: &[u8]) -> io::Result<()> {
    let corpus = folder.join("corpus").join(target);
    fs::create_dir_all(&corpus)?;
    fs::write(corpus.join(number.to_string()), input)
}

fn write_all(folder: &Path) -> io::Result<()> {
    let mut random = Random(1);
    for target in CHOOSING {
        for number in 0..SEEDS {
            let input: Vec<u8> = (0..CHOICES).map(|_| random.next() as u8).collect();
            write(folder, target, number, &input)?;
        }
    }
    for (number, case) in honest_selections().iter().enumerate() {
        if let Ok(Statement { case: Case::Threshold(threshold), .. }) =
            Statement::new(&case.instance())
        {
            let sizes = [threshold.uncertain.len() as u8 - 1, case.query.len() as u8 - 1, 0];
            write(folder, "decode_selection", number, &[&sizes, &case.proof[..]].concat())?;
        }
    }
    for (number, case) in honest_indexes().iter().enumerate() {
        let sizes = [case.rows as u8 - 1, 0, case.dimension as u8 - 1, 0];
        write(folder, "decode_index", number, &[&sizes, &case.proof[..]].concat())?;
    }
    for (number, case) in honest_budgets().iter().enumerate() {
        let entries = case.charges.len() / 32;
        let sizes = [case.rows as u8 - 1, entries as u8 - 1, case.uses as u8 - 1, 0];
        write(folder, "decode_budget", number, &[&sizes, &case.proof[..]].concat())?;
    }
    for (number, case) in honest_charges().iter().enumerate() {
        let rows = case.commitments.len() / 32;
        let sizes = [rows as u8 - 1, case.entries[0].query.len() as u8 - 1];
        let sizes = [&sizes[..], &[case.entries.len() as u8 - 1, 0]].concat();
        write(folder, "decode_charge", number, &[&sizes, &case.proof[..]].concat())?;
    }
    for (number, case) in honest_selections_of_all().iter().enumerate() {
        write(folder, "encodings", number, &case.proof)?;
    }
    let points = LISTS.map(|list| generators::point(list, 0).compress().to_bytes());
    let entries = special_encodings().into_iter().chain(points).map(|encoding| {
        let bytes: String = encoding.iter().map(|byte| format!("\\x{byte:02x}")).collect();
        format!("\"{bytes}\"\n")
    });
    fs::write(folder.join("encodings.dict"), entries.collect::<String>())
}

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: seeds FOLDER");
        return ExitCode::from(2);
    };
    match write_all(&folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", folder.display());
            ExitCode::FAILURE
        }
    }
}
