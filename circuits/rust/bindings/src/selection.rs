//! The selection argument.

use std::borrow::Cow;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use ragaudit_arguments::progress::Progress;
use ragaudit_arguments::selection::verifier::BatchError;
use ragaudit_arguments::selection::{self, Instance, Secrets, Ties};
use ragaudit_arguments::{commitments, four_squares, marks};

use crate::convert::{ArrayBytes, array, bytes, longs, scalar, shorts, signed_bytes};
use crate::errors::{batch_rejected, to_python};
use crate::progress::Callback;

type Bytes<'py> = Bound<'py, PyBytes>;

#[pyfunction]
fn commit_marked<'py>(py: Python<'py>, marks: &[u8], blinding: &[u8]) -> PyResult<Bytes<'py>> {
    let blinding = scalar(blinding, "blinding")?;
    let marks: Vec<bool> = marks.iter().map(|mark| *mark != 0).collect();
    let point = py.detach(|| marks::commit_marked(&marks, &blinding)).map_err(to_python)?;
    Ok(PyBytes::new(py, &point))
}

#[pyfunction]
fn commit_selection<'py>(
    py: Python<'py>,
    positions: Vec<u64>,
    blinding: &[u8],
) -> PyResult<Bytes<'py>> {
    let blinding = scalar(blinding, "blinding")?;
    let point =
        py.detach(|| commitments::commit_selection(&positions, &blinding)).map_err(to_python)?;
    Ok(PyBytes::new(py, &point))
}

/// A selection statement: the attributes that `ragaudit.core.SelectionStatement` documents.
#[derive(FromPyObject)]
struct SelectionStatement<'py> {
    context: PyBackedBytes,
    rows: u64,
    commitments: PyBackedBytes,
    query: ArrayBytes<'py>,
    noise: ArrayBytes<'py>,
    top_k: u64,
    selection_commitment: PyBackedBytes,
    allowed: Option<Vec<u64>>,
    squared_norm: u32,
    keeps_ties: bool,
}

impl SelectionStatement<'_> {
    /// The statement where Python holds it.
    fn decode(&self) -> PyResult<Decoded<'_>> {
        Ok(Decoded {
            context: array(&self.context, "context")?,
            rows: self.rows,
            commitments: &self.commitments,
            query: shorts(bytes(&self.query)?),
            noise: longs(bytes(&self.noise)?),
            top_k: self.top_k,
            allowed: self.allowed.as_deref(),
            squared_norm: self.squared_norm,
            ties: if self.keeps_ties { Ties::Kept } else { Ties::Dropped },
            selection: array(&self.selection_commitment, "selection_commitment")?,
        })
    }
}

/// A selection statement; its integers are decoded only where memory cannot be read as such.
struct Decoded<'a> {
    context: [u8; 32],
    rows: u64,
    commitments: &'a [u8],
    query: Cow<'a, [i16]>,
    noise: Cow<'a, [i64]>,
    top_k: u64,
    allowed: Option<&'a [u64]>,
    squared_norm: u32,
    ties: Ties,
    selection: [u8; 32],
}

impl Decoded<'_> {
    fn instance(&self) -> Instance<'_> {
        Instance {
            context: self.context,
            rows: self.rows,
            commitments: self.commitments,
            query: &self.query,
            noise: &self.noise,
            top_k: self.top_k,
            allowed: self.allowed,
            squared_norm: self.squared_norm,
            ties: self.ties,
            selection: self.selection,
        }
    }
}

#[pyfunction]
fn prove_selection<'py>(
    py: Python<'py>,
    statement: SelectionStatement<'py>,
    rows: (ArrayBytes<'py>, usize),
    blindings: ArrayBytes<'py>,
    selected: Vec<u64>,
    selection_blinding: &[u8],
    progress: Option<Py<PyAny>>,
) -> PyResult<Bytes<'py>> {
    let statement = statement.decode()?;
    let blinding = scalar(selection_blinding, "selection_blinding")?;
    let (rows, entry_bytes) = (bytes(&rows.0)?, rows.1);
    let blindings = bytes(&blindings)?;
    let callback = Callback::new(progress);
    let result = py.detach(|| {
        let width = statement.query.len() + four_squares::COMPLETION;
        let wide = shorts(if entry_bytes == 1 { &[] } else { rows });
        let secrets = match entry_bytes {
            1 => Secrets::new(signed_bytes(rows), width, blindings, &selected, blinding)?,
            _ => Secrets::new(&wide, width, blindings, &selected, blinding)?,
        };
        selection::prove(&statement.instance(), &secrets, &callback)
    });
    Ok(PyBytes::new(py, &callback.finish(result)?))
}

#[pyfunction]
fn verify_selection(
    py: Python<'_>,
    statement: SelectionStatement<'_>,
    proof: &[u8],
) -> PyResult<()> {
    let statement = statement.decode()?;
    py.detach(|| selection::verify(&statement.instance(), proof)).map_err(to_python)
}

#[pyfunction]
fn verify_selections<'py>(
    py: Python<'py>,
    proven: Vec<(SelectionStatement<'py>, PyBackedBytes)>,
    progress: Option<Py<PyAny>>,
) -> PyResult<()> {
    let records = proven
        .iter()
        .map(|(statement, proof)| Ok((statement.decode()?, &**proof)))
        .collect::<PyResult<Vec<(Decoded, &[u8])>>>()?;
    let callback = Callback::new(progress);
    let result = py.detach(|| {
        let batch: Vec<(Instance, &[u8])> =
            records.iter().map(|(statement, proof)| (statement.instance(), *proof)).collect();
        selection::verify_batch(&batch, &callback as &dyn Progress)
    });
    match result {
        Ok(()) => Ok(()),
        Err(BatchError::Stopped(error)) => callback.finish(Err(error)),
        Err(BatchError::Rejected(failed)) => Err(batch_rejected(py, &failed)),
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(commit_marked, module)?)?;
    module.add_function(wrap_pyfunction!(commit_selection, module)?)?;
    module.add_function(wrap_pyfunction!(prove_selection, module)?)?;
    module.add_function(wrap_pyfunction!(verify_selection, module)?)?;
    module.add_function(wrap_pyfunction!(verify_selections, module)?)
}
