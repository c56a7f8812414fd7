//! Completing a row to squared norm exactly B² (spec 4.1.5).

use std::sync::LazyLock;

use crate::SQUARED_NORM;
use crate::errors::{Result, malformed};

/// Extra coordinates of a completed row.
pub const COMPLETION: usize = 4;

const ENTRIES: usize = SQUARED_NORM as usize + 1;

static TABLE: LazyLock<Vec<[i8; COMPLETION]>> = LazyLock::new(build_table);

/// w with w_1² + .. + w_4² = n for every 0 <= n <= B² (Lagrange), largest w_1, then w_2, first.
fn build_table() -> Vec<[i8; COMPLETION]> {
    let mut pairs: Vec<Option<[i8; 2]>> = vec![None; ENTRIES];
    for a in 0..=127i32 {
        for b in 0..=a {
            if let Some(entry) = pairs.get_mut((a * a + b * b) as usize) {
                *entry = Some([a as i8, b as i8]);
            }
        }
    }
    (0..ENTRIES as i32).map(|n| decompose(n, &pairs)).collect()
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

/// Appends to every vector of `dimension` entries its four squares.
///
/// Malformed if a squared norm exceeds B² = 16129 or `vectors` is not a whole number of rows.
///
/// ```
/// use ragaudit_arguments::four_squares::complete_rows;
///
/// let row = complete_rows(&[3, -4, 100], 3)?;
/// assert_eq!(row[..3], [3, -4, 100]);
/// assert_eq!(row.iter().map(|entry| i32::from(*entry).pow(2)).sum::<i32>(), 127 * 127);
/// # Ok::<(), ragaudit_arguments::Error>(())
/// ```
pub fn complete_rows(vectors: &[i8], dimension: usize) -> Result<Vec<i8>> {
    if dimension == 0 || !vectors.len().is_multiple_of(dimension) {
        return Err(malformed(format!("{} entries are not rows of {dimension}", vectors.len())));
    }
    let mut rows = Vec::with_capacity(vectors.len() / dimension * (dimension + COMPLETION));
    for (position, vector) in vectors.chunks_exact(dimension).enumerate() {
        let norm: i64 = vector.iter().map(|entry| i64::from(*entry).pow(2)).sum();
        let rest = usize::try_from(i64::from(SQUARED_NORM) - norm)
            .map_err(|_| malformed(format!("row {position}: squared norm above {SQUARED_NORM}")))?;
        rows.extend_from_slice(vector);
        rows.extend_from_slice(&TABLE[rest]);
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_sums_to_its_index() {
        for (n, squares) in TABLE.iter().enumerate() {
            let sum: i32 = squares.iter().map(|w| i32::from(*w).pow(2)).sum();
            assert_eq!(sum as usize, n);
        }
    }

    #[test]
    fn a_null_row_is_completed_by_127() {
        assert_eq!(complete_rows(&[0; 3], 3).unwrap(), [0, 0, 0, 127, 0, 0, 0]);
    }

    #[test]
    fn a_row_above_the_norm_is_refused() {
        assert!(complete_rows(&[127, 0, 127, 1], 2).is_err());
        assert!(complete_rows(&[-128], 1).is_err());
    }
}
