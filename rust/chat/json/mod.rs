//! JSON as Python reads and prints it.
//!
//! Kimi's templates print tool arguments and tool declarations with Python's `json.dumps`, so the spelling of a number
//! or the order of keys ends up in the ids. [`Value`] therefore keeps what Python keeps: key order, integers of any
//! size, floats apart from integers, and the last of several equal keys in the place of the first.

mod print;
mod read;

use std::borrow::Cow;

use rustc_hash::FxHashMap;

pub use print::{Spacing, write_float, write_quoted};
pub use read::is_object;

/// How deeply lists and objects may nest, in files and in Python objects alike. Deeper input is an error, not a stack
/// overflow.
pub const MAX_DEPTH: usize = 200;

/// A JSON value that borrows its strings where it can.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// An integer that fits 64 bits.
    Int(i64),
    /// Any other integer, in decimal digits.
    BigInt(String),
    /// A number with a fraction or an exponent, `NaN`, or an infinity.
    Float(f64),
    /// A string.
    String(Cow<'a, str>),
    /// A list.
    Array(Vec<Value<'a>>),
    /// An object, in the order of its keys' first appearance.
    Object(Object<'a>),
}

/// The entries of a JSON object, in order; no key occurs twice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object<'a>(Vec<(Cow<'a, str>, Value<'a>)>);

/// Objects up to this size are checked for equal keys pair by pair, which needs no allocation.
const SMALL_OBJECT: usize = 16;

impl<'a> Object<'a> {
    /// Entries as they were read; of equal keys the last value stays, in the first one's place, as in Python.
    #[must_use]
    pub fn from_entries(mut entries: Vec<(Cow<'a, str>, Value<'a>)>) -> Self {
        if entries.len() <= SMALL_OBJECT {
            let repeats = |i: usize| entries[..i].iter().any(|(key, _)| *key == entries[i].0);
            if !(1..entries.len()).any(repeats) {
                return Self(entries);
            }
        }
        let mut places: FxHashMap<Cow<'a, str>, usize> = FxHashMap::default();
        let mut kept: Vec<(Cow<'a, str>, Value<'a>)> = Vec::with_capacity(entries.len());
        for (key, value) in entries.drain(..) {
            if let Some(&place) = places.get(&key) {
                kept[place].1 = value;
            } else {
                places.insert(key.clone(), kept.len());
                kept.push((key, value));
            }
        }
        Self(kept)
    }

    /// The value under `key`. A null counts as absent, at every level of a conversation: files written from Arrow
    /// tables fill every key that any row has with null.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value<'a>> {
        self.raw(key).filter(|value| !matches!(value, Value::Null))
    }

    /// The value under `key`, null included. Tool schemas are the one place where null has a meaning.
    #[must_use]
    #[inline]
    pub fn raw(&self, key: &str) -> Option<&Value<'a>> {
        self.0
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value)
    }

    /// The entries in order.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value<'a>)> {
        self.0.iter().map(|(key, value)| (key.as_ref(), value))
    }

    /// The entries in order, for whoever has no use for the rest.
    #[must_use]
    pub fn into_entries(self) -> Vec<(Cow<'a, str>, Value<'a>)> {
        self.0
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> Value<'a> {
    /// The bytes of all strings in it, keys not counted.
    #[must_use]
    pub fn text_len(&self) -> usize {
        match self {
            Self::String(text) => text.len(),
            Self::Array(items) => items.iter().map(Self::text_len).sum(),
            Self::Object(object) => object.iter().map(|(_, value)| value.text_len()).sum(),
            _ => 0,
        }
    }

    /// The string, if it is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self {
            Some(text)
        } else {
            None
        }
    }

    /// The list, if it is one.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Value<'a>]> {
        if let Self::Array(items) = self {
            Some(items)
        } else {
            None
        }
    }

    /// The object, if it is one.
    #[must_use]
    pub fn as_object(&self) -> Option<&Object<'a>> {
        if let Self::Object(object) = self {
            Some(object)
        } else {
            None
        }
    }

    /// What the value is, for an error message: `a string`, `an object`, `null`, …
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Int(_) | Self::BigInt(_) | Self::Float(_) => "a number",
            Self::String(_) => "a string",
            Self::Array(_) => "a list",
            Self::Object(_) => "an object",
        }
    }

    /// Python's truth value: false for null, false, zero and whatever is empty.
    #[must_use]
    pub fn is_truthy(&self) -> bool {
        match self {
            Self::Null => false,
            Self::Bool(value) => *value,
            Self::Int(value) => *value != 0,
            Self::BigInt(_) => true,
            Self::Float(value) => *value != 0.0,
            Self::String(text) => !text.is_empty(),
            Self::Array(items) => !items.is_empty(),
            Self::Object(object) => !object.is_empty(),
        }
    }

    /// Whether it holds no number that is NaN or infinite, at any level.
    #[must_use]
    pub fn is_finite(&self) -> bool {
        match self {
            Self::Float(number) => number.is_finite(),
            Self::Array(items) => items.iter().all(Self::is_finite),
            Self::Object(object) => object.iter().all(|(_, value)| value.is_finite()),
            _ => true,
        }
    }

    /// The same value, its strings borrowed from this one.
    #[must_use]
    pub fn borrowed(&self) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(value) => Value::Int(*value),
            Self::BigInt(digits) => Value::BigInt(digits.clone()),
            Self::Float(value) => Value::Float(*value),
            Self::String(text) => Value::String(Cow::Borrowed(text)),
            Self::Array(items) => Value::Array(items.iter().map(Value::borrowed).collect()),
            Self::Object(Object(entries)) => {
                let entries = entries
                    .iter()
                    .map(|(key, value)| (Cow::Borrowed(&**key), value.borrowed()));
                Value::Object(Object(entries.collect()))
            }
        }
    }

    /// The same value, borrowing nothing.
    #[must_use]
    pub fn into_owned(self) -> Value<'static> {
        let own = |text: Cow<'a, str>| Cow::Owned(text.into_owned());
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(value),
            Self::Int(value) => Value::Int(value),
            Self::BigInt(digits) => Value::BigInt(digits),
            Self::Float(value) => Value::Float(value),
            Self::String(text) => Value::String(own(text)),
            Self::Array(items) => Value::Array(items.into_iter().map(Value::into_owned).collect()),
            Self::Object(Object(entries)) => {
                let entries = entries
                    .into_iter()
                    .map(|(key, value)| (own(key), value.into_owned()));
                Value::Object(Object(entries.collect()))
            }
        }
    }

    /// The same value with the keys of every object sorted by code point; lists keep their order.
    #[must_use]
    pub fn sorted_by_key<'s>(&'s self) -> Value<'s> {
        match self {
            Self::Array(items) => Value::Array(items.iter().map(Value::sorted_by_key).collect()),
            Self::Object(Object(entries)) => {
                let sort = |(key, value): &'s (Cow<'a, str>, Value<'a>)| {
                    (Cow::Borrowed(&**key), value.sorted_by_key())
                };
                let mut sorted: Vec<(Cow<'s, str>, Value<'s>)> = entries.iter().map(sort).collect();
                sorted.sort_by(|(a, _), (b, _)| a.cmp(b));
                Value::Object(Object(sorted))
            }
            scalar => scalar.borrowed(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Value<'_> {
        Value::from_json(text.as_bytes()).unwrap()
    }

    #[test]
    fn of_equal_keys_the_last_value_takes_the_first_place() {
        assert_eq!(
            read(r#"{"b": 1, "a": 2, "b": 3}"#),
            read(r#"{"b": 3, "a": 2}"#)
        );
        let entries = |numbers: std::ops::Range<usize>| {
            let entries: Vec<String> = numbers.map(|i| format!("\"k{}\": {i}", i % 20)).collect();
            format!("{{{}}}", entries.join(", "))
        };
        assert_eq!(read(&entries(0..40)), read(&entries(20..40)));
    }

    #[test]
    fn sorting_reaches_every_level() {
        let value = read(r#"{"b": [{"z": 1, "y": 2}], "a": null, "B": 0}"#);
        let mut out = String::new();
        value.sorted_by_key().write_json(Spacing::Compact, &mut out);
        assert_eq!(out, r#"{"B":0,"a":null,"b":[{"y":2,"z":1}]}"#);
    }
}
