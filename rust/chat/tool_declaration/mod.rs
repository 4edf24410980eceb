//! Tools as the text of a `tool_declare` message.
//!
//! K2.5 and later show the model TypeScript-like declarations. The models' own encoder accepts a part of JSON Schema
//! and raises on the rest, and one schema it cannot express turns the *whole* list into compact JSON. Both forms start
//! from the tools with all keys sorted. Facts: the model repositories' `tool_declaration_ts.py`.

mod schema;
mod typescript;

use crate::chat::json::{Spacing, Value};
use crate::error::{Error, ErrorKind, Result};

/// The declaration of `tools`: TypeScript where every schema can be expressed in it, compact JSON otherwise.
///
/// # Errors
/// Where a list or an object stands for a scalar that the reference would print in Python's own notation.
pub fn declaration(tools: &[Value<'_>]) -> Result<String> {
    let sorted: Vec<Value<'_>> = tools.iter().map(Value::sorted_by_key).collect();
    match typescript::namespace(&sorted) {
        Ok(Some(text)) => Ok(text),
        Ok(None) | Err(Refusal::Inexpressible) => {
            let mut text = String::new();
            Value::Array(sorted).write_json(Spacing::Compact, &mut text);
            Ok(text)
        }
        Err(Refusal::Unprintable(kind)) => {
            let message =
                format!("expected a scalar where the tool declaration prints one, found {kind}");
            Err(Error::new(ErrorKind::Conversation, message))
        }
    }
}

/// Why a schema has no TypeScript form.
#[derive(Debug)]
enum Refusal {
    /// The reference raises here, and falls back to JSON.
    Inexpressible,
    /// The reference prints Python's notation of this kind of value.
    Unprintable(&'static str),
}

type Outcome<T> = std::result::Result<T, Refusal>;
