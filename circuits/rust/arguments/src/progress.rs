//! Reporting and cancelling long computations.

use crate::errors::Result;

/// Told the done share of a computation from time to time.
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
