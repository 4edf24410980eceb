//! Results as Python sees them: numpy arrays that own their memory, and views of them.

use std::sync::Arc;

use numpy::{IntoPyArray as _, PyArray1, PyArrayMethods as _};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PySlice, PyTuple};

use crate::encoder::encoded;
use crate::encoder::encoded::Notices;
use crate::python::spans::{Spans, position};
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
            spans: Spans::new(one.spans.into(), spans),
            notices: one.notices,
        }
    }

    /// The array under a key, which may be any object.
    fn array<'py>(&self, key: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
        let py = key.py();
        match key.extract::<&str>().ok()? {
            "input_ids" => Some(self.input_ids.bind(py).clone().into_any()),
            "loss_mask" => Some(self.loss_mask.bind(py).clone().into_any()),
            _ => None,
        }
    }
}

/// A live view, as the abstract classes of mappings give it.
fn view<'py>(
    mapping: &Bound<'py, EncodedConversation>,
    class: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let py = mapping.py();
    py.import("collections.abc")?
        .getattr(class)?
        .call1((mapping,))
}

/// Notices as they are pickled.
fn notice_pair(notices: Notices) -> (u32, u32) {
    (notices.control_strings, notices.dropped_reasoning)
}

fn from_notice_pair((control_strings, dropped_reasoning): (u32, u32)) -> Notices {
    Notices {
        control_strings,
        dropped_reasoning,
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

    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let array = self.array(key);
        array.ok_or_else(|| PyKeyError::new_err(key.clone().unbind()))
    }

    fn __len__(&self) -> usize {
        KEYS.len()
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> bool {
        self.array(key).is_some()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyTuple::new(py, KEYS)?.try_iter()
    }

    fn keys<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        view(slf, "KeysView")
    }

    fn values<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        view(slf, "ValuesView")
    }

    fn items<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        view(slf, "ItemsView")
    }

    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> Option<Bound<'py, PyAny>> {
        self.array(key).or(default)
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

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let (py, this) = (slf.py(), slf.get());
        let parts = (
            this.input_ids.bind(py),
            this.loss_mask.bind(py),
            this.spans.clone(),
            notice_pair(this.notices),
        );
        let rebuild = slf.get_type().getattr("_rebuild")?;
        Ok((rebuild, parts.into_pyobject(py)?.into_any()))
    }

    #[staticmethod]
    fn _rebuild(
        input_ids: Py<PyArray1<i32>>,
        loss_mask: Py<PyArray1<u8>>,
        spans: &Bound<'_, Spans>,
        notices: (u32, u32),
    ) -> Self {
        Self {
            input_ids,
            loss_mask,
            spans: spans.get().clone(),
            notices: from_notice_pair(notices),
        }
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
            spans: Spans::new(
                Arc::clone(&self.spans),
                self.span_offsets[index]..self.span_offsets[index + 1],
            ),
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

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let (py, this) = (slf.py(), slf.get());
        let notices: Vec<(u32, u32)> = this.notices.iter().copied().map(notice_pair).collect();
        let parts = (
            this.input_ids.bind(py),
            this.loss_mask.bind(py),
            this.offsets.bind(py),
            &this.token_offsets,
            Spans::new(Arc::clone(&this.spans), 0..this.spans.len()),
            &this.span_offsets,
            notices,
        );
        let rebuild = slf.get_type().getattr("_rebuild")?;
        Ok((rebuild, parts.into_pyobject(py)?.into_any()))
    }

    #[staticmethod]
    fn _rebuild(
        input_ids: Py<PyArray1<i32>>,
        loss_mask: Py<PyArray1<u8>>,
        offsets: Py<PyArray1<i64>>,
        token_offsets: Vec<usize>,
        spans: &Bound<'_, Spans>,
        span_offsets: Vec<usize>,
        notices: Vec<(u32, u32)>,
    ) -> Self {
        Self {
            input_ids,
            loss_mask,
            offsets,
            token_offsets,
            spans: spans.get().as_slice().into(),
            span_offsets,
            notices: notices.into_iter().map(from_notice_pair).collect(),
        }
    }
}
