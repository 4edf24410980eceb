//! Spans as Python sees them: a light sequence over shared memory, and its items.

use std::ops::Range;
use std::sync::Arc;

use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;

use crate::chat::segment::{Facts, Part, Role};
use crate::encoder::encoded;

#[pyclass(frozen, sequence, from_py_object, module = "fasttok")]
#[derive(Clone)]
pub(super) struct Spans {
    all: Arc<[encoded::Span]>,
    range: Range<usize>,
}

/// A span as its fields: role, part, message index, start, end, and whether it is sampled, prefilled, of a message that
/// calls.
type Fields<'t> = (&'t str, &'t str, Option<u32>, u32, u32, (bool, bool, bool));

impl Spans {
    pub(super) fn new(all: Arc<[encoded::Span]>, range: Range<usize>) -> Self {
        Self { all, range }
    }

    pub(super) fn as_slice(&self) -> &[encoded::Span] {
        &self.all[self.range.clone()]
    }
}

#[pymethods]
impl Spans {
    pub(super) fn __len__(&self) -> usize {
        self.range.len()
    }

    fn __getitem__(&self, index: isize) -> PyResult<Span> {
        Ok(Span(
            self.all[self.range.start + position(index, self.range.len())?],
        ))
    }

    fn __eq__(&self, other: &Bound<'_, Self>) -> bool {
        self.as_slice() == other.get().as_slice()
    }

    fn __repr__(&self) -> String {
        let spans: Vec<String> = self
            .as_slice()
            .iter()
            .map(|&span| Span(span).__repr__())
            .collect();
        format!("Spans([{}])", spans.join(", "))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let fields: Vec<Fields<'_>> = slf.get().as_slice().iter().map(fields).collect();
        let rebuild = slf.get_type().getattr("_rebuild")?;
        Ok((rebuild, (fields,).into_pyobject(slf.py())?.into_any()))
    }

    #[staticmethod]
    fn _rebuild(fields: &Bound<'_, PyAny>) -> PyResult<Self> {
        let read = |fields: PyResult<Bound<'_, PyAny>>| from_fields(&fields?);
        let all: Vec<encoded::Span> = fields.try_iter()?.map(read).collect::<PyResult<_>>()?;
        let range = 0..all.len();
        Ok(Self::new(all.into(), range))
    }
}

fn fields(span: &encoded::Span) -> Fields<'static> {
    let facts = span.facts;
    (
        facts.role.as_str(),
        facts.part.as_str(),
        facts.message_index,
        span.start,
        span.end,
        (facts.sampled, facts.prefilled, facts.calls),
    )
}

fn from_fields(fields: &Bound<'_, PyAny>) -> PyResult<encoded::Span> {
    let (role, part, message_index, start, end, (sampled, prefilled, calls)): Fields<'_> =
        fields.extract()?;
    let part = Part::from_name(part)
        .ok_or_else(|| PyValueError::new_err(format!("unknown part `{part}`")))?;
    let facts = Facts {
        role: Role::from_name(role),
        message_index,
        part,
        sampled,
        prefilled,
        calls,
    };
    Ok(encoded::Span { facts, start, end })
}

#[pyclass(frozen, eq, hash, module = "fasttok")]
#[derive(PartialEq, Eq, Hash)]
pub(super) struct Span(encoded::Span);

#[pymethods]
impl Span {
    #[getter]
    fn role(&self) -> &'static str {
        self.0.facts.role.as_str()
    }

    #[getter]
    fn part(&self) -> &'static str {
        self.0.facts.part.as_str()
    }

    #[getter]
    fn message_index(&self) -> Option<u32> {
        self.0.facts.message_index
    }

    #[getter]
    fn start(&self) -> u32 {
        self.0.start
    }

    #[getter]
    fn end(&self) -> u32 {
        self.0.end
    }

    #[getter]
    fn sampled(&self) -> bool {
        self.0.facts.sampled
    }

    #[getter]
    fn prefilled(&self) -> bool {
        self.0.facts.prefilled
    }

    #[getter]
    fn calls(&self) -> bool {
        self.0.facts.calls
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let rebuild = slf.get_type().getattr("_rebuild")?;
        let fields = (fields(&slf.get().0),).into_pyobject(slf.py())?;
        Ok((rebuild, fields.into_any()))
    }

    #[staticmethod]
    fn _rebuild(fields: &Bound<'_, PyAny>) -> PyResult<Self> {
        from_fields(fields).map(Self)
    }

    fn __repr__(&self) -> String {
        let message_index = self
            .message_index()
            .map_or_else(|| "None".to_owned(), |index| index.to_string());
        let python = |value| if value { "True" } else { "False" };
        let (sampled, prefilled) = (python(self.sampled()), python(self.prefilled()));
        let calls = python(self.calls());
        format!(
            "Span(role='{}', part='{}', message_index={message_index}, start={}, end={}, sampled={sampled}, \
             prefilled={prefilled}, calls={calls})",
            self.role(),
            self.part(),
            self.start(),
            self.end()
        )
    }
}

/// A Python index, which may count from the end.
pub(super) fn position(index: isize, len: usize) -> PyResult<usize> {
    let position = if index < 0 {
        index.checked_add_unsigned(len)
    } else {
        Some(index)
    };
    let position = position
        .and_then(|position| usize::try_from(position).ok())
        .filter(|&position| position < len);
    position.ok_or_else(|| {
        PyIndexError::new_err(format!("index {index} is out of range for length {len}"))
    })
}
