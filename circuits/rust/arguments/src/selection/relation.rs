//! The relation: constraints, claimed sum, linear form and value of the opening.

use curve25519_dalek::scalar::Scalar;
use rayon::prelude::*;

use super::statement::{Statement, Threshold};
use crate::field::{Element, ProductSum, SmallSum, inner_product, powers};
use crate::multilinear::{eq_mask_row, eq_product_sum, eq_sum, eq_table};
use crate::sumcheck::mask_form;
use crate::tables::extend;

/// Bits of |y - tau| or |tau - 1 - y|: both are at most 4B² < 2^16.
pub const DISTANCE_BITS: usize = 16;

/// Boolean columns: b, b3, b4, u_0 .. u_15.
pub const COLUMNS: usize = 3 + DISTANCE_BITS;

/// Exponents of alpha after the boolean constraints c_0 .. c_18.
const DISJOINT: usize = COLUMNS;
const TIED: usize = COLUMNS + 1;
const DISTANCE: usize = COLUMNS + 2;
const ONE_TIE: usize = COLUMNS + 3;
const COUNT: usize = COLUMNS + 4;

/// The columns and Y at one point: b, b3, b4, u_0 .. u_15, Y.
pub type Values = [Element; COLUMNS + 1];

/// The powers of alpha that [`evaluate`] and [`claimed_sum`] use.
pub fn alpha_powers(alpha: &Scalar) -> Vec<Element> {
    powers(&Element::from(alpha), COUNT + 1)
}

/// F at a point where the columns have these values, M the value `weight` and chi `indicator`.
pub fn evaluate(
    alphas: &[Element],
    values: &Values,
    weight: &Element,
    indicator: &Element,
) -> Element {
    let (columns, y) = (&values[..COLUMNS], values[COLUMNS]);
    let mut booleans = ProductSum::default();
    for (value, alpha) in columns.iter().zip(alphas) {
        booleans.add_product(alpha, &(value.square() - *value));
    }
    let distance = columns[3..].iter().rev().fold(Element::ZERO, |sum, bit| sum.double() + *bit);
    let selected = [columns[0], columns[1], columns[2]];
    combine(alphas, booleans, &selected, y, distance, weight, indicator)
}

/// F given the part of the boolean constraints, the values of b, b3, b4 and Y, and sum 2^k u_k.
pub fn combine(
    alphas: &[Element],
    booleans: ProductSum,
    [b, b3, b4]: &[Element; 3],
    y: Element,
    distance: Element,
    weight: &Element,
    indicator: &Element,
) -> Element {
    let (b, b3, b4) = (*b, *b3, *b4);
    let mut constraints = booleans;
    let tied = (b3 + b4) * (y + Element::ONE);
    let distant = (b.double() - Element::ONE) * y - (Element::ONE - b) - distance;
    constraints.add_product(&alphas[DISJOINT], &(b3 * b4));
    constraints.add_product(&alphas[TIED], &tied);
    constraints.add_product(&alphas[DISTANCE], &distant);
    let sums = alphas[ONE_TIE] * b3 + alphas[COUNT] * (b + b4);
    *weight * constraints.reduce() + *indicator * sums
}

/// [`evaluate`] at 0, 1, 2, 3 along a line from one row of bits to another, given as the bits of
/// every column at both ends.
///
/// v² - v is 0 at both ends of a line of bits, and 2 and 6 at 2 and 3 where the bits differ: one
/// sum of powers of alpha serves all four points, and no bit is squared.
pub fn evaluate_bits(
    alphas: &[Element],
    ends: &[(bool, bool); COLUMNS],
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
        let bits = ends[3..].iter().enumerate();
        Element::from_integer(bits.fold(0, |sum, (k, ends)| sum | i64::from(end(ends)) << k))
    };
    let distance: [Element; 4] = extend((distance_at(|ends| ends.0), distance_at(|ends| ends.1)));
    let selected: [[Element; 4]; 3] = std::array::from_fn(|column| {
        let (low, high) = ends[column];
        extend((Element::from_bit(low), Element::from_bit(high)))
    });
    let factors = [0, 0, 2, 6].map(Element::from_integer);
    std::array::from_fn(|x| {
        let mut booleans = ProductSum::default();
        booleans.add_product(&factors[x], &differing);
        let selected = selected.map(|values| values[x]);
        combine(alphas, booleans, &selected, y[x], distance[x], &weight[x], &indicator[x])
    })
}

/// S_0: what F sums to over the hypercube. `remaining` is K - f.
///
/// ```
/// use curve25519_dalek::scalar::Scalar;
/// use ragaudit_arguments::selection::relation::{alpha_powers, claimed_sum};
///
/// let alphas = alpha_powers(&Scalar::from(2u8)); // 2^22 + 2^23 (K - f)
/// assert_eq!(claimed_sum(&alphas, 3), Scalar::from((1u32 << 22) + 3 * (1 << 23)));
/// ```
pub fn claimed_sum(alphas: &[Element], remaining: u64) -> Scalar {
    Scalar::from(alphas[ONE_TIE]) + Scalar::from(alphas[COUNT]) * Scalar::from(remaining)
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

/// The factors of the commitments in P: gamma^0 .. gamma^18 for the columns, gamma^19 for the
/// rows and the threshold, gamma^20 for the sumcheck's mask.
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
    pub fn new(gamma: &Scalar) -> Self {
        let mut columns = powers(&Element::from(gamma), COLUMNS + 2);
        let (rows, mask) = (columns[COLUMNS], columns[COLUMNS + 1]);
        columns.truncate(COLUMNS);
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
    evaluations: &Values,
    mask_value: &Scalar,
) -> Element {
    // Around zeta, where the noise of U is small: sum eq z = zeta chi + sum eq (z - zeta).
    let mut around_zeta = SmallSum::default();
    for (row, weight) in threshold.uncertain.iter().zip(&weights.rows) {
        around_zeta.add_product(weight, row.noise - threshold.zeta);
    }
    let noise = Element::from_integer(threshold.zeta) * weights.indicator + around_zeta.reduce();
    let theta = Element::from(theta);
    inner_product(&combination.columns, &evaluations[..COLUMNS])
        + theta * combination.rows * (evaluations[COLUMNS] - noise)
        + theta.square() * combination.mask * Element::from(mask_value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_bits_are_evaluated_as_any_other() {
        let alphas = alpha_powers(&Scalar::from(0xdead_beefu64));
        let element = |i: i64| Element::from_integer(1_000_003 * i - 7).square();
        for seed in 0..200u64 {
            let bit = |column: usize, end: u64| {
                (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (column as u64 + 19 * end)) & 1 == 1
            };
            let ends: [(bool, bool); COLUMNS] =
                std::array::from_fn(|column| (bit(column, 0), bit(column, 1)));
            let line = |i| extend::<4>((element(i), element(i + seed as i64)));
            let (y, weight, indicator) = (line(1), line(2), line(3));
            let fast = evaluate_bits(&alphas, &ends, &y, &weight, &indicator);
            let columns: [[Element; 4]; COLUMNS] =
                ends.map(|(low, high)| extend((Element::from_bit(low), Element::from_bit(high))));
            for x in 0..4 {
                let values =
                    std::array::from_fn(|j| if j < COLUMNS { columns[j][x] } else { y[x] });
                assert_eq!(fast[x], evaluate(&alphas, &values, &weight[x], &indicator[x]));
            }
        }
    }
}
