//! The relation: constraints, claimed sum, linear form and value of the opening.

use curve25519_dalek::scalar::Scalar;
use rayon::prelude::*;

use super::statement::{Statement, Threshold};
use crate::field::{Element, ProductSum, SmallSum, inner_product, powers};
use crate::multilinear::{eq_mask_row, eq_product_sum, eq_sum, eq_table};
use crate::sumcheck::mask_form;
use crate::tables::extend;

/// Columns besides the bits of the distance: b, b3, b4.
const SELECTED: usize = 3;

/// Bits of |y - tau| or |tau - 1 - y| where 4B² < 2^16, as for B = 127.
const NARROW: usize = 16;

/// Bits of the same where 4B² < 2^26, as for B = 4095.
const WIDE: usize = 26;

/// The most columns that a relation has.
pub const MAX_COLUMNS: usize = SELECTED + WIDE;

/// What becomes of rows whose noised score is that of the boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ties {
    /// "selection/v1": T = {y > y_(K+1)}, so that a tie leaves fewer than K rows.
    Dropped,
    /// "selection-ties/v1": T = {y >= y_(K)}, so that a tie leaves more than K rows.
    Kept,
}

/// The constraints, which depend on the width of a distance and on what becomes of ties.
///
/// ```
/// use ragaudit_arguments::selection::relation::{Relation, Ties};
///
/// assert_eq!(Relation::new(16129, Ties::Dropped).unwrap().columns(), 19);
/// assert_eq!(Relation::new(16769025, Ties::Kept).unwrap().columns(), 29);
/// assert!(Relation::new(1 << 24, Ties::Kept).is_none());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relation {
    /// W: bits of |y - tau| or |tau - 1 - y|, both at most 4B² < 2^W.
    pub distance_bits: usize,
    /// What becomes of ties.
    pub ties: Ties,
}

impl Relation {
    /// The relation for this B²; none unless 1 <= 4B² < 2^26.
    pub fn new(squared_norm: u32, ties: Ties) -> Option<Self> {
        let distance_bits = match 4 * u64::from(squared_norm) {
            0 => return None,
            range if range < 1 << NARROW => NARROW,
            range if range < 1 << WIDE => WIDE,
            _ => return None,
        };
        Some(Relation { distance_bits, ties })
    }

    /// Boolean columns: b, b3, b4, u_0 .. u_(W-1).
    pub fn columns(&self) -> usize {
        SELECTED + self.distance_bits
    }

    // Exponents of alpha after the boolean constraints c_0 .. c_(2+W).
    fn disjoint(&self) -> usize {
        self.columns()
    }

    fn tied(&self) -> usize {
        self.columns() + 1
    }

    fn distance(&self) -> usize {
        self.columns() + 2
    }

    fn one_tie(&self) -> usize {
        self.columns() + 3
    }

    fn count(&self) -> usize {
        self.columns() + 4
    }

    /// The powers of alpha that [`Relation::evaluate`] and [`Relation::claimed_sum`] use.
    pub fn alpha_powers(&self, alpha: &Scalar) -> Vec<Element> {
        powers(&Element::from(alpha), self.count() + 1)
    }

    /// F at a point where the columns and Y, last, have these values, M the value `weight` and
    /// chi `indicator`.
    pub fn evaluate(
        &self,
        alphas: &[Element],
        values: &[Element],
        weight: &Element,
        indicator: &Element,
    ) -> Element {
        let (columns, y) = (&values[..self.columns()], values[self.columns()]);
        let mut booleans = ProductSum::default();
        for (value, alpha) in columns.iter().zip(alphas) {
            booleans.add_product(alpha, &(value.square() - *value));
        }
        let bits = columns[SELECTED..].iter().rev();
        let distance = bits.fold(Element::ZERO, |sum, bit| sum.double() + *bit);
        let selected = [columns[0], columns[1], columns[2]];
        self.combine(alphas, booleans, &selected, y, distance, weight, indicator)
    }

    /// F given the part of the boolean constraints, the values of b, b3, b4 and Y, and
    /// sum 2^k u_k.
    #[allow(clippy::too_many_arguments)] // the letters of the formula
    fn combine(
        &self,
        alphas: &[Element],
        booleans: ProductSum,
        [b, b3, b4]: &[Element; SELECTED],
        y: Element,
        distance: Element,
        weight: &Element,
        indicator: &Element,
    ) -> Element {
        let (b, b3, b4) = (*b, *b3, *b4);
        let mut constraints = booleans;
        // A row at the boundary is the best one left out (Y = -1), or the last one taken (Y = 0);
        // b4 counts what lacks to K rows, or what exceeds them.
        let (boundary, counted) = match self.ties {
            Ties::Dropped => (y + Element::ONE, b + b4),
            Ties::Kept => (y, b - b4),
        };
        let tied = (b3 + b4) * boundary;
        let distant = (b.double() - Element::ONE) * y - (Element::ONE - b) - distance;
        constraints.add_product(&alphas[self.disjoint()], &(b3 * b4));
        constraints.add_product(&alphas[self.tied()], &tied);
        constraints.add_product(&alphas[self.distance()], &distant);
        let sums = alphas[self.one_tie()] * b3 + alphas[self.count()] * counted;
        *weight * constraints.reduce() + *indicator * sums
    }

    /// [`Relation::evaluate`] at 0, 1, 2, 3 along a line from one row of bits to another, given
    /// as the bits of every column at both ends.
    ///
    /// v² - v is 0 at both ends of a line of bits, and 2 and 6 at 2 and 3 where the bits differ:
    /// one sum of powers of alpha serves all four points, and no bit is squared.
    pub fn evaluate_bits(
        &self,
        alphas: &[Element],
        ends: &[(bool, bool)],
        y: &[Element; 4],
        weight: &[Element; 4],
        indicator: &[Element; 4],
    ) -> [Element; 4] {
        let mut differing = SmallSum::default();
        for ((low, high), alpha) in ends.iter().zip(alphas) {
            differing.add(&alpha.keep_if(u64::from(low ^ high)));
        }
        let differing = differing.reduce();
        let distance_at = |end: fn(&(bool, bool)) -> bool| {
            let bits = ends[SELECTED..].iter().enumerate();
            Element::from_integer(bits.fold(0, |sum, (k, ends)| sum | i64::from(end(ends)) << k))
        };
        let ends_of_distance = (distance_at(|ends| ends.0), distance_at(|ends| ends.1));
        let distance: [Element; 4] = extend(ends_of_distance);
        let selected: [[Element; 4]; SELECTED] = std::array::from_fn(|column| {
            let (low, high) = ends[column];
            extend((Element::from_bit(low), Element::from_bit(high)))
        });
        let factors = [0, 0, 2, 6].map(Element::from_integer);
        std::array::from_fn(|x| {
            let mut booleans = ProductSum::default();
            booleans.add_product(&factors[x], &differing);
            let selected = selected.map(|values| values[x]);
            let (weight, indicator) = (&weight[x], &indicator[x]);
            self.combine(alphas, booleans, &selected, y[x], distance[x], weight, indicator)
        })
    }

    /// S_0: what F sums to over the hypercube. `remaining` is K - f.
    ///
    /// ```
    /// use curve25519_dalek::scalar::Scalar;
    /// use ragaudit_arguments::selection::relation::{Relation, Ties};
    ///
    /// let relation = Relation::new(16129, Ties::Dropped).unwrap();
    /// let alphas = relation.alpha_powers(&Scalar::from(2u8)); // 2^22 + 2^23 (K - f)
    /// assert_eq!(relation.claimed_sum(&alphas, 3), Scalar::from((1u32 << 22) + 3 * (1 << 23)));
    /// ```
    pub fn claimed_sum(&self, alphas: &[Element], remaining: u64) -> Scalar {
        Scalar::from(alphas[self.one_tie()])
            + Scalar::from(alphas[self.count()]) * Scalar::from(remaining)
    }
}

/// M and chi at r: the sums of eq(t, q) eq(r, q) and of eq(r, q) over the rows q of U.
pub struct RowWeights {
    /// eq(r, q) for q < u.
    pub rows: Vec<Element>,
    /// eq(r, 2^m - 1).
    pub mask_row: Element,
    /// M(r).
    pub weight: Element,
    /// chi(r).
    pub indicator: Element,
}

impl RowWeights {
    /// The weights at `r` for the challenges `t`.
    pub fn new(t: &[Scalar], r: &[Scalar], count: usize) -> Self {
        let [t, r] = [t, r].map(|point| point.iter().map(Element::from).collect::<Vec<_>>());
        RowWeights {
            rows: eq_table(&Element::ONE, &r, count),
            mask_row: eq_mask_row(&r),
            weight: eq_product_sum(&t, &r, count),
            indicator: eq_sum(&r, count),
        }
    }
}

/// The factors of the commitments in P: gamma^0 .. gamma^(2+W) for the columns, gamma^(3+W) for
/// the rows and the threshold, gamma^(4+W) for the sumcheck's mask.
pub struct Combination {
    /// One factor per boolean column.
    pub columns: Vec<Element>,
    /// Factor of sum_q eq(r, q) C_U[q] + C_t.
    pub rows: Element,
    /// Factor of C_g.
    pub mask: Element,
}

impl Combination {
    /// The factors for this gamma.
    pub fn new(relation: &Relation, gamma: &Scalar) -> Self {
        let count = relation.columns();
        let mut columns = powers(&Element::from(gamma), count + 2);
        let (rows, mask) = (columns[count], columns[count + 1]);
        columns.truncate(count);
        Combination { columns, rows, mask }
    }
}

/// L: the blocks (A_U, A*), (G, M) and (R), kept apart by theta.
pub fn form(
    statement: &Statement,
    threshold: &Threshold,
    weights: &RowWeights,
    r: &[Scalar],
    theta: &Scalar,
) -> Vec<Scalar> {
    let rest = form_after_rows(statement, threshold, weights, r, theta);
    weights.rows.par_iter().chain(&rest).map(Scalar::from).collect()
}

/// L but for its part over A_U, which is eq(r, q) for q < u.
pub fn form_after_rows(
    statement: &Statement,
    threshold: &Threshold,
    weights: &RowWeights,
    r: &[Scalar],
    theta: &Scalar,
) -> Vec<Element> {
    let theta = Element::from(theta);
    let mut form = vec![weights.mask_row];
    form.extend(statement.query.iter().map(|e| theta * Element::from_integer(i64::from(*e))));
    form.extend([Element::ZERO; crate::four_squares::COMPLETION]);
    form.push(-(theta * weights.indicator));
    form.push(theta * weights.mask_row);
    let square = theta.square();
    let mask = mask_form(&threshold.degrees(), r);
    form.extend(mask.iter().map(|power| square * Element::from(power)));
    form
}

/// V: the value of the form, from the evaluations sent and the mask's value v_g.
pub fn value(
    threshold: &Threshold,
    weights: &RowWeights,
    combination: &Combination,
    theta: &Scalar,
    evaluations: &[Element],
    mask_value: &Scalar,
) -> Element {
    // Around zeta, where the noise of U is small: sum eq z = zeta chi + sum eq (z - zeta).
    let mut around_zeta = SmallSum::default();
    for (row, weight) in threshold.uncertain.iter().zip(&weights.rows) {
        around_zeta.add_product(weight, row.noise - threshold.zeta);
    }
    let noise = Element::from_integer(threshold.zeta) * weights.indicator + around_zeta.reduce();
    let theta = Element::from(theta);
    let (columns, y) = evaluations.split_at(combination.columns.len());
    inner_product(&combination.columns, columns)
        + theta * combination.rows * (y[0] - noise)
        + theta.square() * combination.mask * Element::from(mask_value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_bits_are_evaluated_as_any_other() {
        for (squared_norm, ties) in [(16129, Ties::Dropped), (16_769_025, Ties::Kept)] {
            check_lines(Relation::new(squared_norm, ties).unwrap());
        }
    }

    fn check_lines(relation: Relation) {
        let alphas = relation.alpha_powers(&Scalar::from(0xdead_beefu64));
        let element = |i: i64| Element::from_integer(1_000_003 * i - 7).square();
        for seed in 0..200u64 {
            let bit = |column: usize, end: u64| {
                (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (column as u64 + 31 * end)) & 1 == 1
            };
            let ends: Vec<(bool, bool)> =
                (0..relation.columns()).map(|column| (bit(column, 0), bit(column, 1))).collect();
            let line = |i| extend::<4>((element(i), element(i + seed as i64)));
            let (y, weight, indicator) = (line(1), line(2), line(3));
            let fast = relation.evaluate_bits(&alphas, &ends, &y, &weight, &indicator);
            let columns: Vec<[Element; 4]> = ends
                .iter()
                .map(|(low, high)| extend((Element::from_bit(*low), Element::from_bit(*high))))
                .collect();
            for x in 0..4 {
                let mut values: Vec<Element> = columns.iter().map(|line| line[x]).collect();
                values.push(y[x]);
                let slow = relation.evaluate(&alphas, &values, &weight[x], &indicator[x]);
                assert_eq!(fast[x], slow);
            }
        }
    }
}
