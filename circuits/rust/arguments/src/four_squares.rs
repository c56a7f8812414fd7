//! Completing a row to squared norm exactly B² (spec 4.1.5).

use std::sync::LazyLock;

use crate::SQUARED_NORM;
use crate::entries::{Entry, MOST_SQUARED_NORM};
use crate::errors::{Result, malformed};

/// Extra coordinates of a completed row.
pub const COMPLETION: usize = 4;

/// Up to here, the four squares of every number are in a table.
const TABLED: usize = SQUARED_NORM as usize + 1;

/// A number that is not divisible by 4 and at most [`MOST_SQUARED_NORM`] is a square and less than
/// this: n - (floor(sqrt n) - 1)² < 4 · 4096.
const RESTS: usize = 1 << 14;

static TABLE: LazyLock<Vec<[i8; COMPLETION]>> = LazyLock::new(build_table);

static SUMS_OF_THREE: LazyLock<Vec<[i16; 3]>> = LazyLock::new(build_sums_of_three);

/// w with w_1² + .. + w_4² = n for every 0 <= n <= 127² (Lagrange), largest w_1, then w_2, first.
fn build_table() -> Vec<[i8; COMPLETION]> {
    let mut pairs: Vec<Option<[i8; 2]>> = vec![None; TABLED];
    for a in 0..=127i32 {
        for b in 0..=a {
            if let Some(entry) = pairs.get_mut((a * a + b * b) as usize) {
                *entry = Some([a as i8, b as i8]);
            }
        }
    }
    (0..TABLED as i32).map(|n| decompose(n, &pairs)).collect()
}

fn decompose(n: i32, pairs: &[Option<[i8; 2]>]) -> [i8; COMPLETION] {
    for a in (0..=n.isqrt()).rev() {
        for b in (0..=(n - a * a).isqrt()).rev() {
            if let Some([c, d]) = pairs[(n - a * a - b * b) as usize] {
                return [a as i8, b as i8, c, d];
            }
        }
    }
    unreachable!("every natural number is a sum of four squares")
}

/// w with w_1² + w_2² + w_3² = n for every n that is such a sum, zeros for the others.
fn build_sums_of_three() -> Vec<[i16; 3]> {
    let mut sums = vec![[0; 3]; RESTS];
    for a in 0..1 << 7 {
        for b in 0..=a {
            for c in 0..=b {
                if let Some(entry) = sums.get_mut((a * a + b * b + c * c) as usize) {
                    *entry = [a as i16, b as i16, c as i16];
                }
            }
        }
    }
    sums
}

/// w with w_1² + .. + w_4² = n for n <= [`MOST_SQUARED_NORM`].
///
/// n = 4^k n' with n' not divisible by 4. The first square is as near to n' as its parity allows,
/// unless n' is a square itself: it is even where n' is 1 modulo 4, and odd where n' is 2 or 3. The rest is then 1 or 2 modulo 4,
/// hence a sum of three squares (Legendre).
fn four_squares(n: u32) -> [i32; COMPLETION] {
    if n == 0 {
        return [0; COMPLETION];
    }
    let halvings = n.trailing_zeros() / 2;
    let odd = n >> (2 * halvings);
    let root = odd.isqrt();
    let parity = u32::from(odd % 4 != 1);
    // A square is its own: a null row is completed by B, 0, 0, 0 (spec 4.1.5).
    let first = if root * root == odd { root } else { root - ((root % 2) ^ parity) };
    let [a, b, c] = SUMS_OF_THREE[(odd - first * first) as usize];
    [first as i32, a.into(), b.into(), c.into()].map(|w| w << halvings)
}

/// Appends to every vector of `dimension` entries its four squares, so that its squared norm is
/// `squared_norm`: that of the policy.
///
/// Malformed if a squared norm exceeds it, if the entries' type does not hold B, or if `vectors` is
/// not a whole number of rows.
///
/// ```
/// use ragaudit_arguments::four_squares::complete_rows;
///
/// let row = complete_rows(&[3i8, -4, 100], 3, 16129)?;
/// assert_eq!(row[..3], [3, -4, 100]);
/// assert_eq!(row.iter().map(|entry| i32::from(*entry).pow(2)).sum::<i32>(), 127 * 127);
/// let row = complete_rows(&[3i16, -4, 4000], 3, 4095 * 4095)?;
/// assert_eq!(row.iter().map(|entry| i32::from(*entry).pow(2)).sum::<i32>(), 4095 * 4095);
/// # Ok::<(), ragaudit_arguments::Error>(())
/// ```
pub fn complete_rows<E: Entry>(
    vectors: &[E],
    dimension: usize,
    squared_norm: u32,
) -> Result<Vec<E>> {
    if dimension == 0 || !vectors.len().is_multiple_of(dimension) {
        return Err(malformed(format!("{} entries are not rows of {dimension}", vectors.len())));
    }
    if !(1..=MOST_SQUARED_NORM).contains(&squared_norm) {
        return Err(malformed(format!("B² = {squared_norm}, expected 1 <= 4B² < 2^26")));
    }
    // Entries of a completion are at most B.
    E::checked(squared_norm.isqrt() as i32)?;
    let mut rows = Vec::with_capacity(vectors.len() / dimension * (dimension + COMPLETION));
    for (position, vector) in vectors.chunks_exact(dimension).enumerate() {
        let norm: i64 = vector.iter().map(|entry| Into::<i64>::into(*entry).pow(2)).sum();
        let rest = u32::try_from(i64::from(squared_norm) - norm)
            .map_err(|_| malformed(format!("row {position}: squared norm above {squared_norm}")))?;
        rows.extend_from_slice(vector);
        let completion = match TABLE.get(rest as usize) {
            Some(tabled) => tabled.map(i32::from),
            None => four_squares(rest),
        };
        for entry in completion {
            rows.push(E::checked(entry)?);
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: u32 = 4095 * 4095;

    #[test]
    fn every_entry_sums_to_its_index() {
        for (n, squares) in TABLE.iter().enumerate() {
            let sum: i32 = squares.iter().map(|w| i32::from(*w).pow(2)).sum();
            assert_eq!(sum as usize, n);
        }
    }

    #[test]
    fn every_number_is_the_sum_of_its_squares() {
        for n in 0..=MOST_SQUARED_NORM {
            let sum: i32 = four_squares(n).iter().map(|w| w * w).sum();
            assert_eq!(sum, n as i32);
        }
    }

    #[test]
    fn a_null_row_is_completed_by_b() {
        assert_eq!(complete_rows(&[0i8; 3], 3, SQUARED_NORM).unwrap(), [0, 0, 0, 127, 0, 0, 0]);
        assert_eq!(complete_rows(&[0i16; 3], 3, WIDE).unwrap(), [0, 0, 0, 4095, 0, 0, 0]);
    }

    #[test]
    fn a_row_above_the_norm_is_refused() {
        assert!(complete_rows(&[127i8, 0, 127, 1], 2, SQUARED_NORM).is_err());
        assert!(complete_rows(&[-128i8], 1, SQUARED_NORM).is_err());
        assert!(complete_rows(&[4095i16, 0, 4095, 1], 2, WIDE).is_err());
        assert!(complete_rows(&[i16::MIN], 1, WIDE).is_err());
    }

    #[test]
    fn a_norm_that_the_entries_cannot_hold_is_refused() {
        assert!(complete_rows(&[0i8; 3], 3, WIDE).is_err());
        for squared_norm in [0, 1 << 24, u32::MAX] {
            assert!(complete_rows(&[0i16; 3], 3, squared_norm).is_err());
        }
    }
}
