//! Python objects to core values. Strings are borrowed: the value points into the Python string, which an arena keeps
//! alive while the GIL is released.

use std::borrow::Cow;
use std::cell::RefCell;
use std::num::NonZero;

use pyo3::exceptions::PyOverflowError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};
use rustc_hash::FxHashMap;
use typed_arena::Arena;

use crate::chat::conversation;
use crate::chat::json::{MAX_DEPTH, Object, Spacing, Value};
use crate::encoder::Input;
use crate::error::{Error, ErrorKind};
use crate::python::error::to_pyerr;

/// Keeps Python strings alive that values borrow from.
#[derive(Default)]
pub(super) struct Kept {
    texts: Arena<PyBackedStr>,
    bytes: Arena<PyBackedBytes>,
}

/// The strings of Python objects.
pub(super) struct Strings<'a> {
    kept: &'a Kept,
    /// Keys by the address of their object, which stays the key's as long as it is held here. The keys of all messages
    /// are the same few objects.
    keys: RefCell<FxHashMap<usize, (Py<PyString>, &'a str)>>,
}

/// More keys than conversations have; tool arguments may have any number.
const MOST_KEYS: usize = 256;

impl<'a> Strings<'a> {
    pub(super) fn new(kept: &'a Kept) -> Self {
        Self {
            kept,
            keys: RefCell::default(),
        }
    }

    fn key(&self, key: &Bound<'_, PyString>) -> Read<&'a str> {
        let address = key.as_ptr() as usize;
        if let Some((_, known)) = self.keys.borrow().get(&address) {
            return Ok(known);
        }
        let text = self.text(key)?;
        let mut keys = self.keys.borrow_mut();
        if keys.len() < MOST_KEYS {
            keys.insert(address, (key.clone().unbind(), text));
        }
        Ok(text)
    }

    fn text(&self, text: &Bound<'_, PyString>) -> Read<&'a str> {
        match PyBackedStr::try_from(text.clone()) {
            Ok(text) => Ok(self.kept.texts.alloc(text)),
            Err(_) => Err(fault(
                "expected text that UTF-8 can hold, found half of a surrogate pair",
            )),
        }
    }
}

/// Why an object has no value.
pub(super) enum Refusal {
    /// It is none of the things that a conversation is made of.
    Fault(Error),
    /// Its own code raised, as a lazily loaded mapping's can.
    Raised(PyErr),
}

type Read<T> = Result<T, Refusal>;

impl Refusal {
    fn at(self, key: impl Into<Cow<'static, str>>) -> Self {
        match self {
            Self::Fault(error) => Self::Fault(error.at(key)),
            raised @ Self::Raised(_) => raised,
        }
    }

    pub(super) fn into_pyerr(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Fault(error) => to_pyerr(py, &error),
            Self::Raised(error) => error,
        }
    }
}

impl From<PyErr> for Refusal {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

/// A conversation: a list of messages, a dict with `messages`, or either as JSON in `str` or `bytes`.
pub(super) fn input<'a>(object: &Bound<'_, PyAny>, strings: &Strings<'a>) -> Read<Input<'a>> {
    if let Some(text) = json(object, strings)? {
        return Ok(Input::Json(text));
    }
    match value(object, strings, Shape::Conversation, 0) {
        Ok(value) => Ok(Input::Value(value)),
        Err(refusal) if object.cast::<PyMapping>().is_ok() => Err(refusal),
        Err(refusal) => Err(refusal.at("messages")),
    }
}

/// The error for a string or a mapping in the place of a list of conversations, which Python would iterate over.
pub(super) fn no_list(object: &Bound<'_, PyAny>) -> Option<Error> {
    let is_one = object.cast::<PyString>().is_ok()
        || object.cast::<PyBytes>().is_ok()
        || object.cast::<PyMapping>().is_ok();
    is_one.then(|| {
        let kind = type_name(object);
        let message = format!(
            "expected a list of conversations, found `{kind}`: encode_conversation takes one"
        );
        Error::new(ErrorKind::Conversation, message)
    })
}

/// The argument `name`: Python objects; `tools` and `response_format` may be JSON in `str` or `bytes` too.
pub(super) fn argument<'a>(
    object: &Bound<'_, PyAny>,
    strings: &Strings<'a>,
    name: &'static str,
) -> Read<Value<'a>> {
    let is_json = matches!(name, "tools" | "response_format");
    let read = match json(object, strings) {
        Ok(Some(text)) if is_json => Value::from_json(text).map_err(Refusal::Fault),
        Ok(_) => value(object, strings, Shape::Anything, 0),
        Err(refusal) => Err(refusal),
    };
    read.map_err(|refusal| refusal.at(name))
}

/// The argument `name`, which counts something from 1.
pub(super) fn count(wanted: &Bound<'_, PyAny>, name: &'static str) -> PyResult<NonZero<usize>> {
    let py = wanted.py();
    let count = match wanted.extract::<usize>() {
        Ok(count) => NonZero::new(count),
        Err(error) if error.is_instance_of::<PyOverflowError>(py) => None,
        Err(error) => return Err(error),
    };
    count.ok_or_else(|| {
        let found = wanted
            .str()
            .map_or_else(|_| "a longer one".to_owned(), |text| text.to_string());
        let message = format!(
            "expected an integer from 1 to {}, found {found}",
            usize::MAX
        );
        to_pyerr(py, &Error::new(ErrorKind::Option, message).at(name))
    })
}

/// JSON text, if that is what the object is.
fn json<'a>(object: &Bound<'_, PyAny>, strings: &Strings<'a>) -> Read<Option<&'a [u8]>> {
    if let Ok(text) = object.cast::<PyBytes>() {
        let text: &[u8] = strings.kept.bytes.alloc(text.clone().into());
        // Python decodes bytes without the mark, and refuses it in a str.
        return Ok(Some(text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text)));
    }
    match object.cast::<PyString>() {
        Ok(text) => Ok(Some(strings.text(text)?.as_bytes())),
        Err(_) => Ok(None),
    }
}

/// What an object is, which says which of its keys are read. Others may hold anything, such as a date.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Conversation,
    Messages,
    Message,
    Content,
    Part,
    Calls,
    Call,
    Function,
    /// Only whether there is something is asked.
    Presence,
    Anything,
}

impl Shape {
    /// What the value under `key` is; None if nothing reads it.
    fn below(self, key: &str) -> Option<Self> {
        match (self, key) {
            (Self::Conversation, "messages") => Some(Self::Messages),
            (Self::Message, "content") => Some(Self::Content),
            (Self::Message, "tool_calls") => Some(Self::Calls),
            (Self::Message, key) if conversation::UNREAD_REASONING_KEYS.contains(&key) => {
                Some(Self::Presence)
            }
            (Self::Conversation, "tools")
            | (Self::Part, "type" | "text")
            | (Self::Call, "id")
            | (Self::Function, "name" | "arguments")
            | (Self::Anything, _) => Some(Self::Anything),
            (Self::Message, key) => conversation::is_message_key(key).then_some(Self::Anything),
            (Self::Part, "image" | "image_url") => Some(Self::Presence),
            (Self::Call, "function") => Some(Self::Function),
            _ => None,
        }
    }

    /// What an item of a list is.
    fn item(self) -> Self {
        match self {
            // A list in the place of a conversation is one of messages.
            Self::Messages | Self::Conversation => Self::Message,
            Self::Content => Self::Part,
            Self::Calls => Self::Call,
            _ => Self::Anything,
        }
    }
}

fn value<'a>(
    object: &Bound<'_, PyAny>,
    strings: &Strings<'a>,
    shape: Shape,
    depth: usize,
) -> Read<Value<'a>> {
    if shape == Shape::Presence {
        // What cannot say whether it is true, as an array of numpy, is something.
        let is_something = object.is_truthy().unwrap_or(true);
        return Ok(if object.is_none() {
            Value::Null
        } else {
            Value::Bool(is_something)
        });
    }
    if depth > MAX_DEPTH {
        return Err(fault(format!(
            "expected at most {MAX_DEPTH} levels of nesting, found more"
        )));
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(Value::String(Cow::Borrowed(strings.text(text)?)));
    }
    if let Ok(entries) = object.cast::<PyDict>() {
        // All pairs first: reading a value may run Python code, which may change the dict.
        let pairs: Vec<_> = entries.iter().collect();
        return object_of(pairs.into_iter(), strings, shape, depth);
    }
    if let Ok(items) = object.cast::<PyList>() {
        return list(items.iter(), strings, shape, depth);
    }
    if let Ok(items) = object.cast::<PyTuple>() {
        return list(items.iter(), strings, shape, depth);
    }
    if let Some(value) = scalar(object)? {
        return Ok(value);
    }
    // What pandas reads from Parquet holds numpy arrays and scalars.
    if let Some(method) = object.getattr_opt("tolist")? {
        return value(&method.call0()?, strings, shape, depth + 1);
    }
    if let Ok(mapping) = object.cast::<PyMapping>() {
        let items = mapping.items()?;
        let pairs = items.iter().map(|pair| pair.extract());
        let pairs: Vec<_> = pairs.collect::<PyResult<_>>()?;
        return object_of(pairs.into_iter(), strings, shape, depth);
    }
    Err(unreadable(object))
}

fn object_of<'a, 'py>(
    pairs: impl ExactSizeIterator<Item = (Bound<'py, PyAny>, Bound<'py, PyAny>)>,
    strings: &Strings<'a>,
    shape: Shape,
    depth: usize,
) -> Read<Value<'a>> {
    let mut entries = Vec::with_capacity(pairs.len());
    for (key, item) in pairs {
        let key = match key.cast::<PyString>() {
            Ok(key) => Cow::Borrowed(strings.key(key)?),
            Err(_) if shape != Shape::Anything => continue,
            Err(_) => Cow::Owned(printed_key(&key)?),
        };
        let Some(below) = shape.below(&key) else {
            continue;
        };
        match value(&item, strings, below, depth + 1) {
            Ok(value) => entries.push((key, value)),
            Err(refusal) => return Err(refusal.at(key.into_owned())),
        }
    }
    Ok(Value::Object(Object::from_entries(entries)))
}

/// `json.dumps` prints the keys None, True, False and numbers as strings, and so do the templates.
fn printed_key(key: &Bound<'_, PyAny>) -> Read<String> {
    let Some(value) = scalar(key)? else {
        let kind = type_name(key);
        return Err(fault(format!("expected a str as key, found `{kind}`")));
    };
    let mut text = String::new();
    value.write_json(Spacing::Spaced, &mut text);
    Ok(text)
}

/// None, a bool or a number.
fn scalar(object: &Bound<'_, PyAny>) -> Read<Option<Value<'static>>> {
    if object.is_none() {
        return Ok(Some(Value::Null));
    }
    if let Ok(value) = object.cast::<PyBool>() {
        return Ok(Some(Value::Bool(value.is_true())));
    }
    if object.cast::<PyInt>().is_ok() {
        return match object.extract::<i64>() {
            Ok(value) => Ok(Some(Value::Int(value))),
            Err(_) => Ok(Some(Value::BigInt(digits(object)?))),
        };
    }
    if let Ok(value) = object.cast::<PyFloat>() {
        return Ok(Some(Value::Float(value.value())));
    }
    Ok(None)
}

/// An integer in decimal digits, as long as Python agrees to print it. As `json.dumps` does it: not as its own class
/// would.
fn digits(integer: &Bound<'_, PyAny>) -> Read<String> {
    let class = integer.py().get_type::<PyInt>();
    match class.call_method1(intern!(integer.py(), "__repr__"), (integer,)) {
        Ok(text) => Ok(text.to_string()),
        Err(error) => Err(fault(format!(
            "expected an integer that Python prints, found one that it does not: {error}"
        ))),
    }
}

fn list<'a, 'py>(
    items: impl Iterator<Item = Bound<'py, PyAny>>,
    strings: &Strings<'a>,
    shape: Shape,
    depth: usize,
) -> Read<Value<'a>> {
    let read = |(index, item)| match value(&item, strings, shape.item(), depth + 1) {
        Err(Refusal::Fault(error)) => Err(Refusal::Fault(error.at_index(index))),
        read => read,
    };
    Ok(Value::Array(
        items.enumerate().map(read).collect::<Read<_>>()?,
    ))
}

fn unreadable(object: &Bound<'_, PyAny>) -> Refusal {
    let kind = type_name(object);
    fault(format!(
        "expected a str, number, bool, None, list or dict, found `{kind}`"
    ))
}

fn type_name(object: &Bound<'_, PyAny>) -> String {
    let name = object.get_type().name();
    name.map_or_else(|_| "an object".to_owned(), |name| name.to_string())
}

fn fault(message: impl Into<Cow<'static, str>>) -> Refusal {
    Refusal::Fault(Error::new(ErrorKind::Conversation, message))
}
