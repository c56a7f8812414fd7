//! The budget argument and the charge argument.

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use ragaudit_arguments::charge::Secrets;
use ragaudit_arguments::charges::{self, Charges};
use ragaudit_arguments::encoding::ELEMENT_BYTES;
use ragaudit_arguments::{budget, charge};

use crate::convert::{ArrayBytes, array, bytes, shorts, signed_bytes};
use crate::errors::to_python;
use crate::progress::Callback;

/// A budget statement: the attributes that `ragaudit.core.BudgetStatement` documents.
#[derive(FromPyObject)]
struct BudgetStatement {
    context: PyBackedBytes,
    rows: u64,
    uses: u64,
    charges: PyBackedBytes,
    squared_norm: u32,
}

impl BudgetStatement {
    fn decode(&self) -> PyResult<budget::Statement<'_>> {
        Ok(budget::Statement {
            context: array(&self.context, "context")?,
            rows: self.rows,
            uses: self.uses,
            charges: &self.charges,
            squared_norm: self.squared_norm,
        })
    }
}

/// `charged` and `blindings` are those of the statement's charges.
#[pyfunction]
fn prove_budget<'py>(
    py: Python<'py>,
    statement: BudgetStatement,
    charged: Vec<Vec<u64>>,
    blindings: ArrayBytes<'py>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (statement, blindings) = (statement.decode()?, bytes(&blindings)?);
    let callback = Callback::new(progress);
    let result = py.detach(|| {
        let rows = usize::try_from(statement.rows).unwrap_or(usize::MAX);
        let charges = Charges::new(&charged, blindings, rows)?;
        budget::prove(&statement, &charges, &callback)
    });
    Ok(PyBytes::new(py, &callback.finish(result)?))
}

#[pyfunction]
fn verify_budget(
    py: Python<'_>,
    statement: BudgetStatement,
    proof: &[u8],
    progress: Option<Py<PyAny>>,
) -> PyResult<()> {
    let statement = statement.decode()?;
    let callback = Callback::new(progress);
    let result = py.detach(|| budget::verify(&statement, proof, &callback));
    callback.finish(result)
}

/// A charge statement: the attributes that `ragaudit.core.ChargeStatement` documents.
#[derive(FromPyObject)]
struct ChargeStatement<'py> {
    uses: u64,
    commitments: PyBackedBytes,
    entries: Vec<ChargeEntry<'py>>,
    squared_norm: u32,
}

#[derive(FromPyObject)]
struct ChargeEntry<'py> {
    context: PyBackedBytes,
    query: ArrayBytes<'py>,
    threshold: i64,
    allowed: Option<Vec<u64>>,
    charged_before: PyBackedBytes,
    charge: PyBackedBytes,
}

impl ChargeStatement<'_> {
    /// What `work` makes of the statement, without the interpreter.
    fn with<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&charge::Statement) -> R + Send,
    ) -> PyResult<R> {
        let queries = self
            .entries
            .iter()
            .map(|entry| Ok(shorts(bytes(&entry.query)?)))
            .collect::<PyResult<Vec<_>>>()?;
        let entries = self
            .entries
            .iter()
            .zip(&queries)
            .map(|(entry, query)| {
                Ok(charge::Entry {
                    context: array(&entry.context, "context")?,
                    query,
                    threshold: entry.threshold,
                    allowed: entry.allowed.as_deref(),
                    before: array(&entry.charged_before, "charged_before")?,
                    charge: array(&entry.charge, "charge")?,
                })
            })
            .collect::<PyResult<Vec<_>>>()?;
        let statement = charge::Statement {
            uses: self.uses,
            commitments: &self.commitments,
            entries: &entries,
            squared_norm: self.squared_norm,
        };
        Ok(py.detach(|| work(&statement)))
    }
}

/// `charges` are the positions and blindings of all charge entries up to the last of the group,
/// and the group's numbers among them.
#[pyfunction]
fn prove_charges<'py>(
    py: Python<'py>,
    statement: ChargeStatement<'py>,
    rows: (ArrayBytes<'py>, usize, usize),
    blindings: ArrayBytes<'py>,
    charges: (Vec<Vec<u64>>, ArrayBytes<'py>, Vec<usize>),
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (rows, entry_bytes, width) = (bytes(&rows.0)?, rows.1, rows.2);
    let blindings = bytes(&blindings)?;
    let (charged, charge_blindings, numbers) = (&charges.0, bytes(&charges.1)?, &charges.2);
    let callback = Callback::new(progress);
    let result = statement.with(py, |statement| {
        let count = blindings.len() / ELEMENT_BYTES;
        let charges = Charges::new(charged, charge_blindings, count)?;
        let wide = shorts(if entry_bytes == 1 { &[] } else { rows });
        let secrets = match entry_bytes {
            1 => Secrets::new(signed_bytes(rows), width, blindings, &charges, numbers)?,
            _ => Secrets::new(&wide, width, blindings, &charges, numbers)?,
        };
        charge::prove(statement, &secrets, &callback)
    })?;
    Ok(PyBytes::new(py, &callback.finish(result)?))
}

#[pyfunction]
fn verify_charges(
    py: Python<'_>,
    statement: ChargeStatement<'_>,
    proof: &[u8],
    progress: Option<Py<PyAny>>,
) -> PyResult<()> {
    let callback = Callback::new(progress);
    let result = statement.with(py, |statement| charge::verify(statement, proof, &callback))?;
    callback.finish(result)
}

#[pyfunction]
fn running_sums<'py>(
    py: Python<'py>,
    points: &[u8],
    numbers: Vec<usize>,
) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let sums = py.detach(|| charges::running_sums(points, &numbers)).map_err(to_python)?;
    Ok(sums.iter().map(|sum| PyBytes::new(py, sum)).collect())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(prove_budget, module)?)?;
    module.add_function(wrap_pyfunction!(verify_budget, module)?)?;
    module.add_function(wrap_pyfunction!(prove_charges, module)?)?;
    module.add_function(wrap_pyfunction!(verify_charges, module)?)?;
    module.add_function(wrap_pyfunction!(running_sums, module)?)
}
