//! `prepare`: files to files, with a Python callable told of the progress.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde_json::Value as Json;

use crate::chat::templates::RenderOptions;
use crate::dataset::shape::{Field, Shape};
use crate::dataset::target::{Format, Target};
use crate::dataset::{self, Begun, OnError, PrepareOptions, Prepared, Progress, compare};
use crate::encoder::EncodeOptions;
use crate::error::{Error, ErrorKind, Result};
use crate::python::convert::{self, Kept, Strings};
use crate::python::encoder::Encoder;
use crate::python::error::to_pyerr;
use crate::python::options::{ENCODE_OPTIONS, Options};

#[pyfunction]
#[pyo3(
    signature = (encoder, inputs, output, *, progress=None, **options),
    text_signature = "(encoder, inputs, output, *, shape=None, fields=None, format=None, target=None, shard_size=None, keep=(), \
                      on_error='skip', overwrite=False, add_generation_prompt=False, thinking=True, \
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
    progress: Option<Py<PyAny>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    let output = OutputOptions::take(options)?.read(inputs, output);
    let mut output = output.map_err(|error| to_pyerr(py, &error))?;
    let kept = Kept::default();
    let strings = Strings::new(&kept);
    let names = [&ENCODE_OPTIONS[..], &["num_threads"]].concat();
    let options = Options::read("prepare", &names, options, &strings)?;
    output.encode = options.encode(py, encoder.core().template())?;
    output.num_threads = options.num_threads;
    let core = encoder.core();
    let mut raised: Option<PyErr> = None;
    let outcome = py.detach(|| {
        dataset::prepare(core, &output, |done| {
            tell(progress.as_ref(), done).map_err(|error| {
                raised = Some(error);
                Error::new(ErrorKind::Interrupted, "stopped by the caller")
            })
        })
    });
    if let Some(error) = raised {
        return Err(error);
    }
    prepared_to_dict(py, &outcome.map_err(|error| to_pyerr(py, &error))?)
}

#[pyfunction]
#[pyo3(
    signature = (encoder, folder, *, against=None, num_threads=None, progress=None),
    text_signature = "(encoder, folder, *, against=None, num_threads=None, progress=None)"
)]
#[expect(
    clippy::needless_pass_by_value,
    reason = "pyo3 hands arguments over by value"
)]
pub(super) fn verify<'py>(
    py: Python<'py>,
    encoder: &Encoder,
    folder: PathBuf,
    against: Option<Vec<PathBuf>>,
    num_threads: Option<&Bound<'py, PyAny>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let num_threads = num_threads
        .map(|threads| convert::count(threads, "num_threads"))
        .transpose()?;
    let core = encoder.core();
    let manifest =
        dataset::verify::finished_manifest(&folder).map_err(|error| to_pyerr(py, &error))?;
    // The options that the folder was prepared with, read as those of a call are.
    let given = PyDict::new(py);
    for name in ENCODE_OPTIONS.iter().chain(&RenderOptions::NAMES) {
        if let Some(value) = manifest.options.get(*name) {
            given.set_item(name, json_to_py(py, value)?)?;
        }
    }
    let kept = Kept::default();
    let strings = Strings::new(&kept);
    let options = Options::read("verify", &ENCODE_OPTIONS, Some(&given), &strings)?;
    let options = PrepareOptions {
        inputs: against.clone().unwrap_or_default(),
        output: folder.clone(),
        shape: manifest
            .option("shape")
            .map(Shape::from_name)
            .transpose()
            .map_err(|error| to_pyerr(py, &error))?,
        fields: manifest.fields(),
        encode: options.encode(py, core.template())?,
        num_threads,
        ..PrepareOptions::default()
    };
    let mut raised: Option<PyErr> = None;
    let outcome = py.detach(|| {
        let mut report = |done: &Progress| {
            tell(progress.as_ref(), done).map_err(|error| {
                raised = Some(error);
                Error::new(ErrorKind::Interrupted, "stopped by the caller")
            })
        };
        let mut found = dataset::verify::verify(core, &folder, num_threads, |records| {
            report(&Progress {
                records,
                ..Progress::default()
            })
        })?;
        if against.is_some() {
            compare::compare(core, &options, &mut found, report)?;
        }
        Ok(found)
    });
    if let Some(error) = raised {
        return Err(error);
    }
    let found = outcome.map_err(|error| to_pyerr(py, &error))?;
    let dict = PyDict::new(py);
    dict.set_item("rows", found.rows)?;
    dict.set_item("tokens", found.tokens)?;
    dict.set_item("trained_tokens", found.trained_tokens)?;
    dict.set_item("untrained_rows", found.untrained_rows)?;
    dict.set_item("unjudged_rows", found.unjudged_rows)?;
    dict.set_item("problems", found.problems)?;
    let quoted = found.quoted.iter().map(|error| to_pyerr(py, error));
    let quoted: Vec<_> = quoted.map(|error| error.value(py).clone()).collect();
    dict.set_item("quoted", quoted)?;
    Ok(dict)
}

/// The keyword arguments that say how inputs are read and what is written.
#[derive(Default)]
struct OutputOptions {
    shape: Option<String>,
    fields: Option<BTreeMap<String, String>>,
    format: Option<String>,
    target: Option<String>,
    shard_size: Option<u64>,
    keep: Option<Vec<String>>,
    on_error: Option<String>,
    overwrite: Option<bool>,
}

impl OutputOptions {
    /// Takes them out of all that were given, and leaves those of encoding.
    fn take(given: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let Some(given) = given else {
            return Ok(Self::default());
        };
        Ok(Self {
            shape: taken(given, "shape")?,
            fields: taken(given, "fields")?,
            format: taken(given, "format")?,
            target: taken(given, "target")?,
            shard_size: taken(given, "shard_size")?,
            keep: taken(given, "keep")?,
            on_error: taken(given, "on_error")?,
            overwrite: taken(given, "overwrite")?,
        })
    }

    fn read<'v>(self, inputs: Vec<PathBuf>, output: PathBuf) -> Result<PrepareOptions<'v>> {
        let field = |(field, name): (String, String)| Ok((Field::from_name(&field)?, name));
        let fields = self.fields.into_iter().flatten().map(field);
        let shard_size = self.shard_size.map(|size| {
            NonZero::new(size).ok_or_else(|| {
                let message = "expected a number of bytes from 1, found 0";
                Error::new(ErrorKind::Option, message).at("shard_size")
            })
        });
        let on_error = self.on_error.map(|name| {
            OnError::from_name(&name).ok_or_else(|| {
                let message = format!("expected skip or raise, found {name:?}");
                Error::new(ErrorKind::Option, message).at("on_error")
            })
        });
        Ok(PrepareOptions {
            inputs,
            output,
            shape: self.shape.as_deref().map(Shape::from_name).transpose()?,
            fields: fields.collect::<Result<_>>()?,
            format: self.format.as_deref().map(Format::from_name).transpose()?,
            target: self.target.as_deref().map(Target::from_name).transpose()?,
            shard_size: shard_size.transpose()?,
            keep: self.keep.unwrap_or_default(),
            on_error: on_error.transpose()?.unwrap_or_default(),
            overwrite: self.overwrite.unwrap_or_default(),
            encode: EncodeOptions::default(),
            num_threads: None,
        })
    }
}

/// Takes a keyword argument out of those that were given. None is as good as not given.
fn taken<'py, T: FromPyObjectOwned<'py>>(
    given: &Bound<'py, PyDict>,
    name: &str,
) -> PyResult<Option<T>> {
    let Some(value) = given.get_item(name)? else {
        return Ok(None);
    };
    given.del_item(name)?;
    if value.is_none() {
        return Ok(None);
    }
    let value = value.extract().map_err(Into::into);
    let named =
        |error: PyErr| PyValueError::new_err(format!("{name}: {}", error.value(given.py())));
    value.map(Some).map_err(named)
}

fn prepared_to_dict<'py>(py: Python<'py>, prepared: &Prepared) -> PyResult<Bound<'py, PyDict>> {
    let Prepared {
        summary,
        begun,
        files,
    } = prepared;
    let dict = PyDict::new(py);
    if let Json::Object(report) = summary.report() {
        for (name, value) in report {
            dict.set_item(name, json_to_py(py, &value)?)?;
        }
    }
    let failures: Vec<PyErr> = summary
        .failures
        .iter()
        .map(|error| to_pyerr(py, error))
        .collect();
    dict.set_item(
        "failures",
        PyList::new(py, failures.iter().map(|error| error.value(py)))?,
    )?;
    dict.set_item("files", files)?;
    let resumed_records = match begun {
        Begun::New => 0,
        Begun::Resumed(records) => *records,
        Begun::Done => summary.records,
    };
    dict.set_item("resumed_records", resumed_records)?;
    dict.set_item("already_done", *begun == Begun::Done)?;
    Ok(dict)
}

fn json_to_py<'py>(py: Python<'py>, value: &Json) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Json::Null => py.None().into_bound(py),
        Json::Bool(value) => value.into_pyobject(py)?.to_owned().into_any(),
        Json::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(number), ..) => number.into_pyobject(py)?.into_any(),
            (_, Some(number), _) => number.into_pyobject(py)?.into_any(),
            (_, _, number) => number.into_pyobject(py)?,
        },
        Json::String(text) => text.into_pyobject(py)?.into_any(),
        Json::Array(items) => {
            let items = items.iter().map(|item| json_to_py(py, item));
            PyList::new(py, items.collect::<PyResult<Vec<_>>>()?)?.into_any()
        }
        Json::Object(entries) => {
            let dict = PyDict::new(py);
            for (key, value) in entries {
                dict.set_item(key, json_to_py(py, value)?)?;
            }
            dict.into_any()
        }
    })
}

/// Calls the callable and lets Python see Ctrl-C, which it cannot while native code runs.
fn tell(progress: Option<&Py<PyAny>>, done: &Progress) -> PyResult<()> {
    Python::attach(|py| {
        py.check_signals()?;
        if let Some(callable) = progress {
            callable.call1(
                py,
                (
                    done.records,
                    done.failed,
                    done.tokens,
                    done.bytes,
                    done.total_bytes,
                ),
            )?;
        }
        Ok(())
    })
}
