//! The keyword arguments of the encoding functions, read in one place.
//!
//! Each function takes `**options` and shows its full signature as text, which the stubs are tested against.

use std::borrow::Cow;
use std::num::NonZero;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::chat::json::{Object, Value};
use crate::chat::templates::RenderOptions;
use crate::python::convert::{self, Strings};
use crate::python::error::to_pyerr;

/// Keyword arguments as they were given.
pub(super) struct Options<'a> {
    pub tools: Option<Value<'a>>,
    pub num_threads: Option<NonZero<usize>>,
    switches: Object<'a>,
}

impl<'a> Options<'a> {
    /// Reads the keyword arguments of `function`, which takes those of a template and the `others` named.
    pub(super) fn read(
        function: &str,
        others: &[&str],
        given: Option<&Bound<'_, PyDict>>,
        strings: &'a Strings,
    ) -> PyResult<Self> {
        let mut tools = None;
        let mut num_threads = None;
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
                None if name == "num_threads" => num_threads = convert::num_threads(&value)?,
                None if !value.is_none() => tools = Some(read("tools")?),
                None => {}
            }
        }
        Ok(Self {
            tools,
            num_threads,
            switches: Object::from_entries(switches),
        })
    }

    /// The switches of the template.
    pub(super) fn render(&self, py: Python<'_>) -> PyResult<RenderOptions<'_>> {
        RenderOptions::from_object(&self.switches).map_err(|error| to_pyerr(py, &error))
    }
}
