//! Thin Python bindings: bytes in, bytes out, the interpreter lock released, errors mapped.
//!
//! Shapes and types are checked by `ragaudit.core`, which is the only caller.
#![allow(missing_docs)]

mod answering;
mod arguments;
mod budgets;
mod coalition;
mod convert;
mod errors;
mod progress;
mod selection;
mod ties;

use pyo3::prelude::*;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    errors::register(module)?;
    answering::register(module)?;
    arguments::register(module)?;
    budgets::register(module)?;
    coalition::register(module)?;
    selection::register(module)?;
    ties::register(module)
}
