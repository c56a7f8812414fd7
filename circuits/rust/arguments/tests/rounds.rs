//! Round polynomials of the selection argument against the whole tables.
#![allow(clippy::unwrap_used)]

use curve25519_dalek::scalar::Scalar;
use ragaudit_adversary::honest::Random;
use ragaudit_arguments::field::Element;
use ragaudit_arguments::scalars::from_integer;
use ragaudit_arguments::selection::protocol::ColumnChallenges;
use ragaudit_arguments::selection::relation::{Relation, Ties};
use ragaudit_arguments::selection::sumcheck_polynomial::Polynomial;
use ragaudit_arguments::sumcheck::RoundPolynomial;

/// eq(r, i) by its definition (spec 4.1.3).
fn eq(r: &[Scalar], i: usize) -> Scalar {
    let bit = |k: usize| (i >> (r.len() - 1 - k)) & 1 == 1;
    r.iter().enumerate().map(|(k, r_k)| if bit(k) { *r_k } else { Scalar::ONE - r_k }).product()
}

/// F of spec 4.6.5 over whole tables, for any columns, true or not.
#[test]
fn selection_round_polynomials_are_those_of_the_whole_tables() {
    for (squared_norm, ties) in [
        (16_129, Ties::Dropped),
        (16_129, Ties::Kept),
        (16_769_025, Ties::Dropped),
        (16_769_025, Ties::Kept),
    ] {
        check_round_polynomials(Relation::new(squared_norm, ties).unwrap());
    }
}

fn check_round_polynomials(relation: Relation) {
    let count = relation.columns();
    let mut random = Random(49);
    for rows in [1usize, 2, 3, 4, 7, 8, 15, 16, 17, 40] {
        let variables = (rows + 1).next_power_of_two().trailing_zeros() as usize;
        let length = 1usize << variables;
        let columns: Vec<Vec<bool>> =
            (0..count).map(|_| (0..rows).map(|_| random.next() & 1 == 1).collect()).collect();
        let differences: Vec<i64> = (0..rows).map(|_| random.between(-70_000, 70_000)).collect();
        let masks = random.scalars(count + 1);
        let drawn = ColumnChallenges {
            alpha: random.scalar(),
            t: random.scalars(variables),
            rho: Scalar::ONE,
        };
        let inner = differences.iter().map(|value| Element::from_integer(*value)).collect();
        let mut polynomial = Polynomial::new(relation, &columns, inner, &masks, &drawn);

        let padded = |entry: &dyn Fn(usize) -> Scalar, mask: Scalar| -> Vec<Scalar> {
            let at = |q| if q < rows { entry(q) } else { Scalar::ZERO };
            (0..length - 1).map(at).chain([mask]).collect()
        };
        let mut tables: Vec<Vec<Scalar>> = (columns.iter().zip(&masks))
            .map(|(bits, mask)| padded(&|q| Scalar::from(u8::from(bits[q])), *mask))
            .collect();
        tables.push(padded(&|q| from_integer(i128::from(differences[q])), masks[count]));
        tables.push(padded(&|q| eq(&drawn.t, q), Scalar::ZERO));
        tables.push(padded(&|_| Scalar::ONE, Scalar::ZERO));

        for round in 0..variables {
            let half = tables[0].len() / 2;
            let values: Vec<Scalar> = polynomial.values().iter().map(Scalar::from).collect();
            let expected: Vec<Scalar> = (0..4u64)
                .map(|x| {
                    let x = Scalar::from(x);
                    let at = |i: usize| -> Vec<Scalar> {
                        let line =
                            |table: &Vec<Scalar>| table[i] + x * (table[half + i] - table[i]);
                        tables.iter().map(line).collect()
                    };
                    (0..half).map(|i| selection_polynomial(&relation, &at(i), &drawn.alpha)).sum()
                })
                .collect();
            assert_eq!(values, expected, "{rows} rows, round {round}");
            let r = random.scalar();
            polynomial.bind(&r.into()).unwrap();
            for table in &mut tables {
                *table = (0..half).map(|i| table[i] + r * (table[half + i] - table[i])).collect();
            }
        }
        let evaluations: Vec<Scalar> = tables[..=count].concat();
        assert_eq!(polynomial.evaluations().to_vec(), evaluations);
    }
}

/// F from the values of b, b3, b4, u_0 .. u_(W-1), Y, M, chi.
fn selection_polynomial(relation: &Relation, values: &[Scalar], alpha: &Scalar) -> Scalar {
    let (one, count) = (Scalar::ONE, relation.columns());
    let [b, b3, b4] = [values[0], values[1], values[2]];
    let bits = &values[3..count];
    let [y, weight, indicator] = [values[count], values[count + 1], values[count + 2]];
    let distance: Scalar =
        bits.iter().enumerate().map(|(k, bit)| Scalar::from(1u64 << k) * bit).sum();
    let mut constraints: Vec<Scalar> = values[..count].iter().map(|v| v * v - v).collect();
    constraints.push(b3 * b4);
    let (boundary, counted) = match relation.ties {
        Ties::Dropped => (y + one, b + b4),
        Ties::Kept => (y, b - b4),
    };
    constraints.push((b3 + b4) * boundary);
    constraints.push((b + b - one) * y - (one - b) - distance);
    let powers: Vec<Scalar> =
        std::iter::successors(Some(one), |power| Some(power * alpha)).take(count + 5).collect();
    let combined: Scalar = constraints.iter().zip(&powers).map(|(c, power)| c * power).sum();
    weight * combined + indicator * (powers[count + 3] * b3 + powers[count + 4] * counted)
}
