//! The messages of the selection argument and their encoding (spec 4.6).

use curve25519_dalek::scalar::Scalar;

use super::statement::Threshold;
use crate::encoding::{Point, Reader, Writer};
use crate::errors::Result;
use crate::opening::{self, OpeningProof};
use crate::sumcheck;

/// P1.
pub struct Commitments {
    /// Col_1 .. Col_(2+W): b3, b4, u_0 .. u_(W-1).
    pub columns: Vec<Point>,
    /// D_m: the mask of b.
    pub selection_mask: Point,
    /// T_D: first message of (E2).
    pub selection_mask_nonce: Point,
    /// C_t: the threshold and the mask of Y.
    pub threshold: Point,
    /// C_g: the mask of the sumcheck.
    pub mask: Point,
    /// G_sum.
    pub mask_sum: Scalar,
}

impl Commitments {
    /// All points in the order of the proof.
    pub fn points(&self) -> impl Iterator<Item = &Point> {
        let rest = [&self.selection_mask, &self.selection_mask_nonce, &self.threshold, &self.mask];
        self.columns.iter().chain(rest)
    }
}

/// A decoded proof.
pub struct SelectionProof {
    /// P1.
    pub commitments: Commitments,
    /// P2.
    pub sumcheck: Vec<Scalar>,
    /// P3: v_b, v_b3, v_b4, v_u_0 .. v_u_(W-1), v_Y.
    pub evaluations: Vec<Scalar>,
    /// P4: z_A, z_H.
    pub responses: [Scalar; 2],
    /// P5.
    pub opening: OpeningProof,
}

impl SelectionProof {
    /// Decodes a proof for a statement of this shape; any other length is rejected.
    pub fn decode(bytes: &[u8], threshold: &Threshold, dimension: usize) -> Result<Self> {
        let (opened, columns) = (threshold.opened(dimension), threshold.relation.columns());
        let messages = sumcheck::message_length(&threshold.degrees());
        let elements =
            (columns - 1) + 5 + messages + (columns + 1) + 2 + opening::message_length(opened);
        let mut reader = Reader::new(bytes, elements)?;
        let commitments = Commitments {
            columns: reader.points(columns - 1)?,
            selection_mask: reader.point()?,
            selection_mask_nonce: reader.point()?,
            threshold: reader.point()?,
            mask: reader.point()?,
            mask_sum: reader.scalar()?,
        };
        let sumcheck = reader.scalars(messages)?;
        let evaluations = reader.scalars(columns + 1)?;
        let responses = [reader.scalar()?, reader.scalar()?];
        let opening = OpeningProof::read(&mut reader, opened)?;
        reader.finish()?;
        Ok(SelectionProof { commitments, sumcheck, evaluations, responses, opening })
    }

    /// The bytes of the proof.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.points(self.commitments.points());
        writer.scalars([&self.commitments.mask_sum]);
        writer.scalars(&self.sumcheck);
        writer.scalars(&self.evaluations);
        writer.scalars(&self.responses);
        self.opening.write(&mut writer);
        writer.finish()
    }
}
