//! JSON text as Python's `json.loads` reads it.
//!
//! Two libraries read it. `jiter` reads all that Python reads, integers of any size and `NaN` included, and says where
//! a text is wrong; `sonic-rs` is nearly twice as fast and refuses some of that. So a text goes to `sonic-rs` first
//! ([`quick`]), and to `jiter` ([`plain`]) if anything in it is odd; a test holds the two equal.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use jiter::{Jiter, JsonError, JsonErrorType, JsonValue, Peek};
use memchr::memmem;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use super::{MAX_DEPTH, Object, Value};
use crate::error::{Error, ErrorKind, Result};

impl<'a> Value<'a> {
    /// Reads one JSON text, as Python's `json.loads` does (`NaN` and the infinities included).
    ///
    /// # Errors
    /// [`ErrorKind::Json`] with the byte offset for text that is not JSON, is not UTF-8, holds half of a surrogate
    /// pair, or nests deeper than [`MAX_DEPTH`].
    pub fn from_json(text: &'a [u8]) -> Result<Self> {
        read(text).map_err(|error| not_json(&error))
    }

    /// Reads text that may or may not be JSON: None if Python's `json.loads` refuses it.
    ///
    /// # Errors
    /// [`ErrorKind::Json`] for text that Python reads and no [`Value`] can hold.
    pub fn from_possible_json(text: &'a str) -> Result<Option<Self>> {
        let error = match read(text.as_bytes()) {
            Ok(value) => return Ok(Some(value)),
            Err(error) => error,
        };
        let python_reads = match error.error_type {
            JsonErrorType::RecursionLimitExceeded | JsonErrorType::NumberOutOfRange => true,
            _ => without_surrogates(text).is_some_and(|text| read(text.as_bytes()).is_ok()),
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
}

/// Whether `text` is the JSON of an object, as Python's `json.loads` reads it.
#[must_use]
pub fn is_object(text: &str) -> bool {
    let mut reader = Jiter::new(text.as_bytes()).with_allow_inf_nan();
    let is_object = reader.peek().is_ok_and(|peek| peek == Peek::Object);
    is_object && reader.next_skip().is_ok() && reader.finish().is_ok()
}

fn read(text: &[u8]) -> std::result::Result<Value<'_>, JsonError> {
    quick(text).map_or_else(|| plain(text), Ok)
}

/// What [`plain`] reads, or None if that has to look.
fn quick(text: &[u8]) -> Option<Value<'_>> {
    let mut reader = sonic_rs::Deserializer::from_slice(text);
    let whole = Quick {
        levels: MAX_DEPTH,
        may_be_minus_zero: has_minus_zero(text),
    };
    let value = whole.deserialize(&mut reader).ok()?;
    reader.end().ok().map(|()| value)
}

/// Whether `-0` or a number that begins so stands in a text, be it in a string; dates such as 2026-01-02 do not count.
fn has_minus_zero(text: &[u8]) -> bool {
    memmem::find_iter(text, "-0").any(|at| !text.get(at + 2).is_some_and(u8::is_ascii_digit))
}

fn plain(text: &[u8]) -> std::result::Result<Value<'_>, JsonError> {
    JsonValue::parse(text, true).map(Value::from_jiter)
}

/// Reads a value by way of `serde`, and refuses what would come out otherwise than as Python reads it.
#[derive(Clone, Copy)]
struct Quick {
    /// How deeply lists and objects may nest in it.
    levels: usize,
    /// Whether a float of zero may have been the integer `-0`, or minus zero, whose sign `sonic-rs` drops.
    may_be_minus_zero: bool,
}

impl Quick {
    /// What reads the values inside.
    fn inner<E: serde::de::Error>(self) -> std::result::Result<Self, E> {
        let levels = self.levels.checked_sub(1);
        let levels = levels.ok_or_else(|| E::custom("too many levels"))?;
        Ok(Self { levels, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Quick {
    type Value = Value<'de>;

    fn deserialize<D: Deserializer<'de>>(
        self,
        reader: D,
    ) -> std::result::Result<Value<'de>, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Quick {
    type Value = Value<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_unit<E>(self) -> std::result::Result<Value<'de>, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> std::result::Result<Value<'de>, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> std::result::Result<Value<'de>, E> {
        Ok(Value::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> std::result::Result<Value<'de>, E> {
        Ok(i64::try_from(value).map_or_else(|_| Value::BigInt(value.to_string()), Value::Int))
    }

    /// An integer beyond 64 bits arrives as a float, and so does `-0`.
    fn visit_f64<E: serde::de::Error>(self, value: f64) -> std::result::Result<Value<'de>, E> {
        const NO_INTEGER_FROM: f64 = 9.0e18;
        let is_zero = value == 0.0;
        if is_zero && self.may_be_minus_zero || value.abs() >= NO_INTEGER_FROM {
            return Err(E::custom("this may be an integer"));
        }
        Ok(Value::Float(value))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> std::result::Result<Value<'de>, E> {
        Ok(Value::String(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> std::result::Result<Value<'de>, E> {
        Ok(Value::String(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> std::result::Result<Value<'de>, A::Error> {
        let inner = self.inner()?;
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(inner)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Value<'de>, A::Error> {
        let inner = self.inner()?;
        let mut entries = Vec::new();
        while let Some((key, value)) = map.next_entry_seed(inner, inner)? {
            let Value::String(key) = key else {
                return Err(A::Error::custom("a key is a string"));
            };
            entries.push((key, value));
        }
        Ok(Value::Object(Object::from_entries(entries)))
    }
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
    use proptest::prelude::*;

    use super::*;

    /// Most of what JSON is made of, right or wrong, between blanks.
    const SCRAPS: &str = "{ } [ ] , : \" \"a\" \"b\": \"\": \t \n \r \u{b} \u{feff} \\ \\n \\\" \\\\ \\/ \\x \\u0041 \\u00e9 \\u12 \
        \\ud83d\\ude00 \\ud83d \\ude00 \u{0} \u{1f} \u{7f} é 你 😀 null true false nul NaN Infinity -Infinity 0 -0 1 -12 01 0.5 0.0 -0.0 \
        1e5 1E-7 1e400 1. .5 9223372036854775807 9223372036854775808 -9223372036854775809 \
        123456789012345678901234567890 ";

    fn scraps() -> Vec<&'static str> {
        SCRAPS
            .split(' ')
            .map(|scrap| if scrap.is_empty() { " " } else { scrap })
            .collect()
    }

    fn check(text: &[u8]) -> bool {
        let Some(value) = quick(text) else {
            return false;
        };
        let shown = String::from_utf8_lossy(text);
        // As text, where minus zero is not zero.
        let plain = plain(text).map(|value| format!("{value:?}"));
        assert_eq!(plain, Ok(format!("{value:?}")), "{shown:?}");
        true
    }

    #[test]
    fn both_readers_agree_on_all_short_texts_of_scraps() {
        let mut taken = 0;
        let scraps = scraps();
        for a in &scraps {
            for b in &scraps {
                for c in &scraps {
                    for text in [
                        format!("{a}{b}{c}"),
                        format!("\"{a}{b}{c}\""),
                        format!("[{a}{b}{c}]"),
                        format!("{{\"k\":{a}{b}{c}}}"),
                    ] {
                        taken += usize::from(check(text.as_bytes()));
                    }
                }
            }
        }
        assert!(taken > 50_000, "only {taken} texts were read quickly");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn both_readers_agree_on_random_texts(
            scraps in proptest::collection::vec(proptest::sample::select(scraps()), 0..30),
            broken in proptest::option::of((any::<prop::sample::Index>(), any::<u8>())),
        ) {
            let mut text = scraps.concat().into_bytes();
            if let Some((at, byte)) = broken && !text.is_empty() {
                let at = at.index(text.len());
                text[at] = byte;
            }
            check(&text);
            let quoted = [b"\"", &text[..], b"\""].concat();
            check(&quoted);
        }

        #[test]
        fn both_readers_agree_on_any_number(digits in "-?(0|[1-9][0-9]{0,24})(\\.[0-9]{1,20})?([eE][-+]?[0-9]{1,3})?") {
            check(digits.as_bytes());
        }
    }

    #[test]
    fn both_readers_nest_as_deeply() {
        for depth in 190..270 {
            for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
                let text = format!("{}1{}", open.repeat(depth), close.repeat(depth));
                assert_eq!(check(text.as_bytes()), depth <= MAX_DEPTH, "{depth}");
                assert_eq!(plain(text.as_bytes()).is_ok(), depth <= MAX_DEPTH);
            }
        }
    }

    #[test]
    fn a_sign_of_zero_is_kept_beside_other_zeros() {
        for zero in [
            "-0", "-0.0", "-0e5", "-0E-5", "-1e-400", "-0.00", "0e-5", "1e-400",
        ] {
            for text in [
                zero.to_owned(),
                format!("[0.0, {zero}]"),
                format!("{{\"-01\": {zero}, \"a\": 0.0}}"),
            ] {
                check(text.as_bytes());
                let read = Value::from_json(text.as_bytes()).map(|value| format!("{value:?}"));
                assert_eq!(
                    read.ok(),
                    plain(text.as_bytes())
                        .ok()
                        .map(|value| format!("{value:?}"))
                );
            }
        }
    }

    #[test]
    fn what_is_usual_is_read_quickly() {
        let text = r#"{"messages": [{"role": "user", "content": "a\"b\n2026-01-02", "n": [1, -2, 0, 0.0, 0.5, null, true]}]}"#;
        assert!(check(text.as_bytes()));
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
