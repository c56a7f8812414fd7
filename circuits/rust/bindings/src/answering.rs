//! What answering does for a query's vector, and for all rows: integers, noise, exact scores.

use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes};
use ragaudit_noise::Sampler;
use ragaudit_scoring::Rows;

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
    /// `entry_bytes` is 1 or 2.
    #[new]
    fn new(
        py: Python<'_>,
        rows: ArrayBytes<'_>,
        entry_bytes: usize,
        width: usize,
    ) -> PyResult<Self> {
        let bytes = bytes(&rows)?;
        let rows = py.detach(|| match entry_bytes {
            1 => Rows::narrow(bytes.to_vec(), width),
            _ => Rows::wide(shorts(bytes).into_owned(), width),
        });
        rows.map(ScoredRows).map_err(|error| malformed(error.to_string()))
    }

    fn scores<'py>(
        &self,
        py: Python<'py>,
        query: ArrayBytes<'py>,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let query = shorts(bytes(&query)?);
        let scores =
            py.detach(|| self.0.scores(&query)).map_err(|error| malformed(error.to_string()))?;
        long_bytes(py, &scores)
    }
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
    module.add_function(wrap_pyfunction!(quantise, module)?)
}
