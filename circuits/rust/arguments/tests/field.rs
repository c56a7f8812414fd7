//! Field arithmetic, tables and prefix sums against their definitions.
#![allow(clippy::unwrap_used)]

use curve25519_dalek::scalar::Scalar;
use ragaudit_adversary::honest::Random;
use ragaudit_arguments::field::{self, Element, ProductSum, SmallSum};
use ragaudit_arguments::multilinear::{
    eq_mask_row, eq_product_sum, eq_sum, eq_table, folding_table, prefix_sum,
};
use ragaudit_arguments::scalars::from_integer;

fn elements(scalars: &[Scalar]) -> Vec<Element> {
    scalars.iter().map(Element::from).collect()
}

/// The scalar whose inner form is l - 1, the largest.
fn largest() -> Scalar {
    let half = Scalar::from(2u8).invert();
    -(0..256).fold(Scalar::ONE, |power, _| power * half)
}

/// Values with long runs of zeros and ones, near the ends of the range, and uniform ones; as they
/// are and divided by 2^256, so that the inner form is such a value too.
fn edges(random: &mut Random) -> Vec<Scalar> {
    let mut edges = vec![Scalar::ZERO, Scalar::ONE, -Scalar::ONE, Scalar::from(2u8).invert()];
    let two = Scalar::from(2u8);
    let power = |exponent: u32| (0..exponent).fold(Scalar::ONE, |power, _| power * two);
    for exponent in [63, 64, 127, 128, 191, 192, 251, 252, 253, 255] {
        let power = power(exponent);
        edges.extend([power, power - Scalar::ONE, power + Scalar::ONE, -power]);
    }
    edges.extend(random.scalars(20));
    let inner: Vec<Scalar> = edges.iter().map(|edge| edge * -largest()).collect();
    edges.extend(inner);
    edges
}

#[test]
fn field_arithmetic_is_that_of_the_library() {
    let mut random = Random(41);
    let edges = edges(&mut random);
    for x in &edges {
        let a = Element::from(x);
        assert_eq!(Scalar::from(a), *x);
        for y in &edges {
            let b = Element::from(y);
            assert_eq!(Scalar::from(a + b), x + y);
            assert_eq!(Scalar::from(a - b), x - y);
            assert_eq!(Scalar::from(a * b), x * y);
        }
    }
    for _ in 0..5_000 {
        let [x, y, z] = [random.scalar(), random.scalar(), random.scalar()];
        let [a, b, c] = [x, y, z].map(Element::from);
        assert_eq!(
            Scalar::from((a + b) * c - a.square() + b.double()),
            (x + y) * z - x * x + y + y
        );
    }
}

/// The limit stated: the absolute values of the integers add up to less than 2^54.
#[test]
fn small_sums_are_exact_up_to_their_limit() {
    const MOST: i64 = (1 << 54) - 1;
    let mut random = Random(42);
    let mut edges = edges(&mut random);
    edges.push(largest());
    for x in &edges {
        let element = Element::from(x);
        for factor in [MOST, -MOST, MOST - 1, 1 - MOST] {
            let mut sum = SmallSum::default();
            sum.add_product(&element, factor);
            assert_eq!(Scalar::from(sum.reduce()), x * from_integer(i128::from(factor)));
        }
    }
    for _ in 0..200 {
        let (mut left, mut sum, mut expected) = (MOST, SmallSum::default(), Scalar::ZERO);
        // Every fourth time all signs are equal, so that the limit is reached.
        let sign = random.next() % 4;
        while left > 0 {
            let size = left.min((random.next() >> (10 + random.next() % 40)) as i64);
            let factor = if sign > 1 && random.next() & 1 == 1 || sign == 1 { -size } else { size };
            let x = edges[(random.next() % edges.len() as u64) as usize];
            sum.add_product(&Element::from(x), factor);
            expected += x * from_integer(i128::from(factor));
            left -= size;
            if left < 1 << 20 {
                break;
            }
        }
        assert_eq!(Scalar::from(sum.reduce()), expected);
    }
}

#[test]
fn sums_of_many_of_the_largest_products_are_exact() {
    let x = largest();
    let element = Element::from(x);
    let mut sum = ProductSum::default();
    for count in 1..=300_000u64 {
        sum.add_product(&element, &element);
        if count.is_power_of_two() || count % 50_000 == 0 {
            assert_eq!(Scalar::from(sum.reduce()), x * x * Scalar::from(count));
        }
    }
}

#[test]
fn inner_products_and_powers_are_the_plain_ones() {
    let mut random = Random(50);
    for length in [0, 1, 2, 33] {
        let [x, y] = [random.scalars(length), random.scalars(length)];
        let plain: Scalar = x.iter().zip(&y).map(|(a, b)| a * b).sum();
        assert_eq!(Scalar::from(field::inner_product(&elements(&x), &elements(&y))), plain);
    }
    let base = random.scalar();
    let powers = field::powers(&base.into(), 9);
    let mut expected = Scalar::ONE;
    for power in powers {
        assert_eq!(Scalar::from(power), expected);
        expected *= base;
    }
}

/// eq(r, i) by its definition (spec 4.1.3).
fn eq(r: &[Scalar], i: usize) -> Scalar {
    let bit = |k: usize| (i >> (r.len() - 1 - k)) & 1 == 1;
    r.iter().enumerate().map(|(k, r_k)| if bit(k) { *r_k } else { Scalar::ONE - r_k }).product()
}

#[test]
fn tables_and_prefix_sums_are_those_of_their_definitions() {
    let mut random = Random(46);
    for variables in 0..=8usize {
        let [r, t] = [random.scalars(variables), random.scalars(variables)];
        let (r_inner, t_inner) = (elements(&r), elements(&t));
        let scale = random.scalar();
        let inner_scale = Element::from(scale);
        let mut counts: Vec<usize> = vec![0, 1, (1 << variables) - 1, 1 << variables];
        counts.extend((0..6).map(|_| random.next() as usize % ((1 << variables) + 1)));
        for count in counts {
            let plain = |table: Vec<Element>| table.iter().map(Scalar::from).collect::<Vec<_>>();
            let expected: Vec<Scalar> = (0..count).map(|i| scale * eq(&r, i)).collect();
            assert_eq!(plain(eq_table(&inner_scale, &r_inner, count)), expected);
            let folded: Vec<Scalar> = (0..count)
                .map(|i| {
                    let kept = (0..variables).filter(|k| (i >> (variables - 1 - k)) & 1 == 1);
                    scale * kept.map(|k| r[k]).product::<Scalar>()
                })
                .collect();
            assert_eq!(plain(folding_table(&inner_scale, &r_inner, count)), folded);
            let sum: Scalar = (0..count).map(|i| eq(&r, i)).sum();
            assert_eq!(Scalar::from(eq_sum(&r_inner, count)), sum);
            let products: Scalar = (0..count).map(|i| eq(&r, i) * eq(&t, i)).sum();
            assert_eq!(Scalar::from(eq_product_sum(&t_inner, &r_inner, count)), products);
            let factors: Vec<[Element; 2]> =
                r_inner.iter().zip(&t_inner).map(|(low, high)| [*low, *high]).collect();
            let any: Scalar = (0..count)
                .map(|i| {
                    let high = |k: usize| (i >> (variables - 1 - k)) & 1 == 1;
                    (0..variables).map(|k| if high(k) { t[k] } else { r[k] }).product::<Scalar>()
                })
                .sum();
            assert_eq!(Scalar::from(prefix_sum(&factors, count)), any);
        }
        assert_eq!(Scalar::from(eq_mask_row(&r_inner)), eq(&r, (1 << variables) - 1));
    }
}
