//! Sums of points against the plain sums.
#![allow(clippy::unwrap_used)]

use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::Identity;
use ragaudit_adversary::honest::Random;
use ragaudit_arguments::commitments::{bit_sums, commit_rows, reblind_rows};
use ragaudit_arguments::field::Element;
use ragaudit_arguments::generators::{self, List};
use ragaudit_arguments::multiscalar::{Equation, public_sum, secret_sum};
use ragaudit_arguments::progress::Silent;
use ragaudit_arguments::scalars::from_integer;

/// Rows of any entries, checked where a table, a task or a batch of encodings ends.
#[test]
fn committed_rows_are_the_plain_sums() {
    let mut random = Random(43);
    let shapes = [
        (1, 5),
        (2, 9),
        (3, 10),
        (4, 11),
        (7, 19),
        (33, 20),
        (127, 21),
        (128, 57),
        (129, 100),
        (5, 259),
        (2, 388),
        (3, 400),
        (511, 6),
        (512, 7),
        (513, 13),
        (1100, 31),
    ];
    for (count, width) in shapes {
        let rows: Vec<i8> = match count % 3 {
            // The ends of the digits' ranges too: -128, -17, -16, 15, 16, 127.
            0 => (0..count * width)
                .map(|_| {
                    [-128, -113, -17, -16, -1, 0, 15, 16, 112, 127][random.next() as usize % 10]
                })
                .collect(),
            _ => (0..count * width).map(|_| random.next() as i8).collect(),
        };
        let blindings = random.scalars(count);
        let bytes: Vec<u8> = blindings.iter().flat_map(Scalar::to_bytes).collect();
        let commitments = commit_rows(&rows, width, &bytes, &Silent).unwrap();
        assert_eq!(commitments.len(), 32 * count);
        let mut points = generators::first(List::G, width);
        points.push(generators::point(List::H, 0));
        let ends = [0, 1, 127, 128, 511, 512, 1023, 1024, count - 1];
        for row in ends.into_iter().chain((0..3).map(|_| random.next() as usize % count)) {
            if row >= count {
                continue;
            }
            let entries = rows[row * width..(row + 1) * width].iter();
            let mut coefficients: Vec<Scalar> =
                entries.map(|entry| from_integer(i128::from(*entry))).collect();
            coefficients.push(blindings[row]);
            let expected = public_sum(&coefficients, &points).compress().to_bytes();
            assert_eq!(commitments[32 * row..][..32], expected, "row {row} of {count} x {width}");
        }
        let new = random.scalars(count);
        let new_bytes: Vec<u8> = new.iter().flat_map(Scalar::to_bytes).collect();
        let renewed = reblind_rows(&commitments, &bytes, &new_bytes, &Silent).unwrap();
        if count < 200 {
            assert_eq!(renewed, commit_rows(&rows, width, &new_bytes, &Silent).unwrap());
        }
        let back = reblind_rows(&renewed, &new_bytes, &bytes, &Silent).unwrap();
        assert_eq!(back, commitments);
    }
}

#[test]
fn rows_of_more_than_one_step_are_committed_in_order() {
    // 4096 rows are committed between two reports of progress.
    let mut random = Random(44);
    let rows: Vec<i8> = (0..4200 * 2).map(|_| random.next() as i8).collect();
    let blindings: Vec<u8> = random.scalars(4200).iter().flat_map(Scalar::to_bytes).collect();
    let all = commit_rows(&rows, 2, &blindings, &Silent).unwrap();
    for start in [0, 4000, 4090, 4095, 4096, 4190] {
        let part =
            commit_rows(&rows[2 * start..][..20], 2, &blindings[32 * start..][..320], &Silent);
        assert_eq!(all[32 * start..][..320], part.unwrap());
    }
    let twice = reblind_rows(&all, &blindings, &blindings, &Silent).unwrap();
    assert_eq!(twice, all);
}

#[test]
fn sums_of_marked_points_are_the_plain_sums() {
    let mut random = Random(45);
    let points = generators::first(List::A, 600);
    for _ in 0..25 {
        let count = (random.next() % 601) as usize;
        let density = 1 + random.next() % 4;
        let columns: Vec<Vec<bool>> = (0..1 + random.next() % 19)
            .map(|_| (0..count).map(|_| random.next() % 4 < density).collect())
            .collect();
        let sums = bit_sums(&columns, &points[..count]);
        assert_eq!(sums.len(), columns.len());
        for (bits, sum) in columns.iter().zip(sums) {
            let marked = points.iter().zip(bits).filter(|(_, bit)| **bit);
            assert_eq!(sum, marked.map(|(point, _)| point).sum());
        }
    }
}

/// Equations of lists of several lengths, dense and sparse, in several parts, merged in any order.
#[test]
fn merged_equations_are_the_sums_of_their_terms() {
    let mut random = Random(47);
    let encoded = |count: usize, from: u64| -> Vec<u8> {
        let point = |i| generators::point(List::G, from + i as u64).compress().to_bytes();
        (0..count).flat_map(point).collect()
    };
    let indexes = [encoded(9, 0), encoded(70, 20), encoded(70, 20)];
    for round in 0..60 {
        let mut expected = RistrettoPoint::identity();
        let mut parts: Vec<Equation> = (0..1 + round % 4).map(|_| Equation::default()).collect();
        for _ in 0..12 {
            let part = random.next() as usize % parts.len();
            let equation = &mut parts[part];
            let coefficient = random.scalar();
            let inner = Element::from(coefficient);
            match random.next() % 5 {
                0 => {
                    let index = random.next() % 3;
                    equation.add_generator(List::A, index, inner);
                    expected += coefficient * generators::point(List::A, index);
                }
                1 => {
                    let point = generators::point(List::IndexP, random.next() % 5);
                    equation.add_point(point, inner);
                    expected += coefficient * point;
                }
                kind => {
                    let length = [9, 70, 200][random.next() as usize % 3];
                    let share = [1, 2, 40][random.next() as usize % 3];
                    let chosen: Vec<usize> =
                        (0..length).filter(|_| random.next().is_multiple_of(share)).collect();
                    let terms: Vec<(usize, Element)> = chosen
                        .iter()
                        .map(|i| (*i, inner * Element::from_integer(1 + *i as i64)))
                        .collect();
                    let weight = |i: &usize| coefficient * Scalar::from(1 + *i as u64);
                    if kind == 2 {
                        for i in &chosen {
                            expected += weight(i) * generators::point(List::A, *i as u64);
                        }
                        equation.add_positions(length, terms.into_iter());
                    } else {
                        let which = random.next() as usize % 3;
                        let from = if which == 0 { 0 } else { 20 };
                        let rows = indexes[which].len() / 32;
                        for i in chosen.iter().filter(|i| **i < rows) {
                            expected += weight(i) * generators::point(List::G, from + *i as u64);
                        }
                        let terms: Vec<_> = terms.into_iter().filter(|(i, _)| *i < rows).collect();
                        equation.add_rows(&indexes[which], terms.into_iter());
                    }
                }
            }
        }
        let holds = round % 3 > 0;
        let rest = if holds { -expected } else { generators::point(List::H, 0) - expected };
        parts[0].add_point(rest, Element::ONE);
        let mut total = Equation::default();
        while !parts.is_empty() {
            total.merge(parts.swap_remove(random.next() as usize % parts.len()));
        }
        assert_eq!(total.check(&Silent).is_ok(), holds, "round {round}");
    }
}

#[test]
fn public_and_secret_sums_agree() {
    let mut random = Random(48);
    for count in [0, 1, 31, 32, 33, 255, 257, 700] {
        let points = generators::first(List::A, count);
        let mut coefficients = random.scalars(count);
        coefficients.iter_mut().step_by(5).for_each(|scalar| *scalar = Scalar::ZERO);
        let plain = coefficients.iter().zip(&points).map(|(scalar, point)| scalar * point).sum();
        assert_eq!(secret_sum(&coefficients, &points), plain);
        assert_eq!(public_sum(&coefficients, &points), plain);
    }
}
