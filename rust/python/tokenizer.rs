//! The `Tokenizer` class: an encoder's tokenizer, for text without a conversation.

use std::sync::Arc;

use numpy::{IntoPyArray as _, PyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::encoder::Encoder;
use crate::error::{Error, ErrorKind};
use crate::python::error::to_pyerr;
use crate::tokenizer::{self, TokenId};

#[pyclass(frozen, module = "fasttok")]
pub(super) struct Tokenizer(Arc<Encoder>);

impl Tokenizer {
    pub(super) fn new(encoder: Arc<Encoder>) -> Self {
        Self(encoder)
    }

    fn encode<'py>(
        &self,
        text: &Bound<'py, PyString>,
        encode: fn(&tokenizer::Tokenizer, &str) -> Vec<TokenId>,
    ) -> PyResult<Bound<'py, PyArray1<i32>>> {
        let py = text.py();
        let text = text.to_str().map_err(|_| {
            let message = "expected text that UTF-8 can hold, found half of a surrogate pair";
            to_pyerr(py, &Error::new(ErrorKind::Conversation, message).at("text"))
        })?;
        let ids = py.detach(|| encode(self.0.tokenizer(), text));
        Ok(ids
            .into_iter()
            .map(u32::cast_signed)
            .collect::<Vec<_>>()
            .into_pyarray(py))
    }
}

#[pymethods]
impl Tokenizer {
    fn encode_ordinary<'py>(
        &self,
        text: &Bound<'py, PyString>,
    ) -> PyResult<Bound<'py, PyArray1<i32>>> {
        self.encode(text, tokenizer::Tokenizer::encode_ordinary)
    }

    fn encode_with_special_tokens<'py>(
        &self,
        text: &Bound<'py, PyString>,
    ) -> PyResult<Bound<'py, PyArray1<i32>>> {
        self.encode(text, tokenizer::Tokenizer::encode_with_special_tokens)
    }

    fn encode_as_served<'py>(
        &self,
        text: &Bound<'py, PyString>,
    ) -> PyResult<Bound<'py, PyArray1<i32>>> {
        self.encode(text, tokenizer::Tokenizer::encode_as_served)
    }

    fn decode(&self, py: Python<'_>, ids: &Bound<'_, PyAny>) -> PyResult<String> {
        let ids = read_ids(ids)?;
        py.detach(|| self.0.tokenizer().decode(&ids))
            .map_err(|error| to_pyerr(py, &error))
    }

    fn decode_bytes<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let ids = read_ids(ids)?;
        let bytes = py
            .detach(|| self.0.tokenizer().decode_bytes(&ids))
            .map_err(|error| to_pyerr(py, &error))?;
        Ok(PyBytes::new(py, &bytes))
    }

    #[getter]
    fn special_tokens<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let names = PyDict::new(py);
        for (name, id) in self.0.tokenizer().special_tokens().named() {
            names.set_item(name, id)?;
        }
        Ok(names)
    }

    fn __len__(&self) -> usize {
        self.0.tokenizer().len()
    }

    fn __repr__(&self) -> String {
        format!("Tokenizer({} tokens)", self.__len__())
    }
}

/// Ids from an array or a list of integers; a negative one cannot be an id.
fn read_ids(ids: &Bound<'_, PyAny>) -> PyResult<Vec<TokenId>> {
    let py = ids.py();
    let read = |(index, id): (usize, PyResult<Bound<'_, PyAny>>)| {
        let id: i64 = id?.extract()?;
        TokenId::try_from(id).map_err(|_| {
            let message = format!("expected an id from 0 on, found {id}");
            to_pyerr(
                py,
                &Error::new(ErrorKind::Vocab, message)
                    .at_index(index)
                    .at("ids"),
            )
        })
    };
    ids.try_iter()?.enumerate().map(read).collect()
}
