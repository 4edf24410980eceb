//! The `Encoder` class and `encode_conversation`.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use crate::chat::json::Value;
use crate::chat::mask::MaskPolicy;
use crate::chat::templates::Template;
use crate::encoder;
use crate::encoder::{EncodeOptions, Input, batch};
use crate::error::{Error, ErrorKind};
use crate::python::arrays::load_numpy;
use crate::python::convert::{self, Kept, Refusal, Strings};
use crate::python::encoded::{EncodedBatch, EncodedConversation, Masked};
use crate::python::error::to_pyerr;
use crate::python::interrupt::Listener;
use crate::python::options::{ENCODE_OPTIONS, Options};
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
        given: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<EncodedConversation> {
        load_numpy(messages.py())?;
        let encoded = self.with_input(
            "encode_conversation",
            &[&ENCODE_OPTIONS[..], &["tools"]].concat(),
            messages,
            given,
            |core, input, tools, options| {
                let one = input.read(tools, |conversation| {
                    core.encode_conversation(conversation, options)
                })?;
                Ok((one, options.mask))
            },
        )?;
        let (one, policy) = encoded;
        Ok(EncodedConversation::new(
            messages.py(),
            one,
            self.masked(policy),
        ))
    }

    fn masked(&self, policy: MaskPolicy) -> Masked {
        Masked {
            template: self.core.template(),
            policy,
        }
    }

    /// Translates the arguments of `function`, and calls `work` with the GIL released.
    fn with_input<T: Send>(
        &self,
        function: &str,
        others: &[&str],
        messages: &Bound<'_, PyAny>,
        given: Option<&Bound<'_, PyDict>>,
        work: impl FnOnce(
            &encoder::Encoder,
            &Input<'_>,
            Option<&Value<'_>>,
            EncodeOptions<'_>,
        ) -> Result<T, Error>
        + Send,
    ) -> PyResult<T> {
        let py = messages.py();
        let kept = Kept::default();
        let strings = Strings::new(&kept);
        let options = Options::read(function, others, given, &strings)?;
        let input = convert::input(messages, &strings).map_err(|refusal| refusal.into_pyerr(py))?;
        let core = &*self.core;
        let encode = options.encode(py, core.template())?;
        let tools = options.tools.as_ref();
        py.detach(|| work(core, &input, tools, encode))
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

    #[pyo3(
        signature = (messages, **options),
        text_signature = "($self, messages, *, tools=None, add_generation_prompt=False, thinking=True, \
                          preserve_thinking=False, thinking_effort='max', tool_choice=None, response_format=None, tool_nulls='absent', \
                          mask='all_assistant_messages', on_empty='keep', control_strings='as_reference', \
                          reasoning='template', tool_call_ids='verbatim', max_length=None, \
                          truncate='turn', validate='warn')"
    )]
    fn encode_conversation(
        &self,
        messages: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<EncodedConversation> {
        self.encode(messages, options)
    }

    #[pyo3(
        signature = (conversations, **options),
        text_signature = "($self, conversations, *, add_generation_prompt=False, thinking=True, \
                          preserve_thinking=False, thinking_effort='max', tool_choice=None, response_format=None, tool_nulls='absent', \
                          mask='all_assistant_messages', on_empty='keep', control_strings='as_reference', \
                          reasoning='template', tool_call_ids='verbatim', max_length=None, \
                          truncate='turn', validate='warn', num_threads=None)"
    )]
    fn encode_batch(
        &self,
        conversations: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<EncodedBatch> {
        let py = conversations.py();
        load_numpy(py)?;
        let kept = Kept::default();
        let strings = Strings::new(&kept);
        let options = Options::read(
            "encode_batch",
            &[&ENCODE_OPTIONS[..], &["num_threads"]].concat(),
            options,
            &strings,
        )?;
        if let Some(error) = convert::no_list(conversations) {
            return Err(to_pyerr(py, &error.at("conversations")));
        }
        let items: Vec<Bound<'_, PyAny>> = conversations.try_iter()?.collect::<PyResult<_>>()?;
        let core = &*self.core;
        let encode = options.encode(py, core.template())?;

        let mut raised = None;
        let mut items_left = items.iter().enumerate();
        let mut read = || {
            let (index, item) = items_left.next()?;
            Some(
                convert::input(item, &strings).map_err(|refusal| match refusal {
                    Refusal::Fault(error) => error.at_index(index).at("conversations"),
                    Refusal::Raised(error) => {
                        raised = Some(error);
                        Error::new(ErrorKind::Interrupted, "stopped by a conversation")
                    }
                }),
            )
        };
        // Whether there is work for more threads than conversations is known when these are read.
        let mut ready = VecDeque::new();
        let read_all = || {
            while let Some(item) = read() {
                let has_failed = item.is_err();
                ready.push_back(item);
                if has_failed {
                    break;
                }
            }
            ready.iter().flatten().map(Input::text_len).sum()
        };
        let threads = batch::thread_count(options.num_threads, items.len(), read_all);
        let listener = Listener::new();
        let encoded = core.encode_batch_from(
            || ready.pop_front().or_else(&mut read),
            |work| py.detach(work),
            items.len(),
            threads,
            encode,
            &|| listener.heard_nothing(),
        );
        if let Some(raised) = listener.into_raised() {
            return Err(raised);
        }
        let batch = match (encoded, raised) {
            (Ok(batch), _) => batch,
            (Err(error), Some(raised)) if error.kind() == ErrorKind::Interrupted => {
                return Err(raised);
            }
            (Err(error), _) => return Err(to_pyerr(py, &error)),
        };
        Ok(EncodedBatch::new(py, batch, self.masked(encode.mask)))
    }

    #[pyo3(
        signature = (messages, **options),
        text_signature = "($self, messages, *, tools=None, add_generation_prompt=False, thinking=True, \
                          preserve_thinking=False, thinking_effort='max', tool_choice=None, response_format=None, tool_nulls='absent')"
    )]
    fn render(
        &self,
        messages: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<String> {
        self.with_input(
            "render",
            &["tools"],
            messages,
            options,
            |core, input, tools, options| {
                input.read(tools, |conversation| {
                    core.render(conversation, options.render)
                })
            },
        )
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
#[pyo3(
    signature = (messages, model="kimi-k2.5", **options),
    text_signature = "(messages, model='kimi-k2.5', *, tools=None, add_generation_prompt=False, thinking=True, \
                      preserve_thinking=False, thinking_effort='max', tool_choice=None, response_format=None, tool_nulls='absent', \
                      mask='all_assistant_messages', on_empty='keep', control_strings='as_reference', \
                          reasoning='template', tool_call_ids='verbatim', max_length=None, \
                          truncate='turn', validate='warn')"
)]
pub(super) fn encode_conversation(
    messages: &Bound<'_, PyAny>,
    model: &str,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<EncodedConversation> {
    let py = messages.py();
    let kept = || ENCODERS.lock().unwrap_or_else(PoisonError::into_inner);
    // One encoder for all spellings of a name.
    let model = Template::from_name(model).map_or(model, |template| template.name());
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
    encoder.get().encode(messages, options)
}
