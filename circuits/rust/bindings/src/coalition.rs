//! Accounts that asked alike.

use pyo3::prelude::*;
use pyo3::types::PyByteArray;
use ragaudit_coalition::{Near, Records, components};

use crate::convert::{ArrayBytes, bytes, long_bytes, longs};
use crate::errors::malformed;
use crate::progress::Callback;

/// `records` are accounts and times of 64 bits, bytes that are 0 or 1, and sketches; `near` is tau,
/// life and threshold; `part` is where the records begin and end whose pairs with later ones are
/// compared, all of them if not said.
#[pyfunction]
#[pyo3(signature = (records, width, accounts, near, progress, part=None))]
fn link_accounts<'py>(
    py: Python<'py>,
    records: (ArrayBytes<'py>, ArrayBytes<'py>, ArrayBytes<'py>, ArrayBytes<'py>),
    width: usize,
    accounts: u32,
    near: (i64, i64, u32),
    progress: Option<Py<PyAny>>,
    part: Option<(usize, usize)>,
) -> PyResult<Bound<'py, PyByteArray>> {
    let (who, times) = (longs(bytes(&records.0)?), longs(bytes(&records.1)?));
    let (anchored, sketches) = (bytes(&records.2)?, bytes(&records.3)?);
    let (tau, life, threshold) = near;
    let callback = Callback::new(progress);
    let result = py.detach(|| {
        let numbers: Result<Vec<u32>, _> = who.iter().map(|each| u32::try_from(*each)).collect();
        let records = Records {
            accounts: &numbers.map_err(|_| malformed("accounts: not a number of 32 bits"))?,
            times: &times,
            anchored: &anchored.iter().map(|each| *each != 0).collect::<Vec<bool>>(),
            sketches,
            width,
        };
        let (start, end) = part.unwrap_or((0, times.len()));
        let near = Near { tau, life, threshold };
        Ok::<_, PyErr>(components(&records, accounts, near, start..end, &callback))
    })?;
    let labels: Vec<i64> = callback.finish(result)?.into_iter().map(i64::from).collect();
    long_bytes(py, &labels)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(link_accounts, module)?)
}
