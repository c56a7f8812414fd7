//! What the prover of charges knows.

use curve25519_dalek::scalar::Scalar;
use sha2::{Digest, Sha512};

use super::statement::{Shape, Statement};
use crate::charges::Charges;
use crate::commitments::blinding;
use crate::encoding::ELEMENT_BYTES;
use crate::entries::{Entry, SmallRows};
use crate::errors::{Result, malformed};

/// The rows, and the charge entries from the first of the window to the last of the group.
pub struct Secrets<'a> {
    rows: SmallRows<'a>,
    width: usize,
    blindings: &'a [u8],
    charges: &'a Charges<'a>,
    numbers: &'a [usize],
}

impl<'a> Secrets<'a> {
    /// Completed rows of `width` entries with their blindings, 32 bytes each, and the places of
    /// the group's entries among all charge entries, rising.
    pub fn new<E: Entry>(
        rows: &'a [E],
        width: usize,
        blindings: &'a [u8],
        charges: &'a Charges<'a>,
        numbers: &'a [usize],
    ) -> Result<Self> {
        if numbers.windows(2).any(|pair| pair[0] >= pair[1])
            || numbers.last().is_some_and(|last| *last >= charges.len())
        {
            let count = charges.len();
            return Err(malformed(format!("numbers: expected rising ones below {count}")));
        }
        let rows = E::rows(rows);
        Ok(Secrets { rows, width, blindings, charges, numbers })
    }

    /// Malformed unless they have the sizes of the statement.
    pub fn fits(&self, statement: &Statement, shape: &Shape) -> Result<()> {
        let (entries, count) = (self.rows.len(), shape.rows);
        if self.width != shape.width() || entries != count * self.width {
            return Err(malformed(format!(
                "rows: {entries} entries, expected {count} rows of {}",
                shape.width()
            )));
        }
        if self.blindings.len() != count * ELEMENT_BYTES {
            let bytes = self.blindings.len();
            return Err(malformed(format!(
                "blindings: {bytes} bytes, expected 32 for each of {count}"
            )));
        }
        if self.numbers.len() != statement.entries.len() {
            return Err(malformed(format!(
                "numbers: {}, expected one for each of {} entries",
                self.numbers.len(),
                statement.entries.len()
            )));
        }
        Ok(())
    }

    /// X_i.
    pub fn row(&self, i: usize) -> SmallRows<'a> {
        self.rows.row(i, self.width)
    }

    /// rho_i.
    pub fn blinding(&self, i: usize) -> Result<Scalar> {
        let bytes = &self.blindings[i * ELEMENT_BYTES..][..ELEMENT_BYTES];
        blinding(bytes, &format!("blinding {i}"))
    }

    /// The rows that entry `t` of the group charges, rising.
    pub fn charged(&self, t: usize) -> &[u32] {
        self.charges.rows(self.numbers[t])
    }

    /// How often each of `count` rows is charged before entry `t`, for one `t` after the other.
    pub fn uses_before(&self, count: usize) -> Vec<Vec<u32>> {
        let (mut uses, mut done) = (vec![0; count], 0);
        let mut before = |number: &usize| {
            for entry in done..*number {
                self.charges.rows(entry).iter().for_each(|row| uses[*row as usize] += 1);
            }
            done = *number;
            uses.clone()
        };
        self.numbers.iter().map(&mut before).collect()
    }

    /// rho_t of B_t and the blinding of S_t, for every entry of the group.
    pub fn charge_blindings(&self) -> Result<Vec<[Scalar; 2]>> {
        let (mut sum, mut done) = (Scalar::ZERO, 0);
        let mut blindings = Vec::with_capacity(self.numbers.len());
        for number in self.numbers {
            for entry in done..*number {
                sum += self.charges.blinding(entry)?;
            }
            done = *number;
            blindings.push([self.charges.blinding(*number)?, sum]);
        }
        Ok(blindings)
    }

    /// SHA-512 of all of it, for the prover's randomness.
    pub fn digest(&self) -> [u8; 64] {
        let hash = Sha512::new().chain_update(self.rows.bytes()).chain_update(self.blindings);
        hash.chain_update(self.charges.digest()).finalize().into()
    }
}
