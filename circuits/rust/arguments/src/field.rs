//! The scalar field F = Z/l in Montgomery form, for the parts that are made of many
//! multiplications: tables, sumchecks, weights. Constant time.
//!
//! [`Scalar`] is what is hashed, sent and multiplied with points; conversions are explicit.

use std::iter::{Product, Sum};
use std::ops::{Add, AddAssign, Mul, MulAssign, Neg, Sub, SubAssign};

use curve25519_dalek::scalar::Scalar;
use zeroize::DefaultIsZeroes;

/// l = 2^252 + 27742317777372353535851937790883648493, 64-bit limbs, least significant first.
const ORDER: [u64; 4] =
    [0x5812_631a_5cf5_d3ed, 0x14de_f9de_a2f7_9cd6, 0x0000_0000_0000_0000, 0x1000_0000_0000_0000];

/// -1/l modulo 2^64.
const NEGATED_INVERSE: u64 = negated_inverse();

/// R² modulo l for R = 2^256: what turns an integer into its Montgomery form.
const R_SQUARED: Element = Element(power_of_two_modulo_order(512));

const fn negated_inverse() -> u64 {
    // Newton's iteration doubles the number of right bits: 5, 10, .., 80.
    let mut inverse = ORDER[0].wrapping_mul(3) ^ 2;
    let mut round = 0;
    while round < 4 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(ORDER[0].wrapping_mul(inverse)));
        round += 1;
    }
    inverse.wrapping_neg()
}

const fn power_of_two_modulo_order(exponent: usize) -> [u64; 4] {
    let mut value = [1, 0, 0, 0];
    let mut done = 0;
    while done < exponent {
        value = reduce_once(add_limbs(&value, &value));
        done += 1;
    }
    value
}

/// x + y modulo 2^256.
#[inline(always)]
const fn add_limbs(x: &[u64; 4], y: &[u64; 4]) -> [u64; 4] {
    let mut sum = [0; 4];
    let mut carry = 0u128;
    let mut limb = 0;
    while limb < 4 {
        carry += x[limb] as u128 + y[limb] as u128;
        sum[limb] = carry as u64;
        carry >>= 64;
        limb += 1;
    }
    sum
}

/// x - y modulo 2^256, and whether y was larger (all ones) or not (zero).
#[inline(always)]
const fn subtract_limbs(x: &[u64; 4], y: &[u64; 4]) -> ([u64; 4], u64) {
    let mut difference = [0; 4];
    let mut borrow = false;
    let mut limb = 0;
    while limb < 4 {
        let (first, under) = x[limb].overflowing_sub(y[limb]);
        let (second, under_again) = first.overflowing_sub(borrow as u64);
        difference[limb] = second;
        borrow = under | under_again;
        limb += 1;
    }
    (difference, (borrow as u64).wrapping_neg())
}

/// l where `mask` is all ones, 0 where it is zero.
#[inline(always)]
const fn masked_order(mask: u64) -> [u64; 4] {
    [ORDER[0] & mask, ORDER[1] & mask, ORDER[2] & mask, ORDER[3] & mask]
}

/// x modulo l for x < 2l.
#[inline(always)]
const fn reduce_once(x: [u64; 4]) -> [u64; 4] {
    let (difference, borrowed) = subtract_limbs(&x, &ORDER);
    add_limbs(&difference, &masked_order(borrowed))
}

/// x + y z + carry: the low limb and the new carry; it cannot overflow.
#[inline(always)]
const fn multiply_add(x: u64, y: u64, z: u64, carry: u64) -> (u64, u64) {
    let product = (y as u128).wrapping_mul(z as u128);
    let wide = product.wrapping_add(x as u128).wrapping_add(carry as u128);
    (wide as u64, (wide >> 64) as u64)
}

/// The 512-bit product.
#[inline(always)]
fn wide_product(x: &[u64; 4], y: &[u64; 4]) -> [u64; 8] {
    let mut wide = [0; 8];
    for i in 0..4 {
        let mut carry = 0;
        for j in 0..4 {
            (wide[i + j], carry) = multiply_add(wide[i + j], x[i], y[j], carry);
        }
        wide[i + 4] = carry;
    }
    wide
}

/// wide / R modulo l, for wide < l R.
#[inline(always)]
fn montgomery_reduce(mut wide: [u64; 8]) -> [u64; 4] {
    let mut overflow = 0;
    for i in 0..4 {
        let m = wide[i].wrapping_mul(NEGATED_INVERSE);
        // m l = m (l_0 + l_1 2^64) + m 2^252.
        let (_, carry) = multiply_add(wide[i], m, ORDER[0], 0);
        let (low, carry) = multiply_add(wide[i + 1], m, ORDER[1], carry);
        wide[i + 1] = low;
        let (low, carried) = wide[i + 2].overflowing_add(carry);
        wide[i + 2] = low;
        let sum = u128::from(wide[i + 3]) + u128::from(m << 60) + u128::from(carried);
        wide[i + 3] = sum as u64;
        let sum = u128::from(wide[i + 4]) + u128::from(m >> 4) + (sum >> 64) + overflow;
        wide[i + 4] = sum as u64;
        overflow = sum >> 64;
    }
    reduce_once([wide[4], wide[5], wide[6], wide[7]])
}

/// An element x of F, held as x R modulo l, below l.
///
/// ```
/// use curve25519_dalek::scalar::Scalar;
/// use ragaudit_arguments::field::Element;
///
/// let x = Element::from_integer(-7);
/// assert_eq!(x.square() + x.double(), Element::from_integer(35));
/// assert_eq!(x.keep_if(0), Element::ZERO);
/// assert_eq!(Scalar::from(x), -Scalar::from(7u8));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Element([u64; 4]);

impl DefaultIsZeroes for Element {}

impl Element {
    /// 0.
    pub const ZERO: Element = Element([0; 4]);
    /// 1.
    pub const ONE: Element = Element(power_of_two_modulo_order(256));

    /// The element of an integer.
    pub fn from_integer(value: i64) -> Self {
        let magnitude = Element([value.unsigned_abs(), 0, 0, 0]) * R_SQUARED;
        // The sign may be secret, so no branch on it.
        magnitude.negate_if((value < 0) as u64)
    }

    /// 0 or 1.
    pub fn from_bit(bit: bool) -> Self {
        Element::ONE.keep_if(bit as u64)
    }

    /// x + x.
    #[inline]
    pub fn double(&self) -> Self {
        *self + *self
    }

    /// x².
    #[inline]
    pub fn square(&self) -> Self {
        *self * *self
    }

    /// self for `choice` = 1, 0 for `choice` = 0.
    #[inline]
    pub fn keep_if(&self, choice: u64) -> Self {
        let mask = choice.wrapping_neg();
        Element(self.0.map(|limb| limb & mask))
    }

    /// -self for `choice` = 1, self for `choice` = 0.
    #[inline]
    fn negate_if(&self, choice: u64) -> Self {
        let mask = choice.wrapping_neg();
        let negated = -*self;
        Element(std::array::from_fn(|i| self.0[i] ^ (mask & (self.0[i] ^ negated.0[i]))))
    }
}

impl From<&Scalar> for Element {
    fn from(scalar: &Scalar) -> Self {
        Element(crate::scalars::limbs(scalar)) * R_SQUARED
    }
}

impl From<Scalar> for Element {
    fn from(scalar: Scalar) -> Self {
        Element::from(&scalar)
    }
}

impl From<&Element> for Scalar {
    fn from(element: &Element) -> Self {
        let [a, b, c, d] = element.0;
        let canonical = montgomery_reduce([a, b, c, d, 0, 0, 0, 0]);
        let mut bytes = [0; 32];
        for (bytes, limb) in bytes.chunks_exact_mut(8).zip(canonical) {
            bytes.copy_from_slice(&limb.to_le_bytes());
        }
        // Below l already: the library reduces again, which changes nothing.
        Scalar::from_bytes_mod_order(bytes)
    }
}

impl From<Element> for Scalar {
    fn from(element: Element) -> Self {
        Scalar::from(&element)
    }
}

impl Add for Element {
    type Output = Element;
    #[inline]
    fn add(self, other: Element) -> Element {
        Element(reduce_once(add_limbs(&self.0, &other.0)))
    }
}

impl Sub for Element {
    type Output = Element;
    #[inline]
    fn sub(self, other: Element) -> Element {
        let (difference, borrowed) = subtract_limbs(&self.0, &other.0);
        Element(add_limbs(&difference, &masked_order(borrowed)))
    }
}

impl Mul for Element {
    type Output = Element;
    #[inline]
    fn mul(self, other: Element) -> Element {
        Element(montgomery_reduce(wide_product(&self.0, &other.0)))
    }
}

impl Neg for Element {
    type Output = Element;
    #[inline]
    fn neg(self) -> Element {
        Element::ZERO - self
    }
}

impl AddAssign for Element {
    #[inline]
    fn add_assign(&mut self, other: Element) {
        *self = *self + other;
    }
}

impl SubAssign for Element {
    #[inline]
    fn sub_assign(&mut self, other: Element) {
        *self = *self - other;
    }
}

impl MulAssign for Element {
    #[inline]
    fn mul_assign(&mut self, other: Element) {
        *self = *self * other;
    }
}

impl Sum for Element {
    fn sum<I: Iterator<Item = Element>>(elements: I) -> Self {
        elements.fold(Element::ZERO, Add::add)
    }
}

impl<'a> Sum<&'a Element> for Element {
    fn sum<I: Iterator<Item = &'a Element>>(elements: I) -> Self {
        elements.fold(Element::ZERO, |sum, element| sum + *element)
    }
}

impl Product for Element {
    fn product<I: Iterator<Item = Element>>(elements: I) -> Self {
        elements.fold(Element::ONE, Mul::mul)
    }
}

/// A sum of products of elements, reduced once at the end. Exact for up to 2^48 products.
///
/// ```
/// use ragaudit_arguments::field::{Element, ProductSum, inner_product, powers};
///
/// let (x, y) = (powers(&Element::from_integer(2), 3), [Element::from_integer(-1); 3]);
/// let mut sum = ProductSum::default();
/// x.iter().zip(&y).for_each(|(x, y)| sum.add_product(x, y));
/// assert_eq!(sum.reduce(), Element::from_integer(-7));
/// assert_eq!(sum.reduce(), inner_product(&x, &y));
/// ```
#[derive(Clone, Copy, Default)]
pub struct ProductSum {
    limbs: [u64; 8],
    high: u64,
}

impl ProductSum {
    /// Adds x y.
    #[inline(always)]
    pub fn add_product(&mut self, x: &Element, y: &Element) {
        let wide = wide_product(&x.0, &y.0);
        let mut carry = 0u128;
        for (limb, addend) in self.limbs.iter_mut().zip(wide) {
            carry += u128::from(*limb) + u128::from(addend);
            *limb = carry as u64;
            carry >>= 64;
        }
        self.high += carry as u64;
    }

    /// The sum as an element.
    pub fn reduce(&self) -> Element {
        let [a, b, c, d, e, f, g, h] = self.limbs;
        let [e, f, g, h] = reduce_wide([e, f, g, h, self.high]);
        Element(montgomery_reduce([a, b, c, d, e, f, g, h]))
    }
}

/// x modulo l for x < 2^(256 + 56).
#[inline]
fn reduce_wide(x: [u64; 5]) -> [u64; 4] {
    // x = q 2^252 + rest, and 2^252 = l - c with c < 2^125: x = rest - q c modulo l.
    let q = (x[3] >> 60) | (x[4] << 4);
    let rest = [x[0], x[1], x[2], x[3] & ((1 << 60) - 1)];
    let (first, carry) = multiply_add(0, q, ORDER[0], 0);
    let (second, third) = multiply_add(0, q, ORDER[1], carry);
    let (difference, borrowed) = subtract_limbs(&rest, &[first, second, third, 0]);
    add_limbs(&difference, &masked_order(borrowed))
}

/// <left, right>; the shorter length counts.
pub fn inner_product(left: &[Element], right: &[Element]) -> Element {
    let mut sum = ProductSum::default();
    for (x, y) in left.iter().zip(right) {
        sum.add_product(x, y);
    }
    sum.reduce()
}

/// 1, base, base², .., `count` of them.
pub fn powers(base: &Element, count: usize) -> Vec<Element> {
    std::iter::successors(Some(Element::ONE), |power| Some(*power * *base)).take(count).collect()
}

/// A sum of elements times small integers, reduced once at the end.
///
/// Exact as long as the absolute values of the integers add up to less than 2^54.
///
/// ```
/// use ragaudit_arguments::field::{Element, SmallSum};
///
/// let mut sum = SmallSum::default();
/// sum.add_product(&Element::from_integer(100), -3);
/// sum.add(&Element::ONE);
/// assert_eq!(sum.reduce(), Element::from_integer(-299));
/// ```
#[derive(Clone, Copy, Default)]
pub struct SmallSum {
    columns: [i128; 4],
}

impl SmallSum {
    /// Adds `element` times `factor`.
    #[inline(always)]
    pub fn add_product(&mut self, element: &Element, factor: i64) {
        for (column, limb) in self.columns.iter_mut().zip(element.0) {
            *column = column.wrapping_add(i128::from(limb).wrapping_mul(i128::from(factor)));
        }
    }

    /// Adds `element`.
    #[inline(always)]
    pub fn add(&mut self, element: &Element) {
        for (column, limb) in self.columns.iter_mut().zip(element.0) {
            *column = column.wrapping_add(i128::from(limb));
        }
    }

    /// The sum.
    pub fn reduce(&self) -> Element {
        let mut limbs = [0u64; 5];
        let mut carry: i128 = 0;
        for (column, limb) in self.columns.iter().zip(&mut limbs) {
            // Split before adding: a column may fill all but a few of its bits.
            let low = carry + (column & i128::from(u64::MAX));
            *limb = low as u64;
            carry = (low >> 64) + (column >> 64);
        }
        // l 2^56 exceeds the absolute value of the sum and makes it positive.
        let shifted = [
            ORDER[0] << 56,
            ORDER[0] >> 8 | ORDER[1] << 56,
            ORDER[1] >> 8,
            ORDER[3] << 56,
            ORDER[3] >> 8,
        ];
        limbs[4] = carry as u64;
        let mut carry = 0u128;
        for (limb, addend) in limbs.iter_mut().zip(shifted) {
            carry += u128::from(*limb) + u128::from(addend);
            *limb = carry as u64;
            carry >>= 64;
        }
        Element(reduce_wide(limbs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::randomness::ProverRandomness;
    use crate::scalars::from_integer;

    /// Random values and those at the ends of every range.
    fn samples() -> Vec<Scalar> {
        let mut randomness = ProverRandomness::from_system().unwrap();
        let edges = [0i128, 1, -1, 2, -2, i128::from(u64::MAX), i128::MAX, i128::MIN];
        let mut samples: Vec<Scalar> = edges.into_iter().map(from_integer).collect();
        samples.push(from_integer(1 << 126) * from_integer(1 << 126));
        samples.extend(randomness.scalars(40));
        samples
    }

    #[test]
    fn arithmetic_is_that_of_the_library() {
        let samples = samples();
        for x in &samples {
            let a = Element::from(x);
            assert_eq!(Scalar::from(a), *x);
            assert_eq!(Scalar::from(-a), -x);
            assert_eq!(Scalar::from(a.square()), x * x);
            assert_eq!(Scalar::from(a.double()), x + x);
            for y in &samples {
                let b = Element::from(y);
                assert_eq!(Scalar::from(a + b), x + y);
                assert_eq!(Scalar::from(a - b), x - y);
                assert_eq!(Scalar::from(a * b), x * y);
                assert_eq!(a == b, x == y);
            }
        }
        assert_eq!(Scalar::from(Element::ONE), Scalar::ONE);
    }

    #[test]
    fn integers_and_bits_are_their_residues() {
        for value in [0, 1, -1, 127, -128, i64::MAX, i64::MIN, 1 << 53, -(1 << 40)] {
            let element = Element::from_integer(value);
            assert_eq!(Scalar::from(element), from_integer(i128::from(value)));
        }
        assert_eq!(Element::from_bit(true), Element::ONE);
        assert_eq!(Element::from_bit(false), Element::ZERO);
    }

    #[test]
    fn sums_of_products_are_reduced_rightly_at_any_length() {
        let samples = samples();
        let elements: Vec<Element> = samples.iter().map(Element::from).collect();
        for length in 0..samples.len() {
            let expected = crate::scalars::inner_product(&samples[..length], &samples[..length]);
            let sum = inner_product(&elements[..length], &elements[..length]);
            assert_eq!(Scalar::from(sum), expected);
        }
        // Enough of the largest products to fill the ninth limb.
        let largest = Element::ZERO - Element::from_integer(1);
        let many = vec![largest; 5000];
        let largest = Scalar::from(largest);
        let expected = largest * largest * Scalar::from(5000u64);
        assert_eq!(Scalar::from(inner_product(&many, &many)), expected);
    }

    #[test]
    fn sums_of_small_products_agree_with_field_arithmetic() {
        let factors = [0i64, 1, -1, 127, -128, 1 << 50, -(1 << 53), 33, i64::from(i32::MIN)];
        let mut sum = SmallSum::default();
        let mut expected = Scalar::ZERO;
        for (value, factor) in samples().iter().zip(factors.into_iter().cycle()) {
            if factor.unsigned_abs() < 1 << 50 {
                sum.add_product(&Element::from(value), factor);
                expected += value * from_integer(i128::from(factor));
                assert_eq!(Scalar::from(sum.reduce()), expected);
            }
            let mut single = SmallSum::default();
            single.add_product(&Element::from(value), factor);
            single.add(&Element::from(value));
            let product = value * from_integer(i128::from(factor) + 1);
            assert_eq!(Scalar::from(single.reduce()), product);
        }
    }

    #[test]
    fn powers_and_products_multiply() {
        let base = Element::from_integer(-3);
        let expected: Vec<Element> = [1, -3, 9, -27].map(Element::from_integer).to_vec();
        assert_eq!(powers(&base, 4), expected);
        assert_eq!(expected.into_iter().product::<Element>(), Element::from_integer(729));
    }
}
