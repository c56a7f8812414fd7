//! Reporting and cancelling long computations.

use crate::errors::Result;

/// Told the done share of a computation from time to time.
///
/// ```
/// use ragaudit_arguments::progress::Progress;
/// use ragaudit_arguments::{Error, Result, commitments};
///
/// struct Stop;
///
/// impl Progress for Stop {
///     fn report(&self, _done: f64) -> Result<()> {
///         Err(Error::Cancelled)
///     }
/// }
///
/// let stopped = commitments::commit_rows(&[127i8, 0, 0, 0, 0], 5, &[0; 32], &Stop);
/// assert_eq!(stopped, Err(Error::Cancelled));
/// ```
pub trait Progress: Sync {
    /// `done` lies in [0, 1] and never falls. An error (normally [`crate::Error::Cancelled`])
    /// stops the computation, which returns that error.
    fn report(&self, done: f64) -> Result<()>;
}

/// Reports to nobody.
pub struct Silent;

impl Progress for Silent {
    fn report(&self, _done: f64) -> Result<()> {
        Ok(())
    }
}

/// A share `[start, end]` of another computation's progress.
///
/// ```
/// use std::sync::Mutex;
/// use ragaudit_arguments::Result;
/// use ragaudit_arguments::progress::{Progress, Stage};
///
/// struct Bar(Mutex<f64>);
///
/// impl Progress for Bar {
///     fn report(&self, done: f64) -> Result<()> {
///         *self.0.lock().unwrap() = done;
///         Ok(())
///     }
/// }
///
/// let bar = Bar(Mutex::new(0.0));
/// Stage::new(&bar, 0.5, 1.0).report(0.5)?;
/// assert_eq!(*bar.0.lock().unwrap(), 0.75);
/// # Ok::<(), ragaudit_arguments::Error>(())
/// ```
pub struct Stage<'a> {
    parent: &'a dyn Progress,
    start: f64,
    end: f64,
}

impl<'a> Stage<'a> {
    /// The part of `parent` from `start` to `end`, 0 <= start <= end <= 1.
    pub fn new(parent: &'a dyn Progress, start: f64, end: f64) -> Self {
        Stage { parent, start, end }
    }
}

impl Progress for Stage<'_> {
    fn report(&self, done: f64) -> Result<()> {
        self.parent.report(self.start + (self.end - self.start) * done)
    }
}
