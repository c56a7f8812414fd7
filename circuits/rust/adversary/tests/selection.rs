//! Attacks on the selection argument, each stopped by one check of the verifier.
#![allow(clippy::unwrap_used)]

use curve25519_dalek::scalar::Scalar;
use ragaudit_adversary::honest::{Index, Random, Record, mechanism, noised};
use ragaudit_adversary::selection::{Rows, Strategy, prove};
use ragaudit_arguments::encoding::decode_scalar;
use ragaudit_arguments::selection::Statement;
use ragaudit_arguments::selection::statement::Case;
use ragaudit_arguments::{Error, SQUARED_NORM};

const COUNT: usize = 9;
const TOP_K: u64 = 3;

/// An index, a query and noise for which every row is uncertain and no two scores tie.
struct Scene {
    index: Index,
    query: Vec<i16>,
    noise: Vec<i64>,
    values: Vec<i64>,
    /// Positions by falling y.
    order: Vec<u64>,
}

impl Scene {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let index = Index::random(COUNT, 6, &mut random);
        let query = random.vector(6);
        let noise: Vec<i64> = (0..COUNT).map(|_| random.between(-9_000, 9_000)).collect();
        let values = noised(&index, &query, &noise);
        let mut order: Vec<u64> = (0..COUNT as u64).collect();
        order.sort_by_key(|i| -values[*i as usize]);
        assert!(order.windows(2).all(|p| values[p[0] as usize] != values[p[1] as usize]));
        Scene { index, query, noise, values, order }
    }

    fn record(&self, selected: &[u64]) -> Record<'_> {
        let (query, noise) = (self.query.clone(), self.noise.clone());
        Record::selecting(&self.index, query, noise, TOP_K, None, selected.to_vec())
    }

    fn value(&self, rank: usize) -> i64 {
        self.values[self.order[rank] as usize]
    }
}

/// A column that is true at these positions; every row is uncertain, so q is the position.
fn at(positions: &[u64]) -> Vec<bool> {
    (0..COUNT as u64).map(|q| positions.contains(&q)).collect()
}

fn attack(scene: &Scene, record: &Record, strategy: &Strategy) -> Result<(), Error> {
    let statement = Statement::new(&record.instance()).unwrap();
    let Case::Threshold(threshold) = &statement.case else { panic!("nothing to choose") };
    assert_eq!(threshold.uncertain.len(), COUNT);
    let Index { rows, blindings, dimension, .. } = record.index;
    let rows = Rows { entries: rows, blindings, width: dimension + 4 };
    let blinding = decode_scalar(&record.blinding, "blinding").unwrap();
    let proof = prove(&statement, &rows, &scene.values, &blinding, strategy).unwrap();
    record.verify(&proof)
}

fn assert_rejected(result: Result<(), Error>) {
    let equation = Error::Rejected("proof: the verification equation does not hold".into());
    assert_eq!(result, Err(equation));
}

/// The strategy that drops the K-th row: threshold at its value, b3 and b4 where they are told.
fn dropping_the_last(scene: &Scene, b3: &[u64], b4: &[u64]) -> Strategy {
    let selected = at(&scene.order[..2]);
    Strategy::new([selected, at(b3), at(b4)], scene.value(2) + 1)
}

fn drop_attack(seed: u64, b3: &[usize], b4: &[usize]) -> Result<(), Error> {
    let scene = Scene::new(seed);
    let positions =
        |ranks: &[usize]| -> Vec<u64> { ranks.iter().map(|r| scene.order[*r]).collect() };
    let strategy = dropping_the_last(&scene, &positions(b3), &positions(b4));
    attack(&scene, &scene.record(&scene.order[..2]), &strategy)
}

/// The prover of these attacks is as able as the honest one.
#[test]
fn the_honest_strategy_is_accepted() {
    let scene = Scene::new(1);
    let selected = &scene.order[..3];
    assert_eq!(
        mechanism(&scene.index, &scene.query, &scene.noise, TOP_K, None).len(),
        selected.len()
    );
    let strategy =
        Strategy::new([at(selected), at(&scene.order[3..4]), at(&[])], scene.value(3) + 1);
    attack(&scene, &scene.record(selected), &strategy).unwrap();
}

/// theta keeps a threshold for every single row, hidden along A_U in C_t, out of v_Y.
#[test]
fn a_threshold_per_row_is_rejected() {
    let scene = Scene::new(2);
    let selected = &scene.order[6..9];
    let mut strategy =
        Strategy::new([at(selected), at(&scene.order[..1]), at(&[])], scene.value(3) + 1);
    strategy.shifts = (0..COUNT)
        .map(|q| {
            let wanted = if strategy.bits[0][q] { 0 } else { -1 };
            wanted - (scene.values[q] - strategy.tau)
        })
        .collect();
    assert_rejected(attack(&scene, &scene.record(selected), &strategy));
}

/// (E2) keeps the difference between B_sel and the proven b out of D_m.
#[test]
fn a_selection_other_than_the_proven_one_is_rejected() {
    let scene = Scene::new(3);
    let (proven, committed) = (&scene.order[..3], &scene.order[6..9]);
    let mut strategy =
        Strategy::new([at(proven), at(&scene.order[3..4]), at(&[])], scene.value(3) + 1);
    let bit = |selected: bool| Scalar::from(u8::from(selected));
    strategy.selection_difference =
        at(proven).into_iter().zip(at(committed)).map(|(b, c)| bit(b) - bit(c)).collect();
    assert_rejected(attack(&scene, &scene.record(committed), &strategy));
}

/// (E1) and (E2) each have a weight of their own: their errors cannot cancel.
#[test]
fn errors_of_the_two_equations_that_cancel_are_rejected() {
    let scene = Scene::new(10);
    let selected = &scene.order[..3];
    let mut strategy =
        Strategy::new([at(selected), at(&scene.order[3..4]), at(&[])], scene.value(3) + 1);
    strategy.response_error = Scalar::from(5u8);
    assert_rejected(attack(&scene, &scene.record(selected), &strategy));
}

/// Commitments of U are decoded: bytes that are no point stand for no row, not even a zero one.
#[test]
fn a_commitment_that_is_no_point_is_rejected() {
    let mut index =
        Index { dimension: 2, rows: vec![0; 18], blindings: vec![0; 96], commitments: vec![0; 96] };
    let verdict = |index: &Index| {
        let record = Record::honest(index, vec![1, 2], vec![5, 9, 7], 1, None);
        record.verify(&record.prove())
    };
    verdict(&index).unwrap();
    index.commitments[32..64].fill(0xff);
    assert!(matches!(verdict(&index), Err(Error::Rejected(_))));
}

/// c_19: one row cannot count both as the first tie and as a further one.
#[test]
fn a_row_tied_twice_is_rejected() {
    assert_rejected(drop_attack(4, &[2], &[2]));
}

/// c_20: a tied row has y = tau - 1.
#[test]
fn a_tie_that_is_none_is_rejected() {
    assert_rejected(drop_attack(5, &[2], &[3]));
}

/// sum b3 = 1: some row has y = tau - 1.
#[test]
fn a_threshold_without_its_row_is_rejected() {
    assert_rejected(drop_attack(6, &[], &[2]));
}

/// f + sum (b + b4) = K: the threshold is the (K+1)-th value.
#[test]
fn a_selection_of_too_few_rows_is_rejected() {
    assert_rejected(drop_attack(7, &[2], &[]));
}

/// chi: the mask row counts in neither sum.
#[test]
fn a_tie_on_the_mask_row_is_rejected() {
    let scene = Scene::new(8);
    let mut strategy = dropping_the_last(&scene, &[], &scene.order[2..3]);
    strategy.masks = [Scalar::ZERO, Scalar::ONE, Scalar::ZERO].map(Some).to_vec();
    assert_rejected(attack(&scene, &scene.record(&scene.order[..2]), &strategy));
}

/// F is subtracted from B_sel: a selection cannot leave out a row that is certainly in it.
#[test]
fn a_selection_without_its_certain_rows_is_rejected() {
    let mut random = Random(9);
    let index = Index::random(COUNT, 6, &mut random);
    let mut noise: Vec<i64> = (0..COUNT).map(|_| random.between(-9_000, 9_000)).collect();
    noise[4] += 10 * i64::from(SQUARED_NORM);
    let query = random.vector(6);
    let mut selected = mechanism(&index, &query, &noise, TOP_K, None);
    assert!(selected.contains(&4));
    selected.retain(|position| *position != 4);
    let record = Record::selecting(&index, query, noise, TOP_K, None, selected);
    assert_rejected(record.verify(&record.prove()));
}
