//! The messages of the charge argument, their encoding, and every challenge that follows them.

use curve25519_dalek::scalar::Scalar;

use super::statement::{Shape, Statement};
use crate::encoding::{Point, Reader, Writer};
use crate::errors::Result;
use crate::field::{Element, SmallSum, powers};
use crate::four_squares::COMPLETION;
use crate::multilinear::{eq_mask_row, eq_table};
use crate::opening::{self, OpeningProof};
use crate::sumcheck;
use crate::transcript::Transcript;

/// P1.
pub struct Commitments {
    /// Of every entry h, u_0 .. u_(Wc-1).
    pub columns: Vec<Point>,
    /// The mask row of b, c, h, u_0 .. u_(Wc-1).
    pub masks: Vec<Point>,
    /// C_m: the mask row of Y.
    pub difference_mask: Point,
    /// C_g: the mask of the sumcheck.
    pub mask: Point,
    /// G_sum.
    pub mask_sum: Scalar,
}

/// A decoded proof.
pub struct ChargeProof {
    /// P1.
    pub commitments: Commitments,
    /// P2.
    pub sumcheck: Vec<Scalar>,
    /// P3: v_b, v_c, v_h, v_u_0 .., v_Y.
    pub evaluations: Vec<Scalar>,
    /// P4.
    pub opening: OpeningProof,
}

impl ChargeProof {
    /// Decodes a proof for a statement of this shape; any other length is rejected.
    pub fn decode(bytes: &[u8], shape: &Shape) -> Result<Self> {
        let messages = sumcheck::message_length(&shape.degrees());
        let (columns, opened) = (shape.entries * (shape.bits + 1), shape.opened());
        let evaluations = shape.columns() + 1;
        let elements = columns
            + shape.columns()
            + 3
            + messages
            + evaluations
            + opening::message_length(opened);
        let mut reader = Reader::new(bytes, elements)?;
        let commitments = Commitments {
            columns: reader.points(columns)?,
            masks: reader.points(shape.columns())?,
            difference_mask: reader.point()?,
            mask: reader.point()?,
            mask_sum: reader.scalar()?,
        };
        let sumcheck = reader.scalars(messages)?;
        let evaluations = reader.scalars(evaluations)?;
        let opening = OpeningProof::read(&mut reader, opened)?;
        reader.finish()?;
        Ok(ChargeProof { commitments, sumcheck, evaluations, opening })
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

impl Commitments {
    fn points(&self) -> impl Iterator<Item = &Point> {
        let rest = [&self.difference_mask, &self.mask];
        self.columns.iter().chain(&self.masks).chain(rest)
    }

    /// V1: absorbs P1, draws alpha, t, u and rho.
    pub fn challenges(&self, transcript: &mut Transcript, shape: &Shape) -> TableChallenges {
        self.points().for_each(|point| transcript.absorb("point1", &point.bytes));
        transcript.absorb_scalar("G", &self.mask_sum);
        let alpha = transcript.scalar("alpha");
        let mut draw = |tag, count: usize| -> Vec<Element> {
            (0..count).map(|_| transcript.scalar(tag).into()).collect()
        };
        let (t, u) = (draw("t", shape.entry_variables()), draw("u", shape.row_variables()));
        TableChallenges { alpha, t, u, rho: transcript.scalar("rho") }
    }
}

/// Challenges after P1.
pub struct TableChallenges {
    /// Combines the claims.
    pub alpha: Scalar,
    /// Spreads them over the entries.
    pub t: Vec<Element>,
    /// Spreads them over the rows.
    pub u: Vec<Element>,
    /// Weight of the sumcheck's mask.
    pub rho: Scalar,
}

/// Challenges after P3.
pub struct OpeningChallenges {
    /// gamma^0, gamma^1, ..
    pub gammas: Vec<Element>,
    /// Keeps the blocks of the opened vector apart.
    pub theta: Element,
    /// Q' = x Q.
    pub x: Scalar,
}

impl OpeningChallenges {
    /// V2: absorbs P3.
    pub fn draw(transcript: &mut Transcript, shape: &Shape, evaluations: &[Scalar]) -> Self {
        evaluations.iter().for_each(|value| transcript.absorb_scalar("eval", value));
        let gamma = Element::from(transcript.scalar("gamma"));
        let theta = Element::from(transcript.scalar("theta"));
        OpeningChallenges {
            gammas: powers(&gamma, shape.columns() + 2),
            theta,
            x: transcript.scalar("x"),
        }
    }

    /// gamma^(Wc+3): of the rows and C_m.
    pub fn rows(&self) -> Element {
        self.gammas[self.gammas.len() - 2]
    }

    /// gamma^(Wc+4): of C_g.
    pub fn mask(&self) -> Element {
        self.gammas[self.gammas.len() - 1]
    }
}

/// What the opening needs of the point r = (r_x, r_y).
pub struct At {
    /// eq(r_x, t) for t < T.
    pub entries: Vec<Element>,
    /// eq(r_x, 2^mx - 1).
    pub mask_row: Element,
    /// eq(r_y, i) for i < N.
    pub rows: Vec<Element>,
    /// mask(r).
    pub mask_form: Vec<Element>,
}

impl At {
    /// Of the point that the sumcheck ended at.
    pub fn new(shape: &Shape, r: &[Scalar]) -> Self {
        let point: Vec<Element> = r.iter().map(Element::from).collect();
        let (x, y) = point.split_at(shape.entry_variables());
        let form = sumcheck::mask_form(&shape.degrees(), r);
        At {
            entries: eq_table(&Element::ONE, x, shape.entries),
            mask_row: eq_mask_row(x),
            rows: eq_table(&Element::ONE, y, shape.rows),
            mask_form: form.iter().map(Element::from).collect(),
        }
    }

    /// L: eq(r_y, ·); theta (e~, 0, 0, 0, 0, 1); theta² mask(r).
    pub fn form(&self, statement: &Statement, shape: &Shape, theta: &Element) -> Vec<Element> {
        let mut query = vec![SmallSum::default(); shape.dimension];
        for (entry, weight) in statement.entries.iter().zip(&self.entries) {
            for (sum, e) in query.iter_mut().zip(entry.query) {
                sum.add_product(weight, i64::from(*e));
            }
        }
        let square = theta.square();
        let mut form = self.rows.clone();
        form.extend(query.iter().map(|sum| *theta * sum.reduce()));
        form.extend([Element::ZERO; COMPLETION]);
        form.push(*theta);
        form.extend(self.mask_form.iter().map(|power| square * *power));
        form
    }
}
