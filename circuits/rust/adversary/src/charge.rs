//! A prover of charges that commits to anything and claims anything of it.

use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use ragaudit_arguments::charge::proof::{
    At, ChargeProof, Commitments, OpeningChallenges, TableChallenges,
};
use ragaudit_arguments::charge::relation::{MOST_BITS, Relation, Values, Weights};
use ragaudit_arguments::charge::statement::Shape;
use ragaudit_arguments::charge::{self, Entry, Statement};
use ragaudit_arguments::encoding::Point;
use ragaudit_arguments::field::Element;
use ragaudit_arguments::generators::{self, List};
use ragaudit_arguments::multilinear::eq_table;
use ragaudit_arguments::opening;
use ragaudit_arguments::progress::Silent;
use ragaudit_arguments::randomness::ProverRandomness;
use ragaudit_arguments::sumcheck::{self, Mask};
use ragaudit_arguments::{Result, SQUARED_NORM};

use crate::held::{Dense, Held, Opened, parts, scalar};

/// Wc for 8-bit rows.
pub const BITS: usize = 15;
/// b, c, h before the u_k.
const FIRST: usize = 3;

/// A commitment of the argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// B_t.
    Charge(usize),
    /// S_t.
    Before(usize),
    /// Column j of entry t: h, u_0, ..
    Column(usize, usize),
    /// The mask row of table j: b, c, h, u_0, ..
    MaskRow(usize),
    /// C_m.
    DifferenceMask,
    /// C_g.
    Mask,
    /// C_i.
    Row(usize),
}

/// One entry: what is asked, what the prover commits to, and what it says of it.
#[derive(Clone, Debug)]
pub struct Told {
    /// e.
    pub query: Vec<i16>,
    /// tau.
    pub threshold: i64,
    /// The positions that pass the filter; `None` for all.
    pub allowed: Option<Vec<u64>>,
    /// b, c, h: N integers each.
    pub committed: [Vec<i64>; FIRST],
    /// sum 2^k u_k of every row.
    pub distances: Vec<i64>,
    /// Tables of the sumcheck that differ from the committed ones, by their number.
    pub claimed: Vec<(usize, Vec<i64>)>,
}

/// A group of entries over an index of which the prover may say what it likes.
#[derive(Clone, Debug)]
pub struct Charge {
    /// Completed rows.
    pub rows: Vec<Vec<i64>>,
    /// M.
    pub uses: u64,
    /// The entries.
    pub entries: Vec<Told>,
    /// What Y is claimed to be more, everywhere.
    pub shift: i64,
    /// What commitments hold besides, by the places of the generators in the opening.
    pub stray: Vec<(Name, usize, i64)>,
    /// Whether mask rows have random values.
    pub masked: bool,
}

impl Charge {
    /// <e, X_i> - tau of every row, as it is told.
    pub fn differences(&self, entry: &Told) -> Vec<i64> {
        let product = |row: &Vec<i64>| -> i64 {
            row.iter().zip(&entry.query).map(|(x, e)| x * i64::from(*e)).sum()
        };
        self.rows.iter().map(|row| product(row) - entry.threshold + self.shift).collect()
    }

    /// The same with the distances that every entry's b and h ask for, which may be none.
    pub fn measured(mut self) -> Self {
        for t in 0..self.entries.len() {
            let differences = self.differences(&self.entries[t]);
            let entry = &mut self.entries[t];
            let [charged, _, exhausted] = &entry.committed;
            let asked = charged.iter().zip(exhausted).map(|(b, h)| b + h);
            let passes = |i: usize| match &entry.allowed {
                None => true,
                Some(allowed) => allowed.contains(&(i as u64)),
            };
            entry.distances = (asked.zip(differences).enumerate())
                .map(|(i, (asked, difference))| match (passes(i), asked) {
                    (false, _) => 0,
                    (true, 0) => -difference,
                    _ => difference - 1,
                })
                .collect();
        }
        self
    }

    /// The shipped verifier's verdict on what this prover sends.
    pub fn check(&self) -> Result<()> {
        let sent = self.prove()?;
        charge::verify(
            &self.statement(&sent.entries(self), &sent.commitments),
            &sent.proof,
            &Silent,
        )
    }

    fn statement<'a>(&self, entries: &'a [Entry<'a>], commitments: &'a [u8]) -> Statement<'a> {
        Statement { uses: self.uses, commitments, entries, squared_norm: SQUARED_NORM }
    }

    /// The generators of the opening: A, G, chg/M, chg/R.
    fn basis(&self, shape: &Shape) -> Vec<RistrettoPoint> {
        let mut basis: Vec<RistrettoPoint> = generators::first(List::A, shape.rows);
        basis.extend(generators::first(List::G, shape.width()));
        basis.push(generators::point(List::ChargeM, 0));
        basis.extend(generators::first(List::ChargeR, shape.opened() - basis.len()));
        basis
    }

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

    /// The columns of every entry: b, c, h, u_0, ..
    fn columns(&self) -> Vec<Vec<Vec<i64>>> {
        let of = |entry: &Told| {
            let mut columns = entry.committed.to_vec();
            columns.extend((0..BITS).map(|k| digits(&entry.distances, k)));
            columns
        };
        self.entries.iter().map(of).collect()
    }

    /// The tables b, c, h, u_0, .., Y; `masks` are those of the first ones, then sigma.
    fn tables(&self, shape: &Shape, masks: &[Scalar]) -> Vec<Vec<Element>> {
        let (height, width) = (1 << shape.entry_variables(), 1 << shape.row_variables());
        let place = |row: usize, column: usize| row * width + column;
        let mut tables = vec![vec![Element::ZERO; height * width]; shape.columns()];
        for (t, (entry, committed)) in self.entries.iter().zip(self.columns()).enumerate() {
            let told = |j: usize| entry.claimed.iter().find(|(number, _)| *number == j);
            for (j, column) in committed.iter().enumerate() {
                let column = told(j).map_or(column, |(_, column)| column);
                for (i, value) in column.iter().enumerate() {
                    tables[j][place(t, i)] = Element::from_integer(*value);
                }
            }
        }
        let last = height - 1;
        for (table, mask) in tables.iter_mut().zip(masks) {
            table[place(last, 0)] += Element::from(mask);
        }
        let mut differences = vec![Element::from_integer(self.shift); height * width];
        for (t, entry) in self.entries.iter().enumerate() {
            for (i, value) in self.differences(entry).iter().enumerate() {
                differences[place(t, i)] = Element::from_integer(*value);
            }
        }
        for i in 0..width {
            differences[place(last, i)] += Element::from(masks[shape.columns()]);
        }
        tables.push(differences);
        tables
    }

    /// M_all and M_in.
    fn weights(&self, shape: &Shape, drawn: &TableChallenges) -> [Vec<Element>; 2] {
        let (height, width) = (1 << shape.entry_variables(), 1 << shape.row_variables());
        let of_entries = eq_table(&Element::ONE, &drawn.t, shape.entries);
        let of_rows = eq_table(&Element::ONE, &drawn.u, shape.rows);
        let mut weights = [(); 2].map(|()| vec![Element::ZERO; height * width]);
        for (t, entry) in self.entries.iter().enumerate() {
            for (i, of_row) in of_rows.iter().enumerate() {
                let weight = of_entries[t] * *of_row;
                let allowed = entry.allowed.as_ref();
                weights[0][t * width + i] = weight;
                if allowed.is_none_or(|allowed| allowed.contains(&(i as u64))) {
                    weights[1][t * width + i] = weight;
                }
            }
        }
        weights
    }

    /// What is public of the index and the entries, and a proof.
    pub fn prove(&self) -> Result<Sent> {
        let randomness = &mut ProverRandomness::from_system()?;
        let nothing = Sent { points: vec![[[0; 32]; 2]; self.entries.len()], ..Sent::default() };
        let none = vec![0; 32 * self.rows.len()];
        let shape = self.statement(&nothing.entries(self), &none).shape()?;
        let degrees = shape.degrees();
        let basis = self.basis(&shape);
        // Where chg/M stands among them, before chg/R.
        let difference_place = shape.rows + shape.width();

        let rows: Vec<Held> = (self.rows.iter().enumerate())
            .map(|(i, row)| self.held(Name::Row(i), parts(shape.rows, row), randomness))
            .collect();
        let columns = self.columns();
        // B_t, S_t, h, u_0, .. of every entry, as the opening combines them.
        let mut held: Vec<Vec<Held>> = Vec::new();
        for (t, columns) in columns.iter().enumerate() {
            let name = |j: usize| match j {
                0 => Name::Charge(t),
                1 => Name::Before(t),
                _ => Name::Column(t, j - 2),
            };
            let columns = columns.iter().enumerate();
            held.push(
                columns.map(|(j, all)| self.held(name(j), parts(0, all), randomness)).collect(),
            );
        }
        let point = |held: &Held| held.point(&basis);
        let known = |held: &Vec<Held>| [0, 1].map(|j| point(&held[j]).bytes);
        let mut sent = Sent {
            commitments: rows.iter().flat_map(|held| point(held).bytes).collect(),
            points: held.iter().map(known).collect(),
            proof: Vec::new(),
        };
        let entries = sent.entries(self);
        let statement = self.statement(&entries, &sent.commitments);
        let mut transcript = statement.begin(&shape);

        // P1
        let mut masks = randomness.scalars(shape.columns() + 1);
        if !self.masked {
            masks.fill(Scalar::ZERO);
        }
        let mask = Mask::random(&degrees, randomness);
        let mask_rows: Vec<Held> = (masks[..shape.columns()].iter().enumerate())
            .map(|(j, mask)| self.held(Name::MaskRow(j), [(0, *mask)], randomness))
            .collect();
        let sigma = masks[shape.columns()];
        let difference_mask =
            self.held(Name::DifferenceMask, [(difference_place, sigma)], randomness);
        let numbered = (difference_place + 1..).zip(mask.coefficients().iter().copied());
        let held_mask = self.held(Name::Mask, numbered, randomness);
        let commitments = Commitments {
            columns: held
                .iter()
                .flat_map(|held| held[2..].iter().map(point))
                .collect::<Vec<Point>>(),
            masks: mask_rows.iter().map(point).collect(),
            difference_mask: point(&difference_mask),
            mask: point(&held_mask),
            mask_sum: mask.sum(),
        };
        // V1
        let drawn = commitments.challenges(&mut transcript, &shape);
        // P2
        let relation = Relation::new(&shape, self.uses, &drawn);
        let mut tables = self.tables(&shape, &masks);
        tables.extend(self.weights(&shape, &drawn));
        let mut polynomial = Dense::new(tables, |at| value(&relation, at));
        let (messages, r) =
            sumcheck::prove(&mut transcript, &mut polynomial, &mask, &drawn.rho, &Silent)?;
        // P3, V2
        let evaluations = polynomial.evaluations();
        let evaluations: Vec<Scalar> =
            evaluations[..=shape.columns()].iter().map(Scalar::from).collect();
        let challenges = OpeningChallenges::draw(&mut transcript, &shape, &evaluations);
        // P4
        let at = At::new(&shape, &r);
        let mut opened = Opened::new(basis.len());
        for (held, weight) in held.iter().zip(&at.entries) {
            for (held, gamma) in held.iter().zip(&challenges.gammas) {
                opened.add(held, &(*weight * *gamma));
            }
        }
        for (held, gamma) in mask_rows.iter().zip(&challenges.gammas) {
            opened.add(held, &(at.mask_row * *gamma));
        }
        for (held, weight) in rows.iter().zip(&at.rows) {
            opened.add(held, &(challenges.rows() * *weight));
        }
        opened.add(&difference_mask, &(challenges.rows() * at.mask_row));
        opened.add(&held_mask, &challenges.mask());
        let form = at.form(&statement, &shape, &challenges.theta);
        let form: Vec<Scalar> = form.iter().map(Scalar::from).collect();
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
        let proof = ChargeProof { commitments, sumcheck: messages, evaluations, opening };
        sent.proof = proof.encode();
        Ok(sent)
    }
}

/// What a verifier is given.
#[derive(Clone, Default)]
pub struct Sent {
    /// C_0 || .. || C_(N-1).
    pub commitments: Vec<u8>,
    /// B_t and S_t of every entry.
    pub points: Vec<[[u8; 32]; 2]>,
    /// The proof.
    pub proof: Vec<u8>,
}

impl Sent {
    /// What is public of the entries.
    pub fn entries<'a>(&'a self, of: &'a Charge) -> Vec<Entry<'a>> {
        let entry = |(t, (told, [charge, before])): (usize, (&'a Told, &[[u8; 32]; 2]))| Entry {
            context: [t as u8; 32],
            query: &told.query,
            threshold: told.threshold,
            allowed: told.allowed.as_deref(),
            before: *before,
            charge: *charge,
        };
        of.entries.iter().zip(&self.points).enumerate().map(entry).collect()
    }
}

/// F at a point where the tables, M_all and M_in are `at`.
fn value(relation: &Relation, at: &[Element]) -> Element {
    let (tables, weights) = at.split_at(FIRST + BITS + 1);
    let mut bits = [Element::ZERO; MOST_BITS];
    let mut distance = tables[0] + tables[2];
    for (k, bit) in tables[FIRST..FIRST + BITS].iter().enumerate() {
        bits[k] = *bit * relation.scales[k];
        distance += Element::from_integer(1 << k) * *bit;
    }
    let values = Values {
        bits,
        charged: tables[0],
        before: tables[1],
        exhausted: tables[2],
        difference: tables[FIRST + BITS],
        distance,
    };
    relation.value(&values, &Weights { all: weights[0], inside: weights[1] })
}

/// Digit k of every distance; of one that has no Wc bits, all of it is in the lowest place.
fn digits(distances: &[i64], k: usize) -> Vec<i64> {
    let digit = |distance: &i64| match (0..1 << BITS).contains(distance) {
        true => distance >> k & 1,
        false => {
            if k == 0 {
                *distance
            } else {
                0
            }
        }
    };
    distances.iter().map(digit).collect()
}
