//! The ties opening.

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use ragaudit_arguments::ties::{self, Ranked, Statement};

use crate::convert::{ArrayBytes, array, bytes, shorts, signed_bytes};
use crate::errors::to_python;
use crate::progress::Callback;

/// A ties statement: the attributes that `ragaudit.core.TiesStatement` documents.
#[derive(FromPyObject)]
struct TiesStatement {
    context: PyBackedBytes,
    rows: u64,
    query: Vec<i16>,
    top_k: u64,
    served: Vec<(u64, i64)>,
    withdrawn: Vec<(u64, i64)>,
    others: Vec<u64>,
    commitments: PyBackedBytes,
    squared_norm: u32,
}

impl TiesStatement {
    /// What `work` makes of the statement.
    fn with<R>(&self, work: impl FnOnce(&Statement) -> R) -> PyResult<R> {
        let ranked = |rows: &[(u64, i64)]| -> Vec<Ranked> {
            rows.iter()
                .map(|(position, score)| Ranked { position: *position, score: *score })
                .collect()
        };
        Ok(work(&Statement {
            context: array(&self.context, "context")?,
            rows: self.rows,
            query: &self.query,
            top_k: self.top_k,
            served: &ranked(&self.served),
            withdrawn: &ranked(&self.withdrawn),
            others: &self.others,
            commitments: &self.commitments,
            squared_norm: self.squared_norm,
        }))
    }
}

/// `rows` and `blindings` are those of the statement's commitments.
#[pyfunction]
fn prove_ties<'py>(
    py: Python<'py>,
    statement: TiesStatement,
    rows: ArrayBytes<'py>,
    entry_bytes: usize,
    blindings: ArrayBytes<'py>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (rows, blindings) = (bytes(&rows)?, bytes(&blindings)?);
    let callback = Callback::new(progress);
    let result = py.detach(|| {
        statement.with(|statement| match entry_bytes {
            1 => ties::prove(statement, signed_bytes(rows), blindings, &callback),
            _ => ties::prove(statement, &shorts(rows), blindings, &callback),
        })
    })?;
    Ok(PyBytes::new(py, &callback.finish(result)?))
}

#[pyfunction]
fn verify_ties(py: Python<'_>, statement: TiesStatement, proof: &[u8]) -> PyResult<()> {
    py.detach(|| statement.with(|statement| ties::verify(statement, proof)))?.map_err(to_python)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(prove_ties, module)?)?;
    module.add_function(wrap_pyfunction!(verify_ties, module)?)
}
