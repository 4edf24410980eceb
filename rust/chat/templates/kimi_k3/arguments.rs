//! The arguments of a call: a tag each, with the JSON type as an attribute.

use super::{Writer, is_blank};
use crate::chat::conversation::Arguments;
use crate::chat::json::{Object, Value};
use crate::chat::segment::{ControlToken, Part};
use crate::error::{Error, ErrorKind, Result};

/// Writes the arguments. A string is read as JSON first, so the spelling of its numbers and blanks is lost, as in the
/// reference; one that is not JSON stays as it is, in a tag that says so.
pub(super) fn write(writer: &mut Writer<'_>, arguments: Arguments<'_>) -> Result<()> {
    match arguments {
        Arguments::Absent => Ok(()),
        Arguments::Object(Value::Object(object)) => {
            write_object(writer, object);
            Ok(())
        }
        Arguments::Object(other) => Err(not_an_object(other)),
        Arguments::Text(text) if is_blank(text) => Ok(()),
        Arguments::Text(text) => match Value::from_possible_json(text)? {
            Some(Value::Object(object)) => {
                write_object(writer, &object);
                Ok(())
            }
            Some(other) => Err(not_an_object(&other)),
            None => {
                write_raw(writer, text);
                Ok(())
            }
        },
    }
}

fn not_an_object(found: &Value<'_>) -> Error {
    let message = format!("expected a JSON object, found {}", found.kind());
    Error::new(ErrorKind::Conversation, message)
}

fn write_object(writer: &mut Writer<'_>, object: &Object<'_>) {
    let marker = writer.facts_of(Part::ToolCallMarker);
    let inside = writer.facts_of(Part::ToolArguments);
    for (key, value) in object.iter() {
        let kind = match value {
            Value::String(_) => "string",
            Value::Bool(_) => "boolean",
            Value::Int(_) | Value::BigInt(_) | Value::Float(_) => "number",
            Value::Null => "null",
            Value::Object(_) => "object",
            Value::Array(_) => "array",
        };
        writer.begin_tag(marker, ControlToken::Open, "argument");
        writer.attribute(marker, inside, "key", key);
        writer.attribute(marker, marker, "type", kind);
        writer.token(marker, ControlToken::Sep);
        match value {
            Value::String(text) => writer.alone(inside, text),
            other => writer.json(inside, other),
        }
        writer.closing_tag(marker, "argument");
    }
}

fn write_raw(writer: &mut Writer<'_>, text: &str) {
    let marker = writer.facts_of(Part::ToolCallMarker);
    writer.begin_tag(marker, ControlToken::Open, "json");
    writer.attribute(marker, marker, "type", "object");
    writer.token(marker, ControlToken::Sep);
    writer.alone(writer.facts_of(Part::ToolArguments), text);
    writer.closing_tag(marker, "json");
}
