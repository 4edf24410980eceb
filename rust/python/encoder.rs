//! The `Encoder` class and `encode_conversation`.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::chat::templates::{RenderOptions, Template};
use crate::encoder;
use crate::encoder::Input;
use crate::error::Error;
use crate::python::convert::{self, Refusal, Strings};
use crate::python::encoded::{EncodedBatch, EncodedConversation};
use crate::python::error::to_pyerr;
use crate::python::tokenizer::Tokenizer;

/// What `Encoder(…)` was called with.
type Arguments = (String, Option<String>);

#[pyclass(frozen, module = "fasttok")]
pub(super) struct Encoder {
    core: Arc<encoder::Encoder>,
    model: String,
    template: Option<String>,
}

impl Encoder {
    pub(super) fn core(&self) -> &Arc<encoder::Encoder> {
        &self.core
    }

    fn encode(
        &self,
        messages: &Bound<'_, PyAny>,
        tools: Option<&Bound<'_, PyAny>>,
        options: RenderOptions,
    ) -> PyResult<EncodedConversation> {
        let py = messages.py();
        let encoded = self.with_input(messages, tools, |core, input, tools| {
            core.encode_input(input, tools, options, &mut core.checkout())
        })?;
        Ok(EncodedConversation::new(py, encoded))
    }

    /// Translates the arguments, and calls `work` with the GIL released.
    fn with_input<T: Send>(
        &self,
        messages: &Bound<'_, PyAny>,
        tools: Option<&Bound<'_, PyAny>>,
        work: impl FnOnce(
            &encoder::Encoder,
            &Input<'_>,
            Option<&crate::chat::json::Value<'_>>,
        ) -> Result<T, Error>
        + Send,
    ) -> PyResult<T> {
        let py = messages.py();
        let refuse = |refusal: Refusal| refusal.into_pyerr(py);
        let strings = Strings::new();
        let input = convert::input(messages, &strings).map_err(refuse)?;
        let tools = tools
            .map(|tools| convert::tools(tools, &strings))
            .transpose()
            .map_err(refuse)?;
        let core = &*self.core;
        py.detach(|| work(core, &input, tools.as_ref()))
            .map_err(|error| to_pyerr(py, &error))
    }
}

#[pymethods]
impl Encoder {
    #[new]
    #[pyo3(signature = (model="kimi-k2.5", *, template=None))]
    fn new(py: Python<'_>, model: &str, template: Option<&str>) -> PyResult<Self> {
        let load = || {
            let template = template.map(Template::from_name).transpose();
            encoder::Encoder::from_model(model, template.map_err(|error| error.at("template"))?)
        };
        let core = py.detach(load).map_err(|error| to_pyerr(py, &error))?;
        Ok(Self {
            core: Arc::new(core),
            model: model.to_owned(),
            template: template.map(str::to_owned),
        })
    }

    #[getter]
    fn model(&self) -> &str {
        &self.model
    }

    #[getter]
    fn template(&self) -> &'static str {
        self.core.template().name()
    }

    #[getter]
    fn tokenizer(slf: &Bound<'_, Self>) -> Tokenizer {
        Tokenizer::new(slf.clone().unbind())
    }

    #[pyo3(signature = (messages, *, tools=None, add_generation_prompt=false, thinking=true, preserve_thinking=false))]
    fn encode_conversation(
        &self,
        messages: &Bound<'_, PyAny>,
        tools: Option<&Bound<'_, PyAny>>,
        add_generation_prompt: bool,
        thinking: bool,
        preserve_thinking: bool,
    ) -> PyResult<EncodedConversation> {
        self.encode(
            messages,
            tools,
            RenderOptions {
                add_generation_prompt,
                thinking,
                preserve_thinking,
            },
        )
    }

    #[pyo3(signature = (
        conversations, *, add_generation_prompt=false, thinking=true, preserve_thinking=false, num_threads=None
    ))]
    fn encode_batch(
        &self,
        conversations: &Bound<'_, PyAny>,
        add_generation_prompt: bool,
        thinking: bool,
        preserve_thinking: bool,
        num_threads: Option<i64>,
    ) -> PyResult<EncodedBatch> {
        let py = conversations.py();
        let num_threads =
            convert::num_threads(num_threads).map_err(|error| to_pyerr(py, &error))?;
        let options = RenderOptions {
            add_generation_prompt,
            thinking,
            preserve_thinking,
        };
        let items: Vec<Bound<'_, PyAny>> = conversations.try_iter()?.collect::<PyResult<_>>()?;
        let strings = Strings::new();
        let read = |(index, item)| {
            convert::input(item, &strings)
                .map_err(|refusal: Refusal| refusal.at_index(index, "conversations").into_pyerr(py))
        };
        let inputs: Vec<Input<'_>> = items
            .iter()
            .enumerate()
            .map(read)
            .collect::<PyResult<_>>()?;
        let core = &*self.core;
        let batch = py.detach(|| core.encode_batch(&inputs, options, num_threads));
        Ok(EncodedBatch::new(
            py,
            batch.map_err(|error| to_pyerr(py, &error))?,
        ))
    }

    #[pyo3(signature = (messages, *, tools=None, add_generation_prompt=false, thinking=true, preserve_thinking=false))]
    fn render(
        &self,
        messages: &Bound<'_, PyAny>,
        tools: Option<&Bound<'_, PyAny>>,
        add_generation_prompt: bool,
        thinking: bool,
        preserve_thinking: bool,
    ) -> PyResult<String> {
        let options = RenderOptions {
            add_generation_prompt,
            thinking,
            preserve_thinking,
        };
        self.with_input(messages, tools, |core, input, tools| {
            input.read(tools, |conversation| core.render(conversation, options))
        })
    }

    fn __repr__(&self) -> String {
        format!("Encoder('{}', template='{}')", self.model, self.template())
    }

    /// Workers get the encoder by name and load it anew.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Arguments)> {
        let this = slf.get();
        let rebuild = slf.get_type().getattr("_rebuild")?;
        Ok((rebuild, (this.model.clone(), this.template.clone())))
    }

    #[classmethod]
    fn _rebuild(class: &Bound<'_, PyType>, model: &str, template: Option<&str>) -> PyResult<Self> {
        Self::new(class.py(), model, template)
    }
}

/// The encoder of each model that `encode_conversation` was asked for.
static ENCODERS: LazyLock<Mutex<HashMap<String, Py<Encoder>>>> = LazyLock::new(Mutex::default);

#[pyfunction]
#[pyo3(signature = (
    messages, model="kimi-k2.5", *, tools=None, add_generation_prompt=false, thinking=true, preserve_thinking=false
))]
pub(super) fn encode_conversation(
    messages: &Bound<'_, PyAny>,
    model: &str,
    tools: Option<&Bound<'_, PyAny>>,
    add_generation_prompt: bool,
    thinking: bool,
    preserve_thinking: bool,
) -> PyResult<EncodedConversation> {
    let py = messages.py();
    let kept = || ENCODERS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = kept().get(model).map(|encoder| encoder.clone_ref(py));
    // Loaded without the lock, which must not be held while another thread may need the GIL.
    let encoder = if let Some(encoder) = known {
        encoder
    } else {
        let loaded = Py::new(py, Encoder::new(py, model, None)?)?;
        kept()
            .entry(model.to_owned())
            .or_insert(loaded)
            .clone_ref(py)
    };
    encoder.get().encode(
        messages,
        tools,
        RenderOptions {
            add_generation_prompt,
            thinking,
            preserve_thinking,
        },
    )
}
