//! The `Tokenizer` class: an encoder's tokenizer, for text without a conversation.

use numpy::{IntoPyArray as _, PyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyString};

use crate::error::{Error, ErrorKind};
use crate::python::arrays::load_numpy;
use crate::python::encoder::Encoder;
use crate::python::error::to_pyerr;
use crate::tokenizer::{self, Scratch, TokenId};

#[pyclass(frozen, module = "fasttok")]
pub(super) struct Tokenizer(Py<Encoder>);

type Ids<'py> = Bound<'py, PyArray1<i32>>;

impl Tokenizer {
    pub(super) fn new(encoder: Py<Encoder>) -> Self {
        Self(encoder)
    }

    fn core(&self) -> &tokenizer::Tokenizer {
        self.0.get().core().tokenizer()
    }

    fn encode<'py, T>(
        &self,
        text: &Bound<'py, PyString>,
        encode: fn(&tokenizer::Tokenizer, &str, &mut Scratch, &mut Vec<TokenId>) -> T,
    ) -> PyResult<Ids<'py>> {
        let py = text.py();
        let text = text.to_str().map_err(|_| {
            let message = "expected text that UTF-8 can hold, found half of a surrogate pair";
            to_pyerr(py, &Error::new(ErrorKind::Conversation, message).at("text"))
        })?;
        let encoder = self.0.get().core();
        load_numpy(py)?;
        let ids = py.detach(|| {
            let mut ids = Vec::new();
            let mut scratch = encoder.checkout();
            encode(encoder.tokenizer(), text, scratch.tokenizer(), &mut ids);
            ids
        });
        let ids: Vec<i32> = ids.into_iter().map(u32::cast_signed).collect();
        Ok(ids.into_pyarray(py))
    }
}

#[pymethods]
impl Tokenizer {
    fn encode_ordinary<'py>(&self, text: &Bound<'py, PyString>) -> PyResult<Ids<'py>> {
        self.encode(text, tokenizer::Tokenizer::encode_ordinary_into)
    }

    fn encode_with_special_tokens<'py>(&self, text: &Bound<'py, PyString>) -> PyResult<Ids<'py>> {
        self.encode(text, tokenizer::Tokenizer::encode_with_special_tokens_into)
    }

    fn encode_as_served<'py>(&self, text: &Bound<'py, PyString>) -> PyResult<Ids<'py>> {
        self.encode(text, tokenizer::Tokenizer::encode_as_served_into)
    }

    fn decode(&self, py: Python<'_>, ids: &Bound<'_, PyAny>) -> PyResult<String> {
        let ids = self.read_ids(ids)?;
        py.detach(|| self.core().decode(&ids))
            .map_err(|error| to_pyerr(py, &error))
    }

    fn decode_bytes<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let ids = self.read_ids(ids)?;
        let bytes = py
            .detach(|| self.core().decode_bytes(&ids))
            .map_err(|error| to_pyerr(py, &error))?;
        Ok(PyBytes::new(py, &bytes))
    }

    #[getter]
    fn special_tokens<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let names = PyDict::new(py);
        for (name, id) in self.core().special_tokens().named() {
            names.set_item(name, id)?;
        }
        Ok(names)
    }

    fn __len__(&self) -> usize {
        self.core().len()
    }

    fn __repr__(&self) -> String {
        format!("Tokenizer({} tokens)", self.__len__())
    }

    /// Workers get the tokenizer from the encoder, which they load anew.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, PickledTokenizer)> {
        let getattr = py.import("builtins")?.getattr("getattr")?;
        Ok((getattr, (self.0.clone_ref(py), "tokenizer")))
    }
}

/// The arguments of `getattr` that give the tokenizer again.
type PickledTokenizer = (Py<Encoder>, &'static str);

impl Tokenizer {
    /// Ids from an array or a list of integers.
    fn read_ids(&self, ids: &Bound<'_, PyAny>) -> PyResult<Vec<TokenId>> {
        let py = ids.py();
        let read = |(index, id): (usize, PyResult<Bound<'_, PyAny>>)| {
            let id = id?;
            if let Ok(id) = id.extract::<TokenId>() {
                return Ok(id);
            }
            let as_index = py.import("operator")?.getattr("index")?;
            let id = as_index.call1((id,))?.cast_into::<PyInt>()?;
            let error = self.core().not_an_id(&id);
            Err(to_pyerr(py, &error.at_index(index).at("ids")))
        };
        ids.try_iter()?.enumerate().map(read).collect()
    }
}
