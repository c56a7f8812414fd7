//! The public statement: what the verifier computes from the instance alone.

use crate::encoding::{ELEMENT_BYTES, Point, decode_point};
use crate::errors::{Result, rejected};
use crate::generators::{Generator, List};
use crate::scalars::log2_ceil;
use crate::selection::relation::{Relation, Ties};
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
    /// What becomes of rows at the boundary.
    pub ties: Ties,
    /// B_sel.
    pub selection: [u8; 32],
}

/// A row whose membership the noise alone does not decide.
#[derive(Clone, Copy, Debug)]
pub struct UncertainRow {
    /// Its position in the index.
    pub position: u64,
    /// z at that position.
    pub noise: i64,
}

/// What there is to prove.
#[derive(Clone, Debug)]
pub enum Case {
    /// |allowed| <= K: the selection is all allowed rows, at these positions, rising.
    All(Vec<u64>),
    /// K < |allowed|.
    Threshold(Threshold),
}

/// The partition of the allowed rows by their noise.
#[derive(Clone, Debug)]
pub struct Threshold {
    /// The constraints of the argument.
    pub relation: Relation,
    /// zeta, with multiplicity: the (K+1)-th largest z, or the K-th where ties are kept.
    pub zeta: i64,
    /// F: positions certainly selected, rising.
    pub certain: Vec<u64>,
    /// U: rows within 2B² of zeta, positions rising.
    pub uncertain: Vec<UncertainRow>,
}

/// A statement whose public conditions hold.
#[derive(Clone, Debug)]
pub struct Statement<'a> {
    /// See [`Instance::context`].
    pub context: [u8; 32],
    /// N.
    pub rows: u64,
    /// C_0 || .. || C_(N-1), not decoded: whoever verifies has accepted their index argument.
    pub commitments: &'a [u8],
    /// e.
    pub query: &'a [i16],
    /// K.
    pub top_k: u64,
    /// B².
    pub squared_norm: u32,
    /// B_sel.
    pub selection: Point,
    /// Which of the two arguments applies.
    pub case: Case,
}

impl<'a> Statement<'a> {
    /// Checks the public conditions of spec 4.6 and derives zeta, F and U.
    ///
    /// ```
    /// use ragaudit_arguments::selection::{Instance, Statement, Ties, statement::Case};
    ///
    /// let instance = Instance {
    ///     context: [0; 32],
    ///     rows: 3,
    ///     commitments: &[0; 96],
    ///     query: &[30, 40],
    ///     noise: &[90_000, -5, 7],
    ///     top_k: 1,
    ///     allowed: None,
    ///     squared_norm: 16129,
    ///     ties: Ties::Dropped,
    ///     selection: [0; 32],
    /// };
    /// let Case::Threshold(threshold) = Statement::new(&instance)?.case else { panic!() };
    /// assert_eq!((threshold.zeta, &threshold.certain[..]), (7, &[0][..]));
    /// assert_eq!(threshold.uncertain.iter().map(|row| row.position).collect::<Vec<_>>(), [1, 2]);
    ///
    /// let all = Instance { top_k: 3, ..instance.clone() };
    /// assert!(matches!(Statement::new(&all)?.case, Case::All(rows) if rows == [0, 1, 2]));
    /// assert!(Statement::new(&Instance { top_k: 0, ..instance }).is_err());
    /// # Ok::<(), ragaudit_arguments::Error>(())
    /// ```
    pub fn new(instance: &Instance<'a>) -> Result<Self> {
        let relation = check_ranges(instance)?;
        check_query(instance)?;
        let case = match sorted_positions(instance)? {
            Some(allowed) if allowed.len() as u64 <= instance.top_k => Case::All(allowed),
            Some(allowed) => Case::Threshold(Threshold::new(
                instance,
                relation,
                allowed.iter().map(|position| (*position, instance.noise[*position as usize])),
            )),
            None if instance.rows <= instance.top_k => Case::All((0..instance.rows).collect()),
            None => Case::Threshold(Threshold::new(
                instance,
                relation,
                (0..).zip(instance.noise.iter().copied()),
            )),
        };
        Ok(Statement {
            context: instance.context,
            rows: instance.rows,
            commitments: instance.commitments,
            query: instance.query,
            top_k: instance.top_k,
            squared_norm: instance.squared_norm,
            selection: decode_point(&instance.selection, "B_sel")?,
            case,
        })
    }

    /// The encoding of C at a position below N.
    pub fn commitment(&self, position: u64) -> &'a [u8] {
        &self.commitments[position as usize * ELEMENT_BYTES..][..ELEMENT_BYTES]
    }
}

fn check_ranges(instance: &Instance) -> Result<Relation> {
    let Instance { rows, top_k, squared_norm, .. } = *instance;
    if !(1..MAX_ROWS).contains(&rows) {
        return Err(rejected(format!("N = {rows}, expected 1 <= N < 2^32")));
    }
    if !(1..1 << 32).contains(&top_k) {
        return Err(rejected(format!("K = {top_k}, expected 1 <= K < 2^32")));
    }
    let Some(relation) = Relation::new(squared_norm, instance.ties) else {
        return Err(rejected(format!("B² = {squared_norm}, expected 1 <= 4B² < 2^26")));
    };
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
    Ok(relation)
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

/// The positions that pass the filter, rising; `None` for all.
fn sorted_positions(instance: &Instance) -> Result<Option<Vec<u64>>> {
    let Some(allowed) = instance.allowed else {
        return Ok(None);
    };
    let mut sorted = allowed.to_vec();
    sorted.sort_unstable();
    if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(rejected("allowed: a position occurs twice"));
    }
    if sorted.last().is_some_and(|last| *last >= instance.rows) {
        return Err(rejected(format!("allowed: position not below N = {}", instance.rows)));
    }
    Ok(Some(sorted))
}

impl Threshold {
    /// `allowed` are more than K pairs of a position and its noise, positions rising.
    fn new(
        instance: &Instance,
        relation: Relation,
        allowed: impl Iterator<Item = (u64, i64)> + Clone,
    ) -> Self {
        let mut values: Vec<i64> = allowed.clone().map(|(_, noise)| noise).collect();
        let rank = match relation.ties {
            Ties::Dropped => instance.top_k as usize,
            Ties::Kept => instance.top_k as usize - 1,
        };
        let zeta = *values.select_nth_unstable_by(rank, |a, b| b.cmp(a)).1;
        let margin = 2 * i128::from(instance.squared_norm);
        let mut certain = Vec::new();
        let mut uncertain = Vec::new();
        for (position, noise) in allowed {
            let distance = i128::from(noise) - i128::from(zeta);
            if distance > margin {
                certain.push(position);
            } else if distance >= -margin {
                uncertain.push(UncertainRow { position, noise });
            }
        }
        Threshold { relation, zeta, certain, uncertain }
    }

    /// m: the columns' tables have 2^m entries, room for U and the mask row.
    pub fn variables(&self) -> usize {
        log2_ceil(self.uncertain.len() + 1)
    }

    /// Degrees of the sumcheck's variables.
    pub fn degrees(&self) -> Vec<usize> {
        vec![3; self.variables()]
    }

    /// K - f: how many rows of U are selected or tied; at least 1 where ties are kept.
    pub fn remaining(&self, top_k: u64) -> u64 {
        top_k - self.certain.len() as u64
    }

    /// Entries of the opened vector.
    pub fn opened(&self, dimension: usize) -> usize {
        let width = dimension + crate::four_squares::COMPLETION;
        self.uncertain.len() + 1 + width + 2 + 1 + 3 * self.variables()
    }

    /// The generators of the opening, in order: A_U, A*, G, M, R.
    pub fn generators(&self, dimension: usize) -> Vec<Generator> {
        let rows = self.uncertain.iter().map(|row| Generator::new(List::A, row.position));
        rows.chain(self.generators_after_rows(dimension)).collect()
    }

    /// The generators of the opening after A_U: A*, G, M, R.
    pub fn generators_after_rows(&self, dimension: usize) -> Vec<Generator> {
        let width = (dimension + crate::four_squares::COMPLETION) as u64;
        let mask_terms = 1 + 3 * self.variables() as u64;
        let list = |list, count| (0..count).map(move |index| Generator::new(list, index));
        list(List::SelectionMask, 1)
            .chain(list(List::G, width))
            .chain(list(List::SelectionM, 2))
            .chain(list(List::SelectionR, mask_terms))
            .collect()
    }
}
