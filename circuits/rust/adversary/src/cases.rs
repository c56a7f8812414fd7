//! Arguments that own their statement, so that it can be changed, and what a statement says.

use ragaudit_arguments::index;
use ragaudit_arguments::progress::Silent;
use ragaudit_arguments::selection::statement::{Case, UncertainRow};
use ragaudit_arguments::selection::{self, Instance, Statement, Ties};
use ragaudit_arguments::{Error, Result, SQUARED_NORM};

use crate::honest::{Index, Record};

/// Index and selection arguments alike.
pub trait Argument: Clone {
    /// All that a statement says, and nothing else: two statements of one meaning are one.
    type Meaning: PartialEq;

    /// The proof.
    fn proof(&mut self) -> &mut Vec<u8>;

    /// The meaning of the statement; `None` for a statement that must be refused.
    fn meaning(&self) -> Option<Self::Meaning>;

    /// The shipped verifier's verdict.
    fn verify(&self) -> Result<()>;

    /// Whether the two have one meaning and one proof.
    fn is(&self, other: &Self) -> bool {
        let same_proof = self.clone().proof() == other.clone().proof();
        same_proof && self.meaning().is_some() && self.meaning() == other.meaning()
    }
}

/// A selection argument; see [`Instance`].
#[derive(Clone, Debug)]
pub struct SelectionCase {
    /// 32 bytes.
    pub context: [u8; 32],
    /// N.
    pub rows: u64,
    /// C_0 || .. || C_(N-1).
    pub commitments: Vec<u8>,
    /// e.
    pub query: Vec<i16>,
    /// z.
    pub noise: Vec<i64>,
    /// K.
    pub top_k: u64,
    /// The positions that pass the filter.
    pub allowed: Option<Vec<u64>>,
    /// B².
    pub squared_norm: u32,
    /// What becomes of rows at the boundary.
    pub ties: Ties,
    /// B_sel.
    pub selection: [u8; 32],
    /// The proof.
    pub proof: Vec<u8>,
}

/// What a selection statement says.
#[derive(Debug, PartialEq)]
pub struct SelectionMeaning {
    /// Context, N, d, B², K, B_sel.
    shape: ([u8; 32], u64, usize, u32, u64, [u8; 32]),
    /// The allowed positions, where all of them are selected.
    allowed: Option<Vec<u64>>,
    /// Otherwise what the choice among them depends on.
    choice: Option<Choice>,
}

/// The argument, e, zeta, F, and position, z and C of every row of U.
#[derive(Debug, PartialEq)]
struct Choice {
    ties: Ties,
    query: Vec<i16>,
    zeta: i64,
    certain: Vec<u64>,
    uncertain: Vec<(u64, i64, Vec<u8>)>,
}

impl SelectionCase {
    /// The case of a record, with this proof.
    pub fn new(record: &Record, proof: Vec<u8>) -> Self {
        let instance = record.instance();
        SelectionCase {
            context: instance.context,
            rows: instance.rows,
            commitments: instance.commitments.to_vec(),
            query: instance.query.to_vec(),
            noise: instance.noise.to_vec(),
            top_k: instance.top_k,
            allowed: instance.allowed.map(<[u64]>::to_vec),
            squared_norm: instance.squared_norm,
            ties: instance.ties,
            selection: instance.selection,
            proof,
        }
    }

    /// The public input.
    pub fn instance(&self) -> Instance<'_> {
        Instance {
            context: self.context,
            rows: self.rows,
            commitments: &self.commitments,
            query: &self.query,
            noise: &self.noise,
            top_k: self.top_k,
            allowed: self.allowed.as_deref(),
            squared_norm: self.squared_norm,
            ties: self.ties,
            selection: self.selection,
        }
    }
}

impl Argument for SelectionCase {
    type Meaning = SelectionMeaning;

    fn proof(&mut self) -> &mut Vec<u8> {
        &mut self.proof
    }

    fn meaning(&self) -> Option<SelectionMeaning> {
        let statement = Statement::new(&self.instance()).ok()?;
        let commitment = |position| statement.commitment(position).to_vec();
        let dimension = self.query.len();
        let shape =
            (self.context, self.rows, dimension, self.squared_norm, self.top_k, self.selection);
        Some(match &statement.case {
            Case::All(allowed) => {
                SelectionMeaning { shape, allowed: Some(allowed.clone()), choice: None }
            }
            Case::Threshold(threshold) => {
                let row = |row: &UncertainRow| (row.position, row.noise, commitment(row.position));
                let choice = Some(Choice {
                    ties: self.ties,
                    query: self.query.clone(),
                    zeta: threshold.zeta,
                    certain: threshold.certain.clone(),
                    uncertain: threshold.uncertain.iter().map(row).collect(),
                });
                SelectionMeaning { shape, allowed: None, choice }
            }
        })
    }

    fn verify(&self) -> Result<()> {
        selection::verify(&self.instance(), &self.proof)
    }
}

/// An index argument; see [`index::Statement`].
#[derive(Clone, Debug)]
pub struct IndexCase {
    /// 32 bytes.
    pub context: [u8; 32],
    /// N.
    pub rows: u64,
    /// d.
    pub dimension: u64,
    /// B².
    pub squared_norm: u32,
    /// C_0 || .. || C_(N-1).
    pub commitments: Vec<u8>,
    /// The proof.
    pub proof: Vec<u8>,
}

impl IndexCase {
    /// The case of an index, with this proof.
    pub fn new(index: &Index, proof: Vec<u8>) -> Self {
        IndexCase {
            context: index.statement().context,
            rows: index.count() as u64,
            dimension: index.dimension as u64,
            squared_norm: SQUARED_NORM,
            commitments: index.commitments.clone(),
            proof,
        }
    }

    fn statement(&self) -> Result<index::Statement<'_>> {
        let IndexCase { context, rows, dimension, squared_norm, .. } = *self;
        index::Statement::new(context, rows, dimension, squared_norm, &self.commitments)
    }
}

impl Argument for IndexCase {
    /// Context, N, d, B², C.
    type Meaning = ([u8; 32], u64, u64, u32, Vec<u8>);

    fn proof(&mut self) -> &mut Vec<u8> {
        &mut self.proof
    }

    fn meaning(&self) -> Option<Self::Meaning> {
        self.statement().ok()?;
        let IndexCase { context, rows, dimension, squared_norm, .. } = *self;
        Some((context, rows, dimension, squared_norm, self.commitments.clone()))
    }

    fn verify(&self) -> Result<()> {
        index::verify(&self.statement()?, &self.proof, &Silent)
    }
}

/// What became of a changed argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is one of the honest ones after all, and accepted.
    Honest,
    /// It is none of the honest ones, and rejected.
    Rejected,
    /// Anything else: the verifier is wrong, or it did not finish.
    Wrong,
}

/// The verdict on `changed`, which is made from these honest arguments.
pub fn judge<A: Argument>(honest: &[A], changed: &A) -> Verdict {
    match (honest.iter().any(|argument| argument.is(changed)), changed.verify()) {
        (true, Ok(())) => Verdict::Honest,
        (false, Err(Error::Rejected(_))) => Verdict::Rejected,
        _ => Verdict::Wrong,
    }
}
