//! The budget argument.

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use ragaudit_arguments::budget;
use ragaudit_arguments::charges::Charges;

use crate::convert::{ArrayBytes, array, bytes};
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

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(prove_budget, module)?)?;
    module.add_function(wrap_pyfunction!(verify_budget, module)?)
}
