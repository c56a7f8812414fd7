//! The public statement and its sizes.

use super::projections::RANGE_ROWS;
use crate::encoding::ELEMENT_BYTES;
use crate::errors::{Result, rejected};
use crate::four_squares::COMPLETION;
use crate::generators::{Generator, List};
use crate::scalars::log2_ceil;
use crate::{MAX_DIMENSION, MAX_ROWS};

/// The public input of an index argument.
#[derive(Clone, Debug)]
pub struct Statement<'a> {
    /// 32 bytes that bind everything the argument does not see.
    pub context: [u8; 32],
    /// N.
    pub rows: usize,
    /// d.
    pub dimension: usize,
    /// B².
    pub squared_norm: u32,
    /// C_0 || .. || C_(N-1).
    pub commitments: &'a [u8],
}

impl<'a> Statement<'a> {
    /// Checks the public conditions; the commitments themselves are decoded by the verifier.
    ///
    /// ```
    /// use ragaudit_arguments::index::Statement;
    ///
    /// let statement = Statement::new([0; 32], 2, 384, 16129, &[0; 64])?;
    /// assert_eq!((statement.width(), statement.row_variables()), (388, 10));
    /// assert!(Statement::new([0; 32], 3, 384, 16129, &[0; 64]).is_err());
    /// # Ok::<(), ragaudit_arguments::Error>(())
    /// ```
    pub fn new(
        context: [u8; 32],
        rows: u64,
        dimension: u64,
        squared_norm: u32,
        commitments: &'a [u8],
    ) -> Result<Self> {
        if !(1..MAX_ROWS).contains(&rows) {
            return Err(rejected(format!("N = {rows}, expected 1 <= N < 2^32")));
        }
        if !(1..MAX_DIMENSION).contains(&dimension) {
            return Err(rejected(format!("d = {dimension}, expected 1 <= d < 2^16")));
        }
        if !(1..1 << 26).contains(&(4 * u64::from(squared_norm))) {
            return Err(rejected(format!("B² = {squared_norm}, expected 1 <= 4B² < 2^26")));
        }
        // N B sqrt(d + 4) < 2^41: honest projections fit the digits.
        let width = u128::from(dimension) + COMPLETION as u128;
        if u128::from(rows).pow(2) * u128::from(squared_norm) * width >= 1 << 82 {
            return Err(rejected(format!(
                "N = {rows}, d = {dimension}, B² = {squared_norm}: expected N² B² (d + 4) < 2^82"
            )));
        }
        if commitments.len() as u64 != rows * ELEMENT_BYTES as u64 {
            let bytes = commitments.len();
            return Err(rejected(format!(
                "commitments: {bytes} bytes, expected 32 for each of {rows}"
            )));
        }
        let (rows, dimension) = (rows as usize, dimension as usize);
        Ok(Statement { context, rows, dimension, squared_norm, commitments })
    }

    /// d + 4.
    pub fn width(&self) -> usize {
        self.dimension + COMPLETION
    }

    /// m: variables of x, room for all rows, all range rows and the mask row.
    pub fn row_variables(&self) -> usize {
        log2_ceil(self.rows.max(RANGE_ROWS) + 1)
    }

    /// md: variables of y.
    pub fn column_variables(&self) -> usize {
        log2_ceil(self.width())
    }

    /// Degrees of the sumcheck's variables, x then y.
    pub fn degrees(&self) -> Vec<usize> {
        let mut degrees = vec![3; self.row_variables()];
        degrees.resize(self.row_variables() + self.column_variables(), 2);
        degrees
    }

    /// The generators of the opening, in order: idx/P, idx/P*, G, idx/R.
    ///
    /// None is there for the mask of X alone: a row could use it too, and cancel an entry of any
    /// size in the form.
    pub fn generators(&self) -> Vec<Generator> {
        let mask_terms = 1 + self.degrees().iter().sum::<usize>();
        let list =
            |list, count: usize| (0..count as u64).map(move |index| Generator::new(list, index));
        list(List::IndexP, RANGE_ROWS)
            .chain(list(List::IndexMask, 1))
            .chain(list(List::G, self.width()))
            .chain(list(List::IndexR, mask_terms))
            .collect()
    }
}
