//! The messages of the index argument and their encoding (spec 4.7).

use curve25519_dalek::scalar::Scalar;

use super::projections::DIGIT_BITS;
use super::statement::Statement;
use crate::encoding::{Point, Reader, Writer};
use crate::errors::Result;
use crate::opening::{self, OpeningProof};
use crate::sumcheck;

/// v_kap0 .. v_kap13, v_X.
pub type Evaluations = [Scalar; DIGIT_BITS + 1];

/// P1.
pub struct Commitments {
    /// Kap_0 .. Kap_13.
    pub digits: Vec<Point>,
    /// C_m: the mask row of X.
    pub rows_mask: Point,
    /// C_g: the mask of the sumcheck.
    pub mask: Point,
    /// G_sum.
    pub mask_sum: Scalar,
}

impl Commitments {
    /// All points in the order of the proof.
    pub fn points(&self) -> impl Iterator<Item = &Point> {
        self.digits.iter().chain([&self.rows_mask, &self.mask])
    }
}

/// A decoded proof.
pub struct IndexProof {
    /// P1.
    pub commitments: Commitments,
    /// P2.
    pub sumcheck: Vec<Scalar>,
    /// P3.
    pub evaluations: Evaluations,
    /// P4.
    pub opening: OpeningProof,
}

impl IndexProof {
    /// Decodes a proof for a statement of this shape; any other length is rejected.
    pub fn decode(bytes: &[u8], statement: &Statement) -> Result<Self> {
        let opened = statement.generators().len();
        let messages = sumcheck::message_length(&statement.degrees());
        let elements =
            DIGIT_BITS + 3 + messages + (DIGIT_BITS + 1) + opening::message_length(opened);
        let mut reader = Reader::new(bytes, elements)?;
        let commitments = Commitments {
            digits: reader.points(DIGIT_BITS)?,
            rows_mask: reader.point()?,
            mask: reader.point()?,
            mask_sum: reader.scalar()?,
        };
        let sumcheck = reader.scalars(messages)?;
        let mut evaluations = [Scalar::ZERO; DIGIT_BITS + 1];
        for value in &mut evaluations {
            *value = reader.scalar()?;
        }
        let opening = OpeningProof::read(&mut reader, opened)?;
        reader.finish()?;
        Ok(IndexProof { commitments, sumcheck, evaluations, opening })
    }

    /// The bytes of the proof.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.points(self.commitments.points());
        writer.scalars([&self.commitments.mask_sum]);
        writer.scalars(&self.sumcheck);
        writer.scalars(&self.evaluations);
        self.opening.write(&mut writer);
        writer.finish()
    }
}
