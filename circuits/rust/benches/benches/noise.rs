//! What answering does for all rows, at d = 384 and a table as wide as that of sigma = 2.
#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ragaudit_noise::Sampler;
use ragaudit_scoring::Rows;

const COUNTS: [usize; 3] = [1_000, 10_000, 100_000];
const DIMENSION: usize = 384;
/// s² = S²/(1 + K²) and w of sigma = 2 (docs/spec/03-noise.md §3.1).
const DEVIATION: f64 = 256.0;
const HALF_WIDTH: i32 = 3329;
const FACTOR: u64 = 126;
const LEVELS: u32 = 1;

/// Thresholds of the same shape as the specified ones, in binary64.
fn thresholds() -> Vec<u8> {
    let weight = |v: i32| (-f64::from(v).powi(2) / (2.0 * DEVIATION * DEVIATION)).exp();
    let total: f64 = (-HALF_WIDTH..=HALF_WIDTH).map(weight).sum();
    let mut below = 0.0;
    let lower: Vec<u128> = (-HALF_WIDTH..0)
        .map(|v| {
            below += weight(v) / total;
            (below * 2f64.powi(128)) as u128
        })
        .collect();
    let upper = lower.iter().rev().map(|threshold| !threshold);
    lower.iter().copied().chain(upper).flat_map(u128::to_le_bytes).collect()
}

fn noise(criterion: &mut Criterion) {
    let thresholds = thresholds();
    criterion.bench_function("noise: make a sampler", |bencher| {
        bencher.iter(|| Sampler::new(black_box(&thresholds), FACTOR, LEVELS).unwrap());
    });
    let sampler = Sampler::new(&thresholds, FACTOR, LEVELS).unwrap();
    let mut group = criterion.benchmark_group("noise: sample");
    for count in COUNTS {
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(format!("N = {count}"), |bencher| {
            bencher.iter(|| sampler.sample(black_box(&[7; 32]), count).unwrap());
        });
    }
    group.finish();
}

fn scoring(criterion: &mut Criterion) {
    let query: Vec<i16> = (0..DIMENSION as i16).map(|j| j % 13 - 6).collect();
    let mut group = criterion.benchmark_group("scores, d = 384");
    for count in COUNTS {
        let rows = (0..count * DIMENSION).map(|i| (i % 251) as u8).collect();
        let rows = Rows::narrow(rows, DIMENSION).unwrap();
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(format!("N = {count}"), |bencher| {
            bencher.iter(|| rows.scores(black_box(&query)).unwrap());
        });
    }
    group.finish();
}

criterion_group!(benches, noise, scoring);
criterion_main!(benches);
