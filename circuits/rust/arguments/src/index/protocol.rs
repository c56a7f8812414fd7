//! Every transcript call of the index argument, once for prover and verifier.

use curve25519_dalek::scalar::Scalar;

use super::ARGUMENT;
use super::projections::Projections;
use super::proof::{Commitments, Evaluations};
use super::statement::Statement;
use crate::transcript::Transcript;

/// Challenges after P1.
pub struct ColumnChallenges {
    /// Combines the constraints.
    pub alpha: Scalar,
    /// Combines the projections.
    pub lambda: Scalar,
    /// Spreads the constraints over the rows.
    pub t: Vec<Scalar>,
    /// Weight of the sumcheck's mask.
    pub rho: Scalar,
}

/// Challenges after P3.
pub struct OpeningChallenges {
    /// Combines the commitments.
    pub gamma: Scalar,
    /// Keeps the blocks of the opened vector apart.
    pub theta: Scalar,
    /// Q' = x Q.
    pub x: Scalar,
}

/// The transcript with the statement absorbed.
pub fn begin(statement: &Statement) -> Transcript {
    let mut transcript = Transcript::new(ARGUMENT);
    transcript.absorb("context", &statement.context);
    let mut shape = (statement.rows as u64).to_le_bytes().to_vec();
    shape.extend((statement.dimension as u32).to_le_bytes());
    shape.extend(statement.squared_norm.to_le_bytes());
    transcript.absorb("shape", &shape);
    transcript.absorb("C", statement.commitments);
    transcript
}

/// V0: draws the projections.
pub fn projections(transcript: &mut Transcript, statement: &Statement) -> Projections {
    let (rows, width) = (statement.rows, statement.width());
    let bits = transcript.bits("projections", Projections::bit_count(rows, width));
    Projections::new(bits, rows, width)
}

/// V1: absorbs P1, draws alpha, lambda, t and rho.
pub fn column_challenges(
    transcript: &mut Transcript,
    commitments: &Commitments,
    row_variables: usize,
) -> ColumnChallenges {
    for point in commitments.points() {
        transcript.absorb("point1", &point.bytes);
    }
    transcript.absorb_scalar("G", &commitments.mask_sum);
    ColumnChallenges {
        alpha: transcript.scalar("alpha"),
        lambda: transcript.scalar("lambda"),
        t: (0..row_variables).map(|_| transcript.scalar("t")).collect(),
        rho: transcript.scalar("rho"),
    }
}

/// V2: absorbs P3, draws gamma, theta and x.
pub fn opening_challenges(
    transcript: &mut Transcript,
    evaluations: &Evaluations,
) -> OpeningChallenges {
    evaluations.iter().for_each(|value| transcript.absorb_scalar("eval", value));
    OpeningChallenges {
        gamma: transcript.scalar("gamma"),
        theta: transcript.scalar("theta"),
        x: transcript.scalar("x"),
    }
}
