//! What can go wrong. Messages never contain a secret.

use std::fmt;

/// The error of every function of this crate.
///
/// ```
/// use ragaudit_arguments::{Error, four_squares};
///
/// let error = four_squares::complete_rows(&[100i8, 100], 2, 16129).unwrap_err();
/// assert_eq!(error, Error::Malformed("row 0: squared norm above 16129".into()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// An input breaks the caller's side of the contract (a length, a range, an encoding).
    Malformed(String),
    /// The statement is not provable or the proof does not prove it.
    Rejected(String),
    /// The progress callback asked to stop.
    Cancelled,
    /// The operating system gave no entropy.
    Entropy(String),
}

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An [`Error::Malformed`] with this message.
pub fn malformed(message: impl Into<String>) -> Error {
    Error::Malformed(message.into())
}

/// An [`Error::Rejected`] with this message.
pub fn rejected(message: impl Into<String>) -> Error {
    Error::Rejected(message.into())
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Malformed(message) | Error::Rejected(message) | Error::Entropy(message) => {
                formatter.write_str(message)
            }
            Error::Cancelled => formatter.write_str("cancelled by the progress callback"),
        }
    }
}

impl std::error::Error for Error {}
