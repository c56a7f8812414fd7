//! The honest prover's secret values (spec 4.6.2).

use rayon::prelude::*;
use sha2::{Digest, Sha512};
use zeroize::{Zeroize, ZeroizeOnDrop};

use super::relation::{Relation, Ties};
use super::secrets::Secrets;
use super::statement::{Statement, Threshold};

/// The columns over the rows of U, before masking.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Witness {
    /// tau: y_(K+1) + 1, or y_(K) where ties are kept.
    pub tau: i128,
    /// y - tau for every row of U.
    pub differences: Vec<i64>,
    /// b, b3, b4, u_0 .. u_(W-1).
    pub columns: Vec<Vec<bool>>,
}

impl Witness {
    /// The values for the given selection. When it is not the statement's, the proof made from
    /// them is rejected.
    pub fn new(statement: &Statement, threshold: &Threshold, secrets: &Secrets) -> Self {
        // y - zeta, which is small where y itself may leave 64 bits. A completed row's last four
        // entries meet no entry of e.
        let zeta = threshold.zeta;
        let noised: Vec<i64> = threshold
            .uncertain
            .par_iter()
            .map(|row| {
                secrets.row(row.position).inner_product(statement.query) + (row.noise - zeta)
            })
            .collect();
        let remaining = threshold.remaining(statement.top_k);
        // y_(K+1), or y_(K), lies in U: the rows of F are above it, those left out below
        // (spec 4.6.1).
        let (rank, above) = match threshold.relation.ties {
            Ties::Dropped => (remaining as usize, 1),
            Ties::Kept => (remaining as usize - 1, 0),
        };
        let mut sorted = noised.clone();
        let boundary = *sorted.select_nth_unstable_by(rank, |a, b| b.cmp(a)).1;
        sorted.zeroize();
        let lowest = boundary + above;
        let differences: Vec<i64> = noised.iter().map(|y| y - lowest).collect();
        let selected: Vec<bool> =
            threshold.uncertain.iter().map(|row| secrets.selects(row.position)).collect();
        let columns = columns(&threshold.relation, &differences, selected, remaining);
        let tau = i128::from(zeta) + i128::from(lowest);
        Witness { tau, differences, columns }
    }
}

/// b, b3, b4 and the bits of the distances, without branches on them.
fn columns(
    relation: &Relation,
    differences: &[i64],
    selected: Vec<bool>,
    remaining: u64,
) -> Vec<Vec<bool>> {
    let chosen: u64 = selected.iter().map(|bit| u64::from(*bit)).sum();
    let (boundary, wanted_ties) = match relation.ties {
        Ties::Dropped => (-1, remaining.saturating_sub(chosen)),
        Ties::Kept => (0, chosen.saturating_sub(remaining)),
    };
    let mut ties_seen = 0u64;
    let mut first_tie = Vec::with_capacity(selected.len());
    let mut further_ties = Vec::with_capacity(selected.len());
    let mut distances = Vec::with_capacity(selected.len());
    for (difference, bit) in differences.iter().zip(&selected) {
        let tied = *difference == boundary;
        first_tie.push(tied & (ties_seen == 0));
        further_ties.push(tied & (ties_seen > 0) & (ties_seen <= wanted_ties));
        ties_seen += u64::from(tied);
        // y - tau if selected, tau - 1 - y = !(y - tau) otherwise.
        let flip = i64::from(*bit) - 1;
        distances.push((difference ^ flip) as u32);
    }
    let mut columns = Vec::with_capacity(relation.columns());
    columns.extend([selected, first_tie, further_ties]);
    for bit in 0..relation.distance_bits {
        columns.push(distances.iter().map(|distance| (distance >> bit) & 1 == 1).collect());
    }
    distances.zeroize();
    columns
}

/// SHA-512 of the secret input, for the prover's randomness.
pub fn digest(positions: impl Iterator<Item = u64>, secrets: &Secrets) -> [u8; 64] {
    let mut hash = Sha512::new();
    for position in positions {
        hash.update(secrets.row(position).bytes());
        hash.update(secrets.blinding_bytes(position));
        hash.update([u8::from(secrets.selects(position))]);
    }
    hash.update(secrets.selection_blinding.as_bytes());
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_are_marked_once_each() {
        // y - tau with K - f = 4, one row selected: b3 on the first tie, b4 on three further ones.
        let relation = Relation::new(16129, Ties::Dropped).unwrap();
        let differences = [-1, 5, -1, -1, -1, -1, -3];
        let selected = vec![false, true, false, false, false, false, false];
        let columns = columns(&relation, &differences, selected, 4);
        assert_eq!(columns[1], [true, false, false, false, false, false, false]);
        assert_eq!(columns[2], [false, false, true, true, true, false, false]);
        assert_eq!([0, 1, 6].map(|row| distance(&columns, row)), [0, 5, 2]);
    }

    #[test]
    fn kept_ties_are_counted_beyond_k() {
        // K - f = 2 and four rows selected, three of them tied: b4 on two of these.
        let relation = Relation::new(16_769_025, Ties::Kept).unwrap();
        let differences = [0, 67_000_000, -1, 0, 0, -67_000_000];
        let selected = vec![true, true, false, true, true, false];
        let columns = columns(&relation, &differences, selected, 2);
        assert_eq!(columns[1], [true, false, false, false, false, false]);
        assert_eq!(columns[2], [false, false, false, true, true, false]);
        let distances = [0, 1, 2, 5].map(|row| distance(&columns, row));
        assert_eq!(distances, [0, 67_000_000, 0, 66_999_999]);
    }

    /// What the bits u_k of a row say.
    fn distance(columns: &[Vec<bool>], row: usize) -> u32 {
        columns[3..].iter().enumerate().map(|(bit, column)| u32::from(column[row]) << bit).sum()
    }
}
