//! The public statement: what the verifier computes from the instance alone.

use rayon::prelude::*;

use crate::encoding::{ELEMENT_BYTES, Point, decode_point};
use crate::errors::{Result, rejected};
use crate::generators::{Generator, List};
use crate::scalars::log2_ceil;
use crate::{MAX_DIMENSION, MAX_ROWS};

/// The public input of a selection argument, as the caller has it.
#[derive(Clone, Debug)]
pub struct Instance<'a> {
    /// 32 bytes that bind everything the argument does not see.
    pub context: [u8; 32],
    /// N, the number of rows of the index.
    pub rows: u64,
    /// C_0 || .. || C_(N-1).
    pub commitments: &'a [u8],
    /// e, of the index's dimension d.
    pub query: &'a [i16],
    /// z_0 .. z_(N-1).
    pub noise: &'a [i64],
    /// K.
    pub top_k: u64,
    /// The positions that pass the filter, in any order; `None` for all.
    pub allowed: Option<&'a [u64]>,
    /// B².
    pub squared_norm: u32,
    /// B_sel.
    pub selection: [u8; 32],
}

/// A row whose membership the noise alone does not decide.
#[derive(Clone, Debug)]
pub struct UncertainRow {
    /// Its position in the index.
    pub position: u64,
    /// z at that position.
    pub noise: i64,
    /// C at that position.
    pub commitment: Point,
}

/// What there is to prove.
#[derive(Clone, Debug)]
pub enum Case {
    /// |allowed| <= K: the selection is all allowed rows.
    All,
    /// K < |allowed|.
    Threshold(Threshold),
}

/// The partition of the allowed rows by their noise.
#[derive(Clone, Debug)]
pub struct Threshold {
    /// zeta: the (K+1)-th largest z, with multiplicity.
    pub zeta: i64,
    /// F: positions certainly selected, rising.
    pub certain: Vec<u64>,
    /// U: rows within 2B² of zeta, positions rising.
    pub uncertain: Vec<UncertainRow>,
}

/// A statement whose public conditions hold.
#[derive(Clone, Debug)]
pub struct Statement {
    /// See [`Instance::context`].
    pub context: [u8; 32],
    /// N.
    pub rows: u64,
    /// e.
    pub query: Vec<i16>,
    /// K.
    pub top_k: u64,
    /// Allowed positions, rising.
    pub allowed: Vec<u64>,
    /// B².
    pub squared_norm: u32,
    /// B_sel.
    pub selection: Point,
    /// Which of the two arguments applies.
    pub case: Case,
}

impl Statement {
    /// Checks the public conditions of spec 4.6 and derives zeta, F and U.
    pub fn new(instance: &Instance) -> Result<Self> {
        check_ranges(instance)?;
        check_query(instance)?;
        let allowed = sorted_positions(instance)?;
        let case = if allowed.len() as u64 <= instance.top_k {
            Case::All
        } else {
            Case::Threshold(Threshold::new(instance, &allowed)?)
        };
        Ok(Statement {
            context: instance.context,
            rows: instance.rows,
            query: instance.query.to_vec(),
            top_k: instance.top_k,
            allowed,
            squared_norm: instance.squared_norm,
            selection: decode_point(&instance.selection, "B_sel")?,
            case,
        })
    }
}

fn check_ranges(instance: &Instance) -> Result<()> {
    let Instance { rows, top_k, squared_norm, .. } = *instance;
    if !(1..MAX_ROWS).contains(&rows) {
        return Err(rejected(format!("N = {rows}, expected 1 <= N < 2^32")));
    }
    if !(1..1 << 32).contains(&top_k) {
        return Err(rejected(format!("K = {top_k}, expected 1 <= K < 2^32")));
    }
    if !(1..1 << 16).contains(&(4 * u64::from(squared_norm))) {
        return Err(rejected(format!("B² = {squared_norm}, expected 1 <= 4B² < 2^16")));
    }
    if instance.noise.len() as u64 != rows {
        return Err(rejected(format!("noise: {} values, expected {rows}", instance.noise.len())));
    }
    if instance.commitments.len() as u64 != rows * ELEMENT_BYTES as u64 {
        let bytes = instance.commitments.len();
        return Err(rejected(format!(
            "commitments: {bytes} bytes, expected 32 for each of {rows}"
        )));
    }
    if !(1..MAX_DIMENSION).contains(&(instance.query.len() as u64)) {
        return Err(rejected("query: expected a dimension 1 <= d < 2^16"));
    }
    Ok(())
}

/// Without |e| <= B a score could leave [-B², B²], and F and U would mean nothing.
fn check_query(instance: &Instance) -> Result<()> {
    let norm: u64 = instance.query.iter().map(|entry| u64::from(entry.unsigned_abs()).pow(2)).sum();
    if norm > u64::from(instance.squared_norm) {
        return Err(rejected(format!(
            "query: squared norm {norm} above {}",
            instance.squared_norm
        )));
    }
    Ok(())
}

fn sorted_positions(instance: &Instance) -> Result<Vec<u64>> {
    let Some(allowed) = instance.allowed else {
        return Ok((0..instance.rows).collect());
    };
    let mut sorted = allowed.to_vec();
    sorted.sort_unstable();
    if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(rejected("allowed: a position occurs twice"));
    }
    if sorted.last().is_some_and(|last| *last >= instance.rows) {
        return Err(rejected(format!("allowed: position not below N = {}", instance.rows)));
    }
    Ok(sorted)
}

impl Threshold {
    /// `allowed` has more than K positions.
    fn new(instance: &Instance, allowed: &[u64]) -> Result<Self> {
        let noise = |position: u64| instance.noise[position as usize];
        let mut values: Vec<i64> = allowed.iter().map(|position| noise(*position)).collect();
        let rank = instance.top_k as usize;
        let zeta = *values.select_nth_unstable_by(rank, |a, b| b.cmp(a)).1;
        let margin = 2 * i128::from(instance.squared_norm);
        let mut certain = Vec::new();
        let mut uncertain = Vec::new();
        for position in allowed.iter().copied() {
            let distance = i128::from(noise(position)) - i128::from(zeta);
            if distance > margin {
                certain.push(position);
            } else if distance >= -margin {
                uncertain.push(position);
            }
        }
        let uncertain = uncertain
            .into_par_iter()
            .map(|position| {
                let start = position as usize * ELEMENT_BYTES;
                let bytes = &instance.commitments[start..start + ELEMENT_BYTES];
                let commitment = decode_point(bytes, &format!("C_{position}"))?;
                Ok(UncertainRow { position, noise: noise(position), commitment })
            })
            .collect::<Result<_>>()?;
        Ok(Threshold { zeta, certain, uncertain })
    }

    /// m: the columns' tables have 2^m entries, room for U and the mask row.
    pub fn variables(&self) -> usize {
        log2_ceil(self.uncertain.len() + 1)
    }

    /// Degrees of the sumcheck's variables.
    pub fn degrees(&self) -> Vec<usize> {
        vec![3; self.variables()]
    }

    /// K - f: how many rows of U are selected or tied.
    pub fn remaining(&self, top_k: u64) -> u64 {
        top_k - self.certain.len() as u64
    }

    /// The generators of the opening, in order: A_U, A*, G, M, R.
    pub fn generators(&self, dimension: usize) -> Vec<Generator> {
        let width = (dimension + crate::four_squares::COMPLETION) as u64;
        let mask_terms = 1 + 3 * self.variables() as u64;
        let list = |list, count| (0..count).map(move |index| Generator::new(list, index));
        self.uncertain
            .iter()
            .map(|row| Generator::new(List::A, row.position))
            .chain(list(List::SelectionMask, 1))
            .chain(list(List::G, width))
            .chain(list(List::SelectionM, 2))
            .chain(list(List::SelectionR, mask_terms))
            .collect()
    }
}
