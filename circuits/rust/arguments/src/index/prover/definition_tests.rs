//! The sumcheck's polynomial against its definition (spec 4.7.4), table by table.

use super::*;
use crate::SQUARED_NORM;
use crate::progress::Silent;
use crate::sumcheck::RoundPolynomial;

/// Every table over all variables, x first; a table over x or y alone is constant in the others.
struct Tables {
    digits: Vec<Vec<Scalar>>,
    range_weight: Vec<Scalar>,
    norm_weight: Vec<Scalar>,
    digit_weight: Vec<Scalar>,
    first_column: Vec<Scalar>,
    rows: Vec<Scalar>,
    projections: Vec<Scalar>,
}

impl Tables {
    fn new(
        statement: &Statement,
        rows: &[i8],
        digits: &[Vec<bool>],
        random: &Blindings,
        projections: &Projections,
        drawn: &protocol::ColumnChallenges,
    ) -> Self {
        let (m, md) = (statement.row_variables(), statement.column_variables());
        let (count, width, mask_row) = (statement.rows, statement.width(), (1 << m) - 1);
        let table = |entry: &dyn Fn(usize, usize) -> Scalar| -> Vec<Scalar> {
            (0..1 << (m + md)).map(|i| entry(i >> md, i & ((1 << md) - 1))).collect()
        };
        let over_x = |values: Vec<Scalar>| table(&|x, _| values[x]);
        let eq_t = |limit: usize| {
            let eq = |x: usize| -> Scalar {
                let bit = |k: usize| (x >> (m - 1 - k)) & 1 == 1;
                let factor = |(k, t): (usize, &Scalar)| if bit(k) { *t } else { Scalar::ONE - t };
                drawn.t.iter().enumerate().map(factor).product()
            };
            (0..1 << m).map(|x| if x < limit { eq(x) } else { Scalar::ZERO }).collect()
        };
        let lambdas = crate::scalars::powers(&drawn.lambda, PROJECTIONS);
        let bit = |value: bool| Scalar::from(u8::from(value));
        let integer = |value: i8| crate::scalars::from_integer(i128::from(value));
        Tables {
            digits: (digits.iter().zip(&random.masks))
                .map(|(bits, mask)| {
                    let entry = |x: usize| match bits.get(x) {
                        Some(value) => bit(*value),
                        None if x == mask_row => *mask,
                        None => Scalar::ZERO,
                    };
                    over_x((0..1 << m).map(entry).collect())
                })
                .collect(),
            range_weight: over_x(eq_t(RANGE_ROWS)),
            norm_weight: over_x(eq_t(count)),
            digit_weight: table(&|x, _| match lambdas.get(x / DIGITS) {
                Some(lambda) => lambda * Scalar::from(1u64 << (DIGIT_BITS * (x % DIGITS))),
                None => Scalar::ZERO,
            }),
            first_column: table(&|_, y| bit(y == 0)),
            rows: table(&|x, y| match (x, y) {
                (x, y) if x < count && y < width => integer(rows[x * width + y]),
                (x, 0) if x == mask_row => random.sigma,
                _ => Scalar::ZERO,
            }),
            projections: table(&|x, y| {
                if x >= count || y >= width {
                    return Scalar::ZERO;
                }
                let kept = |q: &usize| projections.u(*q, x) && projections.v(*q, y);
                (0..PROJECTIONS).filter(kept).map(|q| lambdas[q]).sum()
            }),
        }
    }

    fn each(&mut self) -> impl Iterator<Item = &mut Vec<Scalar>> {
        let rest = [
            &mut self.range_weight,
            &mut self.norm_weight,
            &mut self.digit_weight,
            &mut self.first_column,
            &mut self.rows,
            &mut self.projections,
        ];
        self.digits.iter_mut().chain(rest)
    }

    /// F with the next variable at `x`, summed over the others.
    fn value(&self, x: u64, alpha: &Scalar) -> Scalar {
        let half = self.rows.len() / 2;
        let x = Scalar::from(x);
        let at = |table: &[Scalar], i: usize| table[i] + x * (table[half + i] - table[i]);
        let alphas = crate::scalars::powers(alpha, DIGIT_BITS + 2);
        let point = |i: usize| -> Scalar {
            let digits: Vec<Scalar> = self.digits.iter().map(|table| at(table, i)).collect();
            let boolean: Scalar = (digits.iter().zip(&alphas))
                .map(|(digit, alpha)| alpha * (digit * digit - digit))
                .sum();
            let digit: Scalar =
                digits.iter().enumerate().map(|(k, digit)| Scalar::from(1u64 << k) * digit).sum();
            let range = at(&self.range_weight, i) * boolean
                - alphas[DIGIT_BITS + 1] * at(&self.digit_weight, i) * digit;
            let row = at(&self.rows, i);
            at(&self.first_column, i) * range
                + alphas[DIGIT_BITS] * at(&self.norm_weight, i) * row * row
                + alphas[DIGIT_BITS + 1] * at(&self.projections, i) * row
        };
        (0..half).map(point).sum()
    }

    fn bind(&mut self, r: &Scalar) {
        for table in self.each() {
            let half = table.len() / 2;
            *table = (0..half).map(|i| table[i] + r * (table[half + i] - table[i])).collect();
        }
    }
}

fn small_rows(count: usize, width: usize, seed: usize) -> Vec<i8> {
    (0..count * width)
        .map(|i| (((i * i + 31 * i + seed) * 2_654_435_761) >> 7) as u8 as i8)
        .collect()
}

/// All rounds agree, and so does what is left in the end.
fn assert_defined(count: usize, dimension: usize, rows: Rows, small: &[i8]) {
    let commitments = vec![0; 32 * count];
    let statement =
        Statement::new([5; 32], count as u64, dimension as u64, SQUARED_NORM, &commitments)
            .unwrap();
    let width = statement.width();
    let mut transcript = protocol::begin(&statement);
    let projections = protocol::projections(&mut transcript, &statement);
    let vectors = ColumnVectors::new(&projections, width);
    let products = Products::new(&rows, &vectors, &Silent).unwrap();
    let digits = digit_columns(&statement, &projections, &products);
    let mut randomness = ProverRandomness::from_system().unwrap();
    let random = Blindings::random(&mut randomness);
    let drawn = protocol::ColumnChallenges {
        alpha: randomness.scalar(),
        lambda: randomness.scalar(),
        t: randomness.scalars(statement.row_variables()),
        rho: Scalar::ONE,
    };
    let mut tables = Tables::new(&statement, small, &digits, &random, &projections, &drawn);
    let weights = Weights::new(&drawn);
    let source = Source {
        rows,
        count,
        width,
        projections: &projections,
        vectors: &vectors,
        products: &products,
        lambdas: &weights.lambdas,
        sigma: random.sigma.into(),
        stride: 1 << (statement.row_variables() - BLOCK_ROUNDS),
    };
    let phase = row_phase(&statement, &weights, source, &digits, &random, &Silent).unwrap();
    let mut polynomial = Polynomial::new(&weights, &projections, phase);
    let mut point = Vec::new();
    for (round, degree) in statement.degrees().into_iter().enumerate() {
        let values: Vec<Scalar> = polynomial.values().iter().map(Scalar::from).collect();
        let expected: Vec<Scalar> =
            (0..=degree as u64).map(|x| tables.value(x, &drawn.alpha)).collect();
        assert_eq!(values, expected, "{count} x {dimension}, round {round}");
        let r = randomness.scalar();
        polynomial.bind(&r.into()).unwrap();
        tables.bind(&r);
        point.push(r);
    }
    let digit_values: Vec<Scalar> = polynomial.digit_values().iter().map(Scalar::from).collect();
    assert_eq!(digit_values, tables.digits.concat());
    let columns = Point::new(&statement, &point).columns;
    let row_value = Scalar::from(inner_product(polynomial.bound_row(), &columns));
    assert_eq!(vec![row_value], tables.rows);
}

#[test]
fn round_polynomials_are_those_of_the_whole_table() {
    // m = 10 up to 1023 rows, blocks of 16 rows 64 apart; m = 11 from 1024 rows on.
    for (count, dimension) in [(1, 1), (2, 3), (17, 1), (63, 1), (65, 2), (1023, 1), (1024, 1)] {
        let rows = small_rows(count, dimension + 4, count);
        assert_defined(count, dimension, Rows::Small(&rows), &rows);
    }
}

#[test]
fn round_polynomials_of_field_rows_are_the_same() {
    let rows = small_rows(66, 6, 3);
    let field: Vec<Scalar> =
        rows.iter().map(|entry| crate::scalars::from_integer(i128::from(*entry))).collect();
    assert_defined(66, 2, Rows::Field(&field), &rows);
}
