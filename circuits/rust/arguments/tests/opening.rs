//! Openings of vectors of any length: what is behind their end counts as zero, and is not summed.
#![allow(clippy::unwrap_used)]

use curve25519_dalek::scalar::Scalar;
use ragaudit_arguments::Result;
use ragaudit_arguments::field::{Element, inner_product};
use ragaudit_arguments::generators::{List, first, point};
use ragaudit_arguments::multiscalar::{Equation, secret_sum};
use ragaudit_arguments::opening::{self, Secret};
use ragaudit_arguments::progress::Silent;
use ragaudit_arguments::randomness::ProverRandomness;
use ragaudit_arguments::transcript::Transcript;

/// Proves the opening of the vector (1, .., length), and verifies (E1) for a claimed value.
fn opens(length: usize, claimed: &Element) -> Result<()> {
    let vector: Vec<Scalar> = (1..=length as u64).map(Scalar::from).collect();
    let form = form_of(length);
    let blinding = Scalar::from(7u8);
    let generators = first(List::G, length);
    let commitment = secret_sum(&vector, &generators) + blinding * point(List::H, 0);
    let mut transcript = Transcript::new("opening");
    let x = transcript.scalar("x");
    let proof = opening::prove(
        &mut transcript.clone(),
        generators,
        &form,
        &x,
        Secret { vector, blinding },
        &mut ProverRandomness::from_system().unwrap(),
        &Silent,
    )?;

    let folding = opening::follow(&mut transcript, &proof)?;
    let products = folding.products(&Element::ONE, length);
    let form: Vec<Element> = form.iter().map(Element::from).collect();
    let formed = inner_product(&products, &form);
    let value = folding.factor() * *claimed;
    let mut equation = Equation::default();
    folding.add_messages(&Element::ONE, &mut equation);
    for (index, product) in (0..).zip(&products) {
        equation.add_generator(List::G, index, *product);
    }
    equation.add_generator(List::Q, 0, Element::from(&x) * (formed + value));
    equation.add_point(commitment, folding.factor());
    equation.check(&Silent)
}

fn form_of(length: usize) -> Vec<Scalar> {
    (0..length as u64).map(|i| Scalar::from(3 * i + 1)).collect()
}

#[test]
fn vectors_of_every_length_are_opened() {
    for length in 1..=18 {
        let form = form_of(length);
        let value: Scalar =
            form.iter().zip(1u64..).map(|(weight, entry)| weight * Scalar::from(entry)).sum();
        let (value, other) = (Element::from(&value), Element::from(&(value + Scalar::ONE)));
        opens(length, &value).unwrap();
        assert!(opens(length, &other).is_err(), "length {length}");
    }
}
