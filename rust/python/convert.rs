//! Python objects to core values. Strings are borrowed: the value points into the Python string, which an arena keeps
//! alive while the GIL is released.

use std::borrow::Cow;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};
use typed_arena::Arena;

use crate::chat::json::{MAX_DEPTH, Object, Value};
use crate::encoder::Input;
use crate::error::{Error, ErrorKind, Result};

/// Keeps Python strings alive that values borrow from.
pub(super) type Strings = Arena<PyBackedStr>;

/// A conversation: a list of messages, a dict with `messages`, or either as JSON in `str` or `bytes`.
pub(super) fn input<'a>(object: &'a Bound<'_, PyAny>, strings: &'a Strings) -> Result<Input<'a>> {
    if let Some(text) = json(object, strings)? {
        return Ok(Input::Json(text));
    }
    let is_list = object.cast::<PyDict>().is_err();
    let value = value(object, strings, 0);
    Ok(Input::Value(value.map_err(|error| {
        if is_list { error.at("messages") } else { error }
    })?))
}

/// `tools` as an argument: a list of dicts, or JSON in `str` or `bytes`.
pub(super) fn tools<'a>(object: &'a Bound<'_, PyAny>, strings: &'a Strings) -> Result<Value<'a>> {
    let read = match json(object, strings) {
        Ok(Some(text)) => Value::from_json(text),
        Ok(None) => value(object, strings, 0),
        Err(error) => Err(error),
    };
    read.map_err(|error| error.at("tools"))
}

/// JSON text, if that is what the object is.
fn json<'a>(object: &'a Bound<'_, PyAny>, strings: &'a Strings) -> Result<Option<&'a [u8]>> {
    if let Ok(text) = object.cast::<PyBytes>() {
        return Ok(Some(text.as_bytes()));
    }
    match object.cast::<PyString>() {
        Ok(text) => Ok(Some(string(text, strings)?.as_bytes())),
        Err(_) => Ok(None),
    }
}

fn value<'a>(object: &Bound<'_, PyAny>, strings: &'a Strings, depth: usize) -> Result<Value<'a>> {
    if depth > MAX_DEPTH {
        return Err(fault(format!(
            "expected at most {MAX_DEPTH} levels of nesting, found more"
        )));
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(Value::String(Cow::Borrowed(string(text, strings)?)));
    }
    if let Ok(entries) = object.cast::<PyDict>() {
        let read =
            |(key, item): (Bound<'_, PyAny>, Bound<'_, PyAny>)| entry(&key, &item, strings, depth);
        return Ok(Value::Object(Object::from_entries(
            entries.iter().map(read).collect::<Result<_>>()?,
        )));
    }
    if let Ok(items) = object.cast::<PyList>() {
        return list(items.iter(), strings, depth);
    }
    if let Ok(items) = object.cast::<PyTuple>() {
        return list(items.iter(), strings, depth);
    }
    if object.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(value) = object.cast::<PyBool>() {
        return Ok(Value::Bool(value.is_true()));
    }
    if object.cast::<PyInt>().is_ok() {
        return match object.extract::<i64>() {
            Ok(value) => Ok(Value::Int(value)),
            Err(_) => Ok(Value::BigInt(printed(object)?)),
        };
    }
    if let Ok(value) = object.cast::<PyFloat>() {
        return Ok(Value::Float(value.value()));
    }
    // What pandas reads from Parquet holds numpy arrays and scalars.
    if let Ok(plain) = object.call_method0("tolist") {
        return value(&plain, strings, depth + 1);
    }
    if let Ok(mapping) = object.cast::<PyMapping>() {
        let items = mapping.items().map_err(|_| unreadable(object))?;
        let read = |pair: Bound<'_, PyAny>| {
            let (key, item) = pair
                .extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()
                .map_err(|_| unreadable(object))?;
            entry(&key, &item, strings, depth)
        };
        return Ok(Value::Object(Object::from_entries(
            items.iter().map(read).collect::<Result<_>>()?,
        )));
    }
    Err(unreadable(object))
}

fn entry<'a>(
    key: &Bound<'_, PyAny>,
    item: &Bound<'_, PyAny>,
    strings: &'a Strings,
    depth: usize,
) -> Result<(Cow<'a, str>, Value<'a>)> {
    let key = match key.cast::<PyString>() {
        Ok(key) => Cow::Borrowed(string(key, strings)?),
        Err(_) => Cow::Owned(coerced_key(key, strings)?),
    };
    match value(item, strings, depth + 1) {
        Ok(value) => Ok((key, value)),
        Err(error) => Err(error.at(key.into_owned())),
    }
}

/// `json.dumps` prints the keys null, true, false and numbers as strings, and so do the templates.
fn coerced_key(key: &Bound<'_, PyAny>, strings: &Strings) -> Result<String> {
    let key_value = value(key, strings, MAX_DEPTH)?;
    if matches!(key_value, Value::Array(_) | Value::Object(_)) {
        return Err(unreadable(key));
    }
    let mut text = String::new();
    key_value.write_json(crate::chat::json::Spacing::Spaced, &mut text);
    Ok(text)
}

fn list<'a, 'py>(
    items: impl Iterator<Item = Bound<'py, PyAny>>,
    strings: &'a Strings,
    depth: usize,
) -> Result<Value<'a>> {
    let read =
        |(index, item)| value(&item, strings, depth + 1).map_err(|error| error.at_index(index));
    Ok(Value::Array(
        items.enumerate().map(read).collect::<Result<_>>()?,
    ))
}

fn string<'a>(text: &Bound<'_, PyString>, strings: &'a Strings) -> Result<&'a str> {
    match PyBackedStr::try_from(text.clone()) {
        Ok(text) => Ok(strings.alloc(text)),
        Err(_) => Err(fault(
            "expected text that UTF-8 can hold, found half of a surrogate pair",
        )),
    }
}

fn printed(object: &Bound<'_, PyAny>) -> Result<String> {
    object
        .str()
        .map(|text| text.to_string())
        .map_err(|_| unreadable(object))
}

fn unreadable(object: &Bound<'_, PyAny>) -> Error {
    let kind = object
        .get_type()
        .name()
        .map_or_else(|_| "an object".to_owned(), |name| name.to_string());
    fault(format!(
        "expected a str, number, bool, None, list or dict, found `{kind}`"
    ))
}

fn fault(message: impl Into<Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::Conversation, message)
}
