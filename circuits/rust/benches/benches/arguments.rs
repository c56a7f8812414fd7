//! The two arguments at the sizes of the demo: N = 1500, d = 256, K = 5.
#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use curve25519_dalek::scalar::Scalar;
use ragaudit_arguments::SQUARED_NORM;
use ragaudit_arguments::commitments::{commit_rows, commit_selection, random_scalars};
use ragaudit_arguments::four_squares::complete_rows;
use ragaudit_arguments::index::{self, Rows, Statement};
use ragaudit_arguments::progress::Silent;
use ragaudit_arguments::selection::{self, Instance, Secrets, Ties};

const COUNT: usize = 1500;
const DIMENSION: usize = 256;
const WIDTH: usize = DIMENSION + 4;
const TOP_K: u64 = 5;

/// splitmix64: reproducible inputs.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: i64) -> i64 {
        (self.next() % (2 * bound as u64 + 1)) as i64 - bound
    }

    /// Roughly normal: a sum of twelve uniform values.
    fn normal(&mut self, deviation: i64) -> i64 {
        (0..12).map(|_| self.below(deviation / 2)).sum()
    }
}

struct Index {
    rows: Vec<i8>,
    blindings: Vec<u8>,
    commitments: Vec<u8>,
}

fn index() -> Index {
    let mut random = Random(1);
    let vectors: Vec<i8> = (0..COUNT * DIMENSION).map(|_| random.below(7) as i8).collect();
    let rows = complete_rows(&vectors, DIMENSION, 16129).unwrap();
    let blindings = random_scalars(COUNT).unwrap();
    let commitments = commit_rows(&rows, WIDTH, &blindings, &Silent).unwrap();
    Index { rows, blindings, commitments }
}

fn index_argument(criterion: &mut Criterion) {
    let index = index();
    let statement =
        Statement::new([0; 32], COUNT as u64, DIMENSION as u64, SQUARED_NORM, &index.commitments)
            .unwrap();
    let prove =
        || index::prove(&statement, Rows::Small(&index.rows), &index.blindings, &Silent).unwrap();
    let proof = prove();
    let mut group = criterion.benchmark_group("index, N = 1500, d = 256");
    group.sample_size(10);
    group.bench_function("commit", |bencher| {
        bencher.iter(|| commit_rows(&index.rows, WIDTH, &index.blindings, &Silent).unwrap());
    });
    group.bench_function("prove", |bencher| bencher.iter(|| black_box(prove())));
    group.bench_function("verify", |bencher| {
        bencher.iter(|| index::verify(&statement, &proof, &Silent).unwrap());
    });
    group.finish();
}

/// `deviation` of the noise decides how many rows are uncertain.
fn selection_argument(criterion: &mut Criterion, name: &str, deviation: i64) {
    let index = index();
    let mut random = Random(2);
    let query: Vec<i16> = (0..DIMENSION).map(|_| random.below(7) as i16).collect();
    let noise: Vec<i64> = (0..COUNT).map(|_| random.normal(deviation)).collect();
    let value = |i: usize| {
        let row = &index.rows[i * WIDTH..(i + 1) * WIDTH];
        let score: i64 = row.iter().zip(&query).map(|(x, e)| i64::from(*x) * i64::from(*e)).sum();
        score + noise[i]
    };
    let mut values: Vec<i64> = (0..COUNT).map(value).collect();
    values.sort_unstable_by(|a, b| b.cmp(a));
    let boundary = values[TOP_K as usize];
    let selected: Vec<u64> =
        (0..COUNT).filter(|i| value(*i) > boundary).map(|i| i as u64).collect();
    let blinding = Scalar::from(77u8);
    let instance = Instance {
        context: [0; 32],
        rows: COUNT as u64,
        commitments: &index.commitments,
        query: &query,
        noise: &noise,
        top_k: TOP_K,
        allowed: None,
        squared_norm: SQUARED_NORM,
        ties: Ties::Dropped,
        selection: commit_selection(&selected, &blinding).unwrap(),
    };
    let secrets = Secrets::new(&index.rows, WIDTH, &index.blindings, &selected, blinding).unwrap();
    let prove = || selection::prove(&instance, &secrets, &Silent).unwrap();
    let proof = prove();
    let mut group = criterion.benchmark_group(format!("selection, {name}"));
    group.sample_size(10);
    group.bench_function("prove", |bencher| bencher.iter(|| black_box(prove())));
    group.bench_function("verify", |bencher| {
        bencher.iter(|| selection::verify(&instance, &proof).unwrap());
    });
    group.bench_function("verify 64 at once", |bencher| {
        let batch: Vec<(Instance, &[u8])> =
            (0..64).map(|_| (instance.clone(), proof.as_slice())).collect();
        bencher.iter(|| selection::verify_batch(&batch, &Silent).unwrap());
    });
    group.finish();
}

fn selection_arguments(criterion: &mut Criterion) {
    selection_argument(criterion, "sigma = 2", 32_258);
    selection_argument(criterion, "every row uncertain", 1_000);
}

criterion_group!(benches, index_argument, selection_arguments);
criterion_main!(benches);
