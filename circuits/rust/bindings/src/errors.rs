//! The exceptions of `ragaudit.core`.

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyOSError};
use pyo3::prelude::*;
use ragaudit_arguments::Error;
use ragaudit_noise::Malformed;

create_exception!(ragaudit.core, CoreError, PyException);
create_exception!(ragaudit.core, MalformedInput, CoreError);
create_exception!(ragaudit.core, ProofRejected, CoreError);
create_exception!(ragaudit.core, Cancelled, CoreError);

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("CoreError", py.get_type::<CoreError>())?;
    module.add("MalformedInput", py.get_type::<MalformedInput>())?;
    module.add("ProofRejected", py.get_type::<ProofRejected>())?;
    module.add("Cancelled", py.get_type::<Cancelled>())
}

pub fn to_python(error: Error) -> PyErr {
    match error {
        Error::Malformed(message) => MalformedInput::new_err(message),
        Error::Rejected(message) => ProofRejected::new_err(message),
        Error::Cancelled => Cancelled::new_err("cancelled by the progress callback"),
        Error::Entropy(message) => PyOSError::new_err(message),
    }
}

pub fn malformed(message: impl Into<String>) -> PyErr {
    MalformedInput::new_err(message.into())
}

pub fn noise_to_python(error: Malformed) -> PyErr {
    malformed(error.0)
}

/// ProofRejected whose attribute `failed` names the rejected proofs of a batch.
pub fn batch_rejected(py: Python<'_>, failed: &[(usize, Error)]) -> PyErr {
    let reasons: Vec<String> =
        failed.iter().map(|(index, error)| format!("proof {index}: {error}")).collect();
    let error = ProofRejected::new_err(reasons.join("; "));
    let indices: Vec<usize> = failed.iter().map(|(index, _)| *index).collect();
    match error.value(py).setattr("failed", indices) {
        Ok(()) => error,
        Err(failure) => failure,
    }
}
