//! Results as Python sees them: numpy arrays that own their memory, and views of them.

use std::ops::Range;
use std::sync::Arc;

use numpy::{IntoPyArray as _, PyArray1, PyArrayMethods as _};
use pyo3::exceptions::{PyIndexError, PyKeyError};
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PySlice, PyTuple};

use crate::encoder::encoded;
use crate::encoder::encoded::Notices;
use crate::tokenizer::TokenId;

/// The label of a token that does not train: the default `ignore_index` of PyTorch's cross entropy.
const IGNORE_INDEX: i64 = -100;

const KEYS: [&str; 2] = ["input_ids", "loss_mask"];

#[pyclass(frozen, mapping, module = "fasttok")]
pub(super) struct EncodedConversation {
    input_ids: Py<PyArray1<i32>>,
    loss_mask: Py<PyArray1<u8>>,
    spans: Spans,
    notices: Notices,
}

impl EncodedConversation {
    pub(super) fn new(py: Python<'_>, one: encoded::EncodedConversation) -> Self {
        let spans = 0..one.spans.len();
        Self {
            input_ids: ids_array(py, one.input_ids),
            loss_mask: one.loss_mask.into_pyarray(py).unbind(),
            spans: Spans {
                all: one.spans.into(),
                range: spans,
            },
            notices: one.notices,
        }
    }
}

fn ids_array(py: Python<'_>, ids: Vec<TokenId>) -> Py<PyArray1<i32>> {
    // Same size and alignment, so the vector is converted in place.
    let ids: Vec<i32> = ids.into_iter().map(u32::cast_signed).collect();
    ids.into_pyarray(py).unbind()
}

#[pymethods]
#[expect(
    clippy::unused_self,
    reason = "methods of a Python mapping whose keys are fixed"
)]
impl EncodedConversation {
    #[getter]
    fn input_ids(&self, py: Python<'_>) -> Py<PyArray1<i32>> {
        self.input_ids.clone_ref(py)
    }

    #[getter]
    fn loss_mask(&self, py: Python<'_>) -> Py<PyArray1<u8>> {
        self.loss_mask.clone_ref(py)
    }

    #[getter]
    fn labels(&self, py: Python<'_>) -> PyResult<Py<PyArray1<i64>>> {
        let ids = self.input_ids.bind(py).try_readonly()?;
        let mask = self.loss_mask.bind(py).try_readonly()?;
        let pairs = ids.as_array().into_iter().zip(mask.as_array());
        let labels: Vec<i64> = pairs
            .map(|(&id, &trains)| {
                if trains == 0 {
                    IGNORE_INDEX
                } else {
                    i64::from(id)
                }
            })
            .collect();
        Ok(labels.into_pyarray(py).unbind())
    }

    #[getter]
    fn spans(&self) -> Spans {
        self.spans.clone()
    }

    #[getter]
    fn control_strings(&self) -> u32 {
        self.notices.control_strings
    }

    #[getter]
    fn dropped_reasoning(&self) -> u32 {
        self.notices.dropped_reasoning
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: &str) -> PyResult<Bound<'py, PyAny>> {
        match key {
            "input_ids" => Ok(self.input_ids.bind(py).clone().into_any()),
            "loss_mask" => Ok(self.loss_mask.bind(py).clone().into_any()),
            _ => Err(PyKeyError::new_err(key.to_owned())),
        }
    }

    fn __len__(&self) -> usize {
        KEYS.len()
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> bool {
        key.extract::<&str>().is_ok_and(|key| KEYS.contains(&key))
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.keys(py)?.try_iter()
    }

    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, KEYS)
    }

    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(
            py,
            [
                self.input_ids.bind(py).as_any(),
                self.loss_mask.bind(py).as_any(),
            ],
        )
    }

    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(
            py,
            [
                (KEYS[0], self.input_ids.bind(py).as_any()),
                (KEYS[1], self.loss_mask.bind(py).as_any()),
            ],
        )
    }

    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> Option<Bound<'py, PyAny>> {
        self.__getitem__(py, key).ok().or(default)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mask = self.loss_mask.bind(py).try_readonly()?;
        let trained = mask
            .as_array()
            .iter()
            .filter(|&&trains| trains != 0)
            .count();
        let tokens = mask.as_array().len();
        Ok(format!(
            "EncodedConversation({tokens} tokens, {trained} trained, {} spans)",
            self.spans.__len__()
        ))
    }
}

#[pyclass(frozen, sequence, module = "fasttok")]
pub(super) struct EncodedBatch {
    input_ids: Py<PyArray1<i32>>,
    loss_mask: Py<PyArray1<u8>>,
    offsets: Py<PyArray1<i64>>,
    token_offsets: Vec<usize>,
    spans: Arc<[encoded::Span]>,
    span_offsets: Vec<usize>,
    notices: Vec<Notices>,
}

impl EncodedBatch {
    pub(super) fn new(py: Python<'_>, batch: encoded::EncodedBatch) -> Self {
        let offsets: Vec<i64> = batch
            .offsets
            .iter()
            .map(|&offset| (offset as u64).cast_signed())
            .collect();
        Self {
            input_ids: ids_array(py, batch.input_ids),
            loss_mask: batch.loss_mask.into_pyarray(py).unbind(),
            offsets: offsets.into_pyarray(py).unbind(),
            token_offsets: batch.offsets,
            spans: batch.spans.into(),
            span_offsets: batch.span_offsets,
            notices: batch.notices,
        }
    }
}

#[pymethods]
impl EncodedBatch {
    #[getter]
    fn input_ids(&self, py: Python<'_>) -> Py<PyArray1<i32>> {
        self.input_ids.clone_ref(py)
    }

    #[getter]
    fn loss_mask(&self, py: Python<'_>) -> Py<PyArray1<u8>> {
        self.loss_mask.clone_ref(py)
    }

    #[getter]
    fn offsets(&self, py: Python<'_>) -> Py<PyArray1<i64>> {
        self.offsets.clone_ref(py)
    }

    fn __len__(&self) -> usize {
        self.notices.len()
    }

    fn __getitem__(&self, py: Python<'_>, index: isize) -> PyResult<EncodedConversation> {
        let index = position(index, self.notices.len())?;
        let tokens = PySlice::new(
            py,
            self.token_offsets[index].cast_signed(),
            self.token_offsets[index + 1].cast_signed(),
            1,
        );
        Ok(EncodedConversation {
            input_ids: self
                .input_ids
                .bind(py)
                .get_item(&tokens)?
                .cast_into()?
                .unbind(),
            loss_mask: self
                .loss_mask
                .bind(py)
                .get_item(&tokens)?
                .cast_into()?
                .unbind(),
            spans: Spans {
                all: Arc::clone(&self.spans),
                range: self.span_offsets[index]..self.span_offsets[index + 1],
            },
            notices: self.notices[index],
        })
    }

    fn __repr__(&self) -> String {
        let tokens = self.token_offsets.last().copied().unwrap_or(0);
        format!(
            "EncodedBatch({} conversations, {tokens} tokens)",
            self.notices.len()
        )
    }
}

#[pyclass(frozen, sequence, module = "fasttok")]
#[derive(Clone)]
pub(super) struct Spans {
    all: Arc<[encoded::Span]>,
    range: Range<usize>,
}

#[pymethods]
impl Spans {
    fn __len__(&self) -> usize {
        self.range.len()
    }

    fn __getitem__(&self, index: isize) -> PyResult<Span> {
        Ok(Span(
            self.all[self.range.start + position(index, self.range.len())?],
        ))
    }

    fn __repr__(&self) -> String {
        let spans: Vec<String> = self.all[self.range.clone()]
            .iter()
            .map(|&span| Span(span).__repr__())
            .collect();
        format!("Spans([{}])", spans.join(", "))
    }
}

#[pyclass(frozen, eq, module = "fasttok")]
#[derive(PartialEq)]
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

    fn __repr__(&self) -> String {
        let message_index = self
            .message_index()
            .map_or_else(|| "None".to_owned(), |index| index.to_string());
        let sampled = if self.sampled() { "True" } else { "False" };
        format!(
            "Span(role='{}', part='{}', message_index={message_index}, start={}, end={}, sampled={sampled})",
            self.role(),
            self.part(),
            self.start(),
            self.end()
        )
    }
}

/// A Python index, which may count from the end.
fn position(index: isize, len: usize) -> PyResult<usize> {
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
