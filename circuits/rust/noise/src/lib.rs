//! The discrete Gaussian sampler "ragaudit/v1/dgs" (docs/spec/03-noise.md): integers only, the
//! same output on every machine, a fixed number of key-stream bytes per sample, no rejection.

mod table;

use std::fmt;

use chacha20::ChaCha20;
use chacha20::cipher::{KeyIvInit, StreamCipher, StreamCipherSeek};
use rayon::prelude::*;

use crate::table::{Table, look_up};

/// Bytes of key stream per table look-up, and bytes of one threshold.
pub const WORD_BYTES: usize = 16;

/// Most bytes taken from one key: 2^32 blocks of 64 bytes.
pub const MAX_STREAM_BYTES: u64 = 1 << 38;

/// L is at most 4 for every accepted sigma; more is a mistake of the caller.
pub const MAX_LEVELS: u32 = 8;

/// Most thresholds of a table; the specified ones have fewer than 2^14.
pub const MAX_THRESHOLDS: usize = 1 << 20;

/// Positions sampled by one task: the key stream of a few levels then stays in the nearest cache.
const CHUNK: usize = 1 << 9;

/// So few are drawn sooner than another thread wakes up.
const ALONE: usize = 1 << 12;

/// An input that breaks the contract of [`Sampler`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed(pub String);

impl fmt::Display for Malformed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Malformed {}

/// The sampler of one table: `x = #{ v : T_v <= u } - w`, `z = sum_j x_j K^j` (§3.2, §3.4).
///
/// Making it takes a millisecond or two: keep it for all keys of a table.
pub struct Sampler {
    table: Table,
    /// K^0 .. K^L.
    scales: Vec<i64>,
}

impl Sampler {
    /// The table's 2w thresholds as bytes (§3.2), the factor K and the number of levels L.
    pub fn new(thresholds: &[u8], factor: u64, levels: u32) -> Result<Self, Malformed> {
        if thresholds.is_empty() || !thresholds.len().is_multiple_of(2 * WORD_BYTES) {
            let message =
                format!("thresholds: {} bytes, expected 16 for each of 2w", thresholds.len());
            return Err(Malformed(message));
        }
        let thresholds: Vec<u128> =
            thresholds.as_chunks().0.iter().map(|bytes| u128::from_le_bytes(*bytes)).collect();
        if thresholds.len() > MAX_THRESHOLDS {
            let message = format!("thresholds: {}, expected at most 2^20", thresholds.len());
            return Err(Malformed(message));
        }
        if !thresholds.is_sorted() {
            return Err(Malformed("thresholds: not in rising order".into()));
        }
        if levels > MAX_LEVELS {
            return Err(Malformed(format!("levels: {levels}, expected at most {MAX_LEVELS}")));
        }
        let scales = scales(factor, levels, thresholds.len() as i64 / 2)
            .ok_or_else(|| Malformed("factor: a sample would not fit 64 bits".into()))?;
        Ok(Sampler { table: Table::new(thresholds), scales })
    }

    /// z_0 .. z_(count - 1) under `key`.
    pub fn sample(&self, key: &[u8; 32], count: usize) -> Result<Vec<i64>, Malformed> {
        let stride = self.scales.len() * WORD_BYTES;
        if count as u64 > MAX_STREAM_BYTES / stride as u64 {
            return Err(Malformed(format!("count: {count} samples need more than 2^38 bytes")));
        }
        let mut samples = vec![0; count];
        let stream = || vec![0; stride * CHUNK.min(count)];
        let draw = |stream: &mut Vec<u8>, (chunk, samples): (usize, &mut [i64])| {
            let stream = &mut stream[..samples.len() * stride];
            key_stream(key, (chunk * CHUNK * stride) as u64, stream)?;
            look_up(&self.table, &self.scales, stream.as_chunks().0, samples);
            Ok(())
        };
        if count <= ALONE {
            let mut stream = stream();
            samples.chunks_mut(CHUNK).enumerate().try_for_each(|chunk| draw(&mut stream, chunk))?;
        } else {
            samples.par_chunks_mut(CHUNK).enumerate().try_for_each_init(stream, draw)?;
        }
        Ok(samples)
    }
}

/// ChaCha20 (RFC 8439) under a zero nonce, block counter from 0, from byte `start` on.
fn key_stream(key: &[u8; 32], start: u64, stream: &mut [u8]) -> Result<(), Malformed> {
    let exhausted = || Malformed("the key stream is exhausted".into());
    let mut cipher = ChaCha20::new(key.into(), &[0; 12].into());
    cipher.try_seek(start).map_err(|_| exhausted())?;
    cipher.try_write_keystream(stream).map_err(|_| exhausted())
}

/// K^0 .. K^L, if w (K^0 + .. + K^L) fits 63 bits.
fn scales(factor: u64, levels: u32, half_width: i64) -> Option<Vec<i64>> {
    let factor = i64::try_from(factor).ok().filter(|factor| *factor >= 1)?;
    let scales: Vec<i64> = (0..=levels).map(|j| factor.checked_pow(j)).collect::<Option<_>>()?;
    let sum = scales.iter().try_fold(0i64, |sum, scale| sum.checked_add(*scale))?;
    sum.checked_mul(half_width)?;
    Some(scales)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn table(thresholds: &[u128]) -> Vec<u8> {
        thresholds.iter().flat_map(|threshold| threshold.to_le_bytes()).collect()
    }

    /// RFC 8439, Appendix A.1, test vector 1.
    #[test]
    fn the_key_stream_is_chacha20() {
        let mut stream = [0; 64];
        ChaCha20::new(&[0; 32].into(), &[0; 12].into()).apply_keystream(&mut stream);
        let expected = "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7\
                        da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586";
        assert_eq!(hex::encode(stream), expected);
    }

    /// With L = 0, sample i comes from bytes 16 i .. 16 i + 15 of the key stream alone.
    #[test]
    fn samples_are_table_lookups_of_the_key_stream() {
        let thresholds = [1 << 20, 1 << 126, 1 << 127, u128::MAX];
        let sampler = Sampler::new(&table(&thresholds), 1, 0).unwrap();
        let count = ALONE + 3 * CHUNK + 7;
        let mut stream = vec![0; 16 * count];
        ChaCha20::new(&[5; 32].into(), &[0; 12].into()).apply_keystream(&mut stream);
        let expected: Vec<i64> = stream
            .chunks(16)
            .map(|bytes| u128::from_le_bytes(bytes.try_into().unwrap()))
            .map(|u| thresholds.iter().filter(|threshold| **threshold <= u).count() as i64 - 2)
            .collect();
        assert_eq!(sampler.sample(&[5; 32], count).unwrap(), expected);
    }

    #[test]
    fn a_threshold_is_reached_from_its_own_value_on() {
        let sampler = Sampler::new(&table(&[10, 20]), 7, 1).unwrap();
        let value = |u: u128, v: u128| {
            let mut sample = [0];
            let words = [u.to_le_bytes(), v.to_le_bytes()];
            look_up(&sampler.table, &sampler.scales, &words, &mut sample);
            sample[0]
        };
        assert_eq!([value(9, 10), value(10, 10), value(19, 20), value(20, 9)], [-1, 0, 7, 1 - 7]);
    }

    #[test]
    fn levels_use_consecutive_words() {
        let bytes = table(&[1 << 126, 1 << 127]);
        let plain = Sampler::new(&bytes, 1, 0).unwrap().sample(&[9; 32], 30).unwrap();
        let folded = Sampler::new(&bytes, 10, 2).unwrap().sample(&[9; 32], 10).unwrap();
        let expected: Vec<i64> = plain.chunks(3).map(|x| x[0] + 10 * x[1] + 100 * x[2]).collect();
        assert_eq!(folded, expected);
    }

    #[test]
    fn a_prefix_does_not_depend_on_the_count() {
        let sampler = Sampler::new(&table(&[1 << 126, 1 << 127]), 3, 1).unwrap();
        let long = sampler.sample(&[1; 32], ALONE + 1).unwrap();
        for count in [0, 1, 5, CHUNK, CHUNK + 1, ALONE] {
            assert_eq!(sampler.sample(&[1; 32], count).unwrap(), long[..count]);
        }
    }

    #[test]
    fn bad_tables_and_counts_are_refused() {
        assert!(Sampler::new(&[], 1, 0).is_err());
        assert!(Sampler::new(&[0; 16], 1, 0).is_err());
        assert!(Sampler::new(&[0; 33], 1, 0).is_err());
        assert!(Sampler::new(&[0; 16 * (MAX_THRESHOLDS + 2)], 1, 0).is_err());
        assert!(Sampler::new(&table(&[2, 1]), 1, 0).is_err());
        assert!(Sampler::new(&table(&[1, 2]), 0, 1).is_err());
        assert!(Sampler::new(&table(&[1, 2]), 1 << 32, 2).is_err());
        assert!(Sampler::new(&table(&[1, 2]), 2, MAX_LEVELS + 1).is_err());
        let sampler = Sampler::new(&table(&[1, 2]), 2, 1).unwrap();
        assert!(sampler.sample(&[0; 32], (1 << 33) + 1).is_err());
    }
}
