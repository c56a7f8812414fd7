//! A prover of budgets that commits to anything and claims anything of it.

use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use ragaudit_arguments::budget::proof::{
    At, BudgetProof, Commitments, MatrixChallenges, OpeningChallenges,
};
use ragaudit_arguments::budget::statement::Shape;
use ragaudit_arguments::budget::{self, Statement};
use ragaudit_arguments::encoding::ELEMENT_BYTES;
use ragaudit_arguments::field::Element;
use ragaudit_arguments::generators::{self, List};
use ragaudit_arguments::multilinear::eq_table;
use ragaudit_arguments::opening;
use ragaudit_arguments::progress::Silent;
use ragaudit_arguments::randomness::ProverRandomness;
use ragaudit_arguments::sumcheck::{self, Mask};
use ragaudit_arguments::{Result, SQUARED_NORM};

use crate::held::{Dense, Held, Opened, parts, scalar};

/// A commitment of the argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// B_t.
    Charge(usize),
    /// W_k.
    Uses(usize),
    /// C_m.
    MaskRow,
    /// C_g.
    Mask,
    /// T_H.
    Nonce,
}

/// A rule that a verifier may lack; the prover then proves that verifier's relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Every entry of the matrix is a bit.
    Bits,
    /// The rows W_k are part of the matrix.
    Vectors,
}

/// What the prover commits to, and what it says of it.
#[derive(Clone, Debug)]
pub struct Budget {
    /// N.
    pub rows: usize,
    /// b_t: R rows of N integers.
    pub charges: Vec<Vec<i64>>,
    /// w_k: M rows of N integers.
    pub vectors: Vec<Vec<i64>>,
    /// The rows of the sumcheck's table that differ from the committed ones, 2^my integers each.
    pub claimed: Option<Vec<Vec<i64>>>,
    /// What the table holds in column 0 of every other row, the mask row among them.
    pub elsewhere: i64,
    /// What commitments hold besides, by the places of the generators in the opening.
    pub stray: Vec<(Name, usize, i64)>,
    /// Whether the mask row has a random value.
    pub masked: bool,
    /// What the prover does not prove.
    pub without: Option<Rule>,
}

impl Budget {
    /// What an honest prover commits to for these charges, R rows of N bits.
    pub fn honest(rows: usize, uses: usize, charges: Vec<Vec<i64>>) -> Self {
        let count = |i: usize| charges.iter().map(|charge| charge[i]).sum::<i64>();
        let vector = |k: usize| (0..rows).map(|i| i64::from(count(i) > k as i64)).collect();
        let vectors = (0..uses).map(vector).collect();
        Budget::committing(rows, charges, vectors)
    }

    /// These charges and vectors, no other deviation.
    pub fn committing(rows: usize, charges: Vec<Vec<i64>>, vectors: Vec<Vec<i64>>) -> Self {
        Budget {
            rows,
            charges,
            vectors,
            claimed: None,
            elsewhere: 0,
            stray: Vec::new(),
            masked: true,
            without: None,
        }
    }

    /// The public input; `points` are B_0 || .. || B_(R-1).
    pub fn statement<'a>(&self, points: &'a [u8]) -> Statement<'a> {
        Statement {
            context: [6; 32],
            rows: self.rows as u64,
            uses: self.vectors.len() as u64,
            charges: points,
            squared_norm: SQUARED_NORM,
        }
    }

    /// The shipped verifier's verdict on what this prover sends.
    pub fn check(&self) -> Result<()> {
        let (points, proof) = self.prove()?;
        budget::verify(&self.statement(&points), &proof, &Silent)
    }

    /// What a commitment holds: these parts, and what is put beside them.
    fn held(
        &self,
        name: Name,
        parts: impl IntoIterator<Item = (usize, Scalar)>,
        randomness: &mut ProverRandomness,
    ) -> Held {
        let mut held = Held::new(parts, randomness);
        for (_, place, part) in self.stray.iter().filter(|(at, ..)| *at == name) {
            held.add(*place, scalar(*part));
        }
        held
    }

    fn all_held(
        &self,
        name: fn(usize) -> Name,
        rows: &[Vec<i64>],
        randomness: &mut ProverRandomness,
    ) -> Vec<Held> {
        let rows = rows.iter().enumerate();
        rows.map(|(number, row)| self.held(name(number), parts(0, row), randomness)).collect()
    }

    /// The sumcheck's table, row after row; `sigma` is the honest part of the mask row.
    fn table(&self, shape: &Shape, sigma: Scalar) -> Vec<Element> {
        let width = 1 << shape.row_variables();
        let committed = || self.charges.iter().chain(&self.vectors).cloned().collect();
        let mut rows: Vec<Vec<i64>> = self.claimed.clone().unwrap_or_else(committed);
        rows.resize(1 << shape.entry_variables(), vec![self.elsewhere]);
        rows.iter_mut().for_each(|row| row.resize(width, 0));
        let mut table: Vec<Element> =
            rows.concat().iter().map(|value| Element::from_integer(*value)).collect();
        let mask_row = table.len() - width;
        table[mask_row] += Element::from(sigma);
        table
    }

    /// M_R M_N over the table.
    fn weights(&self, shape: &Shape, drawn: &MatrixChallenges) -> Vec<Element> {
        let claimed = match self.without {
            Some(Rule::Vectors) => shape.entries,
            _ => shape.vectors(),
        };
        let mut of_rows = eq_table(&Element::ONE, &drawn.t, claimed);
        let mut of_columns = eq_table(&Element::ONE, &drawn.u, shape.rows);
        of_rows.resize(1 << shape.entry_variables(), Element::ZERO);
        of_columns.resize(1 << shape.row_variables(), Element::ZERO);
        of_rows.iter().flat_map(|row| of_columns.iter().map(move |column| *row * *column)).collect()
    }

    /// The points of the statement, and a proof.
    pub fn prove(&self) -> Result<(Vec<u8>, Vec<u8>)> {
        let randomness = &mut ProverRandomness::from_system()?;
        let shape = self.statement(&vec![0; ELEMENT_BYTES * self.charges.len()]).shape()?;
        let degrees = shape.degrees();
        let mut basis: Vec<RistrettoPoint> = generators::first(List::A, self.rows);
        basis.extend(generators::first(List::BudgetR, shape.opened() - self.rows));

        let charges = self.all_held(Name::Charge, &self.charges, randomness);
        let uses = self.all_held(Name::Uses, &self.vectors, randomness);
        let points: Vec<u8> = charges.iter().flat_map(|held| held.point(&basis).bytes).collect();
        let mut transcript = self.statement(&points).begin(&shape);

        // P1
        let sigma = if self.masked { randomness.scalar() } else { Scalar::ZERO };
        let mask = Mask::random(&degrees, randomness);
        let mask_row = self.held(Name::MaskRow, [(0, sigma)], randomness);
        let coefficients = (self.rows..).zip(mask.coefficients().iter().copied());
        let held_mask = self.held(Name::Mask, coefficients, randomness);
        let nonce = self.held(Name::Nonce, [], randomness);
        let commitments = Commitments {
            uses: uses.iter().map(|held| held.point(&basis)).collect(),
            mask_row: mask_row.point(&basis),
            mask: held_mask.point(&basis),
            nonce: nonce.point(&basis),
            mask_sum: mask.sum(),
        };
        // V1
        let drawn = commitments.challenges(&mut transcript, &shape);
        // P2
        let proven = Element::from_bit(self.without != Some(Rule::Bits));
        let tables = vec![self.table(&shape, sigma), self.weights(&shape, &drawn)];
        let mut polynomial = Dense::new(tables, |at| proven * at[1] * (at[0].square() - at[0]));
        let (messages, r) =
            sumcheck::prove(&mut transcript, &mut polynomial, &mask, &drawn.rho, &Silent)?;
        // P3, V2
        let evaluation = Scalar::from(polynomial.evaluations()[0]);
        let challenges = OpeningChallenges::draw(&mut transcript, &evaluation);
        // P4
        let hidden = |all: &[Held]| all.iter().map(Held::blinding).sum::<Scalar>();
        let sum = hidden(&charges) - hidden(&uses);
        let response = nonce.blinding() + challenges.schnorr * sum;
        transcript.absorb_scalar("z", &response);
        // P5
        let at = At::new(&shape, &drawn, &r);
        let mut opened = Opened::new(basis.len());
        for (held, weight) in charges.iter().chain(&uses).zip(&at.vectors) {
            opened.add(held, weight);
        }
        opened.add(&mask_row, &at.mask_row);
        opened.add(&held_mask, &challenges.gamma.into());
        let form: Vec<Scalar> = at.form(&challenges.theta).iter().map(Scalar::from).collect();
        let secret = opening::Secret { vector: opened.vector, blinding: opened.blinding };
        let opening = opening::prove(
            &mut transcript,
            basis,
            &form,
            &challenges.x,
            secret,
            randomness,
            &Silent,
        )?;
        let proof = BudgetProof { commitments, sumcheck: messages, evaluation, response, opening };
        Ok((points, proof.encode()))
    }
}
