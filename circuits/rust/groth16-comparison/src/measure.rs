//! Set-up, proof and verification of one circuit, measured.

use std::collections::BTreeMap;
use std::time::Instant;

use ark_bn254::{Bn254, Fr};
use ark_ff::UniformRand;
use ark_groth16::Groth16;
use ark_relations::gr1cs::{
    ConstraintSynthesizer, ConstraintSystem, OptimizationGoal, R1CS_PREDICATE_LABEL,
    SynthesisError, SynthesisMode,
};
use ark_serialize::CanonicalSerialize;
use ark_snark::SNARK;
use ark_std::rand::SeedableRng;
use ark_std::rand::rngs::StdRng;
use serde::Serialize;

use crate::builder::{Builder, Part};
use crate::circuit::AuditCircuit;
use crate::index::Hashes;
use crate::instance::{Instance, Witness};
use crate::noise;
use crate::parameters::Parameters;
use crate::process;

/// Randomness of the index, the set-up and the proof. A key made from a published seed proves
/// nothing; it measures as well as any other.
const SEED: u64 = 1;
/// Verifications timed; the mean is reported.
const VERIFICATIONS: u32 = 20;

/// One run. Times are wall-clock seconds, sizes bytes.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Names this layout.
    pub schema: &'static str,
    /// What was run.
    #[serde(flatten)]
    pub parameters: Parameters,
    /// Standard deviation of the noise, in units of the cosine.
    pub noise_deviation: f64,
    /// All constraints.
    pub constraints: usize,
    /// The same, by what they are for.
    pub constraints_by_part: BTreeMap<Part, usize>,
    /// Private variables.
    pub witness_variables: usize,
    /// Public inputs.
    pub public_inputs: usize,
    /// Points of the evaluation domain: the next power of two.
    pub domain_size: usize,
    /// Rows whose score the circuit compares with the committed index.
    pub rows_checked: usize,
    /// Threads of the prover.
    pub threads: usize,
    /// Whether the field arithmetic was compiled for this processor's wide multiplication.
    pub assembly: bool,
    /// Absent when constraints were only counted.
    pub measured: Option<Measured>,
}

/// What only a proof can tell. Processor seconds are absent where the system does not tell; on a
/// machine with other work they say more than wall-clock seconds.
#[derive(Debug, Serialize)]
pub struct Measured {
    /// Generation of the keys, with its own synthesis.
    pub setup_seconds: f64,
    /// The same on all threads together.
    pub setup_processor_seconds: Option<f64>,
    /// Witness and constraint matrices; not part of `prove_seconds`.
    pub synthesis_seconds: f64,
    /// From matrices and witness to the proof.
    pub prove_seconds: f64,
    /// The same on all threads together.
    pub prove_processor_seconds: Option<f64>,
    /// `prove_seconds` over `constraints`, in microseconds.
    pub prove_microseconds_per_constraint: f64,
    /// `setup_seconds` over `constraints`, in microseconds.
    pub setup_microseconds_per_constraint: f64,
    /// Mean of twenty verifications with a prepared key.
    pub verify_seconds: f64,
    /// Compressed.
    pub proof_bytes: usize,
    /// Uncompressed.
    pub proof_bytes_uncompressed: usize,
    /// Uncompressed, as the prover reads it.
    pub proving_key_bytes: usize,
    /// Compressed.
    pub verifying_key_bytes: usize,
    /// Largest resident memory during the set-up; absent where the system does not tell.
    pub setup_peak_bytes: Option<u64>,
    /// Largest resident memory during synthesis and proof, the key included.
    pub prove_peak_bytes: Option<u64>,
}

/// Why there is no report.
#[derive(Debug)]
pub enum Failure {
    /// The constraint system could not be written, or proved.
    Synthesis(SynthesisError),
    /// A size could not be taken.
    Serialization(ark_serialize::SerializationError),
    /// The proof of an honest witness was refused.
    Refused,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Synthesis(error) => write!(formatter, "the circuit cannot be proved: {error}"),
            Self::Serialization(error) => write!(formatter, "a key has no encoding: {error}"),
            Self::Refused => formatter.write_str("the proof of an honest witness was refused"),
        }
    }
}

impl std::error::Error for Failure {}

impl From<SynthesisError> for Failure {
    fn from(error: SynthesisError) -> Self {
        Self::Synthesis(error)
    }
}

impl From<ark_serialize::SerializationError> for Failure {
    fn from(error: ark_serialize::SerializationError) -> Self {
        Self::Serialization(error)
    }
}

/// Counts the constraints of a circuit and, unless `count_only`, sets it up, proves and verifies.
/// `progress` is told which step begins.
pub fn run(
    parameters: Parameters,
    count_only: bool,
    progress: &dyn Fn(&str),
) -> Result<Report, Failure> {
    progress("index, noise and honest witness");
    let hashes = Hashes::default();
    let witness = Witness::honest(&hashes, &parameters, SEED);
    let instance = Instance::new(&hashes, parameters, witness);
    let circuit = AuditCircuit { hashes: &hashes, instance: &instance };

    progress("counting constraints");
    let mut builder = Builder::counting();
    circuit.write(&mut builder)?;
    let constraints = builder.counts().values().sum();
    let measured = if count_only { None } else { Some(measure(circuit, constraints, progress)?) };
    Ok(Report {
        schema: "ragaudit/groth16-comparison/1",
        parameters,
        noise_deviation: noise::deviation(parameters.noise_bits) / f64::from(127 * 127),
        constraints,
        constraints_by_part: builder.counts().clone(),
        witness_variables: builder.witnesses(),
        public_inputs: builder.inputs(),
        domain_size: (constraints + builder.inputs() + 1).next_power_of_two(),
        rows_checked: parameters.rows_checked(),
        threads: rayon::current_num_threads(),
        assembly: cfg!(all(target_feature = "bmi2", target_feature = "adx")),
        measured,
    })
}

fn measure(
    circuit: AuditCircuit<'_>,
    constraints: usize,
    progress: &dyn Fn(&str),
) -> Result<Measured, Failure> {
    let mut random = StdRng::seed_from_u64(SEED);
    let microseconds = |seconds: f64| seconds * 1e6 / constraints as f64;

    progress("set-up");
    process::reset_peak_memory();
    let clock = Clock::start();
    let key = Groth16::<Bn254>::generate_random_parameters_with_reduction(circuit, &mut random)?;
    let setup = clock.stop();
    let setup_peak_bytes = process::peak_memory();

    progress("synthesis");
    process::reset_peak_memory();
    let clock = Clock::start();
    let system = ConstraintSystem::<Fr>::new_ref();
    system.set_optimization_goal(OptimizationGoal::Constraints);
    system.set_mode(SynthesisMode::Prove {
        construct_matrices: true,
        generate_lc_assignments: false,
    });
    circuit.generate_constraints(system.clone())?;
    system.finalize();
    let matrices =
        system.to_matrices()?.remove(R1CS_PREDICATE_LABEL).ok_or(SynthesisError::MissingCS)?;
    let inputs = system.num_instance_variables();
    let assignment = [system.instance_assignment()?, system.witness_assignment()?].concat();
    drop(system);
    let synthesis = clock.stop();

    progress("proof");
    let clock = Clock::start();
    let proof = Groth16::<Bn254>::create_proof_with_reduction_and_matrices(
        &key,
        Fr::rand(&mut random),
        Fr::rand(&mut random),
        &matrices,
        inputs,
        constraints,
        &assignment,
    )?;
    let prove = clock.stop();
    let prove_peak_bytes = process::peak_memory();

    progress("verification");
    let public = circuit.instance.public.elements();
    let prepared = Groth16::<Bn254>::process_vk(&key.vk)?;
    let clock = Clock::start();
    for _ in 0..VERIFICATIONS {
        if !Groth16::<Bn254>::verify_with_processed_vk(&prepared, &public, &proof)? {
            return Err(Failure::Refused);
        }
    }
    let verify = clock.stop();

    Ok(Measured {
        setup_seconds: setup.wall,
        setup_processor_seconds: setup.processor,
        synthesis_seconds: synthesis.wall,
        prove_seconds: prove.wall,
        prove_processor_seconds: prove.processor,
        prove_microseconds_per_constraint: microseconds(prove.wall),
        setup_microseconds_per_constraint: microseconds(setup.wall),
        verify_seconds: verify.wall / f64::from(VERIFICATIONS),
        proof_bytes: proof.compressed_size(),
        proof_bytes_uncompressed: proof.uncompressed_size(),
        proving_key_bytes: key.uncompressed_size(),
        verifying_key_bytes: key.vk.compressed_size(),
        setup_peak_bytes,
        prove_peak_bytes,
    })
}

/// Seconds that a step took.
struct Seconds {
    wall: f64,
    processor: Option<f64>,
}

struct Clock {
    start: Instant,
    processor: Option<f64>,
}

impl Clock {
    fn start() -> Self {
        Self { start: Instant::now(), processor: process::processor_seconds() }
    }

    fn stop(self) -> Seconds {
        let wall = self.start.elapsed().as_secs_f64();
        let used = process::processor_seconds();
        Seconds { wall, processor: used.zip(self.processor).map(|(now, then)| now - then) }
    }
}
