//! `prepare`: files to files, with a Python callable told of the progress.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::dataset::shape::{Field, Layout, Shape};
use crate::dataset::{self, PrepareOptions, Progress};
use crate::error::{Error, ErrorKind, Result};
use crate::python::convert::{Kept, Strings};
use crate::python::encoder::Encoder;
use crate::python::error::to_pyerr;
use crate::python::options::{ENCODE_OPTIONS, Options};

#[pyfunction]
#[pyo3(
    signature = (encoder, inputs, output, *, shape=None, fields=None, progress=None, **options),
    text_signature = "(encoder, inputs, output, *, shape=None, fields=None, add_generation_prompt=False, thinking=True, \
                      preserve_thinking=False, thinking_effort='max', tool_choice=None, response_format=None, tool_nulls='absent', \
                      mask='all_assistant_messages', on_empty='keep', control_strings='as_reference', reasoning='template', tool_call_ids='verbatim', max_length=None, \
                          truncate='turn', validate='warn', num_threads=None, progress=None)"
)]
#[expect(
    clippy::needless_pass_by_value,
    reason = "pyo3 hands arguments over by value"
)]
pub(super) fn prepare<'py>(
    py: Python<'py>,
    encoder: &Encoder,
    inputs: Vec<PathBuf>,
    output: PathBuf,
    shape: Option<&str>,
    fields: Option<BTreeMap<String, String>>,
    progress: Option<Py<PyAny>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    let kept = Kept::default();
    let strings = Strings::new(&kept);
    let options = Options::read(
        "prepare",
        &[&ENCODE_OPTIONS[..], &["num_threads"]].concat(),
        options,
        &strings,
    )?;
    let layout = || {
        let field = |(field, name): (String, String)| Ok((Field::from_name(&field)?, name));
        let fields = fields.into_iter().flatten().map(field);
        let fields = fields.collect::<Result<_>>()?;
        Ok((shape.map(Shape::from_name).transpose()?, fields))
    };
    let (shape, fields) = layout().map_err(|error: Error| to_pyerr(py, &error))?;
    let options = PrepareOptions {
        inputs,
        output,
        shape,
        fields,
        encode: options.encode(py, encoder.core().template())?,
        num_threads: options.num_threads,
    };
    let core = encoder.core();
    let mut raised: Option<PyErr> = None;
    let outcome = py.detach(|| {
        dataset::prepare(core, &options, |done| {
            tell(progress.as_ref(), done).map_err(|error| {
                raised = Some(error);
                Error::new(ErrorKind::Interrupted, "stopped by the caller")
            })
        })
    });
    if let Some(error) = raised {
        return Err(error);
    }
    let summary = outcome.map_err(|error| to_pyerr(py, &error))?;
    let dict = PyDict::new(py);
    dict.set_item("records", summary.records)?;
    let layouts = summary
        .layouts
        .iter()
        .map(|layout| layout_to_dict(py, layout));
    dict.set_item("layouts", layouts.collect::<PyResult<Vec<_>>>()?)?;
    dict.set_item("written", summary.written)?;
    dict.set_item("rows", summary.rows)?;
    dict.set_item("skipped", summary.skipped)?;
    dict.set_item("skipped_rows", summary.skipped_rows)?;
    dict.set_item("failed", summary.failed)?;
    let failures: Vec<PyErr> = summary
        .failures
        .iter()
        .map(|error| to_pyerr(py, error))
        .collect();
    dict.set_item(
        "failures",
        PyList::new(py, failures.iter().map(|error| error.value(py)))?,
    )?;
    dict.set_item("tokens", summary.tokens)?;
    dict.set_item("trained_tokens", summary.trained_tokens)?;
    dict.set_item("untrained_records", summary.untrained_records)?;
    dict.set_item("cut_records", summary.cut_records)?;
    dict.set_item("hidden_tool_name_records", summary.hidden_tool_name_records)?;
    dict.set_item(
        "dropped_reasoning_records",
        summary.dropped_reasoning_records,
    )?;
    dict.set_item("control_string_records", summary.control_string_records)?;
    dict.set_item("findings", summary.findings)?;
    Ok(dict)
}

fn layout_to_dict<'py>(
    py: Python<'py>,
    (layout, files): &(Layout, u64),
) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    for (field, name) in &layout.names {
        fields.set_item(field.as_str(), name)?;
    }
    let dict = PyDict::new(py);
    dict.set_item("shape", layout.shape.as_str())?;
    dict.set_item("fields", fields)?;
    dict.set_item("files", files)?;
    Ok(dict)
}

/// Calls the callable and lets Python see Ctrl-C, which it cannot while native code runs.
fn tell(progress: Option<&Py<PyAny>>, done: &Progress) -> PyResult<()> {
    Python::attach(|py| {
        py.check_signals()?;
        if let Some(callable) = progress {
            callable.call1(
                py,
                (done.records, done.tokens, done.bytes, done.total_bytes),
            )?;
        }
        Ok(())
    })
}
