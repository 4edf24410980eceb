//! Results as Python sees them: numpy arrays that own their memory, and views of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use numpy::{IntoPyArray as _, PyArray1, PyArrayMethods as _};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PySlice, PyTuple};

use crate::chat::mask::{MaskPolicy, MessageWeight};
use crate::chat::templates::Template;
use crate::encoder::encoded;
use crate::encoder::encoded::{IGNORE_INDEX, Notices};
use crate::error::Error;
use crate::python::error::to_pyerr;
use crate::python::findings::{self, Finding};
use crate::python::options::mask_policy;
use crate::python::spans::{Spans, position};
use crate::tokenizer::TokenId;

const KEYS: [&str; 2] = ["input_ids", "loss_mask"];

#[pyclass(frozen, mapping, module = "fasttok")]
pub(super) struct EncodedConversation {
    input_ids: Py<PyArray1<i32>>,
    loss_mask: Py<PyArray1<u8>>,
    spans: Spans,
    weights: Arc<[MessageWeight]>,
    masked: Masked,
    notices: Notices,
    findings: Vec<Finding>,
}

/// For which template a result was encoded, and by which policy masked.
#[derive(Clone, Copy)]
pub(super) struct Masked {
    pub template: Template,
    pub policy: MaskPolicy,
}

/// [`Masked`] as it is pickled.
type MaskedNames = (&'static str, String);

impl Masked {
    fn names(self) -> MaskedNames {
        (self.template.name(), self.policy.to_string())
    }

    fn from_names(py: Python<'_>, (template, policy): (String, String)) -> PyResult<Self> {
        let read = || {
            let template = Template::from_name(&template)?;
            let policy = MaskPolicy::parse(&policy, template)?;
            Ok(Self { template, policy })
        };
        read().map_err(|error: Error| to_pyerr(py, &error))
    }

    fn policy(self, py: Python<'_>, text: &str) -> PyResult<MaskPolicy> {
        mask_policy(text, self.template).map_err(|error| to_pyerr(py, &error))
    }
}

impl EncodedConversation {
    pub(super) fn new(py: Python<'_>, one: encoded::EncodedConversation, masked: Masked) -> Self {
        let spans = 0..one.spans.len();
        Self {
            input_ids: ids_array(py, one.input_ids),
            loss_mask: one.loss_mask.into_pyarray(py).unbind(),
            spans: Spans::new(one.spans.into(), spans),
            weights: one.message_weights.into(),
            masked,
            notices: one.notices,
            findings: Finding::list(&one.findings),
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
type NoticeCounts = (u32, u32, u32, u32);

fn notice_counts(notices: Notices) -> NoticeCounts {
    let Notices {
        control_strings,
        dropped_reasoning,
        hidden_tool_names,
        cut_tokens,
    } = notices;
    (
        control_strings,
        dropped_reasoning,
        hidden_tool_names,
        cut_tokens,
    )
}

fn from_notice_counts(
    (control_strings, dropped_reasoning, hidden_tool_names, cut_tokens): NoticeCounts,
) -> Notices {
    Notices {
        control_strings,
        dropped_reasoning,
        hidden_tool_names,
        cut_tokens,
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

    fn mask<'py>(&self, py: Python<'py>, policy: &str) -> PyResult<Bound<'py, PyArray1<u8>>> {
        let policy = self.masked.policy(py, policy)?;
        let mut mask = Vec::new();
        encoded::write_mask(policy, self.spans.as_slice(), &self.weights, &mut mask);
        Ok(mask.into_pyarray(py))
    }

    #[getter]
    fn loss_weight<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        let policy = self.masked.policy;
        let mut weights = Vec::new();
        encoded::write_weights(policy, self.spans.as_slice(), &self.weights, &mut weights);
        weights.into_pyarray(py)
    }

    #[getter]
    fn control_strings(&self) -> u32 {
        self.notices.control_strings
    }

    #[getter]
    fn dropped_reasoning(&self) -> u32 {
        self.notices.dropped_reasoning
    }

    #[getter]
    fn hidden_tool_names(&self) -> u32 {
        self.notices.hidden_tool_names
    }

    #[getter]
    fn cut_tokens(&self) -> u32 {
        self.notices.cut_tokens
    }

    #[getter]
    fn findings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        findings::tuple(py, &self.findings)
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
            this.weights.to_vec(),
            this.masked.names(),
            (notice_counts(this.notices), finding_fields(&this.findings)),
        );
        let rebuild = slf.get_type().getattr("_rebuild")?;
        Ok((rebuild, parts.into_pyobject(py)?.into_any()))
    }

    #[staticmethod]
    fn _rebuild(
        input_ids: Py<PyArray1<i32>>,
        loss_mask: Py<PyArray1<u8>>,
        spans: &Bound<'_, Spans>,
        weights: Vec<MessageWeight>,
        masked: (String, String),
        notes: (NoticeCounts, Vec<findings::Fields>),
    ) -> PyResult<Self> {
        let py = spans.py();
        Ok(Self {
            input_ids,
            loss_mask,
            spans: spans.get().clone(),
            weights: weights.into(),
            masked: Masked::from_names(py, masked)?,
            notices: from_notice_counts(notes.0),
            findings: from_finding_fields(notes.1)?,
        })
    }
}

fn finding_fields(list: &[Finding]) -> Vec<findings::Fields> {
    list.iter().map(findings::fields).collect()
}

fn from_finding_fields(list: Vec<findings::Fields>) -> PyResult<Vec<Finding>> {
    list.into_iter().map(findings::from_fields).collect()
}

/// What a batch keeps of each row, and the rows left out, as they are pickled.
type RowParts = (
    Vec<usize>,
    Vec<NoticeCounts>,
    Vec<Vec<findings::Fields>>,
    BTreeMap<String, u64>,
);

fn index_array(py: Python<'_>, indices: &[usize]) -> Py<PyArray1<i64>> {
    let index = |index: &usize| (*index as u64).cast_signed();
    let indices: Vec<i64> = indices.iter().map(index).collect();
    indices.into_pyarray(py).unbind()
}

#[pyclass(frozen, sequence, module = "fasttok")]
pub(super) struct EncodedBatch {
    input_ids: Py<PyArray1<i32>>,
    loss_mask: Py<PyArray1<u8>>,
    offsets: Py<PyArray1<i64>>,
    token_offsets: Vec<usize>,
    spans: Arc<[encoded::Span]>,
    span_offsets: Vec<usize>,
    weights: Vec<MessageWeight>,
    weight_offsets: Vec<usize>,
    masked: Masked,
    sources: Vec<usize>,
    notices: Vec<Notices>,
    findings: Vec<Vec<Finding>>,
    skipped: BTreeMap<String, u64>,
}

impl EncodedBatch {
    /// The spans and the message weights of each conversation.
    fn parts(&self) -> impl Iterator<Item = (&[encoded::Span], &[MessageWeight])> {
        let spans = self.span_offsets.windows(2);
        let weights = self.weight_offsets.windows(2);
        spans.zip(weights).map(|(spans, weights)| {
            (
                &self.spans[spans[0]..spans[1]],
                &self.weights[weights[0]..weights[1]],
            )
        })
    }

    pub(super) fn new(py: Python<'_>, batch: encoded::EncodedBatch, masked: Masked) -> Self {
        let mut skipped = BTreeMap::new();
        for reason in batch.left_out {
            *skipped.entry(reason.as_str().to_owned()).or_default() += 1;
        }
        Self {
            skipped,
            input_ids: ids_array(py, batch.input_ids),
            loss_mask: batch.loss_mask.into_pyarray(py).unbind(),
            offsets: index_array(py, &batch.offsets),
            token_offsets: batch.offsets,
            spans: batch.spans.into(),
            span_offsets: batch.span_offsets,
            weights: batch.message_weights,
            weight_offsets: batch.weight_offsets,
            masked,
            sources: batch.sources,
            notices: batch.notices,
            findings: batch
                .findings
                .iter()
                .map(|findings| Finding::list(findings))
                .collect(),
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

    fn mask<'py>(&self, py: Python<'py>, policy: &str) -> PyResult<Bound<'py, PyArray1<u8>>> {
        let policy = self.masked.policy(py, policy)?;
        let mut mask = Vec::new();
        for (spans, weights) in self.parts() {
            encoded::write_mask(policy, spans, weights, &mut mask);
        }
        Ok(mask.into_pyarray(py))
    }

    #[getter]
    fn loss_weight<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        let mut out = Vec::new();
        for (spans, weights) in self.parts() {
            encoded::write_weights(self.masked.policy, spans, weights, &mut out);
        }
        out.into_pyarray(py)
    }

    #[getter]
    fn sources(&self, py: Python<'_>) -> Py<PyArray1<i64>> {
        index_array(py, &self.sources)
    }

    #[getter]
    fn skipped(&self) -> BTreeMap<String, u64> {
        self.skipped.clone()
    }

    #[getter]
    fn finding_counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        findings::counts(py, &self.findings, &self.sources)
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
            weights: self.weights[self.weight_offsets[index]..self.weight_offsets[index + 1]]
                .into(),
            masked: self.masked,
            notices: self.notices[index],
            findings: self.findings[index].clone(),
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
        let notices: Vec<NoticeCounts> = this.notices.iter().copied().map(notice_counts).collect();
        let findings = this.findings.iter().map(|row| finding_fields(row));
        let findings: Vec<_> = findings.collect();
        let parts = (
            this.input_ids.bind(py),
            this.loss_mask.bind(py),
            &this.token_offsets,
            (
                Spans::new(Arc::clone(&this.spans), 0..this.spans.len()),
                &this.span_offsets,
            ),
            (&this.weights, &this.weight_offsets),
            this.masked.names(),
            (&this.sources, notices, findings, &this.skipped),
        );
        let rebuild = slf.get_type().getattr("_rebuild")?;
        Ok((rebuild, parts.into_pyobject(py)?.into_any()))
    }

    #[staticmethod]
    fn _rebuild(
        input_ids: Py<PyArray1<i32>>,
        loss_mask: Py<PyArray1<u8>>,
        token_offsets: Vec<usize>,
        spans: (Spans, Vec<usize>),
        weights: (Vec<MessageWeight>, Vec<usize>),
        masked: (String, String),
        rows: RowParts,
    ) -> PyResult<Self> {
        Python::attach(|py| {
            Ok(Self {
                input_ids,
                loss_mask,
                offsets: index_array(py, &token_offsets),
                token_offsets,
                spans: spans.0.as_slice().into(),
                span_offsets: spans.1,
                weights: weights.0,
                weight_offsets: weights.1,
                masked: Masked::from_names(py, masked)?,
                sources: rows.0,
                notices: rows.1.into_iter().map(from_notice_counts).collect(),
                findings: rows
                    .2
                    .into_iter()
                    .map(from_finding_fields)
                    .collect::<PyResult<_>>()?,
                skipped: rows.3,
            })
        })
    }
}
