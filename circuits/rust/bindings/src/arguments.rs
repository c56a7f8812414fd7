//! Generators, transcript, row commitments, the index argument.

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use ragaudit_arguments::entries::Entry;
use ragaudit_arguments::generators::{self, Generator, LISTS};
use ragaudit_arguments::index::{self, Rows, Statement};
use ragaudit_arguments::transcript::Transcript;
use ragaudit_arguments::{Error, SQUARED_NORM, commitments, four_squares, scalars};

use crate::convert::{ArrayBytes, array, bytes, longs, memory, shorts, signed_bytes};
use crate::errors::{malformed, to_python};
use crate::progress::Callback;

type Bytes<'py> = Bound<'py, PyBytes>;

/// The name of a list of generators and an index: the 32 bytes of the generator.
#[pyfunction]
fn generator<'py>(py: Python<'py>, name: &str, index: u64) -> PyResult<Bytes<'py>> {
    let known = LISTS.into_iter().find(|known| known.name() == name);
    let list = known.ok_or_else(|| malformed(format!("list: no generators named {name:?}")))?;
    let point = generators::derive(Generator::new(list, index));
    Ok(PyBytes::new(py, point.compress().as_bytes()))
}

#[pyfunction]
fn position_encodings(py: Python<'_>, count: usize) -> Bytes<'_> {
    PyBytes::new(py, &py.detach(|| generators::position_encodings(count)))
}

#[pyfunction]
fn use_positions(py: Python<'_>, encodings: &[u8]) -> PyResult<()> {
    py.detach(|| generators::use_positions(encodings.to_vec())).map_err(to_python)
}

/// (operation, tag, message, count) steps: the state after each, and what it drew.
#[pyfunction]
fn transcript_trace<'py>(
    py: Python<'py>,
    argument: &str,
    operations: Vec<(String, String, Vec<u8>, usize)>,
) -> PyResult<Vec<(Bytes<'py>, Bytes<'py>)>> {
    let mut transcript = Transcript::new(argument);
    let mut steps = vec![(PyBytes::new(py, transcript.state()), PyBytes::new(py, &[]))];
    for (operation, tag, message, count) in operations {
        let drawn = match operation.as_str() {
            "absorb" => {
                transcript.absorb(&tag, &message);
                Vec::new()
            }
            "scalar" => transcript.scalar(&tag).to_bytes().to_vec(),
            "bits" => transcript.bits(&tag, count),
            other => return Err(malformed(format!("operation: {other:?} is not known"))),
        };
        steps.push((PyBytes::new(py, transcript.state()), PyBytes::new(py, &drawn)));
    }
    Ok(steps)
}

#[pyfunction]
fn complete_rows<'py>(
    py: Python<'py>,
    vectors: ArrayBytes<'py>,
    entry_bytes: usize,
    dimension: usize,
    squared_norm: u32,
) -> PyResult<Bytes<'py>> {
    let vectors = bytes(&vectors)?;
    if entry_bytes == 1 {
        return completed(py, signed_bytes(vectors), dimension, squared_norm);
    }
    completed(py, &shorts(vectors), dimension, squared_norm)
}

/// The memory of the completed rows.
fn completed<'py, E: Entry>(
    py: Python<'py>,
    vectors: &[E],
    dimension: usize,
    squared_norm: u32,
) -> PyResult<Bytes<'py>> {
    let rows = py.detach(|| four_squares::complete_rows(vectors, dimension, squared_norm));
    Ok(PyBytes::new(py, &memory(E::rows(&rows.map_err(to_python)?))))
}

#[pyfunction]
fn random_scalars(py: Python<'_>, count: usize) -> PyResult<Bytes<'_>> {
    let scalars = py.detach(|| commitments::random_scalars(count)).map_err(to_python)?;
    Ok(PyBytes::new(py, &scalars))
}

#[pyfunction]
fn commit_rows<'py>(
    py: Python<'py>,
    rows: ArrayBytes<'py>,
    entry_bytes: usize,
    width: usize,
    blindings: ArrayBytes<'py>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bytes<'py>> {
    let (rows, blindings) = (bytes(&rows)?, bytes(&blindings)?);
    let callback = Callback::new(progress);
    let result = py.detach(|| match entry_bytes {
        1 => commitments::commit_rows(signed_bytes(rows), width, blindings, &callback),
        _ => commitments::commit_rows(&shorts(rows), width, blindings, &callback),
    });
    Ok(PyBytes::new(py, &callback.finish(result)?))
}

#[pyfunction]
fn reblind_rows<'py>(
    py: Python<'py>,
    row_commitments: &[u8],
    old: ArrayBytes<'py>,
    new: ArrayBytes<'py>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bytes<'py>> {
    let (old, new) = (bytes(&old)?, bytes(&new)?);
    let callback = Callback::new(progress);
    let result = py.detach(|| commitments::reblind_rows(row_commitments, old, new, &callback));
    Ok(PyBytes::new(py, &callback.finish(result)?))
}

/// An index statement: the attributes that `ragaudit.core.IndexStatement` documents.
#[derive(FromPyObject)]
struct IndexStatement {
    context: PyBackedBytes,
    rows: u64,
    dimension: u64,
    commitments: PyBackedBytes,
    squared_norm: u32,
}

impl IndexStatement {
    /// The statement; `refusal` unless its public conditions hold.
    fn decode(&self, refusal: impl FnOnce(Error) -> PyErr) -> PyResult<Statement<'_>> {
        let context = array(&self.context, "context")?;
        let Self { rows, dimension, squared_norm, .. } = *self;
        Statement::new(context, rows, dimension, squared_norm, &self.commitments).map_err(refusal)
    }
}

#[pyfunction]
fn prove_index<'py>(
    py: Python<'py>,
    statement: IndexStatement,
    rows: ArrayBytes<'py>,
    entry_bytes: usize,
    blindings: ArrayBytes<'py>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bytes<'py>> {
    let statement = statement.decode(|error| malformed(error.to_string()))?;
    let (rows, blindings) = (bytes(&rows)?, bytes(&blindings)?);
    let callback = Callback::new(progress);
    let result = py.detach(|| {
        let prove = |rows: Rows| index::prove(&statement, rows, blindings, &callback);
        match entry_bytes {
            1 => prove(Rows::Small(signed_bytes(rows))),
            2 => prove(Rows::Wide(&shorts(rows))),
            _ => {
                let entries = longs(rows);
                let field = entries.iter().map(|x| scalars::from_integer(i128::from(*x)));
                prove(Rows::Field(&field.collect::<Vec<_>>()))
            }
        }
    });
    Ok(PyBytes::new(py, &callback.finish(result)?))
}

#[pyfunction]
fn verify_index(
    py: Python<'_>,
    statement: IndexStatement,
    proof: &[u8],
    progress: Option<Py<PyAny>>,
) -> PyResult<()> {
    let statement = statement.decode(to_python)?;
    let callback = Callback::new(progress);
    let result = py.detach(|| index::verify(&statement, proof, &callback));
    callback.finish(result)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("SQUARED_NORM", SQUARED_NORM)?;
    module.add_function(wrap_pyfunction!(generator, module)?)?;
    module.add("KNOWN_POSITIONS", generators::KNOWN_POSITIONS)?;
    module.add_function(wrap_pyfunction!(position_encodings, module)?)?;
    module.add_function(wrap_pyfunction!(use_positions, module)?)?;
    module.add_function(wrap_pyfunction!(transcript_trace, module)?)?;
    module.add_function(wrap_pyfunction!(complete_rows, module)?)?;
    module.add_function(wrap_pyfunction!(random_scalars, module)?)?;
    module.add_function(wrap_pyfunction!(commit_rows, module)?)?;
    module.add_function(wrap_pyfunction!(reblind_rows, module)?)?;
    module.add_function(wrap_pyfunction!(prove_index, module)?)?;
    module.add_function(wrap_pyfunction!(verify_index, module)?)
}
