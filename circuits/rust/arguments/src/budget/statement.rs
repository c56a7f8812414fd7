//! The public statement, its sizes and its transcript.

use super::ARGUMENT;
use crate::MAX_ROWS;
use crate::encoding::ELEMENT_BYTES;
use crate::entries::MOST_SQUARED_NORM;
use crate::errors::{Result, rejected};
use crate::scalars::log2_ceil;
use crate::transcript::Transcript;

/// M is at most this.
pub const MOST_USES: u64 = 1 << 16;

/// The public input of a budget argument.
#[derive(Clone, Copy, Debug)]
pub struct Statement<'a> {
    /// 32 bytes that bind everything the argument does not see.
    pub context: [u8; 32],
    /// N.
    pub rows: u64,
    /// M: how often a row may be charged.
    pub uses: u64,
    /// B_0 || .. || B_(R-1): all charge entries of the tenant and window, in log order.
    pub charges: &'a [u8],
    /// B².
    pub squared_norm: u32,
}

/// The sizes of a statement in range.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// N.
    pub rows: usize,
    /// R.
    pub entries: usize,
    /// M.
    pub uses: usize,
}

impl Statement<'_> {
    /// The sizes; rejects unless they are in range.
    ///
    /// ```
    /// use ragaudit_arguments::budget::Statement;
    ///
    /// let statement = Statement {
    ///     context: [0; 32],
    ///     rows: 5,
    ///     uses: 2,
    ///     charges: &[0; 64],
    ///     squared_norm: 16129,
    /// };
    /// let shape = statement.shape()?;
    /// assert_eq!((shape.entry_variables(), shape.row_variables()), (3, 3));
    /// assert!(Statement { uses: 0, ..statement }.shape().is_err());
    /// # Ok::<(), ragaudit_arguments::Error>(())
    /// ```
    pub fn shape(&self) -> Result<Shape> {
        if !(1..MAX_ROWS).contains(&self.rows) {
            return Err(rejected(format!("N = {}, expected 1 <= N < 2^32", self.rows)));
        }
        if !(1..=MOST_USES).contains(&self.uses) {
            return Err(rejected(format!("M = {}, expected 1 <= M <= 2^16", self.uses)));
        }
        let norm = self.squared_norm;
        if !(1..=MOST_SQUARED_NORM).contains(&norm) {
            return Err(rejected(format!("B² = {norm}, expected 1 <= 4B² < 2^26")));
        }
        let entries = self.charges.len() / ELEMENT_BYTES;
        if !(1..MAX_ROWS).contains(&(entries as u64))
            || self.charges.len() != entries * ELEMENT_BYTES
        {
            return Err(rejected(format!(
                "charges: {} bytes, expected 32 for each of 1 to 2^32 - 1 entries",
                self.charges.len()
            )));
        }
        Ok(Shape { rows: self.rows as usize, entries, uses: self.uses as usize })
    }

    /// The transcript with the statement absorbed.
    pub fn begin(&self, shape: &Shape) -> Transcript {
        let mut transcript = Transcript::new(ARGUMENT);
        transcript.absorb("context", &self.context);
        let mut message = self.rows.to_le_bytes().to_vec();
        message.extend((shape.entries as u64).to_le_bytes());
        message.extend((self.uses as u32).to_le_bytes());
        message.extend(self.squared_norm.to_le_bytes());
        transcript.absorb("shape", &message);
        transcript.absorb("B", self.charges);
        transcript
    }
}

impl Shape {
    /// R + M: the rows of the matrix that hold bits.
    pub fn vectors(&self) -> usize {
        self.entries + self.uses
    }

    /// mx: variables of x, room for the rows of the matrix and its mask row.
    pub fn entry_variables(&self) -> usize {
        log2_ceil(self.vectors() + 1)
    }

    /// my: variables of y.
    pub fn row_variables(&self) -> usize {
        log2_ceil(self.rows).max(1)
    }

    /// Degrees of the sumcheck's variables, x then y.
    pub fn degrees(&self) -> Vec<usize> {
        vec![3; self.entry_variables() + self.row_variables()]
    }

    /// Entries of the opened vector: A_0 .. A_(N-1), then bud/R.
    pub fn opened(&self) -> usize {
        self.rows + 1 + self.degrees().iter().sum::<usize>()
    }
}
