//! What the prover knows.

use curve25519_dalek::scalar::Scalar;
use zeroize::Zeroize;

use super::statement::Statement;
use crate::commitments::{blinding, sorted_selection};
use crate::encoding::ELEMENT_BYTES;
use crate::entries::{Entry, SmallRows};
use crate::errors::{Result, malformed};
use crate::four_squares::COMPLETION;

/// The secret input.
pub struct Secrets<'a> {
    rows: SmallRows<'a>,
    /// d + 4.
    pub width: usize,
    blindings: &'a [u8],
    selected: Vec<u64>,
    /// rho_sel.
    pub selection_blinding: Scalar,
}

impl<'a> Secrets<'a> {
    /// Completed rows of `width` = d + 4 entries, their blindings (32 bytes each), the selected
    /// positions (distinct, below 2^32, in any order) and the blinding of B_sel.
    pub fn new<E: Entry>(
        rows: &'a [E],
        width: usize,
        blindings: &'a [u8],
        selected: &[u64],
        selection_blinding: Scalar,
    ) -> Result<Self> {
        let count = blindings.len() / ELEMENT_BYTES;
        if Some(rows.len()) != count.checked_mul(width) || blindings.len() != count * ELEMENT_BYTES
        {
            return Err(malformed(format!(
                "{} entries in rows of {width} with {} bytes of blindings",
                rows.len(),
                blindings.len()
            )));
        }
        let selected = sorted_selection(selected)?;
        Ok(Secrets { rows: E::rows(rows), width, blindings, selected, selection_blinding })
    }

    /// The completed row at a position below N.
    pub fn row(&self, position: u64) -> SmallRows<'a> {
        self.rows.row(position as usize, self.width)
    }

    /// The blinding of a row, encoded.
    pub fn blinding_bytes(&self, position: u64) -> &[u8] {
        &self.blindings[position as usize * ELEMENT_BYTES..][..ELEMENT_BYTES]
    }

    /// Whether a position is selected.
    pub fn selects(&self, position: u64) -> bool {
        self.selected.binary_search(&position).is_ok()
    }

    /// The blinding of a row.
    pub fn blinding(&self, position: u64) -> Result<Scalar> {
        blinding(self.blinding_bytes(position), &format!("blinding {position}"))
    }

    /// Malformed unless there is a row of d + 4 entries for each of the statement's commitments.
    pub fn fits(&self, statement: &Statement) -> Result<()> {
        let count = (self.blindings.len() / ELEMENT_BYTES) as u64;
        let width = statement.query.len() + COMPLETION;
        if count != statement.rows || self.width != width {
            return Err(malformed(format!(
                "rows: {count} of {} entries, expected {} of {width}",
                self.width, statement.rows
            )));
        }
        Ok(())
    }
}

impl Drop for Secrets<'_> {
    fn drop(&mut self) {
        self.selected.zeroize();
        self.selection_blinding.zeroize();
    }
}
