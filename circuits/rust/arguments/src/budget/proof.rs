//! The messages of the budget argument, their encoding, and every challenge that follows them.

use curve25519_dalek::scalar::Scalar;

use super::statement::Shape;
use crate::encoding::{Point, Reader, Writer};
use crate::errors::Result;
use crate::field::Element;
use crate::multilinear::{eq_mask_row, eq_product_sum, eq_table};
use crate::opening::{self, OpeningProof};
use crate::sumcheck;
use crate::transcript::Transcript;

/// P1.
pub struct Commitments {
    /// W_0 .. W_(M-1).
    pub uses: Vec<Point>,
    /// C_m: the mask row.
    pub mask_row: Point,
    /// C_g: the mask of the sumcheck.
    pub mask: Point,
    /// T_H: the first message of the equation of the sums.
    pub nonce: Point,
    /// G_sum.
    pub mask_sum: Scalar,
}

/// A decoded proof.
pub struct BudgetProof {
    /// P1.
    pub commitments: Commitments,
    /// P2.
    pub sumcheck: Vec<Scalar>,
    /// P3: v.
    pub evaluation: Scalar,
    /// P4: z.
    pub response: Scalar,
    /// P5.
    pub opening: OpeningProof,
}

impl BudgetProof {
    /// Decodes a proof for a statement of this shape; any other length is rejected.
    pub fn decode(bytes: &[u8], shape: &Shape) -> Result<Self> {
        let messages = sumcheck::message_length(&shape.degrees());
        let opened = shape.opened();
        let elements = shape.uses + 4 + messages + 2 + opening::message_length(opened);
        let mut reader = Reader::new(bytes, elements)?;
        let commitments = Commitments {
            uses: reader.points(shape.uses)?,
            mask_row: reader.point()?,
            mask: reader.point()?,
            nonce: reader.point()?,
            mask_sum: reader.scalar()?,
        };
        let sumcheck = reader.scalars(messages)?;
        let (evaluation, response) = (reader.scalar()?, reader.scalar()?);
        let opening = OpeningProof::read(&mut reader, opened)?;
        reader.finish()?;
        Ok(BudgetProof { commitments, sumcheck, evaluation, response, opening })
    }

    /// The bytes of the proof.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.points(self.commitments.points());
        writer.scalars([&self.commitments.mask_sum]);
        writer.scalars(&self.sumcheck);
        writer.scalars([&self.evaluation, &self.response]);
        self.opening.write(&mut writer);
        writer.finish()
    }
}

impl Commitments {
    fn points(&self) -> impl Iterator<Item = &Point> {
        self.uses.iter().chain([&self.mask_row, &self.mask, &self.nonce])
    }

    /// V1: absorbs P1, draws t, u and rho.
    pub fn challenges(&self, transcript: &mut Transcript, shape: &Shape) -> MatrixChallenges {
        self.points().for_each(|point| transcript.absorb("point1", &point.bytes));
        transcript.absorb_scalar("G", &self.mask_sum);
        let mut draw = |tag, count: usize| -> Vec<Element> {
            (0..count).map(|_| transcript.scalar(tag).into()).collect()
        };
        let (t, u) = (draw("t", shape.entry_variables()), draw("u", shape.row_variables()));
        MatrixChallenges { t, u, rho: transcript.scalar("rho") }
    }
}

/// Challenges after P1.
pub struct MatrixChallenges {
    /// Spreads the claim over the rows of the matrix.
    pub t: Vec<Element>,
    /// Spreads it over the columns.
    pub u: Vec<Element>,
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
    /// Challenge of the equation of the sums.
    pub schnorr: Scalar,
}

impl OpeningChallenges {
    /// V2: absorbs P3.
    pub fn draw(transcript: &mut Transcript, evaluation: &Scalar) -> Self {
        transcript.absorb_scalar("eval", evaluation);
        OpeningChallenges {
            gamma: transcript.scalar("gamma"),
            theta: transcript.scalar("theta"),
            x: transcript.scalar("x"),
            schnorr: transcript.scalar("schnorr"),
        }
    }
}

/// What the opening needs of the point r = (r_x, r_y).
pub struct At {
    /// eq(r_x, j) for the rows of the matrix.
    pub vectors: Vec<Element>,
    /// eq(r_x, 2^mx - 1).
    pub mask_row: Element,
    /// eq(r_y, i) for i < N.
    pub rows: Vec<Element>,
    /// M_R(r_x) M_N(r_y).
    pub weight: Element,
    /// mask(r).
    pub mask_form: Vec<Element>,
}

impl At {
    /// Of the point that the sumcheck ended at.
    pub fn new(shape: &Shape, drawn: &MatrixChallenges, r: &[Scalar]) -> Self {
        let point: Vec<Element> = r.iter().map(Element::from).collect();
        let (x, y) = point.split_at(shape.entry_variables());
        let form = sumcheck::mask_form(&shape.degrees(), r);
        At {
            vectors: eq_table(&Element::ONE, x, shape.vectors()),
            mask_row: eq_mask_row(x),
            rows: eq_table(&Element::ONE, y, shape.rows),
            weight: eq_product_sum(&drawn.t, x, shape.vectors())
                * eq_product_sum(&drawn.u, y, shape.rows),
            mask_form: form.iter().map(Element::from).collect(),
        }
    }

    /// L: eq(r_y, ·), then theta mask(r).
    pub fn form(&self, theta: &Scalar) -> Vec<Element> {
        let theta = Element::from(theta);
        let mask = self.mask_form.iter().map(|power| theta * *power);
        self.rows.iter().copied().chain(mask).collect()
    }
}
