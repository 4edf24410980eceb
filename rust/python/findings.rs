//! Findings as Python sees them.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::chat::validation::{self, FindingCode};

#[pyclass(frozen, eq, hash, module = "fasttok")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Finding {
    code: FindingCode,
    path: String,
    message: String,
}

impl Finding {
    pub(super) fn list(findings: &[validation::Finding]) -> Vec<Self> {
        let findings = findings.iter().map(|finding| Self {
            code: finding.code(),
            path: finding.place().path(),
            message: finding.message().to_owned(),
        });
        findings.collect()
    }
}

#[pymethods]
impl Finding {
    #[getter]
    fn code(&self) -> &'static str {
        self.code.as_str()
    }

    #[getter]
    fn path(&self) -> &str {
        &self.path
    }

    #[getter]
    fn message(&self) -> &str {
        &self.message
    }

    fn __repr__(&self) -> String {
        format!(
            "Finding('{}', '{}', {:?})",
            self.code(),
            self.path,
            self.message
        )
    }

    fn __str__(&self) -> String {
        format!("{}: {} ({})", self.path, self.message, self.code())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let rebuild = slf.get_type().getattr("_rebuild")?;
        let fields = fields(slf.get()).into_pyobject(slf.py())?;
        Ok((rebuild, fields.into_any()))
    }

    #[staticmethod]
    #[pyo3(name = "_rebuild")]
    fn rebuild(code: &str, path: String, message: String) -> PyResult<Self> {
        from_fields((code.to_owned(), path, message))
    }
}

/// A finding as it is pickled: code, path, message.
pub(super) type Fields = (String, String, String);

pub(super) fn fields(finding: &Finding) -> Fields {
    let Finding {
        code,
        path,
        message,
    } = finding.clone();
    (code.as_str().to_owned(), path, message)
}

pub(super) fn from_fields((code, path, message): Fields) -> PyResult<Finding> {
    let unknown = || PyValueError::new_err(format!("unknown finding `{code}`"));
    Ok(Finding {
        code: FindingCode::from_name(&code).ok_or_else(unknown)?,
        path,
        message,
    })
}

/// The findings of one conversation.
pub(super) fn tuple<'py>(py: Python<'py>, findings: &[Finding]) -> PyResult<Bound<'py, PyTuple>> {
    let findings = findings
        .iter()
        .map(|finding| Bound::new(py, finding.clone()));
    PyTuple::new(py, findings.collect::<PyResult<Vec<_>>>()?)
}

/// In how many conversations each code is found, in the order of the codes. Several rows may come from one
/// conversation.
pub(super) fn counts<'py>(
    py: Python<'py>,
    rows: &[Vec<Finding>],
    sources: &[usize],
) -> PyResult<Bound<'py, PyDict>> {
    let mut counts = [0_usize; FindingCode::ALL.len()];
    for (row, findings) in rows.iter().enumerate() {
        if row > 0 && sources[row] == sources[row - 1] {
            continue;
        }
        for (count, (code, _)) in counts.iter_mut().zip(FindingCode::ALL) {
            *count += usize::from(findings.iter().any(|finding| finding.code == code));
        }
    }
    let dict = PyDict::new(py);
    for (count, (_, name)) in counts.into_iter().zip(FindingCode::ALL) {
        if count > 0 {
            dict.set_item(name, count)?;
        }
    }
    Ok(dict)
}
