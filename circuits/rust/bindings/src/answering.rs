//! What answering does for a query's vector, and for all rows: integers, noise, exact scores.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes};
use ragaudit_noise::Sampler;
use ragaudit_scoring::{Instructions, Rows, Wanted};

use crate::convert::{ArrayBytes, array, bytes, doubles, long_bytes, shorts};
use crate::errors::{malformed, noise_to_python};

/// The sampler of one table.
#[pyclass(frozen, module = "ragaudit.core._core")]
struct NoiseSampler(Sampler);

#[pymethods]
impl NoiseSampler {
    #[new]
    fn new(py: Python<'_>, thresholds: &[u8], factor: u64, levels: u32) -> PyResult<Self> {
        py.detach(|| Sampler::new(thresholds, factor, levels))
            .map(NoiseSampler)
            .map_err(noise_to_python)
    }

    fn sample<'py>(
        &self,
        py: Python<'py>,
        key: &[u8],
        count: usize,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let key = array(key, "key")?;
        let samples = py.detach(|| self.0.sample(&key, count)).map_err(noise_to_python)?;
        long_bytes(py, &samples)
    }
}

/// The rows of one index.
#[pyclass(frozen, module = "ragaudit.core._core")]
struct ScoredRows(Rows);

#[pymethods]
impl ScoredRows {
    /// `entry_bytes` is 1 or 2; `instructions` are "fastest", "narrower" or "portable".
    #[new]
    #[pyo3(signature = (rows, entry_bytes, width, instructions = "fastest"))]
    fn new(
        py: Python<'_>,
        rows: ArrayBytes<'_>,
        entry_bytes: usize,
        width: usize,
        instructions: &str,
    ) -> PyResult<Self> {
        let bytes = bytes(&rows)?;
        let instructions = match instructions {
            "fastest" => Instructions::Fastest,
            "narrower" => Instructions::Narrower,
            "portable" => Instructions::Portable,
            _ => return Err(malformed(format!("instructions: {instructions}"))),
        };
        let rows = py.detach(|| match entry_bytes {
            1 => Rows::narrow(bytes.to_vec(), width),
            _ => Rows::wide(&shorts(bytes), width),
        });
        let rows = rows.map_err(|error| malformed(error.to_string()))?;
        Ok(ScoredRows(rows.with(instructions)))
    }

    /// The scores for one query, then those for the next one.
    fn scores<'py>(
        &self,
        py: Python<'py>,
        queries: ArrayBytes<'py>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let queries = shorts(bytes(&queries)?);
        let scores =
            py.detach(|| self.0.scores(&queries)).map_err(|error| malformed(error.to_string()))?;
        Ok(scores.into_pyarray(py))
    }

    /// The positions of the best rows for each query.
    fn best<'py>(
        &self,
        py: Python<'py>,
        queries: ArrayBytes<'py>,
        top_k: Vec<usize>,
        allowed: Vec<Option<PyReadonlyArray1<'py, i64>>>,
    ) -> PyResult<Vec<Bound<'py, PyArray1<i64>>>> {
        let queries = shorts(bytes(&queries)?);
        let allowed = allowed
            .iter()
            .map(|each| each.as_ref().map(PyReadonlyArray1::as_slice).transpose())
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| malformed(error.to_string()))?;
        if allowed.len() != top_k.len() {
            return Err(malformed("allowed: expected as many as top_k"));
        }
        let wanted: Vec<_> = top_k
            .into_iter()
            .zip(allowed)
            .map(|(top_k, allowed)| Wanted { top_k, allowed })
            .collect();
        let best = py
            .detach(|| self.0.best(&queries, &wanted))
            .map_err(|error| malformed(error.to_string()))?;
        Ok(best.into_iter().map(|positions| positions.into_pyarray(py)).collect())
    }
}

/// The scores of some rows of bytes, which stay where they are.
#[pyfunction]
fn scores_of<'py>(
    py: Python<'py>,
    rows: ArrayBytes<'py>,
    width: usize,
    positions: PyReadonlyArray1<'py, i64>,
    query: ArrayBytes<'py>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let (rows, query) = (bytes(&rows)?, shorts(bytes(&query)?));
    let positions = positions.as_slice().map_err(|error| malformed(error.to_string()))?;
    let scores = py
        .detach(|| ragaudit_scoring::scores_of(rows, width, positions, &query))
        .map_err(|error| malformed(error.to_string()))?;
    Ok(scores.into_pyarray(py))
}

/// The interpreter lock is held: another thread would keep it longer than this takes.
#[pyfunction]
fn quantise<'py>(
    py: Python<'py>,
    vector: ArrayBytes<'py>,
    norm_bound: u16,
) -> PyResult<Bound<'py, PyBytes>> {
    let integers = ragaudit_scoring::quantise(&doubles(bytes(&vector)?), norm_bound)
        .map_err(|error| malformed(error.to_string()))?;
    let integers: Vec<u8> = integers.iter().flat_map(|entry| entry.to_le_bytes()).collect();
    Ok(PyBytes::new(py, &integers))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<NoiseSampler>()?;
    module.add_class::<ScoredRows>()?;
    module.add_function(wrap_pyfunction!(scores_of, module)?)?;
    module.add_function(wrap_pyfunction!(quantise, module)?)
}
