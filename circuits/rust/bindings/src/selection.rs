//! The selection argument.

use std::borrow::Cow;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use ragaudit_arguments::progress::Progress;
use ragaudit_arguments::selection::verifier::BatchError;
use ragaudit_arguments::selection::{self, Instance, Secrets};
use ragaudit_arguments::{SQUARED_NORM, commitments, four_squares};

use crate::convert::{ArrayBytes, array, bytes, longs, scalar, shorts, signed_bytes};
use crate::errors::{batch_rejected, to_python};
use crate::progress::Callback;

type Bytes<'py> = Bound<'py, PyBytes>;

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

#[pyfunction]
fn prove_selection<'py>(
    py: Python<'py>,
    context: &[u8],
    rows: ArrayBytes<'py>,
    blindings: ArrayBytes<'py>,
    row_commitments: &[u8],
    query: ArrayBytes<'py>,
    noise: ArrayBytes<'py>,
    top_k: u64,
    selected: Vec<u64>,
    selection_blinding: &[u8],
    allowed: Option<Vec<u64>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bytes<'py>> {
    let context = array(context, "context")?;
    let blinding = scalar(selection_blinding, "selection_blinding")?;
    let (rows, blindings) = (signed_bytes(bytes(&rows)?), bytes(&blindings)?);
    let (query, noise) = (shorts(bytes(&query)?), longs(bytes(&noise)?));
    let callback = Callback::new(progress);
    let result = py.detach(|| {
        let instance = Instance {
            context,
            rows: blindings.len() as u64 / 32,
            commitments: row_commitments,
            query: &query,
            noise: &noise,
            top_k,
            allowed: allowed.as_deref(),
            squared_norm: SQUARED_NORM,
            selection: commitments::commit_selection(&selected, &blinding)?,
        };
        let width = query.len() + four_squares::COMPLETION;
        let secrets = Secrets::new(rows, width, blindings, &selected, blinding)?;
        selection::prove(&instance, &secrets, &callback)
    });
    Ok(PyBytes::new(py, &callback.finish(result)?))
}

/// One selection argument as Python has it: context, N, commitments, query, noise, K, B_sel,
/// proof, allowed, B².
type SelectionArguments<'py> = (
    PyBackedBytes,
    u64,
    PyBackedBytes,
    ArrayBytes<'py>,
    ArrayBytes<'py>,
    u64,
    PyBackedBytes,
    PyBackedBytes,
    Option<Vec<u64>>,
    u32,
);

/// The statement and its proof, where Python holds them.
fn instance<'a>(given: &'a SelectionArguments) -> PyResult<Record<'a>> {
    let (context, rows, commitments, query, noise, top_k, selection, proof, allowed, norm) = given;
    Ok(Record {
        context: array(context, "context")?,
        rows: *rows,
        commitments,
        query: shorts(bytes(query)?),
        noise: longs(bytes(noise)?),
        top_k: *top_k,
        selection: array(selection, "selection_commitment")?,
        proof,
        allowed: allowed.as_deref(),
        squared_norm: *norm,
    })
}

/// A selection argument; its integers are decoded only where memory cannot be read as such.
struct Record<'a> {
    context: [u8; 32],
    rows: u64,
    commitments: &'a [u8],
    query: Cow<'a, [i16]>,
    noise: Cow<'a, [i64]>,
    top_k: u64,
    selection: [u8; 32],
    proof: &'a [u8],
    allowed: Option<&'a [u64]>,
    squared_norm: u32,
}

impl Record<'_> {
    fn instance(&self) -> (Instance<'_>, &[u8]) {
        let instance = Instance {
            context: self.context,
            rows: self.rows,
            commitments: self.commitments,
            query: &self.query,
            noise: &self.noise,
            top_k: self.top_k,
            allowed: self.allowed,
            squared_norm: self.squared_norm,
            selection: self.selection,
        };
        (instance, self.proof)
    }
}

#[pyfunction]
fn verify_selection(py: Python<'_>, given: SelectionArguments) -> PyResult<()> {
    let record = instance(&given)?;
    py.detach(|| {
        let (instance, proof) = record.instance();
        selection::verify(&instance, proof)
    })
    .map_err(to_python)
}

#[pyfunction]
fn verify_selections(
    py: Python<'_>,
    batch: Vec<SelectionArguments>,
    progress: Option<Py<PyAny>>,
) -> PyResult<()> {
    let records = batch.iter().map(instance).collect::<PyResult<Vec<_>>>()?;
    let callback = Callback::new(progress);
    let result = py.detach(|| {
        let batch: Vec<(Instance, &[u8])> = records.iter().map(Record::instance).collect();
        selection::verify_batch(&batch, &callback as &dyn Progress)
    });
    match result {
        Ok(()) => Ok(()),
        Err(BatchError::Stopped(error)) => callback.finish(Err(error)),
        Err(BatchError::Rejected(failed)) => Err(batch_rejected(py, &failed)),
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(commit_selection, module)?)?;
    module.add_function(wrap_pyfunction!(prove_selection, module)?)?;
    module.add_function(wrap_pyfunction!(verify_selection, module)?)?;
    module.add_function(wrap_pyfunction!(verify_selections, module)?)
}
