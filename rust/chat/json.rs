//! JSON as Python reads and prints it.
//!
//! Kimi's templates print tool arguments and tool declarations with Python's `json.dumps`, so the spelling of a number
//! or the order of keys ends up in the ids. [`Value`] therefore keeps what Python keeps: key order, integers of any
//! size, floats apart from integers, and the last of several equal keys in the place of the first.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

use jiter::{Jiter, JsonError, JsonErrorType, JsonValue, Peek};
use rustc_hash::FxHashMap;

use crate::error::{Error, ErrorKind, Result};

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

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The blanks that `json.dumps` puts after `,` and `:`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// `{"a": 1, "b": 2}`: Python's default.
    Spaced,
    /// `{"a":1,"b":2}`
    Compact,
}

impl<'a> Value<'a> {
    /// Reads one JSON text, as Python's `json.loads` does (`NaN` and the infinities included).
    ///
    /// # Errors
    /// [`ErrorKind::Json`] with the byte offset for text that is not JSON, is not UTF-8, holds half of a surrogate
    /// pair, or nests deeper than [`MAX_DEPTH`].
    pub fn from_json(text: &'a [u8]) -> Result<Self> {
        match JsonValue::parse(text, true) {
            Ok(value) => Ok(Self::from_jiter(value)),
            Err(error) => Err(not_json(&error)),
        }
    }

    /// Reads text that may or may not be JSON: None if Python's `json.loads` refuses it.
    ///
    /// # Errors
    /// [`ErrorKind::Json`] for text that Python reads and no [`Value`] can hold.
    pub fn from_possible_json(text: &'a str) -> Result<Option<Self>> {
        let error = match JsonValue::parse(text.as_bytes(), true) {
            Ok(value) => return Ok(Some(Self::from_jiter(value))),
            Err(error) => error,
        };
        let python_reads = match error.error_type {
            JsonErrorType::RecursionLimitExceeded | JsonErrorType::NumberOutOfRange => true,
            _ => without_surrogates(text)
                .is_some_and(|text| JsonValue::parse(text.as_bytes(), true).is_ok()),
        };
        if python_reads {
            Err(not_json(&error))
        } else {
            Ok(None)
        }
    }

    fn from_jiter(value: JsonValue<'a>) -> Self {
        match value {
            JsonValue::Null => Self::Null,
            JsonValue::Bool(value) => Self::Bool(value),
            JsonValue::Int(value) => Self::Int(value),
            JsonValue::BigInt(value) => Self::BigInt(value.to_string()),
            JsonValue::Float(value) => Self::Float(value),
            JsonValue::Str(value) => Self::String(value),
            JsonValue::Array(items) => Self::Array(
                Arc::unwrap_or_clone(items)
                    .into_iter()
                    .map(Self::from_jiter)
                    .collect(),
            ),
            JsonValue::Object(entries) => {
                let entries = Arc::unwrap_or_clone(entries);
                let entries = entries
                    .into_iter()
                    .map(|(key, value)| (key, Self::from_jiter(value)));
                Self::Object(Object::from_entries(entries.collect()))
            }
        }
    }

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

    /// Prints the value as `json.dumps(value, ensure_ascii=False)` with the given spacing.
    pub fn write_json(&self, spacing: Spacing, out: &mut String) {
        let (comma, colon) = match spacing {
            Spacing::Spaced => (", ", ": "),
            Spacing::Compact => (",", ":"),
        };
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(true) => out.push_str("true"),
            Self::Bool(false) => out.push_str("false"),
            Self::Int(value) => write_display(value, out),
            Self::BigInt(digits) => out.push_str(digits),
            Self::Float(value) if value.is_nan() => out.push_str("NaN"),
            Self::Float(value) if value.is_infinite() => {
                out.push_str(if *value > 0.0 {
                    "Infinity"
                } else {
                    "-Infinity"
                });
            }
            Self::Float(value) => write_float(*value, out),
            Self::String(text) => write_quoted(text, out),
            Self::Array(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        out.push_str(comma);
                    }
                    item.write_json(spacing, out);
                }
                out.push(']');
            }
            Self::Object(object) => {
                out.push('{');
                for (i, (key, value)) in object.iter().enumerate() {
                    if i > 0 {
                        out.push_str(comma);
                    }
                    write_quoted(key, out);
                    out.push_str(colon);
                    value.write_json(spacing, out);
                }
                out.push('}');
            }
        }
    }

    /// Prints a scalar as Python's `str` does (`None`, `True`, `1e+20`, strings without quotes); false for a list or
    /// an object, which Python would print in its own notation.
    #[must_use]
    pub fn write_python_str(&self, out: &mut String) -> bool {
        match self {
            Self::Null => out.push_str("None"),
            Self::Bool(true) => out.push_str("True"),
            Self::Bool(false) => out.push_str("False"),
            Self::Int(value) => write_display(value, out),
            Self::BigInt(digits) => out.push_str(digits),
            Self::Float(value) => write_float(*value, out),
            Self::String(text) => out.push_str(text),
            Self::Array(_) | Self::Object(_) => return false,
        }
        true
    }
}

/// Prints a float as Python's `repr` does: the shortest digits that read back as the same number, with an exponent
/// below 1e-4 and from 1e16 on.
pub fn write_float(value: f64, out: &mut String) {
    if value.is_nan() {
        out.push_str("nan");
        return;
    }
    if value.is_infinite() {
        out.push_str(if value > 0.0 { "inf" } else { "-inf" });
        return;
    }
    // The standard library has as short a form, but of two that are equally near it takes the upper one, and Python the
    // even one: 2^-25 is 2.9802322387695312e-08 there and …313e-08 here.
    let mut buffer = zmij::Buffer::new();
    let shortest = buffer.format_finite(value);
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((shortest, "0"));
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => ("-", mantissa),
        None => ("", mantissa),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let leading_zeros = digits.len() - digits.trim_start_matches('0').len();
    let exponent: i32 = exponent.parse().unwrap_or(0);
    // Where the point stands, counted from the first digit that is not zero.
    let zeros_before = i32::try_from(leading_zeros).unwrap_or(0);
    let point = i32::try_from(whole.len()).unwrap_or(0) - zeros_before + exponent;
    let digits = digits.trim_matches('0');
    out.push_str(sign);
    match (digits.is_empty(), point) {
        (true, _) => out.push_str("0.0"),
        (false, 1..=16) => {
            let point = point.unsigned_abs() as usize;
            let whole = &digits[..point.min(digits.len())];
            let fraction = &digits[whole.len()..];
            let fraction = if fraction.is_empty() { "0" } else { fraction };
            let _ = write!(out, "{whole:0<point$}.{fraction}");
        }
        (false, -3..=0) => {
            let zeros = point.unsigned_abs() as usize;
            let _ = write!(out, "0.{:0<zeros$}{digits}", "");
        }
        _ => {
            let (first, rest) = digits.split_at(1);
            let point_rest = if rest.is_empty() { "" } else { "." };
            let sign = if point < 1 { '-' } else { '+' };
            let exponent = (point - 1).abs();
            let _ = write!(out, "{first}{point_rest}{rest}e{sign}{exponent:02}");
        }
    }
}

/// Whether `text` is the JSON of an object, as Python's `json.loads` reads it.
#[must_use]
pub fn is_object(text: &str) -> bool {
    let mut reader = Jiter::new(text.as_bytes()).with_allow_inf_nan();
    let is_object = reader.peek().is_ok_and(|peek| peek == Peek::Object);
    is_object && reader.next_skip().is_ok() && reader.finish().is_ok()
}

fn write_display(value: impl std::fmt::Display, out: &mut String) {
    // Writing to a `String` cannot fail.
    let _ = write!(out, "{value}");
}

fn write_quoted(text: &str, out: &mut String) {
    out.push('"');
    let mut written = 0;
    for (i, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x08 => "\\b",
            0x0C => "\\f",
            0x00..=0x1F => "",
            _ => continue,
        };
        out.push_str(&text[written..i]);
        if escape.is_empty() {
            let _ = write!(out, "\\u{byte:04x}");
        } else {
            out.push_str(escape);
        }
        written = i + 1;
    }
    out.push_str(&text[written..]);
    out.push('"');
}

fn not_json(error: &JsonError) -> Error {
    let reason = match error.error_type {
        JsonErrorType::ExpectedSomeIdent => "expected true, false or null".to_owned(),
        ref other => lower_first(&other.to_string()),
    };
    let message = format!("not valid JSON at byte {}: {reason}", error.index);
    Error::new(ErrorKind::Json, message)
}

/// `text` with a blank for each escape that is half of a surrogate pair; None if there is none.
fn without_surrogates(text: &str) -> Option<String> {
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    let mut found = false;
    while let Some(at) = rest.find('\\') {
        let is_surrogate = rest.as_bytes().get(at + 1..at + 6).is_some_and(|escape| {
            escape[0] == b'u'
                && escape[1].eq_ignore_ascii_case(&b'd')
                && !matches!(escape[2], b'0'..=b'7')
                && escape[1..].iter().all(u8::is_ascii_hexdigit)
        });
        replaced.push_str(&rest[..at]);
        // An escape is at least one character after the backslash, which may itself be a backslash.
        let len = rest[at + 1..].chars().next().map_or(0, char::len_utf8);
        if is_surrogate {
            replaced.push(' ');
            rest = &rest[at + 6..];
            found = true;
        } else {
            replaced.push_str(&rest[at..=at + len]);
            rest = &rest[at + 1 + len..];
        }
    }
    replaced.push_str(rest);
    found.then_some(replaced)
}

/// A sentence as the middle of another; an abbreviation such as EOF stays as it is.
fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) if !chars.as_str().starts_with(char::is_uppercase) => {
            first.to_lowercase().chain(chars).collect()
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spaced(text: &str) -> String {
        let mut out = String::new();
        Value::from_json(text.as_bytes())
            .unwrap()
            .write_json(Spacing::Spaced, &mut out);
        out
    }

    #[test]
    fn numbers_keep_pythons_spelling() {
        // Left: as in a file. Right: json.dumps(json.loads(left)) of CPython 3.11.
        for (read, printed) in [
            ("1", "1"),
            ("1.0", "1.0"),
            ("1e2", "100.0"),
            ("-0.0", "-0.0"),
            ("-0", "0"),
            (
                "123456789012345678901234567890",
                "123456789012345678901234567890",
            ),
            ("9007199254740993", "9007199254740993"),
            ("1e-7", "1e-07"),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("1e15", "1000000000000000.0"),
            ("1e16", "1e+16"),
            ("1.5e300", "1.5e+300"),
            ("123456789.125", "123456789.125"),
            ("0.1000000000000000055511151231257827", "0.1"),
            ("5e-324", "5e-324"),
            ("2.98023223876953125e-08", "2.9802322387695312e-08"),
            ("1700000000123456.25", "1700000000123456.2"),
            ("1700000000123456.75", "1700000000123456.8"),
            ("9999999999999998.0", "9999999999999998.0"),
            ("-1234.5e-7", "-0.00012345"),
            ("-12e-6", "-1.2e-05"),
            ("0e5", "0.0"),
            ("100", "100"),
            ("120e1", "1200.0"),
            ("NaN", "NaN"),
            ("-Infinity", "-Infinity"),
            ("1e400", "Infinity"),
        ] {
            assert_eq!(spaced(read), printed, "{read}");
        }
    }

    #[test]
    fn strings_are_escaped_as_python_does_without_ascii() {
        assert_eq!(
            spaced(r#""<&>'\"\\\/\u0001\u007f\u2028é\t\n\r\b\f""#),
            "\"<&>'\\\"\\\\/\\u0001\u{7f}\u{2028}é\\t\\n\\r\\b\\f\""
        );
    }

    #[test]
    fn of_equal_keys_the_last_value_takes_the_first_place() {
        assert_eq!(spaced(r#"{"b": 1, "a": 2, "b": 3}"#), r#"{"b": 3, "a": 2}"#);
        let many: Vec<String> = (0..40).map(|i| format!("\"k{}\": {i}", i % 20)).collect();
        assert!(spaced(&format!("{{{}}}", many.join(", "))).starts_with(r#"{"k0": 20, "k1": 21,"#));
    }

    #[test]
    fn sorting_reaches_every_level() {
        let value = Value::from_json(br#"{"b": [{"z": 1, "y": 2}], "a": null, "B": 0}"#).unwrap();
        let mut out = String::new();
        value.sorted_by_key().write_json(Spacing::Compact, &mut out);
        assert_eq!(out, r#"{"B":0,"a":null,"b":[{"y":2,"z":1}]}"#);
    }

    #[test]
    fn what_python_reads_and_rust_cannot_hold_is_told_from_what_is_not_json() {
        assert!(Value::from_possible_json("{\"a\": 1}").unwrap().is_some());
        // Cut off in the middle of an escaped emoji, as streams are.
        for text in [
            "",
            "{",
            "{\"a\": \"\\ud83d\"",
            "{\"a\": \"\\ud83",
            "{\"a\": \"\\\\ud83d",
            "\\",
            "\\é",
            "\\ud8é",
            "\"\\Ud83d\"",
            "\"\\ud8zz\"",
        ] {
            assert_eq!(Value::from_possible_json(text).unwrap(), None, "{text}");
        }
        let deep = format!("{}1{}", "[".repeat(300), "]".repeat(300));
        for text in [
            "{\"a\": \"\\ud83d\"}",
            "\"\\\\\\uDE00x\"",
            "\"\\ud83d\\n\"",
            &*deep,
        ] {
            let error = Value::from_possible_json(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Json, "{text}");
        }
    }

    #[test]
    fn what_is_not_json_is_an_error_with_an_offset() {
        for text in [
            "",
            "{",
            "[1,]",
            "\"\\ud800\"",
            "{\"a\" 1}",
            "\"a\u{1}\"",
            "tru",
            "1 2",
        ] {
            let error = Value::from_json(text.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Json, "{text}");
            assert!(
                error.message().starts_with("not valid JSON at byte "),
                "{error}"
            );
        }
        assert!(Value::from_json(b"\"\xff\"").is_err());
        let deep = "[".repeat(100_000);
        assert!(Value::from_json(deep.as_bytes()).is_err());
    }
}
