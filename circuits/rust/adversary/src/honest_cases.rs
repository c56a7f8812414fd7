//! A few honest arguments, small ones, to be changed.

use ragaudit_arguments::SQUARED_NORM;

use crate::cases::{IndexCase, SelectionCase};
use crate::charge_cases::{BudgetCase, ChargeCase};
use crate::honest::{Index, Random, Record};
use crate::honest_charges::Window;

/// Honest selection arguments to change: with all rows and with a filter, with certain rows and
/// ties, under both arguments, each statement with two proofs.
pub fn honest_selections() -> Vec<SelectionCase> {
    let mut random = Random(31);
    let index = Index::random(7, 3, &mut random);
    let far = 5 * i64::from(SQUARED_NORM);
    let noises = [vec![0; 7], vec![9, far, -40, 7_000, -far, 0, 12], vec![0, 1, 2, 3, 4, 5, 6]];
    let filters = [None, None, Some(vec![6, 1, 3, 0])];
    let query = random.vector(3);
    let records = noises
        .into_iter()
        .zip(filters)
        .map(|(noise, allowed)| Record::honest(&index, query.clone(), noise, 2, allowed))
        .collect::<Vec<_>>();
    let kept = records.clone().into_iter().map(Record::keeping_ties);
    records
        .clone()
        .into_iter()
        .chain(kept)
        .flat_map(|record| [(); 2].map(|()| SelectionCase::new(&record, record.prove())))
        .collect()
}

/// Honest arguments in which all allowed rows are selected.
pub fn honest_selections_of_all() -> Vec<SelectionCase> {
    let mut random = Random(32);
    let index = Index::random(3, 2, &mut random);
    let query = random.vector(2);
    let record = |allowed| Record::honest(&index, query.clone(), vec![4, 5, 6], 3, allowed);
    let records = [None, Some(vec![2, 0]), Some(vec![])].map(record);
    records
        .iter()
        .flat_map(|record| [(); 2].map(|()| SelectionCase::new(record, record.prove())))
        .collect()
}

/// Honest index arguments to change.
pub fn honest_indexes() -> Vec<IndexCase> {
    let mut random = Random(33);
    let indexes = [(2, 1), (3, 1)].map(|(count, d)| Index::random(count, d, &mut random));
    indexes
        .iter()
        .flat_map(|index| [(); 2].map(|()| IndexCase::new(index, index.prove())))
        .collect()
}

/// Windows of charges, of one row and of some, with filters and spent rows.
fn windows() -> Vec<Window> {
    let mut random = Random(34);
    [(1, 1, 1), (4, 3, 1), (3, 2, 2)]
        .map(|(rows, entries, uses)| Window::random(rows, entries, uses, &mut random))
        .to_vec()
}

/// Honest budget arguments to change; wrong input panics.
#[allow(clippy::unwrap_used)]
pub fn honest_budgets() -> Vec<BudgetCase> {
    let prove = |window: &Window| BudgetCase::new(window, window.prove_budget().unwrap());
    windows().iter().flat_map(|window| [(); 2].map(|()| prove(window))).collect()
}

/// Honest charge arguments to change; wrong input panics.
#[allow(clippy::unwrap_used)]
pub fn honest_charges() -> Vec<ChargeCase> {
    let prove = |window: &Window| ChargeCase::new(window, window.prove().unwrap());
    windows().iter().flat_map(|window| [(); 2].map(|()| prove(window))).collect()
}
