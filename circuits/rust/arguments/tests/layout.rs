//! The length of a proof and which of its elements are points depend on public data only.
#![allow(clippy::unwrap_used)]

use ragaudit_adversary::honest::{Index, Random, Record};
use ragaudit_arguments::encoding::{decode_point, decode_scalar};
use ragaudit_arguments::four_squares::complete_rows;
use ragaudit_arguments::selection::{Statement, statement::Case};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Point,
    Scalar,
}

fn log2_ceil(value: usize) -> usize {
    (0..).find(|k| 1 << k >= value).unwrap()
}

fn kinds(counts: &[(Kind, usize)]) -> Vec<Kind> {
    counts.iter().flat_map(|(kind, count)| vec![*kind; *count]).collect()
}

/// Spec 4.6.7: 22 points, G_sum, 3m scalars, 20 and 2 scalars, 2k points, T, z1, z2.
fn selection_layout(uncertain: usize, dimension: usize) -> Vec<Kind> {
    let m = log2_ceil(uncertain + 1);
    let k = log2_ceil(uncertain + dimension + 3 * m + 8).max(1);
    let layout = kinds(&[
        (Kind::Point, 22),
        (Kind::Scalar, 1 + 3 * m + 20 + 2),
        (Kind::Point, 2 * k + 1),
        (Kind::Scalar, 2),
    ]);
    assert_eq!(layout.len(), 48 + 3 * m + 2 * k);
    layout
}

/// Spec 4.7.5: 16 points, G_sum, 3m + 2md scalars, 15 scalars, 2k points, T, z1, z2.
fn index_layout(count: usize, dimension: usize) -> Vec<Kind> {
    let (m, md) = (log2_ceil(count.max(927) + 1), log2_ceil(dimension + 4));
    let k = log2_ceil(927 + dimension + 3 * m + 2 * md + 6);
    let layout = kinds(&[
        (Kind::Point, 16),
        (Kind::Scalar, 1 + 3 * m + 2 * md + 15),
        (Kind::Point, 2 * k + 1),
        (Kind::Scalar, 2),
    ]);
    assert_eq!(layout.len(), 35 + 3 * m + 2 * md + 2 * k);
    layout
}

fn assert_layout(proof: &[u8], layout: &[Kind]) {
    assert_eq!(proof.len(), 32 * layout.len());
    for (place, (element, kind)) in proof.chunks(32).zip(layout).enumerate() {
        let decoded = match kind {
            Kind::Point => decode_point(element, "element").map(|_| ()),
            Kind::Scalar => decode_scalar(element, "element").map(|_| ()),
        };
        assert!(decoded.is_ok(), "element {place} is no {kind:?}");
    }
}

/// Indexes of one size: any rows, null rows, equal rows, two kinds of rows, one row apart.
fn indexes(count: usize, dimension: usize, random: &mut Random) -> Vec<Index> {
    let complete = |vectors: Vec<i8>| {
        let rows = complete_rows(&vectors, dimension, 16129).unwrap();
        Index::from_rows(rows, dimension)
    };
    let vector = |random: &mut Random| -> Vec<i8> {
        random.vector(dimension).iter().map(|x| *x as i8).collect()
    };
    let (one, other) = (vector(random), vector(random));
    let halves: Vec<i8> = (0..count).flat_map(|i| [&one, &other][i % 2].clone()).collect();
    let mut single = vec![0; count * dimension];
    single[..dimension].copy_from_slice(&one);
    vec![
        Index::random(count, dimension, random),
        complete(vec![0; count * dimension]),
        complete(one.repeat(count)),
        complete(halves),
        complete(single),
    ]
}

#[test]
fn selection_proofs_of_equal_public_data_have_one_layout() {
    let mut random = Random(61);
    for (count, dimension, top_k) in [(2, 1, 1), (5, 3, 4), (16, 8, 3), (33, 2, 7)] {
        let indexes = indexes(count, dimension, &mut random);
        let filter: Vec<u64> = (0..count as u64).filter(|i| i % 3 != 1).collect();
        for (spread, allowed) in [(0, None), (40_000, None), (300_000, None), (9_000, Some(filter))]
        {
            let query = random.vector(dimension);
            let noise: Vec<i64> = (0..count).map(|_| random.between(-spread, spread)).collect();
            for index in &indexes {
                let record =
                    Record::honest(index, query.clone(), noise.clone(), top_k, allowed.clone());
                let layout = match Statement::new(&record.instance()).unwrap().case {
                    Case::All(_) => kinds(&[(Kind::Point, 1), (Kind::Scalar, 1)]),
                    Case::Threshold(threshold) => {
                        selection_layout(threshold.uncertain.len(), dimension)
                    }
                };
                let proof = record.prove();
                assert_layout(&proof, &layout);
                record.verify(&proof).unwrap();
            }
        }
    }
}

#[test]
fn index_proofs_of_equal_public_data_have_one_layout() {
    let mut random = Random(62);
    for (count, dimension) in [(2, 4), (70, 5)] {
        for index in indexes(count, dimension, &mut random) {
            assert_layout(&index.prove(), &index_layout(count, dimension));
        }
    }
}
