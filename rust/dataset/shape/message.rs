//! Values in OpenAI's spelling, made of borrowed strings.

use std::borrow::Cow;

use crate::chat::json::{Object, Value};

pub(super) fn message<'v>(role: &'static str, content: Value<'v>) -> Value<'v> {
    let entries = vec![entry("role", text(role)), entry("content", content)];
    Value::Object(Object::from_entries(entries))
}

pub(super) fn entry<'v>(key: &'static str, value: Value<'v>) -> (Cow<'v, str>, Value<'v>) {
    (Cow::Borrowed(key), value)
}

pub(super) fn text(text: &str) -> Value<'_> {
    Value::String(Cow::Borrowed(text))
}
