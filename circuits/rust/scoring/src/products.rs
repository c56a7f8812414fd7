//! Inner products of rows of bytes with queries of 16 bits, in sums of 32.
//!
//! The caller bounds `128 sum |e_j|` by `2^31 - 1`: then no sum over any of a row's entries
//! overflows, in whatever order it is made, and none of two neighboring products.

use multiversion::multiversion;
use multiversion::target::match_target;

/// Entries of a row that are multiplied at once.
const LANES: usize = 32;

/// Rows that are multiplied with the same part of a query while it is in a register.
const ROWS: usize = 4;

/// Makes `sums[q * N + i]`, the product of row i with query q.
pub type Kernel = fn(rows: &[u8], queries: &Queries<'_>, sums: &mut [i32]);

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Chunk([i16; LANES]);

/// Queries of the same width, one after the other.
pub struct Queries<'a> {
    pub width: usize,
    pub count: usize,
    pub entries: &'a [i16],
    /// The same in whole chunks. Where the width is not a multiple of theirs, the last one of a
    /// query begins with zeros: it belongs to the last `LANES` entries of a row.
    chunks: Vec<Chunk>,
}

impl<'a> Queries<'a> {
    /// `entries` are a whole number of queries; `width` is not 0.
    pub fn new(entries: &'a [i16], width: usize) -> Self {
        let count = entries.len() / width;
        let mut chunks = vec![Chunk([0; LANES]); count * width.div_ceil(LANES)];
        for (query, chunks) in
            entries.chunks_exact(width).zip(chunks.chunks_exact_mut(width.div_ceil(LANES)))
        {
            for (from, to) in query.chunks(LANES).zip(chunks) {
                to.0[LANES - from.len()..].copy_from_slice(from);
            }
        }
        Queries { width, count, entries, chunks }
    }

    /// The queries alone, each as if it had come alone.
    pub fn each(&self) -> impl Iterator<Item = &'a [i16]> {
        self.entries.chunks_exact(self.width)
    }
}

/// With the best instructions that this processor has.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512vl+avx512vnni", "x86_64+avx2"))]
pub fn fastest(rows: &[u8], queries: &Queries<'_>, sums: &mut [i32]) {
    match_target! {
        "x86_64+avx512f+avx512bw+avx512vl+avx512vnni" => avx512::products(rows, queries, sums),
        "x86_64+avx2" => avx2::products(rows, queries, sums),
        _ => portable(rows, queries, sums),
    }
}

/// As if the processor had no vectors of 512 bits.
#[multiversion(targets("x86_64+avx2"))]
pub fn narrower(rows: &[u8], queries: &Queries<'_>, sums: &mut [i32]) {
    match_target! {
        "x86_64+avx2" => avx2::products(rows, queries, sums),
        _ => portable(rows, queries, sums),
    }
}

/// With what every processor has: the definition.
pub fn portable(rows: &[u8], queries: &Queries<'_>, sums: &mut [i32]) {
    let count = rows.len() / queries.width;
    for (number, query) in queries.each().enumerate() {
        let sums = &mut sums[number * count..][..count];
        for (row, sum) in rows.chunks_exact(queries.width).zip(sums) {
            *sum = row.iter().zip(query).fold(0, |sum, (x, e)| {
                sum.wrapping_add(i32::from(x.cast_signed()).wrapping_mul(i32::from(*e)))
            });
        }
    }
}

/// The walk over rows and queries around a kernel's `entries` (of a row, as a vector of 16-bit
/// numbers), `add_products` and `sums_of`, which are compiled for the instructions `$features`.
/// `$queries` queries at once fill the registers.
macro_rules! tiled {
    ($features:literal, $queries:literal) => {
        #[target_feature(enable = $features)]
        pub fn products(rows: &[u8], queries: &Queries<'_>, sums: &mut [i32]) {
            let width = queries.width;
            if width < LANES {
                return portable(rows, queries, sums);
            }
            let count = rows.len() / width;
            for first in (0..count).step_by(ROWS) {
                // Where fewer rows are left, the last one fills their places.
                let mut tile = [&rows[..0]; ROWS];
                for (at, row) in tile.iter_mut().enumerate() {
                    *row = &rows[(first + at).min(count - 1) * width..][..width];
                }
                let kept = ROWS.min(count - first);
                let parts = width.div_ceil(LANES);
                let mut groups = queries.chunks.chunks_exact($queries * parts);
                let mut number = 0;
                for group in &mut groups {
                    let mut these = [&group[..0]; $queries];
                    for (query, part) in these.iter_mut().zip(group.chunks_exact(parts)) {
                        *query = part;
                    }
                    for found in tile_products(tile, these) {
                        sums[number * count + first..][..kept].copy_from_slice(&found[..kept]);
                        number += 1;
                    }
                }
                for query in groups.remainder().chunks_exact(parts) {
                    let [found] = tile_products(tile, [query]);
                    sums[number * count + first..][..kept].copy_from_slice(&found[..kept]);
                    number += 1;
                }
            }
        }

        /// The products of each query with each row; all rows have the same width.
        #[inline]
        #[target_feature(enable = $features)]
        fn tile_products<const Q: usize>(
            rows: [&[u8]; ROWS],
            queries: [&[Chunk]; Q],
        ) -> [[i32; ROWS]; Q] {
            let mut sums = [[zero(); ROWS]; Q];
            let whole = rows[0].len() / LANES;
            let mut chunks = [&[[0; LANES]][..0]; ROWS];
            for (chunks, row) in chunks.iter_mut().zip(rows) {
                *chunks = &row.as_chunks::<LANES>().0[..whole];
            }
            let mut starts = [&queries[0][..0]; Q];
            for (start, query) in starts.iter_mut().zip(queries) {
                *start = &query[..whole];
            }
            for at in 0..whole {
                let mut x = [entries(&[0; LANES]); ROWS];
                for (x, chunks) in x.iter_mut().zip(chunks) {
                    *x = entries(&chunks[at]);
                }
                for (sums, query) in sums.iter_mut().zip(starts) {
                    for (sum, x) in sums.iter_mut().zip(x) {
                        *sum = add_products(*sum, x, &query[at]);
                    }
                }
            }
            if rows[0].len() > whole * LANES {
                for (at, row) in rows.into_iter().enumerate() {
                    let last: &[u8; LANES] = row.last_chunk().unwrap_or(&[0; LANES]);
                    for (sums, query) in sums.iter_mut().zip(queries) {
                        sums[at] = add_products(sums[at], entries(last), &query[whole]);
                    }
                }
            }
            let mut found = [[0; ROWS]; Q];
            for (found, sums) in found.iter_mut().zip(sums) {
                *found = sums_of(sums);
            }
            found
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    use bytemuck::cast;

    use super::{Chunk, LANES, Queries, ROWS, portable};

    tiled!("avx512f,avx512bw,avx512vl,avx512vnni", 4);

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn zero() -> __m512i {
        _mm512_setzero_si512()
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn entries(row: &[u8; LANES]) -> __m512i {
        _mm512_cvtepi8_epi16(cast(*row))
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vnni")]
    fn add_products(sum: __m512i, row: __m512i, query: &Chunk) -> __m512i {
        _mm512_dpwssd_epi32(sum, row, cast(query.0))
    }

    /// The sums of the entries of each vector: rows become columns, which are added.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn sums_of([a, b, c, d]: [__m512i; ROWS]) -> [i32; ROWS] {
        let ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
        let cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
        let all = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
        let [low, high]: [__m256i; 2] = cast(all);
        let [low, high]: [__m128i; 2] = cast(_mm256_add_epi32(low, high));
        cast(_mm_add_epi32(low, high))
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use bytemuck::cast;

    use super::{Chunk, LANES, Queries, ROWS, portable};

    tiled!("avx2", 2);

    #[inline]
    #[target_feature(enable = "avx2")]
    fn zero() -> __m256i {
        _mm256_setzero_si256()
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn entries(row: &[u8; LANES]) -> [__m256i; 2] {
        let [low, high]: [__m128i; 2] = cast(*row);
        [_mm256_cvtepi8_epi16(low), _mm256_cvtepi8_epi16(high)]
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn add_products(sum: __m256i, [low, high]: [__m256i; 2], query: &Chunk) -> __m256i {
        let [first, second]: [__m256i; 2] = cast(query.0);
        let products = _mm256_madd_epi16(low, first);
        _mm256_add_epi32(sum, _mm256_add_epi32(products, _mm256_madd_epi16(high, second)))
    }

    /// The sums of the entries of each vector.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn sums_of([a, b, c, d]: [__m256i; ROWS]) -> [i32; ROWS] {
        let all = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
        let [low, high]: [__m128i; 2] = cast(all);
        cast(_mm_add_epi32(low, high))
    }
}
