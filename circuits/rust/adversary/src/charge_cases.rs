//! Budget and charge arguments that own their statement, so that it can be changed.

use curve25519_dalek::ristretto::CompressedRistretto;
use ragaudit_arguments::charge::{self, Entry};
use ragaudit_arguments::generators::{self, List};
use ragaudit_arguments::progress::Silent;
use ragaudit_arguments::{Result, budget};

use crate::cases::Argument;
use crate::honest_charges::Window;
use crate::mutation::{
    Choices, Mutable, change_commitments, change_element, change_list, changed_norm, changed_number,
};

/// A budget argument; see [`budget::Statement`].
#[derive(Clone, Debug)]
pub struct BudgetCase {
    /// 32 bytes.
    pub context: [u8; 32],
    /// N.
    pub rows: u64,
    /// M.
    pub uses: u64,
    /// B_0 || .. || B_(R-1).
    pub charges: Vec<u8>,
    /// B².
    pub squared_norm: u32,
    /// The proof.
    pub proof: Vec<u8>,
}

impl BudgetCase {
    /// The case of a window, with this proof.
    pub fn new(window: &Window, proof: Vec<u8>) -> Self {
        let charges = window.points().concat();
        let budget::Statement { context, rows, uses, squared_norm, .. } = window.budget(&charges);
        BudgetCase { context, rows, uses, charges, squared_norm, proof }
    }

    fn statement(&self) -> budget::Statement<'_> {
        let BudgetCase { context, rows, uses, squared_norm, .. } = *self;
        budget::Statement { context, rows, uses, charges: &self.charges, squared_norm }
    }
}

impl Argument for BudgetCase {
    /// Context, N, M, B², all B.
    type Meaning = ([u8; 32], u64, u64, u32, Vec<u8>);

    fn proof(&mut self) -> &mut Vec<u8> {
        &mut self.proof
    }

    fn meaning(&self) -> Option<Self::Meaning> {
        self.statement().shape().ok()?;
        let BudgetCase { context, rows, uses, squared_norm, .. } = *self;
        Some((context, rows, uses, squared_norm, self.charges.clone()))
    }

    fn verify(&self) -> Result<()> {
        budget::verify(&self.statement(), &self.proof, &Silent)
    }
}

impl Mutable for BudgetCase {
    fn change_statement(&mut self, choices: &mut Choices) {
        match choices.below(6) {
            0 => self.context[choices.below(32)] ^= 1 << choices.below(8),
            1 => self.rows = changed_number(self.rows, choices),
            2 => self.uses = changed_number(self.uses, choices),
            3 => self.squared_norm = changed_norm(self.squared_norm, choices),
            4 if self.charges.len() >= 32 => add_use(&mut self.charges[..32], choices),
            _ => change_commitments(&mut self.charges, choices),
        }
    }
}

/// What is public of an entry; see [`Entry`].
#[derive(Clone, Debug, PartialEq)]
pub struct OwnedEntry {
    /// 32 bytes.
    pub context: [u8; 32],
    /// e.
    pub query: Vec<i16>,
    /// tau.
    pub threshold: i64,
    /// The positions that pass the filter.
    pub allowed: Option<Vec<u64>>,
    /// S.
    pub before: [u8; 32],
    /// B.
    pub charge: [u8; 32],
}

/// A charge argument; see [`charge::Statement`].
#[derive(Clone, Debug)]
pub struct ChargeCase {
    /// M.
    pub uses: u64,
    /// C_0 || .. || C_(N-1).
    pub commitments: Vec<u8>,
    /// In log order.
    pub entries: Vec<OwnedEntry>,
    /// B².
    pub squared_norm: u32,
    /// The proof.
    pub proof: Vec<u8>,
}

impl ChargeCase {
    /// The case of a window's group, with this proof.
    pub fn new(window: &Window, proof: Vec<u8>) -> Self {
        let entry = |entry: Entry| OwnedEntry {
            context: entry.context,
            query: entry.query.to_vec(),
            threshold: entry.threshold,
            allowed: entry.allowed.map(<[u64]>::to_vec),
            before: entry.before,
            charge: entry.charge,
        };
        let entries = window.entries();
        let charge::Statement { uses, squared_norm, .. } = window.statement(&entries);
        let commitments = window.index.commitments.clone();
        let entries = entries.into_iter().map(entry).collect();
        ChargeCase { uses, commitments, entries, squared_norm, proof }
    }

    fn with_statement<T>(&self, then: impl FnOnce(&charge::Statement) -> T) -> T {
        let entries: Vec<Entry> = self
            .entries
            .iter()
            .map(|entry| Entry {
                context: entry.context,
                query: &entry.query,
                threshold: entry.threshold,
                allowed: entry.allowed.as_deref(),
                before: entry.before,
                charge: entry.charge,
            })
            .collect();
        let ChargeCase { uses, squared_norm, .. } = *self;
        let commitments = &self.commitments;
        then(&charge::Statement { uses, commitments, entries: &entries, squared_norm })
    }
}

impl Argument for ChargeCase {
    /// M, B², C, and the entries; no filter is one that all rows pass.
    type Meaning = (u64, u32, Vec<u8>, Vec<OwnedEntry>);

    fn proof(&mut self) -> &mut Vec<u8> {
        &mut self.proof
    }

    fn meaning(&self) -> Option<Self::Meaning> {
        let shape = self.with_statement(|statement| statement.shape()).ok()?;
        let all = || (0..shape.rows as u64).collect();
        let entry = |entry: &OwnedEntry| OwnedEntry {
            allowed: Some(entry.allowed.clone().unwrap_or_else(all)),
            ..entry.clone()
        };
        let entries = self.entries.iter().map(entry).collect();
        Some((self.uses, self.squared_norm, self.commitments.clone(), entries))
    }

    fn verify(&self) -> Result<()> {
        self.with_statement(|statement| charge::verify(statement, &self.proof, &Silent))
    }
}

impl Mutable for ChargeCase {
    fn change_statement(&mut self, choices: &mut Choices) {
        match choices.below(8) {
            0 => self.uses = changed_number(self.uses, choices),
            1 => self.squared_norm = changed_norm(self.squared_norm, choices),
            2 => change_commitments(&mut self.commitments, choices),
            3 => match choices.below(4) {
                0 => drop(self.entries.pop()),
                1 => self.entries.extend(self.entries.first().cloned()),
                2 => self.entries.reverse(),
                _ => {
                    // Earlier changes may have left none.
                    let places = self.entries.len().min(1);
                    self.entries.rotate_left(places);
                }
            },
            _ => {
                let rows = self.commitments.len() as u64 / 32;
                let place = choices.below(self.entries.len().max(1));
                if let Some(entry) = self.entries.get_mut(place) {
                    entry.change(rows, choices);
                }
            }
        }
    }
}

impl OwnedEntry {
    fn change(&mut self, rows: u64, choices: &mut Choices) {
        match choices.below(6) {
            0 => self.context[choices.below(32)] ^= 1 << choices.below(8),
            1 => change_list(&mut self.query, choices, |entry, choices| {
                entry.wrapping_add(choices.difference() as i16)
            }),
            2 => self.threshold = self.threshold.wrapping_add(choices.difference()),
            3 => {
                let mut allowed = self.allowed.clone().unwrap_or_else(|| (0..rows).collect());
                change_list(&mut allowed, choices, |position, choices| {
                    position.wrapping_add(choices.difference() as u64)
                });
                self.allowed = (choices.byte() & 3 != 0).then_some(allowed);
            }
            4 => change_point(&mut self.before, choices),
            _ => change_point(&mut self.charge, choices),
        }
    }
}

/// One charged row more, or another change.
fn change_point(point: &mut [u8], choices: &mut Choices) {
    if choices.byte() & 1 == 0 { add_use(point, choices) } else { change_element(point, choices) }
}

/// One charged row more.
fn add_use(encoded: &mut [u8], choices: &mut Choices) {
    let bytes: [u8; 32] = std::array::from_fn(|i| encoded[i]);
    if let Some(point) = CompressedRistretto(bytes).decompress() {
        let more = point + generators::point(List::A, choices.below(4) as u64);
        encoded.copy_from_slice(more.compress().as_bytes());
    }
}
