//! The relation: constraints, claimed sum, linear form and value of the opening.

use curve25519_dalek::scalar::Scalar;

use super::projections::{DIGIT_BITS, DIGITS, OFFSET, PROJECTIONS, RANGE_ROWS};
use super::protocol::{ColumnChallenges, OpeningChallenges};
use super::statement::Statement;
use crate::field::{Element, ProductSum, inner_product, powers};
use crate::multilinear::{eq_mask_row, eq_product_sum, eq_sum, eq_table};
use crate::sumcheck::mask_form;

/// Powers of alpha and lambda and the public weights that the sumcheck's polynomial is made of.
pub struct Weights {
    /// alpha^0 .. alpha^13 for the boolean constraints.
    pub alphas: Vec<Element>,
    /// alpha^14, of the norms.
    pub norm: Element,
    /// alpha^15, of the projections.
    pub projection: Element,
    /// lambda^q.
    pub lambdas: Vec<Element>,
    /// t.
    pub t: Vec<Element>,
}

impl Weights {
    /// The weights for these challenges.
    pub fn new(drawn: &ColumnChallenges) -> Self {
        let mut alphas = powers(&Element::from(drawn.alpha), DIGIT_BITS + 2);
        let (norm, projection) = (alphas[DIGIT_BITS], alphas[DIGIT_BITS + 1]);
        alphas.truncate(DIGIT_BITS);
        Weights {
            alphas,
            norm,
            projection,
            lambdas: powers(&Element::from(drawn.lambda), PROJECTIONS),
            t: drawn.t.iter().map(Element::from).collect(),
        }
    }

    /// omega on the range rows: lambda^q 2^(14 l) at row 3q + l.
    pub fn digit_weights(&self) -> Vec<Element> {
        let scales = powers(&Element::from_integer(1 << DIGIT_BITS), DIGITS);
        let scaled = |lambda| scales.iter().map(move |scale| *scale * lambda);
        self.lambdas.iter().copied().flat_map(scaled).collect()
    }

    /// S_0.
    pub fn claimed_sum(&self, statement: &Statement) -> Element {
        let rows = eq_sum(&self.t, statement.rows);
        let offsets = Element::from_integer(OFFSET) * self.lambdas.iter().sum::<Element>();
        let squared_norm = Element::from_integer(i64::from(statement.squared_norm));
        self.norm * squared_norm * rows - self.projection * offsets
    }

    /// sum over i < count of eq(t, i) eq(r, i): M_R(r) for count = R, M_N(r) for count = N.
    pub fn rows_at(&self, r: &[Element], count: usize) -> Element {
        eq_product_sum(&self.t, r, count)
    }

    /// The bracket of F at a point where M_R has the value `weight` and omega `digit_weight`.
    pub fn range_part(
        &self,
        digits: &[Element],
        weight: &Element,
        digit_weight: &Element,
    ) -> Element {
        let mut constraints = ProductSum::default();
        for (value, alpha) in digits.iter().zip(&self.alphas) {
            constraints.add_product(alpha, &(value.square() - *value));
        }
        let boolean = constraints.reduce();
        let digit = digits.iter().rev().fold(Element::ZERO, |sum, bit| sum.double() + *bit);
        *weight * boolean - self.projection * *digit_weight * digit
    }

    /// alpha^14 M_N X² + alpha^15 (W X), given X² and W X (or their sums over y).
    pub fn row_part(&self, weight: &Element, square: &Element, projected: &Element) -> Element {
        self.norm * *weight * *square + self.projection * *projected
    }
}

/// Everything public at the sumcheck's point (r_x, r_y).
pub struct Point {
    /// eq(r_x, i) for i < max(N, R).
    pub rows: Vec<Element>,
    /// eq(r_x, 2^m - 1).
    pub mask_row: Element,
    /// eq(r_y, j) for j < d + 4.
    pub columns: Vec<Element>,
    /// r_x.
    pub row_coordinates: Vec<Element>,
    /// r_x and r_y as they were drawn.
    pub coordinates: Vec<Scalar>,
}

impl Point {
    /// The weights at `r` = (r_x, r_y).
    pub fn new(statement: &Statement, r: &[Scalar]) -> Self {
        let coordinates: Vec<Element> = r.iter().map(Element::from).collect();
        let (r_x, r_y) = coordinates.split_at(statement.row_variables());
        Point {
            rows: eq_table(&Element::ONE, r_x, statement.rows.max(RANGE_ROWS)),
            mask_row: eq_mask_row(r_x),
            columns: eq_table(&Element::ONE, r_y, statement.width()),
            row_coordinates: r_x.to_vec(),
            coordinates: r.to_vec(),
        }
    }
}

/// The factors of the commitments in P.
pub struct Combination {
    /// gamma^0 .. gamma^13 for Kap_0 .. Kap_13.
    pub digits: Vec<Element>,
    /// gamma^14, of sum_i eq(r_x, i) C_i + eq(r_x, 2^m - 1) C_m.
    pub rows: Element,
    /// gamma^15, of C_g.
    pub mask: Element,
}

impl Combination {
    /// The factors for this gamma.
    pub fn new(gamma: &Scalar) -> Self {
        let mut digits = powers(&Element::from(gamma), DIGIT_BITS + 2);
        let (rows, mask) = (digits[DIGIT_BITS], digits[DIGIT_BITS + 1]);
        digits.truncate(DIGIT_BITS);
        Combination { digits, rows, mask }
    }
}

/// L: the blocks (idx/P, idx/P*), (G) and (idx/R), kept apart by theta.
pub fn form(statement: &Statement, point: &Point, theta: &Scalar) -> Vec<Element> {
    let theta = Element::from(theta);
    let mut form = point.rows[..RANGE_ROWS].to_vec();
    form.push(point.mask_row);
    form.extend(point.columns.iter().map(|weight| theta * *weight));
    let square = theta.square();
    let mask = mask_form(&statement.degrees(), &point.coordinates);
    form.extend(mask.iter().map(|power| square * Element::from(power)));
    form
}

/// V: the value of the form, from the evaluations sent and the mask's value v_g.
pub fn value(
    combination: &Combination,
    challenges: &OpeningChallenges,
    evaluations: &[Element],
    mask_value: &Scalar,
) -> Element {
    let theta = Element::from(challenges.theta);
    inner_product(&combination.digits, &evaluations[..DIGIT_BITS])
        + theta * combination.rows * evaluations[DIGIT_BITS]
        + theta.square() * combination.mask * Element::from(mask_value)
}
