//! OPEN: knowledge of (a, rho) with P = sum a_i (g_i + L_i x Q) + rho H (spec 4.4).

use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::Identity;
use rayon::prelude::*;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::encoding::{Point, Reader, Writer};
use crate::errors::{Result, rejected};
use crate::field::Element;
use crate::generators::{self, List};
use crate::multilinear::folding_table;
use crate::multiscalar::{Equation, public_sum, secret_sum};
use crate::progress::{Progress, Stage};
use crate::randomness::ProverRandomness;
use crate::scalars::{inner_product, log2_ceil};
use crate::transcript::Transcript;

/// Rounds whose challenges are carried in the exponents before the generators are folded: one
/// eight-term sum per new generator is cheaper than three foldings.
const ROUNDS_PER_FOLDING: usize = 3;

/// Terms of a sum, or generators folded, between two reports of progress.
const STEP: usize = 1 << 13;

/// The message of the prover.
pub struct OpeningProof {
    rounds: Vec<[Point; 2]>,
    last: Point,
    z1: Scalar,
    z2: Scalar,
}

/// Rounds of the opening of a vector of `length` entries.
///
/// ```
/// use ragaudit_arguments::opening::{message_length, rounds};
///
/// assert_eq!([1, 2, 3, 5].map(rounds), [1, 1, 2, 3]);
/// assert_eq!(message_length(5), 2 * 3 + 3);
/// ```
pub fn rounds(length: usize) -> usize {
    log2_ceil(length).max(1)
}

/// Elements of an encoded opening of a vector of `length` entries.
pub fn message_length(length: usize) -> usize {
    2 * rounds(length) + 3
}

impl OpeningProof {
    /// Reads the opening of a vector of `length` entries.
    pub fn read(reader: &mut Reader, length: usize) -> Result<Self> {
        let rounds = (0..rounds(length))
            .map(|_| Ok([reader.point()?, reader.point()?]))
            .collect::<Result<_>>()?;
        Ok(OpeningProof {
            rounds,
            last: reader.point()?,
            z1: reader.scalar()?,
            z2: reader.scalar()?,
        })
    }

    /// Writes the opening.
    pub fn write(&self, writer: &mut Writer) {
        writer.points(self.rounds.iter().flatten());
        writer.points([&self.last]);
        writer.scalars([&self.z1, &self.z2]);
    }
}

/// L_k and R_k are absorbed, then the folding challenge is drawn.
fn fold_challenge(transcript: &mut Transcript, round: &[Point; 2]) -> Result<Scalar> {
    transcript.absorb("L", &round[0].bytes);
    transcript.absorb("R", &round[1].bytes);
    let c = transcript.scalar("fold");
    if c == Scalar::ZERO { Err(rejected("challenge fold is zero")) } else { Ok(c) }
}

/// T is absorbed, then the last challenge is drawn.
pub fn last_challenge(transcript: &mut Transcript, t: &Point) -> Scalar {
    transcript.absorb("T", &t.bytes);
    transcript.scalar("last")
}

/// Generators whose last few foldings are kept as scalar factors.
struct FoldedGenerators {
    base: Vec<RistrettoPoint>,
    /// Length of the padded vector, a power of two.
    length: usize,
    pending: Vec<Scalar>,
}

impl FoldedGenerators {
    /// The products of pending challenges, one per base generator of a folded one; the first
    /// challenge belongs to the top bit.
    fn factors(&self) -> Vec<Scalar> {
        self.pending.iter().fold(vec![Scalar::ONE], |factors, c| {
            factors.iter().flat_map(|factor| [*factor, factor * c]).collect()
        })
    }

    /// <vector, generators start .. start + |vector|>, in time that depends on sizes only.
    fn secret_sum(
        &self,
        vector: &[Scalar],
        start: usize,
        progress: &dyn Progress,
    ) -> Result<RistrettoPoint> {
        let factors = self.factors();
        let mut sum = RistrettoPoint::identity();
        let (mut scalars, mut points) = (Vec::new(), Vec::new());
        for (block, factor) in factors.iter().enumerate() {
            let offset = block * self.length + start;
            let base = self.base.get(offset..).unwrap_or_default();
            for (step, entries) in vector[..vector.len().min(base.len())].chunks(STEP).enumerate() {
                scalars.extend(entries.iter().map(|entry| entry * factor));
                points.extend_from_slice(&base[step * STEP..][..entries.len()]);
                if scalars.len() >= STEP {
                    progress.report(share(
                        block * vector.len() + step * STEP,
                        factors.len() * vector.len(),
                    ))?;
                    sum += secret_sum(&scalars, &points);
                    scalars.zeroize();
                    points.clear();
                }
            }
        }
        sum += secret_sum(&scalars, &points);
        scalars.zeroize();
        Ok(sum)
    }

    fn fold(&mut self, c: Scalar, progress: &dyn Progress) -> Result<()> {
        self.pending.push(c);
        self.length /= 2;
        if self.pending.len() == ROUNDS_PER_FOLDING || self.length == 1 {
            self.settle(progress)?;
        }
        Ok(())
    }

    /// Carries out the pending foldings; the challenges are public.
    fn settle(&mut self, progress: &dyn Progress) -> Result<()> {
        let factors = self.factors();
        let kept = self.length.min(self.base.len());
        let mut folded = Vec::with_capacity(kept);
        while folded.len() < kept {
            progress.report(share(folded.len(), kept))?;
            let step = folded.len()..kept.min(folded.len() + STEP);
            folded.par_extend(step.into_par_iter().map(|i| {
                let column: Vec<RistrettoPoint> =
                    self.base[i..].iter().step_by(self.length).copied().collect();
                public_sum(&factors[..column.len()], &column)
            }));
        }
        self.base = folded;
        self.pending.clear();
        Ok(())
    }
}

/// done / all, for a report of progress.
fn share(done: usize, all: usize) -> f64 {
    done as f64 / all as f64
}

/// What is opened: the vector a and the blinding rho.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Secret {
    /// a.
    pub vector: Vec<Scalar>,
    /// rho.
    pub blinding: Scalar,
}

/// Proves the opening of `secret`, for the form `form` and Q' = x Q.
///
/// Steps 1 to 3 of each round are those of spec 4.4.
///
/// `generators`, `form` and the vector have one length.
///
/// ```
/// use curve25519_dalek::scalar::Scalar;
/// use ragaudit_arguments::field::{Element, inner_product};
/// use ragaudit_arguments::generators::{List, first};
/// use ragaudit_arguments::multiscalar::{Equation, secret_sum};
/// use ragaudit_arguments::opening::{self, Secret};
/// use ragaudit_arguments::progress::Silent;
/// use ragaudit_arguments::randomness::ProverRandomness;
/// use ragaudit_arguments::transcript::Transcript;
///
/// // a = (2, 3), L = (10, 1), <a, L> = 23, rho = 0
/// let (vector, form) = ([2u8, 3].map(Scalar::from), [10u8, 1].map(Scalar::from));
/// let generators = first(List::G, 2);
/// let commitment = secret_sum(&vector, &generators);
/// let mut transcript = Transcript::new("example");
/// let x = transcript.scalar("x");
/// let proof = opening::prove(
///     &mut transcript.clone(),
///     generators,
///     &form,
///     &x,
///     Secret { vector: vector.to_vec(), blinding: Scalar::ZERO },
///     &mut ProverRandomness::from_system()?,
///     &Silent,
/// )?;
///
/// // (E1)
/// let folding = opening::follow(&mut transcript, &proof)?;
/// let products = folding.products(&Element::ONE, 2);
/// let formed = inner_product(&products, &form.map(|entry| Element::from(&entry)));
/// let value = folding.factor() * Element::from_integer(23);
/// let mut equation = Equation::default();
/// folding.add_messages(&Element::ONE, &mut equation);
/// equation.add_generator(List::G, 0, products[0]);
/// equation.add_generator(List::G, 1, products[1]);
/// equation.add_generator(List::Q, 0, Element::from(x) * (formed + value));
/// equation.add_point(commitment, folding.factor());
/// equation.check(&Silent)?;
/// # Ok::<(), ragaudit_arguments::Error>(())
/// ```
pub fn prove(
    transcript: &mut Transcript,
    generators: Vec<RistrettoPoint>,
    form: &[Scalar],
    x: &Scalar,
    mut secret: Secret,
    randomness: &mut ProverRandomness,
    progress: &dyn Progress,
) -> Result<OpeningProof> {
    let length = 1 << rounds(secret.vector.len());
    let h = generators::point(List::H, 0);
    let q = generators::point(List::Q, 0);
    let mut generators = FoldedGenerators { base: generators, length, pending: Vec::new() };
    let mut form = form.to_vec();
    form.resize(length, Scalar::ZERO);
    let mut rounds = Vec::new();
    while generators.length > 1 {
        let half = generators.length / 2;
        // In the first round the upper half may be shorter: its padding adds nothing to the sums.
        let (low, high) = secret.vector.split_at(half);
        let (form_low, form_high) = form.split_at(half);
        let masks = [randomness.scalar(), randomness.scalar()];
        // Work is about proportional to the length: half of what is left is done in this round.
        let stage = Stage::new(progress, 1.0 - share(2 * half, length), 1.0 - share(half, length));
        let message =
            |entries: &[Scalar], start, form: &[Scalar], mask, progress: &dyn Progress| {
                let mut scalars = [x * inner_product(entries, form), mask];
                let sum = generators.secret_sum(entries, start, progress)?;
                let point = Point::from(sum + secret_sum(&scalars, &[q, h]));
                scalars.zeroize();
                Ok(point)
            };
        let [first, second] = [Stage::new(&stage, 0.0, 0.4), Stage::new(&stage, 0.4, 0.8)];
        // 1: Left_j, Right_j
        let left = message(low, half, form_high, masks[0], &first)?;
        let right = message(high, 0, form_low, masks[1], &second)?;
        let round = [left, right];
        // 2: c_j
        let c = fold_challenge(transcript, &round)?;
        // 3: a, L, rho, g at half the length
        let inverse = c.invert();
        let mut folded = low.to_vec();
        folded.iter_mut().zip(high).for_each(|(a, b)| *a += inverse * b);
        form = form_low.iter().zip(form_high).map(|(a, b)| a + c * b).collect();
        secret.vector.zeroize();
        secret.vector = folded;
        secret.blinding += c * masks[0] + inverse * masks[1];
        generators.fold(c, &Stage::new(&stage, 0.8, 1.0))?;
        rounds.push(round);
    }
    // T, c, z1 and z2
    let (s, t) = (randomness.scalar(), randomness.scalar());
    let last = Point::from(secret_sum(&[s, s * x * form[0], t], &[generators.base[0], q, h]));
    let c = last_challenge(transcript, &last);
    let proof =
        OpeningProof { rounds, last, z1: s + c * secret.vector[0], z2: t + c * secret.blinding };
    Ok(proof)
}

/// What V draws from the messages of an opening, and what (E1) needs of them.
pub struct Folding<'a> {
    proof: &'a OpeningProof,
    /// c_1 .. c_k.
    challenges: Vec<Element>,
    inverses: Vec<Scalar>,
    last: Element,
}

/// Follows the messages; nothing is checked but that no challenge is zero.
pub fn follow<'a>(transcript: &mut Transcript, proof: &'a OpeningProof) -> Result<Folding<'a>> {
    let challenges = proof
        .rounds
        .iter()
        .map(|round| fold_challenge(transcript, round))
        .collect::<Result<Vec<Scalar>>>()?;
    let last = last_challenge(transcript, &proof.last);
    let mut inverses = challenges.clone();
    Scalar::invert_batch_alloc(&mut inverses);
    let challenges = challenges.iter().map(Element::from).collect();
    Ok(Folding { proof, challenges, inverses, last: last.into() })
}

impl Folding<'_> {
    /// weight · z1 s_i for i < length: (E1)'s coefficients of the generators, all foldings unrolled.
    pub fn products(&self, weight: &Element, length: usize) -> Vec<Element> {
        folding_table(&(*weight * Element::from(self.proof.z1)), &self.challenges, length)
    }

    /// The factor of P in (E1): -c.
    pub fn factor(&self) -> Element {
        -self.last
    }

    /// Adds `weight` times the terms of (E1) in H, T, L_k and R_k.
    pub fn add_messages(&self, weight: &Element, equation: &mut Equation) {
        let factor = *weight * self.factor();
        equation.add_generator(List::H, 0, *weight * Element::from(self.proof.z2));
        equation.add_point(self.proof.last.element, -*weight);
        let challenges = self.challenges.iter().zip(&self.inverses);
        for (round, (challenge, inverse)) in self.proof.rounds.iter().zip(challenges) {
            equation.add_point(round[0].element, factor * *challenge);
            equation.add_point(round[1].element, factor * Element::from(inverse));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field;
    use crate::generators::Generator;
    use crate::progress::Silent;

    fn names(length: usize) -> Vec<Generator> {
        (0..length as u64).map(|index| Generator::new(List::G, index)).collect()
    }

    fn check(length: usize, wrong_value: bool) -> Result<()> {
        let mut randomness = ProverRandomness::from_system()?;
        let names = names(length);
        let generators = generators::points(&names);
        let vector = randomness.scalars(length);
        let form = randomness.scalars(length);
        let blinding = randomness.scalar();
        let mut transcript = Transcript::new("opening-test");
        let x = transcript.scalar("x");
        let value = inner_product(&vector, &form) + Scalar::from(u8::from(wrong_value));
        let proof = prove(
            &mut transcript.clone(),
            generators.clone(),
            &form,
            &x,
            Secret { vector: vector.clone(), blinding },
            &mut randomness,
            &Silent,
        )?;
        let mut equation = Equation::default();
        let folding = follow(&mut transcript, &proof)?;
        let weight = Element::from(randomness.scalar());
        folding.add_messages(&weight, &mut equation);
        let products = folding.products(&weight, length);
        for (name, product) in names.iter().zip(&products) {
            equation.add_generator(name.list, name.index, *product);
        }
        let form: Vec<Element> = form.iter().map(Element::from).collect();
        let x = Element::from(x);
        equation.add_generator(List::Q, 0, x * field::inner_product(&products, &form));
        let factor = weight * folding.factor();
        for (point, scalar) in generators.iter().zip(&vector) {
            equation.add_point(*point, factor * Element::from(scalar));
        }
        equation.add_generator(List::H, 0, factor * Element::from(blinding));
        equation.add_generator(List::Q, 0, factor * x * Element::from(value));
        equation.check(&Silent)
    }

    #[test]
    fn every_length_opens() {
        (1..20).chain([31, 32, 33, 64, 65, 100]).for_each(|length| check(length, false).unwrap());
    }

    #[test]
    fn a_wrong_value_is_rejected() {
        (1..10).for_each(|length| assert!(check(length, true).is_err()));
    }

    fn opened(tag: &'static str) -> (Result<OpeningProof>, Transcript) {
        let mut randomness = ProverRandomness::from_system().unwrap();
        let mut transcript = Transcript::drawing_zero(tag);
        let secret = Secret { vector: randomness.scalars(3), blinding: randomness.scalar() };
        let (form, x) = (randomness.scalars(3), randomness.scalar());
        let generators = generators::first(List::G, 3);
        let proof = prove(&mut transcript, generators, &form, &x, secret, &mut randomness, &Silent);
        (proof, transcript)
    }

    /// It has probability 1/l, and nothing could be inverted.
    #[test]
    fn a_folding_challenge_of_zero_is_refused() {
        let zero = Err(rejected("challenge fold is zero"));
        assert_eq!(opened("fold").0.map(|_| ()), zero);
        let proof = opened("none").0.unwrap();
        let follow = |mut transcript: Transcript| follow(&mut transcript, &proof).map(|_| ());
        assert_eq!(follow(Transcript::drawing_zero("fold")), zero);
        assert_eq!(follow(Transcript::drawing_zero("none")), Ok(()));
    }
}
