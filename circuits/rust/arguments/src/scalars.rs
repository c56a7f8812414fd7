//! Small helpers over the scalar field F = Z/l.

use curve25519_dalek::scalar::Scalar;

/// An integer as a field element.
pub fn from_integer(value: i128) -> Scalar {
    let magnitude = Scalar::from(value.unsigned_abs());
    // The sign may be secret, so no branch on it.
    subtle::ConditionallySelectable::conditional_select(
        &magnitude,
        &-magnitude,
        subtle::Choice::from((value < 0) as u8),
    )
}

/// 1, base, base², .., `count` of them.
pub fn powers(base: &Scalar, count: usize) -> Vec<Scalar> {
    std::iter::successors(Some(Scalar::ONE), |power| Some(power * base)).take(count).collect()
}

/// <left, right>; the shorter length counts.
pub fn inner_product(left: &[Scalar], right: &[Scalar]) -> Scalar {
    left.iter().zip(right).map(|(a, b)| a * b).sum()
}

/// eq(r, i) for 0 <= i < count <= 2^m; bit 1 is the most significant of the m bits.
pub fn eq_table(r: &[Scalar], count: usize) -> Vec<Scalar> {
    let mut table = vec![Scalar::ONE];
    for (bound, r_k) in r.iter().enumerate() {
        // Entries of the table of the first k bits that a kept index can still have as prefix.
        let remaining = r.len() - bound - 1;
        let kept = count.div_ceil(1usize << remaining).max(1);
        let mut next = Vec::with_capacity(2 * table.len());
        for prefix in table {
            let one = prefix * r_k;
            next.push(prefix - one);
            next.push(one);
        }
        next.truncate(kept);
        table = next;
    }
    table.truncate(count);
    table
}

/// eq(r, 2^m - 1): the weight of the mask row.
pub fn eq_mask_row(r: &[Scalar]) -> Scalar {
    r.iter().product()
}

/// The least m with 2^m >= value, for value >= 1.
pub fn log2_ceil(value: usize) -> usize {
    value.next_power_of_two().trailing_zeros() as usize
}

/// sum of coefficients[e] x^e.
pub fn evaluate(coefficients: &[Scalar], x: &Scalar) -> Scalar {
    coefficients.iter().rev().fold(Scalar::ZERO, |value, coefficient| value * x + coefficient)
}

/// The coefficients of the polynomial of degree at most 3 (2) with these values at 0, 1, 2, 3 (0, 1, 2).
pub fn interpolate(values: &[Scalar]) -> Vec<Scalar> {
    // Newton's forward differences; 1/2 and 1/6 are constants of the field.
    let first: Vec<Scalar> = differences(values);
    let second = differences(&first);
    let half = Scalar::from(2u8).invert();
    let quadratic = second[0] * half;
    let cubic = match differences(&second).first() {
        Some(third) => third * half * Scalar::from(3u8).invert(),
        None => Scalar::ZERO,
    };
    // X(X-1) = X² - X and X(X-1)(X-2) = X³ - 3X² + 2X.
    let mut coefficients = vec![
        values[0],
        first[0] - quadratic + cubic + cubic,
        quadratic - Scalar::from(3u8) * cubic,
        cubic,
    ];
    coefficients.truncate(values.len());
    coefficients
}

fn differences(values: &[Scalar]) -> Vec<Scalar> {
    values.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// The four 64-bit limbs of a scalar, least significant first.
pub fn limbs(scalar: &Scalar) -> [u64; 4] {
    let mut limbs = [0; 4];
    for (limb, bytes) in limbs.iter_mut().zip(scalar.as_bytes().chunks_exact(8)) {
        *limb = bytes.iter().rev().fold(0, |value, byte| (value << 8) | u64::from(*byte));
    }
    limbs
}

/// A sum of scalars times small integers, reduced once at the end.
///
/// Exact as long as the absolute values of the integers add up to less than 2^60.
#[derive(Clone, Copy, Default)]
pub struct SmallSum {
    columns: [i128; 4],
}

impl SmallSum {
    /// Adds `limbs` times `factor`.
    #[inline]
    pub fn add_product(&mut self, limbs: &[u64; 4], factor: i64) {
        for (column, limb) in self.columns.iter_mut().zip(limbs) {
            *column = column.wrapping_add(i128::from(*limb).wrapping_mul(i128::from(factor)));
        }
    }

    /// The sum modulo l.
    pub fn reduce(&self) -> Scalar {
        // 2^380 makes the total positive whatever its sign, and is taken off again in the field.
        let mut wide = [0u8; 64];
        let mut carry: i128 = 0;
        for (column, bytes) in self.columns.iter().zip(wide.chunks_exact_mut(8)) {
            carry += column & i128::from(u64::MAX);
            bytes.copy_from_slice(&(carry as u64).to_le_bytes());
            carry = (carry >> 64) + (column >> 64);
        }
        carry += OFFSET_IN_CARRY;
        wide[32..48].copy_from_slice(&carry.to_le_bytes());
        Scalar::from_bytes_mod_order_wide(&wide) - *OFFSET
    }
}

/// 2^380 seen from bit 256.
const OFFSET_IN_CARRY: i128 = 1 << 124;

static OFFSET: std::sync::LazyLock<Scalar> = std::sync::LazyLock::new(|| {
    let mut wide = [0u8; 64];
    wide[47] = 1 << 4;
    Scalar::from_bytes_mod_order_wide(&wide)
});

#[cfg(test)]
mod tests {
    use super::*;

    fn scalar(seed: u64) -> Scalar {
        let base = Scalar::from(seed) + Scalar::from(u64::MAX);
        base * base * base * base * base
    }

    fn eq(r: &[Scalar], index: usize) -> Scalar {
        r.iter()
            .enumerate()
            .map(
                |(k, r_k)| {
                    if (index >> (r.len() - 1 - k)) & 1 == 1 { *r_k } else { Scalar::ONE - r_k }
                },
            )
            .product()
    }

    #[test]
    fn eq_table_is_the_product_of_its_definition() {
        let r: Vec<Scalar> = (1..=5).map(scalar).collect();
        for count in 0..=32 {
            let table = eq_table(&r, count);
            assert_eq!(table.len(), count);
            for (index, value) in table.iter().enumerate() {
                assert_eq!(*value, eq(&r, index));
            }
        }
        assert_eq!(eq_mask_row(&r), eq(&r, 31));
    }

    #[test]
    fn interpolation_inverts_evaluation() {
        for degree in [2, 3] {
            let coefficients: Vec<Scalar> = (0..=degree).map(|e| scalar(7 + e)).collect();
            let values: Vec<Scalar> =
                (0..=degree).map(|x| evaluate(&coefficients, &Scalar::from(x))).collect();
            assert_eq!(interpolate(&values), coefficients);
        }
    }

    #[test]
    fn small_sums_agree_with_field_arithmetic() {
        let factors = [0i64, 1, -1, 127, -128, 1 << 50, -(1 << 50), 33, i64::from(i32::MIN)];
        let mut sum = SmallSum::default();
        let mut expected = Scalar::ZERO;
        for (seed, factor) in factors.into_iter().enumerate() {
            let value = scalar(seed as u64);
            sum.add_product(&limbs(&value), factor);
            expected += value * from_integer(i128::from(factor));
            assert_eq!(sum.reduce(), expected);
        }
        let mut negative = SmallSum::default();
        negative.add_product(&limbs(&scalar(3)), -(1 << 59));
        assert_eq!(negative.reduce(), -scalar(3) * Scalar::from(1u64 << 59));
    }

    #[test]
    fn integers_map_to_their_residues() {
        assert_eq!(from_integer(-1) + Scalar::ONE, Scalar::ZERO);
        assert_eq!(from_integer(i128::MIN) + Scalar::from(1u128 << 127), Scalar::ZERO);
    }

    #[test]
    fn logarithms_round_up() {
        let expected = [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (1024, 10), (1025, 11)];
        assert!(expected.iter().all(|(value, log)| log2_ceil(*value) == *log));
    }
}
