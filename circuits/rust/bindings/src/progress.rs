//! Reporting to a Python callback, and noticing Ctrl-C.

use std::sync::Mutex;

use pyo3::prelude::*;
use ragaudit_arguments::progress::Progress;
use ragaudit_arguments::{Error, Result};

use crate::errors::to_python;

/// Calls a Python callable; keeps what it raises for [`Callback::finish`].
pub struct Callback {
    callable: Option<Py<PyAny>>,
    raised: Mutex<Option<PyErr>>,
}

impl Callback {
    pub fn new(callable: Option<Py<PyAny>>) -> Self {
        Callback { callable, raised: Mutex::new(None) }
    }

    /// The result for Python: what the callback raised comes before the cancellation it caused.
    pub fn finish<T>(self, result: Result<T>) -> PyResult<T> {
        let raised = self.raised.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        match (result, raised) {
            (Err(Error::Cancelled), Some(raised)) => Err(raised),
            (result, _) => result.map_err(to_python),
        }
    }

    /// Whether to go on.
    fn call(&self, py: Python<'_>, done: f64) -> PyResult<bool> {
        py.check_signals()?;
        match &self.callable {
            None => Ok(true),
            Some(callable) => {
                let answer = callable.call1(py, (done,))?;
                Ok(!answer.bind(py).is(pyo3::types::PyBool::new(py, false)))
            }
        }
    }
}

impl Progress for Callback {
    fn report(&self, done: f64) -> Result<()> {
        Python::attach(|py| match self.call(py, done) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::Cancelled),
            Err(error) => {
                *self.raised.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(error);
                Err(Error::Cancelled)
            }
        })
    }
}
