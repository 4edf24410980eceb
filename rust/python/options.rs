//! The keyword arguments of the encoding functions, read in one place.
//!
//! Each function takes `**options` and shows its full signature as text, which the stubs are tested against.

use std::borrow::Cow;
use std::num::NonZero;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::chat::json::{Object, Value};
use crate::chat::mask::MaskPolicy;
use crate::chat::templates::{RenderOptions, Template};
use crate::encoder::length::{MaxLength, Truncate};
use crate::encoder::{ControlStrings, EncodeOptions, OnEmpty, Reasoning, ToolCallIds, Validate};
use crate::error::{Error, ErrorKind, Result};
use crate::python::convert::{self, Strings};
use crate::python::error::to_pyerr;

/// The names of the options of encoding that are not a template's.
pub(super) const ENCODE_OPTIONS: [&str; 8] = [
    "mask",
    "on_empty",
    "control_strings",
    "reasoning",
    "tool_call_ids",
    "max_length",
    "truncate",
    "validate",
];

/// Keyword arguments as they were given.
pub(super) struct Options<'a> {
    pub tools: Option<Value<'a>>,
    pub num_threads: Option<NonZero<usize>>,
    mask: Option<String>,
    on_empty: OnEmpty,
    control_strings: ControlStrings,
    reasoning: Reasoning,
    tool_call_ids: ToolCallIds,
    max_length: Option<usize>,
    truncate: Truncate,
    validate: Validate,
    switches: Object<'a>,
}

impl<'a> Options<'a> {
    /// Reads the keyword arguments of `function`, which takes those of a template and the `others` named.
    pub(super) fn read(
        function: &str,
        others: &[&str],
        given: Option<&Bound<'_, PyDict>>,
        strings: &Strings<'a>,
    ) -> PyResult<Self> {
        let mut tools = None;
        let mut num_threads = None;
        let mut mask = None;
        let mut on_empty = OnEmpty::default();
        let mut control_strings = ControlStrings::default();
        let mut reasoning = Reasoning::default();
        let mut tool_call_ids = ToolCallIds::default();
        let mut max_length = None;
        let mut truncate = Truncate::default();
        let mut validate = Validate::default();
        let mut switches: Vec<(Cow<'a, str>, Value<'a>)> = Vec::new();
        for (key, value) in given.into_iter().flatten() {
            let name: String = key.extract()?;
            let read = |name| {
                let argument = convert::argument(&value, strings, name);
                argument.map_err(|refusal| refusal.into_pyerr(value.py()))
            };
            let known = RenderOptions::NAMES;
            match known.into_iter().find(|known| **known == name) {
                Some(known) => switches.push((known.into(), read(known)?)),
                None if !others.contains(&&*name) => {
                    return Err(PyTypeError::new_err(format!(
                        "{function}() got an unexpected keyword argument '{name}'"
                    )));
                }
                None if value.is_none() => {}
                None if name == "num_threads" => {
                    num_threads = Some(convert::count(&value, "num_threads")?);
                }
                None if name == "mask" => mask = Some(value.extract()?),
                None if name == "on_empty" => {
                    on_empty = choice(&name, &value, OnEmpty::from_name, "keep, skip or raise")?;
                }
                None if name == "control_strings" => {
                    let known = "as_reference, text or error";
                    control_strings = choice(&name, &value, ControlStrings::from_name, known)?;
                }
                None if name == "reasoning" => {
                    let known = "template, preserve or expand";
                    reasoning = choice(&name, &value, Reasoning::from_name, known)?;
                }
                None if name == "tool_call_ids" => {
                    let known = "verbatim or canonical";
                    tool_call_ids = choice(&name, &value, ToolCallIds::from_name, known)?;
                }
                None if name == "max_length" => {
                    max_length = Some(convert::count(&value, "max_length")?.get());
                }
                None if name == "truncate" => {
                    let known = "turn, left_turn, token, drop or raise";
                    truncate = choice(&name, &value, Truncate::from_name, known)?;
                }
                None if name == "validate" => {
                    validate = choice(&name, &value, Validate::from_name, "warn, strict or off")?;
                }
                None => tools = Some(read("tools")?),
            }
        }
        Ok(Self {
            tools,
            num_threads,
            mask,
            on_empty,
            control_strings,
            reasoning,
            tool_call_ids,
            max_length,
            truncate,
            validate,
            switches: Object::from_entries(switches),
        })
    }

    /// What to render and what to train, for a model with `template`.
    pub(super) fn encode(&self, py: Python<'_>, template: Template) -> PyResult<EncodeOptions<'_>> {
        let read = || {
            Ok(EncodeOptions {
                render: RenderOptions::from_object(&self.switches)?,
                mask: match &self.mask {
                    Some(mask) => mask_policy(mask, template)?,
                    None => MaskPolicy::default(),
                },
                on_empty: self.on_empty,
                control_strings: self.control_strings,
                reasoning: self.reasoning,
                tool_call_ids: self.tool_call_ids,
                validate: self.validate,
                max_length: self.max_length.map(|tokens| MaxLength {
                    tokens,
                    truncate: self.truncate,
                }),
            })
        };
        read().map_err(|error: Error| to_pyerr(py, &error))
    }
}

/// A mask policy as an argument.
pub(super) fn mask_policy(text: &str, template: Template) -> Result<MaskPolicy> {
    MaskPolicy::parse(text, template).map_err(|error| error.at("mask"))
}

/// The argument `name`, one of a few words.
fn choice<T>(
    name: &str,
    value: &Bound<'_, PyAny>,
    read: fn(&str) -> Option<T>,
    known: &str,
) -> PyResult<T> {
    let word: String = value.extract()?;
    read(&word).ok_or_else(|| {
        let message = format!("expected {known}, found `{word}`");
        let error = Error::new(ErrorKind::Option, message).at(name.to_owned());
        to_pyerr(value.py(), &error)
    })
}
