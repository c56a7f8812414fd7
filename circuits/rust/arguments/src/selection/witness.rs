//! The honest prover's secret values (spec 4.6.2).

use rayon::prelude::*;
use sha2::{Digest, Sha512};
use zeroize::{Zeroize, ZeroizeOnDrop};

use super::relation::{COLUMNS, DISTANCE_BITS};
use super::secrets::Secrets;
use super::statement::{Statement, Threshold};

/// The columns over the rows of U, before masking.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Witness {
    /// tau = y_(K+1) + 1.
    pub tau: i128,
    /// y - tau for every row of U.
    pub differences: Vec<i64>,
    /// b, b3, b4, u_0 .. u_15.
    pub columns: Vec<Vec<bool>>,
}

impl Witness {
    /// The values for the given selection. When it is not the statement's, the proof made from
    /// them is rejected.
    pub fn new(statement: &Statement, threshold: &Threshold, secrets: &Secrets) -> Self {
        // y - zeta, which is small where y itself may leave 64 bits.
        let zeta = threshold.zeta;
        let noised: Vec<i64> = threshold
            .uncertain
            .par_iter()
            .map(|row| score(secrets.row(row.position), statement.query) + (row.noise - zeta))
            .collect();
        let remaining = threshold.remaining(statement.top_k);
        // y_(K+1) lies in U: the rows of F are above it, those left out below (spec 4.6.1).
        let mut sorted = noised.clone();
        let boundary = *sorted.select_nth_unstable_by(remaining as usize, |a, b| b.cmp(a)).1;
        sorted.zeroize();
        let differences: Vec<i64> = noised.iter().map(|y| y - (boundary + 1)).collect();
        let selected: Vec<bool> =
            threshold.uncertain.iter().map(|row| secrets.selects(row.position)).collect();
        let columns = columns(&differences, selected, remaining);
        let tau = i128::from(zeta) + i128::from(boundary) + 1;
        Witness { tau, differences, columns }
    }
}

/// <e, X_i>; a completed row's last four entries meet no entry of e.
fn score(row: &[i8], query: &[i16]) -> i64 {
    row.iter().zip(query).map(|(x, e)| i64::from(*x) * i64::from(*e)).sum()
}

/// b, b3, b4 and the bits of the distances, without branches on them.
fn columns(differences: &[i64], selected: Vec<bool>, remaining: u64) -> Vec<Vec<bool>> {
    let chosen: u64 = selected.iter().map(|bit| u64::from(*bit)).sum();
    let wanted_ties = remaining.saturating_sub(chosen);
    let mut ties_seen = 0u64;
    let mut first_tie = Vec::with_capacity(selected.len());
    let mut further_ties = Vec::with_capacity(selected.len());
    let mut distances = Vec::with_capacity(selected.len());
    for (difference, bit) in differences.iter().zip(&selected) {
        let tied = *difference == -1;
        first_tie.push(tied & (ties_seen == 0));
        further_ties.push(tied & (ties_seen > 0) & (ties_seen <= wanted_ties));
        ties_seen += u64::from(tied);
        // y - tau if selected, tau - 1 - y = !(y - tau) otherwise.
        let flip = i64::from(*bit) - 1;
        distances.push((difference ^ flip) as u16);
    }
    let mut columns = Vec::with_capacity(COLUMNS);
    columns.extend([selected, first_tie, further_ties]);
    for bit in 0..DISTANCE_BITS {
        columns.push(distances.iter().map(|distance| (distance >> bit) & 1 == 1).collect());
    }
    distances.zeroize();
    columns
}

/// SHA-512 of the secret input, for the prover's randomness.
pub fn digest(positions: impl Iterator<Item = u64>, secrets: &Secrets) -> [u8; 64] {
    let mut hash = Sha512::new();
    for position in positions {
        hash.update(bytemuck::cast_slice::<i8, u8>(secrets.row(position)));
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
        let differences = [-1, 5, -1, -1, -1, -1, -3];
        let selected = vec![false, true, false, false, false, false, false];
        let columns = columns(&differences, selected, 4);
        assert_eq!(columns[1], [true, false, false, false, false, false, false]);
        assert_eq!(columns[2], [false, false, true, true, true, false, false]);
        let distance = |row: usize| -> u32 {
            (0..DISTANCE_BITS).map(|bit| u32::from(columns[3 + bit][row]) << bit).sum()
        };
        assert_eq!([0, 1, 6].map(distance), [0, 5, 2]);
    }
}
