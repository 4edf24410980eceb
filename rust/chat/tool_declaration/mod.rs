//! Tools as the text of a `tool_declare` message.
//!
//! K2.5 and later show the model TypeScript-like declarations. The models' own encoder accepts a part of JSON Schema
//! and raises on the rest, and one schema it cannot express turns the *whole* list into compact JSON. Both forms start
//! from the tools with all keys sorted. Facts: the model repositories' `tool_declaration_ts.py`.

mod padding;
mod schema;
mod typescript;

pub use padding::{Step, UnpaddedTools, first_padding};
use typescript::Namespace;

use crate::chat::json::{Spacing, Value};
use crate::error::{Error, ErrorKind, Result};

/// `tools` as K2 and K2-Thinking declare them: compact JSON, keys sorted.
#[must_use]
pub fn sorted_json(tools: &[Value<'_>]) -> String {
    let sorted = tools.iter().map(Value::sorted_by_key).collect();
    let mut text = String::new();
    Value::Array(sorted).write_json(Spacing::Compact, &mut text);
    text
}

/// `tools` as the first K2 declares them: JSON with blanks, keys in the caller's order.
#[must_use]
pub fn spaced_json(tools: &[Value<'_>]) -> String {
    let mut text = String::from("[");
    for (index, tool) in tools.iter().enumerate() {
        if index > 0 {
            text.push_str(", ");
        }
        tool.write_json(Spacing::Spaced, &mut text);
    }
    text.push(']');
    text
}

/// `tools` as K2.5 and later declare them: TypeScript where every schema can be expressed in it, compact JSON otherwise.
///
/// # Errors
/// Where a list or an object stands for a scalar that the reference would print in Python's own notation.
pub fn typescript_or_json(tools: &[Value<'_>]) -> Result<String> {
    let sorted: Vec<Value<'_>> = tools.iter().map(Value::sorted_by_key).collect();
    match typescript::namespace(&sorted) {
        Ok(Some(Namespace {
            text,
            unprintable: None,
        })) => Ok(text),
        Ok(Some(Namespace {
            unprintable: Some((index, kind)),
            ..
        })) => {
            let message =
                format!("expected a scalar where the tool declaration prints one, found {kind}");
            Err(Error::new(ErrorKind::Conversation, message).at_index(index))
        }
        Ok(None) | Err(Inexpressible) => Ok(sorted_json(tools)),
    }
}

/// A schema has no TypeScript form: the reference raises here, and falls back to JSON.
#[derive(Debug)]
struct Inexpressible;

type Outcome<T> = std::result::Result<T, Inexpressible>;

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(parameters: &str) -> Result<String> {
        let tools = format!(
            r#"[{{"type": "function", "function": {{"name": "f", "parameters": {parameters}}}}}]"#
        );
        let tools = Value::from_json(tools.as_bytes())?;
        typescript_or_json(tools.as_array().unwrap_or_default())
    }

    fn is_json(parameters: &str) -> bool {
        declared(parameters).unwrap().starts_with("[{\"function\":")
    }

    #[test]
    fn an_item_type_that_is_no_string_prints_alone_but_not_below_a_comment() {
        // The reference formats the one and joins the other, which raises.
        let alone = declared(r#"{"properties": {"a": {"type": "array", "items": {"type": 5}}}}"#);
        assert!(alone.unwrap().contains("  a?: Array<5>\n"));
        assert!(is_json(
            r#"{"properties": {"a": {"type": "array", "items": {"type": 5, "description": "d"}}}}"#
        ));
    }

    #[test]
    fn a_list_for_a_scalar_is_an_error_unless_the_whole_becomes_json_anyway() {
        let error = declared(r#"{"properties": {"a": {"enum": [[1]]}}}"#).unwrap_err();
        assert_eq!(
            error.to_string(),
            "[0]: expected a scalar where the tool declaration prints one, found a list"
        );
        assert!(is_json(
            r#"{"properties": {"a": {"enum": [[1]]}, "b": {"oneOf": []}}}"#
        ));
    }
}
