//! Every transcript call of the selection argument, once for prover and verifier.

use curve25519_dalek::scalar::Scalar;

use super::proof::Commitments;
use super::relation::Ties;
use super::statement::{Statement, Threshold};
use crate::transcript::Transcript;

/// Challenges after P1.
pub struct ColumnChallenges {
    /// Combines the constraints.
    pub alpha: Scalar,
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
    /// Challenge c_D of (E2).
    pub schnorr: Scalar,
}

/// The transcript with the statement absorbed.
pub fn begin(statement: &Statement, threshold: &Threshold) -> Transcript {
    let mut transcript = Transcript::new(match threshold.relation.ties {
        Ties::Dropped => "selection/v1",
        Ties::Kept => "selection-ties/v1",
    });
    absorb_common(&mut transcript, statement, |transcript| {
        transcript.absorb("e", &query_bytes(statement.query));
    });
    transcript.absorb("zeta", &threshold.zeta.to_le_bytes());
    transcript.absorb("F", &position_bytes(&threshold.certain));
    let mut uncertain = Vec::with_capacity(44 * threshold.uncertain.len());
    for row in &threshold.uncertain {
        uncertain.extend_from_slice(&(row.position as u32).to_le_bytes());
        uncertain.extend_from_slice(&row.noise.to_le_bytes());
        uncertain.extend_from_slice(statement.commitment(row.position));
    }
    transcript.absorb("U", &uncertain);
    transcript.absorb("B", &statement.selection.bytes);
    transcript
}

/// The transcript of selection-all with the statement absorbed.
pub fn begin_all(statement: &Statement, allowed: &[u64]) -> Transcript {
    let mut transcript = Transcript::new("selection-all/v1");
    absorb_common(&mut transcript, statement, |_| ());
    transcript.absorb("allowed", &position_bytes(allowed));
    transcript.absorb("B", &statement.selection.bytes);
    transcript
}

/// "context", "shape", whatever lies between, "K".
fn absorb_common(
    transcript: &mut Transcript,
    statement: &Statement,
    between: impl FnOnce(&mut Transcript),
) {
    transcript.absorb("context", &statement.context);
    let mut shape = statement.rows.to_le_bytes().to_vec();
    shape.extend((statement.query.len() as u32).to_le_bytes());
    shape.extend(statement.squared_norm.to_le_bytes());
    transcript.absorb("shape", &shape);
    between(transcript);
    transcript.absorb("K", &(statement.top_k as u32).to_le_bytes());
}

fn query_bytes(query: &[i16]) -> Vec<u8> {
    query.iter().flat_map(|entry| entry.to_le_bytes()).collect()
}

fn position_bytes(positions: &[u64]) -> Vec<u8> {
    positions.iter().flat_map(|position| (*position as u32).to_le_bytes()).collect()
}

/// V1: absorbs P1, draws alpha, t and rho.
pub fn column_challenges(
    transcript: &mut Transcript,
    commitments: &Commitments,
    variables: usize,
) -> ColumnChallenges {
    for point in commitments.points() {
        transcript.absorb("point1", &point.bytes);
    }
    transcript.absorb_scalar("G", &commitments.mask_sum);
    ColumnChallenges {
        alpha: transcript.scalar("alpha"),
        t: (0..variables).map(|_| transcript.scalar("t")).collect(),
        rho: transcript.scalar("rho"),
    }
}

/// V2: absorbs P3, draws gamma, theta, x and c_D.
pub fn opening_challenges(
    transcript: &mut Transcript,
    evaluations: &[Scalar],
) -> OpeningChallenges {
    evaluations.iter().for_each(|value| transcript.absorb_scalar("eval", value));
    OpeningChallenges {
        gamma: transcript.scalar("gamma"),
        theta: transcript.scalar("theta"),
        x: transcript.scalar("x"),
        schnorr: transcript.scalar("schnorr"),
    }
}

/// P4: absorbs the responses of (E2).
pub fn absorb_responses(transcript: &mut Transcript, responses: &[Scalar; 2]) {
    transcript.absorb_scalar("zA", &responses[0]);
    transcript.absorb_scalar("zH", &responses[1]);
}
