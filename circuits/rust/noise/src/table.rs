//! Looking words up among sorted thresholds, in the same number of steps for every word.

use multiversion::multiversion;

/// Buckets per power of two: 2^7. The specified tables then need at most three halvings.
const BITS: u32 = 7;

/// Buckets of the words below 2^127; as many again for the others.
const HALF: usize = (128 - BITS as usize) << BITS;

/// Sorted thresholds T_v and, for each bucket of words, where to begin the search among them.
///
/// The thresholds of a Gaussian crowd near 0 and 2^128, so buckets are as wide as the word is far
/// from the nearer end, divided by 2^7: each holds few thresholds, in the tails as in the middle.
pub struct Table {
    /// Padded, so that the search never runs over the end.
    thresholds: Vec<u128>,
    /// How many thresholds there are.
    count: usize,
    /// For each bucket, how many thresholds its lowest word reaches.
    begins: Vec<u32>,
    /// Halvings that find any place in any bucket.
    halvings: u32,
}

impl Table {
    /// `thresholds` in rising order, at most [`crate::MAX_THRESHOLDS`].
    pub fn new(mut thresholds: Vec<u128>) -> Self {
        let count = thresholds.len();
        let reached = |u: u128| thresholds.partition_point(|threshold| *threshold <= u);
        let mut begins = vec![0; 2 * HALF];
        let mut most = 0;
        for index in 0..HALF {
            let (low, high) = (lowest(index), lowest(index + 1) - 1);
            for (index, low, high) in [(index, low, high), (HALF + index, !high, !low)] {
                let begin = reached(low);
                begins[index] = begin as u32;
                most = most.max(reached(high) - begin);
            }
        }
        let halvings = usize::BITS - most.leading_zeros();
        thresholds.resize(count + (1 << halvings), u128::MAX);
        Table { thresholds, count, begins, halvings }
    }

    /// #{ v : T_v <= u }.
    #[inline(always)]
    fn reached(&self, u: u128) -> usize {
        let mut place = self.begins[bucket(u)] as usize;
        for step in (0..self.halvings).rev() {
            let length = 1 << step;
            // No branch: as many steps for every u.
            place += length * usize::from(self.thresholds[place + length - 1] <= u);
        }
        // The largest word reaches the padding too.
        place.min(self.count)
    }
}

/// sum_j x_j K^j of each `scales.len()` words, x = #{ v : T_v <= u } - w (§3.4).
///
/// The sums are the caller's to bound: they are not checked here.
#[multiversion(targets("x86_64+avx2+bmi1+bmi2+lzcnt"))]
pub fn look_up(table: &Table, scales: &[i64], words: &[[u8; 16]], samples: &mut [i64]) {
    let half_width = (table.count / 2) as i64;
    for (sample, words) in samples.iter_mut().zip(words.chunks_exact(scales.len())) {
        let mut sum = 0i64;
        for (word, scale) in words.iter().zip(scales) {
            let looked_up = table.reached(u128::from_le_bytes(*word)) as i64 - half_width;
            sum = sum.wrapping_add(looked_up.wrapping_mul(*scale));
        }
        *sample = sum;
    }
}

/// The bucket of a word: the distance to the nearer end, cut to its highest bit and 7 more.
///
/// Consecutive words below 2^127 have equal or consecutive buckets; the others mirror them.
#[inline(always)]
fn bucket(u: u128) -> usize {
    let upper = (u >> 127) as usize;
    let distance = if upper == 1 { !u } else { u };
    let shift = 127 - BITS - (distance | 1 << BITS).leading_zeros();
    upper * HALF + ((shift as usize) << BITS) + (distance >> shift) as usize
}

/// The lowest word of a bucket below 2^127, or 2^127 for the bucket after the last.
fn lowest(bucket: usize) -> u128 {
    let shift = (bucket >> BITS).saturating_sub(1);
    ((bucket - (shift << BITS)) as u128) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_consecutive_and_cover_every_word() {
        assert_eq!((lowest(0), lowest(HALF)), (0, 1 << 127));
        for index in 0..HALF {
            let (low, high) = (lowest(index), lowest(index + 1) - 1);
            assert!(low <= high);
            assert_eq!([bucket(low), bucket(high)], [index; 2]);
            assert_eq!([bucket(!low), bucket(!high)], [HALF + index; 2]);
        }
    }

    #[test]
    fn a_look_up_counts_the_thresholds_reached() {
        let tables: [Vec<u128>; 6] = [
            vec![0, u128::MAX],
            vec![0; 40],
            vec![u128::MAX; 40],
            (0..128).map(|bit| 1 << bit).collect(),
            (0..1000).map(|v| (1 << 127) - 500 + v).collect(),
            (0..1000).map(|v| v * (u128::MAX / 999)).collect(),
        ];
        for thresholds in tables {
            let table = Table::new(thresholds.clone());
            let near = |t: &u128| [t.wrapping_sub(1), *t, t.wrapping_add(1)];
            for u in thresholds.iter().flat_map(near).chain([0, 1, 1 << 127, u128::MAX]) {
                let expected = thresholds.iter().filter(|threshold| **threshold <= u).count();
                assert_eq!(table.reached(u), expected, "{u:#x}");
            }
        }
    }
}
