//! The ties opening, "ties/v1": which rows of T are answered (spec 4.6.10).
//!
//! ```
//! use ragaudit_arguments::progress::Silent;
//! use ragaudit_arguments::ties::{self, Ranked, Statement};
//! use ragaudit_arguments::{SQUARED_NORM, commitments, four_squares};
//!
//! // Scores 20, 30, 20, 20 with K = 2: rows 1 and 0 are answered, rows 2 and 3 stay behind.
//! let rows = four_squares::complete_rows(&[2i8, 3, 2, 2], 1, SQUARED_NORM)?;
//! let blindings = commitments::random_scalars(4)?;
//! let committed = commitments::commit_rows(&rows, 5, &blindings, &Silent)?;
//! let ranked = |position, score| Ranked { position, score };
//! let statement = Statement {
//!     context: [0; 32],
//!     rows: 4,
//!     query: &[10],
//!     top_k: 2,
//!     served: &[ranked(0, 20), ranked(1, 30)],
//!     withdrawn: &[],
//!     others: &[2, 3],
//!     commitments: &committed[64..],
//!     squared_norm: SQUARED_NORM,
//! };
//! let proof = ties::prove(&statement, &rows[10..], &blindings[64..], &Silent)?;
//! ties::verify(&statement, &proof)?;
//!
//! let other = Statement { others: &[0, 3], served: &[ranked(1, 30), ranked(2, 20)], ..statement };
//! assert!(ties::verify(&other, &proof).is_err());
//! # Ok::<(), ragaudit_arguments::Error>(())
//! ```

use curve25519_dalek::scalar::Scalar;
use sha2::{Digest, Sha512};
use zeroize::Zeroizing;

use crate::commitments::blinding;
use crate::encoding::{ELEMENT_BYTES, Point, Reader, Writer, decode_point};
use crate::entries::{Entry, MOST_SQUARED_NORM, SmallRows};
use crate::errors::{Error, Result, malformed, rejected};
use crate::field::{Element, SmallSum, inner_product, powers};
use crate::four_squares::COMPLETION;
use crate::generators::{self, List};
use crate::multiscalar::Equation;
use crate::opening::{self, OpeningProof};
use crate::progress::{Progress, Silent};
use crate::randomness::ProverRandomness;
use crate::transcript::Transcript;
use crate::{MAX_DIMENSION, MAX_ROWS};

/// The argument's name.
pub const ARGUMENT: &str = "ties/v1";

/// A row and its score <e, X_i>.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranked {
    /// Its position in the index.
    pub position: u64,
    /// Its score.
    pub score: i64,
}

/// The public input: the served and withdrawn rows are the first K of T, the others follow.
#[derive(Clone, Copy, Debug)]
pub struct Statement<'a> {
    /// 32 bytes that bind everything the argument does not see.
    pub context: [u8; 32],
    /// N.
    pub rows: u64,
    /// e.
    pub query: &'a [i16],
    /// K.
    pub top_k: u64,
    /// The rows of the answer, positions rising.
    pub served: &'a [Ranked],
    /// The first rows that were left out, positions rising.
    pub withdrawn: &'a [Ranked],
    /// The positions of T behind the first K, rising.
    pub others: &'a [u64],
    /// C_i of the withdrawn rows and the others, in one list of rising positions.
    pub commitments: &'a [u8],
    /// B².
    pub squared_norm: u32,
}

impl Statement<'_> {
    /// d + 4.
    fn width(&self) -> usize {
        self.query.len() + COMPLETION
    }

    /// The withdrawn rows and the others with their scores, positions rising; rejects unless the
    /// public conditions hold, the order of T among them.
    fn opened(&self) -> Result<Vec<Ranked>> {
        self.check_ranges()?;
        let first: Vec<Ranked> = self.served.iter().chain(self.withdrawn).copied().collect();
        self.check_rows(&first)?;
        // Rows behind the K-th have its score, by the definition of T.
        let least = first.iter().map(|row| row.score).min();
        let (Some(least), Some(next)) = (least, self.others.first()) else {
            return Err(rejected("others: none, expected more than K rows in T"));
        };
        if first.iter().any(|row| row.score == least && row.position > *next) {
            return Err(rejected(format!("row {next} precedes a row before it in the order of T")));
        }
        let others =
            self.others.iter().map(|position| Ranked { position: *position, score: least });
        let mut opened: Vec<Ranked> = self.withdrawn.iter().copied().chain(others).collect();
        opened.sort_unstable_by_key(|row| row.position);
        Ok(opened)
    }

    fn check_ranges(&self) -> Result<()> {
        if !(1..MAX_ROWS).contains(&self.rows) {
            return Err(rejected(format!("N = {}, expected 1 <= N < 2^32", self.rows)));
        }
        if !(1..MAX_DIMENSION).contains(&(self.query.len() as u64)) {
            return Err(rejected("query: expected a dimension 1 <= d < 2^16"));
        }
        let most = u64::from(self.squared_norm);
        if !(1..=u64::from(MOST_SQUARED_NORM)).contains(&most) {
            return Err(rejected(format!("B² = {most}, expected 1 <= 4B² < 2^26")));
        }
        let norm: u64 = self.query.iter().map(|entry| u64::from(entry.unsigned_abs()).pow(2)).sum();
        if norm > most {
            return Err(rejected(format!("query: squared norm {norm} above {most}")));
        }
        Ok(())
    }

    fn check_rows(&self, first: &[Ranked]) -> Result<()> {
        let most = u64::from(self.squared_norm);
        if first.iter().any(|row| row.score.unsigned_abs() > most) {
            return Err(rejected(format!("scores: one outside -{most}..{most}")));
        }
        if !(1..1 << 32).contains(&self.top_k) || first.len() as u64 != self.top_k {
            let count = first.len();
            return Err(rejected(format!(
                "{count} rows served or withdrawn, expected K = {}",
                self.top_k
            )));
        }
        let position = |row: &Ranked| row.position;
        for (list, what) in [
            (self.served.iter().map(position).collect::<Vec<_>>(), "served"),
            (self.withdrawn.iter().map(position).collect(), "withdrawn"),
            (self.others.to_vec(), "others"),
        ] {
            if list.windows(2).any(|pair| pair[0] >= pair[1]) {
                return Err(rejected(format!("{what}: positions do not rise")));
            }
        }
        let mut all: Vec<u64> = first.iter().map(position).chain(self.others.to_vec()).collect();
        all.sort_unstable();
        if all.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(rejected("a position is named twice"));
        }
        if all.last().is_some_and(|last| *last >= self.rows) {
            return Err(rejected(format!("position not below N = {}", self.rows)));
        }
        let unserved = self.withdrawn.len() + self.others.len();
        if self.commitments.len() != unserved * ELEMENT_BYTES {
            let bytes = self.commitments.len();
            return Err(rejected(format!(
                "commitments: {bytes} bytes, expected 32 for each of {unserved}"
            )));
        }
        Ok(())
    }

    /// The transcript with the statement absorbed; draws lambda and x.
    fn begin(&self) -> (Transcript, Scalar, Scalar) {
        let mut transcript = Transcript::new(ARGUMENT);
        transcript.absorb("context", &self.context);
        let mut shape = self.rows.to_le_bytes().to_vec();
        shape.extend((self.query.len() as u32).to_le_bytes());
        shape.extend(self.squared_norm.to_le_bytes());
        transcript.absorb("shape", &shape);
        let query: Vec<u8> = self.query.iter().flat_map(|entry| entry.to_le_bytes()).collect();
        transcript.absorb("e", &query);
        transcript.absorb("K", &(self.top_k as u32).to_le_bytes());
        transcript.absorb("served", &ranked_bytes(self.served));
        // Before lambda is drawn: the score of a withdrawn row chosen later could cancel an error.
        transcript.absorb("withdrawn", &ranked_bytes(self.withdrawn));
        let others: Vec<u8> =
            self.others.iter().flat_map(|position| (*position as u32).to_le_bytes()).collect();
        transcript.absorb("others", &others);
        transcript.absorb("C", self.commitments);
        let lambda = transcript.scalar("lambda");
        let x = transcript.scalar("x");
        (transcript, lambda, x)
    }

    /// L: e and four zeros.
    fn form(&self) -> Vec<Element> {
        let entries = self.query.iter().map(|entry| Element::from_integer(i64::from(*entry)));
        entries.chain([Element::ZERO; COMPLETION]).collect()
    }
}

fn ranked_bytes(rows: &[Ranked]) -> Vec<u8> {
    let encode = |row: &Ranked| {
        let (position, score) = ((row.position as u32).to_le_bytes(), row.score.to_le_bytes());
        [&position[..], &score[..]].concat()
    };
    rows.iter().flat_map(encode).collect()
}

/// Proves the statement for these completed rows and their blindings (32 bytes each), those of the
/// commitments in it.
///
/// Runs on any rows; unless they have the scores that the statement says, the proof is rejected.
pub fn prove<E: Entry>(
    statement: &Statement,
    rows: &[E],
    blindings: &[u8],
    progress: &dyn Progress,
) -> Result<Vec<u8>> {
    let opened = statement.opened().map_err(|error| match error {
        Error::Rejected(message) => Error::Malformed(message),
        other => other,
    })?;
    let width = statement.width();
    if rows.len() != opened.len() * width || blindings.len() != opened.len() * ELEMENT_BYTES {
        return Err(malformed(format!(
            "{} entries and {} bytes of blindings, expected {} rows of {width}",
            rows.len(),
            blindings.len(),
            opened.len()
        )));
    }
    let (mut transcript, lambda, x) = statement.begin();
    let mut randomness = ProverRandomness::new(&transcript, &digest(E::rows(rows), blindings))?;
    let weights = powers(&Element::from(lambda), opened.len());
    let mut vector = vec![SmallSum::default(); width];
    for (row, weight) in rows.chunks(width).zip(&weights) {
        for (sum, entry) in vector.iter_mut().zip(row) {
            sum.add_product(weight, (*entry).into());
        }
    }
    let blindings = blindings
        .chunks(ELEMENT_BYTES)
        .enumerate()
        .map(|(row, bytes)| Ok(blinding(bytes, &format!("blinding {row}"))?.into()))
        .collect::<Result<Vec<Element>>>()?;
    let blindings = Zeroizing::new(blindings);
    let form: Vec<Scalar> = statement.form().iter().map(Scalar::from).collect();
    let secret = opening::Secret {
        vector: vector.iter().map(|sum| sum.reduce().into()).collect(),
        blinding: inner_product(&blindings, &weights).into(),
    };
    let points = generators::first(List::G, width);
    let proof =
        opening::prove(&mut transcript, points, &form, &x, secret, &mut randomness, progress)?;
    let mut writer = Writer::default();
    proof.write(&mut writer);
    progress.report(1.0)?;
    Ok(writer.finish())
}

/// Rejects unless `proof` proves the statement.
pub fn verify(statement: &Statement, proof: &[u8]) -> Result<()> {
    let opened = statement.opened()?;
    let commitments = statement
        .commitments
        .chunks(ELEMENT_BYTES)
        .zip(&opened)
        .map(|(bytes, row)| decode_point(bytes, &format!("C_{}", row.position)))
        .collect::<Result<Vec<Point>>>()?;
    let width = statement.width();
    let mut reader = Reader::new(proof, opening::message_length(width))?;
    let proof = OpeningProof::read(&mut reader, width)?;
    reader.finish()?;
    let (mut transcript, lambda, x) = statement.begin();
    let weights = powers(&Element::from(lambda), opened.len());
    let scores: Vec<Element> = opened.iter().map(|row| Element::from_integer(row.score)).collect();
    let value = inner_product(&scores, &weights);

    // (E1)
    let folding = opening::follow(&mut transcript, &proof)?;
    let products = folding.products(&Element::ONE, width);
    let formed = inner_product(&products, &statement.form());
    let factor = folding.factor();
    let mut equation = Equation::default();
    folding.add_messages(&Element::ONE, &mut equation);
    for (index, product) in products.iter().enumerate() {
        equation.add_generator(List::G, index as u64, *product);
    }
    equation.add_generator(List::Q, 0, Element::from(x) * (formed + factor * value));
    for (commitment, weight) in commitments.iter().zip(&weights) {
        equation.add_point(commitment.element, factor * *weight);
    }
    equation.check(&Silent)
}

/// SHA-512 of the secret input, for the prover's randomness.
fn digest(rows: SmallRows, blindings: &[u8]) -> [u8; 64] {
    Sha512::new().chain_update(rows.bytes()).chain_update(blindings).finalize().into()
}
