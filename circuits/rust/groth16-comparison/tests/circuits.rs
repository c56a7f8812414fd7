//! What the two circuits accept and what they refuse, at small sizes.
#![allow(clippy::unwrap_used)]

use std::sync::LazyLock;

use ark_bn254::{Bn254, Fr};
use ark_ff::One;
use ark_groth16::Groth16;
use ark_relations::gr1cs::{ConstraintSynthesizer, ConstraintSystem};
use ark_snark::SNARK;
use ark_std::rand::SeedableRng;
use ark_std::rand::rngs::StdRng;
use ragaudit_groth16_comparison::builder::Builder;
use ragaudit_groth16_comparison::circuit::AuditCircuit;
use ragaudit_groth16_comparison::index::Hashes;
use ragaudit_groth16_comparison::instance::{Instance, Witness};
use ragaudit_groth16_comparison::parameters::{Circuit, Index, Parameters};

/// Their constants take a while to generate.
static HASHES: LazyLock<Hashes> = LazyLock::new(Hashes::default);

const ALL: [(Circuit, Index); 4] = [
    (Circuit::Naive, Index::Committed),
    (Circuit::Naive, Index::Free),
    (Circuit::Optimised, Index::Committed),
    (Circuit::Optimised, Index::Free),
];

/// Noise of about a twentieth of a cosine: large enough to change the answer, small enough that
/// scores matter.
fn parameters(circuit: Circuit, index: Index) -> Parameters {
    Parameters { circuit, index, rows: 40, dimension: 16, top_k: 3, noise_bits: 8 }
}

fn satisfied(hashes: &Hashes, instance: &Instance) -> bool {
    let system = ConstraintSystem::<Fr>::new_ref();
    AuditCircuit { hashes, instance }.generate_constraints(system.clone()).unwrap();
    system.finalize();
    system.is_satisfied().unwrap()
}

fn honest(hashes: &Hashes, circuit: Circuit, index: Index) -> (Parameters, Witness) {
    let parameters = parameters(circuit, index);
    let witness = Witness::honest(hashes, &parameters, 7);
    (parameters, witness)
}

/// Positions of the `count` largest values.
fn largest(values: &[i64], count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by_key(|row| std::cmp::Reverse(values[*row]));
    order.truncate(count);
    order
}

/// The cheat of a provider who wants to serve what it would serve without noise. It selects the K
/// best rows by their true scores, keeps true scores there and on as many runners-up as are opened,
/// and claims scores low enough to lose wherever another row would have won.
fn serve_without_noise(hashes: &Hashes, parameters: &Parameters, witness: &mut Witness) -> usize {
    let truth = witness.true_scores();
    let noise = witness.noise(hashes, parameters);
    witness.selected = largest(&truth, parameters.top_k);
    let selected = witness.selected.clone();
    let noised = |row: usize| truth[row] + noise[row];
    witness.threshold = selected.iter().map(|row| noised(*row)).min().unwrap();
    let mut lies = 0;
    for row in (0..parameters.rows).filter(|row| !selected.contains(row)) {
        if noised(row) > witness.threshold {
            witness.scores[row] = witness.threshold - noise[row];
            lies += 1;
        }
    }
    witness.runners_up = (0..parameters.rows)
        .filter(|row| !selected.contains(row) && witness.scores[*row] == truth[*row])
        .take(parameters.depth())
        .collect();
    lies
}

#[test]
fn honest_witnesses_are_accepted() {
    let hashes = &*HASHES;
    for (circuit, index) in ALL {
        let (parameters, witness) = honest(hashes, circuit, index);
        let instance = Instance::new(hashes, parameters, witness);
        assert!(satisfied(hashes, &instance), "{parameters:?}");
    }
}

#[test]
fn the_count_is_the_number_of_constraints() {
    let hashes = &*HASHES;
    for (circuit, index) in ALL {
        let (parameters, witness) = honest(hashes, circuit, index);
        let instance = Instance::new(hashes, parameters, witness);
        let circuit = AuditCircuit { hashes, instance: &instance };
        let mut builder = Builder::counting();
        circuit.write(&mut builder).unwrap();
        let system = ConstraintSystem::<Fr>::new_ref();
        circuit.generate_constraints(system.clone()).unwrap();
        assert_eq!(builder.counts().values().sum::<usize>(), system.num_constraints());
        assert_eq!(builder.witnesses(), system.num_witness_variables());
        assert_eq!(builder.inputs() + 1, system.num_instance_variables());
    }
}

#[test]
fn every_public_input_is_bound() {
    let hashes = &*HASHES;
    for (circuit, index) in ALL {
        let (parameters, witness) = honest(hashes, circuit, index);
        let tamper: [fn(&mut Instance); 6] = [
            |instance| instance.public.query += Fr::one(),
            |instance| instance.public.seed += Fr::one(),
            |instance| instance.public.record += Fr::one(),
            |instance| instance.public.selection += Fr::one(),
            |instance| instance.public.index.iter_mut().for_each(|root| *root += Fr::one()),
            |instance| instance.public.scores.iter_mut().for_each(|scores| *scores += Fr::one()),
        ];
        for (number, tamper) in tamper.iter().enumerate() {
            let absent =
                (number == 4 && index == Index::Free) || (number == 5 && circuit == Circuit::Naive);
            let mut instance = Instance::new(hashes, parameters, witness.clone());
            tamper(&mut instance);
            assert_eq!(satisfied(hashes, &instance), absent, "{parameters:?}, input {number}");
        }
    }
}

#[test]
fn another_selection_is_refused() {
    let hashes = &*HASHES;
    for (circuit, index) in ALL {
        let (parameters, mut witness) = honest(hashes, circuit, index);
        // The best row gives way to the first runner-up, everything else as before.
        std::mem::swap(&mut witness.selected[0], &mut witness.runners_up[0]);
        let instance = Instance::new(hashes, parameters, witness);
        assert!(!satisfied(hashes, &instance), "{parameters:?}");
    }
}

#[test]
fn fewer_or_repeated_rows_are_refused() {
    let hashes = &*HASHES;
    for (circuit, index) in ALL {
        let (parameters, mut witness) = honest(hashes, circuit, index);
        witness.selected[1] = witness.selected[0];
        let instance = Instance::new(hashes, parameters, witness);
        assert!(!satisfied(hashes, &instance), "{parameters:?}");
    }
}

#[test]
fn embeddings_outside_the_committed_index_are_refused() {
    let hashes = &*HASHES;
    for circuit in [Circuit::Naive, Circuit::Optimised] {
        let (parameters, witness) = honest(hashes, circuit, Index::Committed);
        let committed = Instance::new(hashes, parameters, witness.clone()).public.index;
        let mut other = witness;
        let row = other.selected[0] * parameters.dimension;
        other.rows[row] ^= 1;
        other.scores = other.true_scores();
        other.select(hashes, &parameters);
        let mut instance = Instance::new(hashes, parameters, other);
        assert!(satisfied(hashes, &instance), "honest for its own index");
        instance.public.index = committed;
        assert!(!satisfied(hashes, &instance), "{parameters:?}");
    }
}

#[test]
fn with_a_free_index_the_same_statement_holds_for_any_index() {
    let hashes = &*HASHES;
    let (parameters, witness) = honest(hashes, Circuit::Naive, Index::Free);
    let published = Instance::new(hashes, parameters, witness.clone()).public.elements();
    let mut invented = witness;
    for (row, vector) in invented.rows.chunks_mut(parameters.dimension).enumerate() {
        if invented.selected.contains(&row) {
            vector.copy_from_slice(&invented.query);
        } else {
            vector.fill(0);
        }
    }
    invented.scores = invented.true_scores();
    invented.select(hashes, &parameters);
    let instance = Instance::new(hashes, parameters, invented);
    assert_eq!(instance.public.elements(), published);
    assert!(satisfied(hashes, &instance));
}

#[test]
fn a_wrong_score_on_an_opened_row_is_refused() {
    let hashes = &*HASHES;
    for index in [Index::Committed, Index::Free] {
        let (parameters, mut witness) = honest(hashes, Circuit::Optimised, index);
        let row = witness.runners_up[0];
        witness.scores[row] -= 1;
        let instance = Instance::new(hashes, parameters, witness);
        assert!(!satisfied(hashes, &instance), "{parameters:?}");
    }
}

#[test]
fn the_optimised_circuit_accepts_retrieval_without_noise() {
    let hashes = &*HASHES;
    let (parameters, mut witness) = honest(hashes, Circuit::Optimised, Index::Committed);
    let right = witness.selected.clone();
    let lies = serve_without_noise(hashes, &parameters, &mut witness);
    assert_ne!(largest(&witness.true_scores(), parameters.top_k), right, "the noise matters here");
    assert!(lies > 0);
    let instance = Instance::new(hashes, parameters, witness);
    assert!(satisfied(hashes, &instance));

    // Not only satisfied: proved, and the proof verifies against an honest index and an honest seed.
    let circuit = AuditCircuit { hashes, instance: &instance };
    let mut random = StdRng::seed_from_u64(1);
    let key =
        Groth16::<Bn254>::generate_random_parameters_with_reduction(circuit, &mut random).unwrap();
    let proof = Groth16::<Bn254>::prove(&key, circuit, &mut random).unwrap();
    let public = instance.public.elements();
    assert!(Groth16::<Bn254>::verify(&key.vk, &public, &proof).unwrap());
    let mut other = public;
    other[1] += Fr::one();
    assert!(!Groth16::<Bn254>::verify(&key.vk, &other, &proof).unwrap());
}

#[test]
fn the_naive_circuit_refuses_retrieval_without_noise() {
    let hashes = &*HASHES;
    let (parameters, mut witness) = honest(hashes, Circuit::Naive, Index::Committed);
    serve_without_noise(hashes, &parameters, &mut witness);
    let truth = witness.true_scores();
    let noise = witness.noise(hashes, &parameters);
    // No threshold saves it: neither its own nor that of the right answer.
    let noised: Vec<i64> = truth.iter().zip(noise).map(|(s, z)| s + z).collect();
    for threshold in [witness.threshold, noised[largest(&noised, parameters.top_k)[2]]] {
        witness.threshold = threshold;
        let instance = Instance::new(hashes, parameters, witness.clone());
        assert!(!satisfied(hashes, &instance));
    }
}

#[test]
fn sizes_out_of_range_are_named() {
    let good = parameters(Circuit::Naive, Index::Committed);
    assert!(good.check().is_ok());
    for (bad, name) in [
        (Parameters { rows: 1, ..good }, "rows"),
        (Parameters { rows: (1 << 20) + 1, ..good }, "rows"),
        (Parameters { dimension: 0, ..good }, "dimension"),
        (Parameters { noise_bits: 25, ..good }, "noise-bits"),
        (Parameters { top_k: 0, ..good }, "top-k"),
        (Parameters { top_k: 35, ..good }, "top-k"),
    ] {
        assert!(bad.check().unwrap_err().to_string().starts_with(name));
    }
}
