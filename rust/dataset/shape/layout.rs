//! A shape with the names that its fields have in some records: enough to read them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::json_text::parsed;
use super::message::{entry, message, text};
use super::{Field, Shape};
use crate::chat::conversation::{expected, fault};
use crate::chat::json::{Object, Value};
use crate::error::{Error, Result};

/// How many fields of a record an error names.
const QUOTED_FIELDS: usize = 10;

/// A shape, and the names that its fields have in some records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// The shape of the records.
    pub shape: Shape,
    /// The field and its name in the record, for each field that is not under its own name.
    #[serde(rename = "fields")]
    pub names: BTreeMap<Field, String>,
}

impl Layout {
    /// `shape` with every field under its own name, but those that `names` says.
    #[must_use]
    pub fn new(shape: Shape, names: BTreeMap<Field, String>) -> Self {
        Self { shape, names }
    }

    /// The name of a field in the record.
    #[must_use]
    pub fn name(&self, field: Field) -> &str {
        let named = self.names.get(&field);
        named.map_or(field.as_str(), String::as_str)
    }

    /// Whether the record can be read as it is: it is in `OpenAI`'s spelling, and no list of it is JSON in a string.
    #[must_use]
    pub fn reads_as_is(&self, record: &Object<'_>) -> bool {
        let is_text = |value: &Value<'_>| value.as_str().is_some();
        let holds_text = |value: &Value<'_>| {
            is_text(value)
                || value
                    .as_array()
                    .is_some_and(|items| items.iter().any(is_text))
        };
        self.shape == Shape::Messages
            && self.names.is_empty()
            && record
                .get("messages")
                .is_some_and(|messages| !holds_text(messages))
            && !record.get("tools").is_some_and(holds_text)
    }

    /// The record as an object with `messages` and, if it has them, `tools`.
    ///
    /// # Errors
    /// [`ErrorKind::Conversation`](crate::error::ErrorKind::Conversation) with the place in the record.
    pub fn conversation<'v>(&self, record: &'v Object<'v>) -> Result<Value<'v>> {
        let messages = match self.shape {
            Shape::Messages => self.needed(record, Field::Messages)?,
            Shape::ShareGpt => self.share_gpt(record)?,
            Shape::PromptResponse => self.prompt_response(record)?,
            Shape::Instruction => self.instruction(record)?,
        };
        let mut entries = vec![entry("messages", messages)];
        if let Some(tools) = self.optional(record, Field::Tools)? {
            entries.push(entry("tools", self.tools(tools)));
        }
        Ok(Value::Object(Object::from_entries(entries)))
    }

    /// The system message, if there is one; an empty text is none.
    pub(super) fn system_message<'v>(&self, record: &'v Object<'v>) -> Result<Vec<Value<'v>>> {
        let said = self.said(record, Field::System)?;
        let said = said.filter(|said| !said.is_empty());
        Ok(said
            .map(|said| message("system", text(said)))
            .into_iter()
            .collect())
    }

    pub(super) fn said<'v>(&self, record: &'v Object<'v>, field: Field) -> Result<Option<&'v str>> {
        match record.get(self.name(field)) {
            None => Ok(None),
            Some(Value::String(said)) => Ok(Some(said)),
            Some(other) => Err(expected("a string", other).at(self.name(field).to_owned())),
        }
    }

    pub(super) fn needed<'v>(&self, record: &'v Object<'v>, field: Field) -> Result<Value<'v>> {
        let found = self.optional(record, field)?;
        found.ok_or_else(|| self.missing(record, field))
    }

    /// The error of a record without a field that it needs.
    pub(super) fn missing(&self, record: &Object<'_>, field: Field) -> Error {
        let has_value = |(_, value): &(&str, &Value<'_>)| **value != Value::Null;
        let keys = record.iter().filter(has_value).take(QUOTED_FIELDS);
        let keys = keys.map(|(key, _)| key).collect::<Vec<_>>().join(", ");
        let keys = if keys.is_empty() { "no field" } else { &keys };
        let message =
            format!("missing; the record has {keys}: `shape` and `fields` say how to read it");
        fault(message).at(self.name(field).to_owned())
    }

    pub(super) fn optional<'v>(
        &self,
        record: &'v Object<'v>,
        field: Field,
    ) -> Result<Option<Value<'v>>> {
        let value = record.get(self.name(field)).map(parsed).transpose();
        value.map_err(|error| error.at(self.name(field).to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{became, error_of};
    use super::*;

    #[test]
    fn names_that_are_given_come_first() {
        let names = [
            (Field::Prompt, "q".to_owned()),
            (Field::Response, "r".to_owned()),
        ];
        let record = r#"{"q": "a", "prompt": "x", "r": "b"}"#;
        let expected =
            "{'messages':[{'role':'user','content':'a'},{'role':'assistant','content':'b'}]}";
        assert_eq!(became(record, &names).unwrap().1, expected);
    }

    #[test]
    fn errors_name_the_fields_of_the_record() {
        let error = error_of(r#"{"text": "a", "b": 1}"#);
        assert!(
            error.starts_with("messages: missing; the record has text, b"),
            "{error}"
        );
    }
}
