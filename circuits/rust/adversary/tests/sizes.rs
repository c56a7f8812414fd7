//! Completeness and soundness where sizes pass a limit: of m, of k, of blocks and of tables.
#![allow(clippy::unwrap_used)]

use ragaudit_adversary::honest::{Index, Random, Record, mechanism};
use ragaudit_adversary::strategies::{LIES, tell, tell_the_truth};
use ragaudit_arguments::Error;
use ragaudit_arguments::index;
use ragaudit_arguments::progress::Silent;

/// d: about a power of two, of one and of two bytes, and those of embedders.
const DIMENSIONS: [usize; 7] = [1, 2, 3, 255, 256, 257, 384];

/// N and K such that N = K + 1, and about every power of two up to 2^7.
fn sizes() -> Vec<(usize, u64)> {
    let mut sizes = vec![(2, 1), (3, 2), (6, 5), (10, 9)];
    for k in 2..=7 {
        sizes.extend(
            [(1 << k) - 1, 1 << k, (1 << k) + 1].map(|count| (count, 1 + count as u64 / 3)),
        );
    }
    sizes
}

/// A record in which every row is uncertain.
fn record<'a>(index: &'a Index, top_k: u64, random: &mut Random) -> Record<'a> {
    let noise = (0..index.count()).map(|_| random.between(-9_000, 9_000)).collect();
    Record::honest(index, random.vector(index.dimension), noise, top_k, None)
}

fn assert_rejected(result: Result<(), Error>, what: &str) {
    assert!(matches!(result, Err(Error::Rejected(_))), "{what}: {result:?}");
}

/// One bit of each of these elements flipped, one element at a time.
fn flipped(
    proof: &[u8],
    step: usize,
    random: &mut Random,
) -> impl Iterator<Item = (usize, Vec<u8>)> {
    let first = random.next() as usize % step;
    (first..proof.len() / 32).step_by(step).map(move |element| {
        let mut changed = proof.to_vec();
        let bit = random.next() as usize % 256;
        changed[32 * element + bit / 8] ^= 1 << (bit % 8);
        (element, changed)
    })
}

fn check_selection(count: usize, top_k: u64, dimension: usize, step: usize, random: &mut Random) {
    let what = format!("N = {count}, K = {top_k}, d = {dimension}");
    let index = Index::random(count, dimension, random);
    let dropping = record(&index, top_k, random);
    let keeping = dropping.clone().keeping_ties();
    check_record(&dropping, step, &format!("{what}, ties dropped"), random);
    check_record(&keeping, step, &format!("{what}, ties kept"), random);
}

fn check_record(record: &Record, step: usize, what: &str, random: &mut Random) {
    let count = record.index.count();
    let proof = record.prove();
    record.verify(&proof).unwrap_or_else(|error| panic!("{what}: {error}"));
    if let Some(proof) = tell_the_truth(record).unwrap() {
        record.verify(&proof).unwrap_or_else(|error| panic!("{what}, told: {error}"));
    }
    for lie in LIES {
        if let Some((record, proof)) = tell(lie, record).unwrap() {
            assert_rejected(record.verify(&proof), &format!("{what}: {lie:?}"));
        }
    }
    // One row exchanged for another, at the far end of the index too.
    let outside: Vec<u64> = (0..count as u64).filter(|i| !record.selected.contains(i)).collect();
    let mut selected = record.selected.clone();
    selected.pop();
    selected.extend(outside.last());
    let other = record.with_selection(selected);
    assert_rejected(other.verify(&other.prove()), &format!("{what}: another selection"));
    for (element, changed) in flipped(&proof, step, random) {
        assert_rejected(record.verify(&changed), &format!("{what}: element {element}"));
    }
}

#[test]
fn selections_of_every_size_are_sound() {
    let mut random = Random(81);
    for ((count, top_k), dimension) in sizes().into_iter().zip(DIMENSIONS.into_iter().cycle()) {
        check_selection(count, top_k, dimension, 17, &mut random);
    }
}

/// All dimensions at all sizes, every element flipped, and larger sizes: minutes.
#[test]
#[ignore = "minutes"]
fn selections_of_every_size_and_dimension_are_sound() {
    let mut random = Random(82);
    let large = [255, 256, 257, 1023, 1024, 1025].map(|count| (count, 10));
    for (count, top_k) in sizes().into_iter().chain(large) {
        for dimension in DIMENSIONS {
            check_selection(count, top_k, dimension, 1, &mut random);
        }
    }
}

/// All subsets of a few rows, at the sizes where m changes.
#[test]
fn of_all_subsets_one_is_accepted() {
    let mut random = Random(83);
    for (count, top_k) in [(2, 1), (3, 2), (3, 1), (4, 3), (5, 2)] {
        let index = Index::random(count, 2, &mut random);
        let honest = record(&index, top_k, &mut random);
        let right = mechanism(&index, &honest.query, &honest.noise, top_k, None);
        for subset in 0..1u64 << count {
            let selected: Vec<u64> = (0..count as u64).filter(|i| (subset >> i) & 1 == 1).collect();
            let accept = selected == right;
            let (query, noise) = (honest.query.clone(), honest.noise.clone());
            let record = Record::selecting(&index, query, noise, top_k, None, selected);
            assert_eq!(record.verify(&record.prove()).is_ok(), accept, "{count}: {subset:b}");
        }
    }
}

fn check_index(count: usize, dimension: usize, step: usize, random: &mut Random) {
    let what = format!("N = {count}, d = {dimension}");
    let honest = Index::random(count, dimension, random);
    let proof = honest.prove();
    let verify = |proof: &[u8]| index::verify(&honest.statement(), proof, &Silent);
    verify(&proof).unwrap_or_else(|error| panic!("{what}: {error}"));
    for (element, changed) in flipped(&proof, step, random) {
        assert_rejected(verify(&changed), &format!("{what}: element {element}"));
    }
}

/// The first, a middle or the last row, which is next to the mask row at N = 2^m - 1, too long.
fn check_norms(count: usize, dimension: usize, random: &mut Random) {
    let width = dimension + 4;
    for row in [0, count / 2, count - 1] {
        let mut rows = Index::random(count, dimension, random).rows;
        rows[row * width] += if rows[row * width] < 100 { 1 } else { -1 };
        let wrong = Index::from_rows(rows, dimension);
        let result = index::verify(&wrong.statement(), &wrong.prove(), &Silent);
        assert_rejected(result, &format!("N = {count}, d = {dimension}: row {row}"));
    }
}

/// m changes at N = 2^10, the range rows are 927, blocks are 16 rows 2^(m-4) apart.
#[test]
fn indexes_of_every_size_are_sound() {
    let mut random = Random(84);
    for (count, dimension) in [
        (2, 384),
        (2, 255),
        (3, 256),
        (15, 257),
        (16, 1),
        (17, 2),
        (63, 3),
        (64, 1),
        (65, 252),
        (926, 1),
        (927, 2),
        (928, 1),
        (1022, 2),
        (1023, 1),
        (1024, 3),
        (1025, 1),
    ] {
        check_index(count, dimension, 23, &mut random);
    }
    for (count, dimension) in [(2, 1), (927, 1), (1023, 1), (1024, 1)] {
        check_norms(count, dimension, &mut random);
    }
}

/// More sizes, every element flipped: minutes.
#[test]
#[ignore = "minutes"]
fn indexes_of_every_size_and_dimension_are_sound() {
    let mut random = Random(85);
    let few = [2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 513];
    let many = [926, 927, 928, 1023, 1024, 1025, 2047, 2048, 2049, 4095, 4096, 4097];
    for count in few.into_iter().chain(many) {
        check_index(count, 2, 1, &mut random);
        check_norms(count, 1, &mut random);
    }
    for dimension in DIMENSIONS.into_iter().chain([4, 5, 12, 13, 252, 253, 380, 768, 1024]) {
        check_index(9, dimension, 5, &mut random);
        check_norms(5, dimension, &mut random);
    }
}
