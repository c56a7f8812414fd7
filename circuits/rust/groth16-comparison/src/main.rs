//! `groth16-comparison --circuit naive --rows 1000`: one circuit, measured.

use std::error::Error;
use std::process::ExitCode;

use lexopt::prelude::*;
use ragaudit_groth16_comparison::measure::{self, Report};
use ragaudit_groth16_comparison::parameters::{Circuit, Index, Parameters};

const HELP: &str = "\
Builds one of the paper's Groth16 circuits, proves and verifies it, and reports what that took.

Options:
  --circuit naive|optimised   which circuit (default: optimised)
  --index committed|free      whether embeddings are opened from the committed index; `free` is
                              what the paper's Table 1 prices (default: committed)
  --rows N                    rows of the index, 2 to 1048576 (default: 1000)
  --dim D                     dimension of the embeddings, 1 to 4096 (default: 384)
  --top-k K                   rows selected (default: 5)
  --noise-bits M              noise of about 3.14 * 2^M lattice units, 0 to 24 (default: 24)
  --count-only                count the constraints without proving
  --json                      print the report as JSON
  --help                      print this

RAYON_NUM_THREADS sets the number of threads.

Example: groth16-comparison --circuit naive --rows 1000 --dim 384 --json
";

struct Options {
    parameters: Parameters,
    count_only: bool,
    json: bool,
}

fn main() -> ExitCode {
    match try_main() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("groth16-comparison: {error}");
            ExitCode::FAILURE
        }
    }
}

fn try_main() -> Result<(), Box<dyn Error>> {
    let Some(options) = options()? else {
        print!("{HELP}");
        return Ok(());
    };
    options.parameters.check()?;
    let report =
        measure::run(options.parameters, options.count_only, &|step| eprintln!("{step} ..."))?;
    if options.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print_table(&report);
    }
    Ok(())
}

/// `None` asks for the help.
fn options() -> Result<Option<Options>, lexopt::Error> {
    let mut parameters = Parameters {
        circuit: Circuit::Optimised,
        index: Index::Committed,
        rows: 1000,
        dimension: 384,
        top_k: 5,
        noise_bits: 24,
    };
    let (mut count_only, mut json) = (false, false);
    let mut arguments = lexopt::Parser::from_env();
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("circuit") => {
                parameters.circuit = match arguments.value()?.string()?.as_str() {
                    "naive" => Circuit::Naive,
                    "optimised" => Circuit::Optimised,
                    other => return Err(choice("circuit", other, "naive or optimised")),
                }
            }
            Long("index") => {
                parameters.index = match arguments.value()?.string()?.as_str() {
                    "committed" => Index::Committed,
                    "free" => Index::Free,
                    other => return Err(choice("index", other, "committed or free")),
                }
            }
            Long("rows") => parameters.rows = arguments.value()?.parse()?,
            Long("dim") => parameters.dimension = arguments.value()?.parse()?,
            Long("top-k") => parameters.top_k = arguments.value()?.parse()?,
            Long("noise-bits") => parameters.noise_bits = arguments.value()?.parse()?,
            Long("count-only") => count_only = true,
            Long("json") => json = true,
            Short('h') | Long("help") => return Ok(None),
            _ => return Err(argument.unexpected()),
        }
    }
    Ok(Some(Options { parameters, count_only, json }))
}

fn choice(option: &str, value: &str, allowed: &str) -> lexopt::Error {
    format!("--{option} is {value:?}; it must be {allowed}").into()
}

fn print_table(report: &Report) {
    let Parameters { circuit, index, rows, dimension, top_k, .. } = report.parameters;
    println!("{circuit:?}, index {index:?}, N = {rows}, d = {dimension}, K = {top_k}");
    println!("rows checked against the index  {:>14}", report.rows_checked);
    println!("constraints                     {:>14}", report.constraints);
    for (part, count) in &report.constraints_by_part {
        println!("  {:<30}{count:>14}", format!("{part:?}"));
    }
    let Some(measured) = &report.measured else { return };
    println!("threads                         {:>14}", report.threads);
    println!("set-up, s                       {:>14.2}", measured.setup_seconds);
    println!("synthesis, s                    {:>14.2}", measured.synthesis_seconds);
    println!("proof, s                        {:>14.2}", measured.prove_seconds);
    if let Some(seconds) = measured.prove_processor_seconds {
        println!("  of processor time             {seconds:>14.2}");
    }
    println!(
        "  per constraint, us            {:>14.2}",
        measured.prove_microseconds_per_constraint
    );
    println!("verification, ms                {:>14.2}", 1e3 * measured.verify_seconds);
    println!("proof, bytes                    {:>14}", measured.proof_bytes);
    println!("proving key, bytes              {:>14}", measured.proving_key_bytes);
    for (step, peak) in
        [("set-up", measured.setup_peak_bytes), ("proof", measured.prove_peak_bytes)]
    {
        match peak {
            Some(bytes) => println!("peak memory of the {step:<12} {bytes:>14}"),
            None => println!("peak memory of the {step:<12} {:>14}", "not reported"),
        }
    }
}
