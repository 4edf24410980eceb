//! The one place where errors cross into Python.

use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;

use crate::error::{Error, ErrorKind};

pyo3::create_exception!(
    fasttok,
    FasttokError,
    PyValueError,
    "A fault with its kind and its place.\n\nAttributes: `kind` (str), `path` (str, such as `messages[3].content`), \
     `file` (str or None), `line` (int from 1, or None), `message` (str, without the place)."
);

/// The Python exception for a core error.
pub(super) fn to_pyerr(py: Python<'_>, error: &Error) -> PyErr {
    if error.kind() == ErrorKind::Interrupted {
        return PyKeyboardInterrupt::new_err(error.to_string());
    }
    let raised = FasttokError::new_err(error.to_string());
    let value = raised.value(py);
    let place = error.place();
    let set = value
        .setattr("kind", error.kind().as_str())
        .and_then(|()| value.setattr("path", place.path()))
        .and_then(|()| value.setattr("file", place.file()))
        .and_then(|()| value.setattr("line", place.line()))
        .and_then(|()| value.setattr("message", error.message()));
    set.err().unwrap_or(raised)
}
