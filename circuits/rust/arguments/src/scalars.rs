//! Small helpers over the scalar field F = Z/l.

use curve25519_dalek::scalar::Scalar;

/// An integer as a field element.
///
/// ```
/// use curve25519_dalek::scalar::Scalar;
/// use ragaudit_arguments::scalars::from_integer;
///
/// assert_eq!(from_integer(-3), -Scalar::from(3u8));
/// ```
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
///
/// ```
/// use curve25519_dalek::scalar::Scalar;
/// use ragaudit_arguments::scalars::{inner_product, powers};
///
/// let left = powers(&Scalar::from(10u8), 3);
/// let right = [1u8, 2, 3].map(Scalar::from);
/// assert_eq!(inner_product(&left, &right), Scalar::from(321u16));
/// ```
pub fn inner_product(left: &[Scalar], right: &[Scalar]) -> Scalar {
    left.iter().zip(right).map(|(a, b)| a * b).sum()
}

/// The least m with 2^m >= value, for value >= 1.
///
/// ```
/// assert_eq!([1, 4, 5].map(ragaudit_arguments::scalars::log2_ceil), [0, 2, 3]);
/// ```
pub fn log2_ceil(value: usize) -> usize {
    value.next_power_of_two().trailing_zeros() as usize
}

/// sum of coefficients[e] x^e.
///
/// ```
/// use curve25519_dalek::scalar::Scalar;
/// use ragaudit_arguments::scalars::{evaluate, interpolate};
///
/// // 5 + 2x + x²
/// let coefficients = [5u8, 2, 1].map(Scalar::from);
/// assert_eq!(evaluate(&coefficients, &Scalar::from(3u8)), Scalar::from(20u8));
/// assert_eq!(interpolate(&[5u8, 8, 13].map(Scalar::from)), coefficients);
/// ```
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
///
/// ```
/// use curve25519_dalek::scalar::Scalar;
///
/// assert_eq!(ragaudit_arguments::scalars::limbs(&Scalar::from(1u128 << 64)), [0, 1, 0, 0]);
/// ```
pub fn limbs(scalar: &Scalar) -> [u64; 4] {
    let mut limbs = [0; 4];
    for (limb, bytes) in limbs.iter_mut().zip(scalar.as_bytes().chunks_exact(8)) {
        *limb = bytes.iter().rev().fold(0, |value, byte| (value << 8) | u64::from(*byte));
    }
    limbs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpolation_inverts_evaluation() {
        for degree in [2, 3] {
            let coefficients: Vec<Scalar> =
                (0..=degree).map(|e| Scalar::from(7 + e as u64).invert()).collect();
            let values: Vec<Scalar> =
                (0..=degree).map(|x| evaluate(&coefficients, &Scalar::from(x as u64))).collect();
            assert_eq!(interpolate(&values), coefficients);
        }
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
