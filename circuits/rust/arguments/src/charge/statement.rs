//! The public statement, its sizes and its transcript.

use super::ARGUMENT;
use crate::budget::statement::MOST_USES;
use crate::encoding::{ELEMENT_BYTES, Point, decode_point};
use crate::entries::MOST_SQUARED_NORM;
use crate::errors::{Result, rejected};
use crate::four_squares::COMPLETION;
use crate::scalars::log2_ceil;
use crate::transcript::Transcript;
use crate::{MAX_DIMENSION, MAX_ROWS};

/// T is at most this.
pub const MOST_ENTRIES: usize = 1 << 16;

/// What is public of one charge entry.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// 32 bytes that bind everything the argument does not see.
    pub context: [u8; 32],
    /// e.
    pub query: &'a [i16],
    /// tau: rows above it are relevant.
    pub threshold: i64,
    /// The positions that pass the filter, rising; `None` for all.
    pub allowed: Option<&'a [u64]>,
    /// S: the sum of the tenant's B with a smaller log index.
    pub before: [u8; 32],
    /// B.
    pub charge: [u8; 32],
}

/// The public input of a charge argument: a group of entries of one tenant, version and window.
#[derive(Clone, Copy, Debug)]
pub struct Statement<'a> {
    /// M.
    pub uses: u64,
    /// C_0 || .. || C_(N-1).
    pub commitments: &'a [u8],
    /// In log order.
    pub entries: &'a [Entry<'a>],
    /// B².
    pub squared_norm: u32,
}

/// The sizes of a statement in range.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// N.
    pub rows: usize,
    /// d.
    pub dimension: usize,
    /// T.
    pub entries: usize,
    /// Wc: bits of a number up to 2B².
    pub bits: usize,
}

impl Statement<'_> {
    /// The sizes; rejects unless the public conditions hold.
    pub fn shape(&self) -> Result<Shape> {
        let rows = self.commitments.len() / ELEMENT_BYTES;
        if !(1..MAX_ROWS).contains(&(rows as u64)) || self.commitments.len() != rows * ELEMENT_BYTES
        {
            let bytes = self.commitments.len();
            return Err(rejected(format!(
                "commitments: {bytes} bytes, expected 32 for each of 1 to 2^32 - 1 rows"
            )));
        }
        if !(1..=MOST_USES).contains(&self.uses) {
            return Err(rejected(format!("M = {}, expected 1 <= M <= 2^16", self.uses)));
        }
        let norm = self.squared_norm;
        if !(1..=MOST_SQUARED_NORM).contains(&norm) {
            return Err(rejected(format!("B² = {norm}, expected 1 <= 4B² < 2^26")));
        }
        let (entries, first) = (self.entries.len(), self.entries.first());
        let Some(first) = first.filter(|_| entries <= MOST_ENTRIES) else {
            return Err(rejected(format!("{entries} entries, expected 1 to 2^16")));
        };
        let dimension = first.query.len();
        if !(1..MAX_DIMENSION).contains(&(dimension as u64)) {
            return Err(rejected("entry 0: expected a query of dimension 1 <= d < 2^16"));
        }
        for (t, entry) in self.entries.iter().enumerate() {
            entry
                .check(rows as u64, dimension, norm)
                .map_err(|reason| rejected(format!("entry {t}: {reason}")))?;
        }
        let bits = (u32::BITS - (2 * norm).leading_zeros()) as usize;
        Ok(Shape { rows, dimension, entries, bits })
    }

    /// The points S_t and B_t of every entry.
    pub fn points(&self) -> Result<Vec<[Point; 2]>> {
        let decode = |(t, entry): (usize, &Entry)| {
            let before = decode_point(&entry.before, &format!("S_{t}"))?;
            Ok([before, decode_point(&entry.charge, &format!("B_{t}"))?])
        };
        self.entries.iter().enumerate().map(decode).collect()
    }

    /// The transcript with the statement absorbed.
    pub fn begin(&self, shape: &Shape) -> Transcript {
        let mut transcript = Transcript::new(ARGUMENT);
        let mut message = (shape.rows as u64).to_le_bytes().to_vec();
        message.extend((shape.dimension as u32).to_le_bytes());
        message.extend(self.squared_norm.to_le_bytes());
        transcript.absorb("shape", &message);
        transcript.absorb("M", &(self.uses as u32).to_le_bytes());
        transcript.absorb("entries", &(shape.entries as u32).to_le_bytes());
        let place = |position: u32| position.to_le_bytes();
        let all: Vec<u8> = (0..shape.rows as u32).flat_map(place).collect();
        for entry in self.entries {
            transcript.absorb("context", &entry.context);
            let query: Vec<u8> = entry.query.iter().flat_map(|e| e.to_le_bytes()).collect();
            transcript.absorb("e", &query);
            transcript.absorb("tau", &entry.threshold.to_le_bytes());
            match entry.allowed {
                None => transcript.absorb("allowed", &all),
                Some(allowed) => {
                    let places: Vec<u8> =
                        allowed.iter().flat_map(|position| place(*position as u32)).collect();
                    transcript.absorb("allowed", &places);
                }
            }
            transcript.absorb("S", &entry.before);
            transcript.absorb("B", &entry.charge);
        }
        transcript.absorb("rows", self.commitments);
        transcript
    }
}

impl Entry<'_> {
    /// What is wrong with it, for N rows of d entries.
    fn check(&self, rows: u64, dimension: usize, most: u32) -> std::result::Result<(), String> {
        if self.query.len() != dimension {
            return Err(format!("query of {} entries, expected {dimension}", self.query.len()));
        }
        let norm: u64 = self.query.iter().map(|entry| u64::from(entry.unsigned_abs()).pow(2)).sum();
        if norm > u64::from(most) {
            return Err(format!("query: squared norm {norm} above {most}"));
        }
        if !(0..=i64::from(most)).contains(&self.threshold) {
            return Err(format!("tau = {}, expected 0 <= tau <= {most}", self.threshold));
        }
        let allowed = self.allowed.unwrap_or_default();
        if allowed.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err("allowed: positions do not rise".into());
        }
        if allowed.last().is_some_and(|last| *last >= rows) {
            return Err(format!("allowed: position not below N = {rows}"));
        }
        Ok(())
    }
}

impl Shape {
    /// Wc + 3: the tables b, c, h, u_0 .. u_(Wc-1).
    pub fn columns(&self) -> usize {
        self.bits + 3
    }

    /// d + 4.
    pub fn width(&self) -> usize {
        self.dimension + COMPLETION
    }

    /// mx: variables of x, room for the entries and the mask row.
    pub fn entry_variables(&self) -> usize {
        log2_ceil(self.entries + 1)
    }

    /// my: variables of y.
    pub fn row_variables(&self) -> usize {
        log2_ceil(self.rows).max(1)
    }

    /// Degrees of the sumcheck's variables, x then y.
    pub fn degrees(&self) -> Vec<usize> {
        vec![3; self.entry_variables() + self.row_variables()]
    }

    /// Entries of the opened vector: A, G, chg/M, chg/R.
    pub fn opened(&self) -> usize {
        self.rows + self.width() + 2 + self.degrees().iter().sum::<usize>()
    }
}
