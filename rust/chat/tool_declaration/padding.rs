//! Nulls in tool declarations that say nothing.
//!
//! A table of Arrow gives every tool all the keys that any tool has, null where there was none: `"enum": null` in one
//! schema, a property of another tool in the next. Such a null counts as absent, as it does in messages. It stays where
//! a schema says something with it: as a default or a constant, and inside of these, of enums and of examples.

use crate::chat::conversation::Conversation;
use crate::chat::json::{Object, Value};

/// The keywords whose value may be null, and may hold nulls.
const DATA: [&str; 5] = ["default", "const", "enum", "examples", "example"];

/// The keywords below which keys are names that the author of the schema chose.
const NAMES: [&str; 6] = [
    "properties",
    "$defs",
    "definitions",
    "patternProperties",
    "dependentSchemas",
    "dependencies",
];

/// What the keys of an object are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keys {
    Keywords,
    Names,
}

impl Keys {
    /// What the keys below `key` are; None if all below it is data.
    fn below(self, key: &str) -> Option<Self> {
        match self {
            Self::Keywords if DATA.contains(&key) => None,
            Self::Keywords if NAMES.contains(&key) => Some(Self::Names),
            Self::Keywords | Self::Names => Some(Self::Keywords),
        }
    }

    fn is_padding(self, key: &str, value: &Value<'_>) -> bool {
        // An enum and examples are lists, so null is no value of theirs.
        let may_be_null = self == Self::Keywords && matches!(key, "default" | "const");
        matches!(value, Value::Null) && !may_be_null
    }
}

/// The way from a value to one inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'v> {
    /// To the value under a key of an object.
    Key(&'v str),
    /// To an item of a list.
    Index(usize),
}

/// The way to the first null that says nothing, the last step first.
fn find<'v>(value: &'v Value<'_>, keys: Keys) -> Option<Vec<Step<'v>>> {
    let after = |step: Step<'v>, mut way: Vec<Step<'v>>| {
        way.push(step);
        way
    };
    match value {
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(index, item)| Some(after(Step::Index(index), find(item, keys)?))),
        Value::Object(object) => object.iter().find_map(|(key, value)| {
            if keys.is_padding(key, value) {
                return Some(vec![Step::Key(key)]);
            }
            Some(after(Step::Key(key), find(value, keys.below(key)?)?))
        }),
        _ => None,
    }
}

/// The way from a list of tools to the first null that says nothing, the last step first.
#[must_use]
pub fn first_padding<'v>(tools: &'v [Value<'_>]) -> Option<Vec<Step<'v>>> {
    let mut tools = tools.iter().enumerate();
    tools.find_map(|(index, tool)| {
        let mut way = find(tool, Keys::Keywords)?;
        way.push(Step::Index(index));
        Some(way)
    })
}

/// `tools` without the nulls that say nothing; None if there are none.
fn without_padding<'v>(tools: &'v [Value<'_>]) -> Option<Vec<Value<'v>>> {
    first_padding(tools)?;
    Some(
        tools
            .iter()
            .map(|tool| stripped(tool, Keys::Keywords))
            .collect(),
    )
}

/// The tools of a conversation without the nulls that say nothing.
pub struct UnpaddedTools<'v> {
    declared: Option<Vec<Value<'v>>>,
    /// One entry a message.
    added: Vec<Option<Vec<Value<'v>>>>,
}

impl<'v> UnpaddedTools<'v> {
    /// None if no tool has such a null.
    #[must_use]
    pub fn of(conversation: &'v Conversation<'_>) -> Option<Self> {
        let messages = conversation.messages.iter();
        let tools = Self {
            declared: without_padding(conversation.tools),
            added: messages
                .map(|message| without_padding(message.tools))
                .collect(),
        };
        let is_padded = tools.declared.is_some() || tools.added.iter().any(Option::is_some);
        is_padded.then_some(tools)
    }

    /// The conversation with these in place of its own.
    #[must_use]
    pub fn put_into(&'v self, conversation: &Conversation<'v>) -> Conversation<'v> {
        let mut unpadded = conversation.clone();
        unpadded.tools = self.declared.as_deref().unwrap_or(unpadded.tools);
        for (message, tools) in unpadded.messages.iter_mut().zip(&self.added) {
            message.tools = tools.as_deref().unwrap_or(message.tools);
        }
        unpadded
    }
}

fn stripped<'v>(value: &'v Value<'_>, keys: Keys) -> Value<'v> {
    match value {
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| stripped(item, keys)).collect())
        }
        Value::Object(object) => {
            let kept = object
                .iter()
                .filter(|(key, value)| !keys.is_padding(key, value));
            let entries = kept.map(|(key, value)| match keys.below(key) {
                Some(keys) => (key.into(), stripped(value, keys)),
                None => (key.into(), value.borrowed()),
            });
            Value::Object(Object::from_entries(entries.collect()))
        }
        other => other.borrowed(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::json::Spacing;

    fn stripped_text(tools: &str) -> Option<String> {
        let value = Value::from_json(tools.as_bytes()).unwrap();
        let stripped = without_padding(value.as_array().unwrap())?;
        let mut text = String::new();
        Value::Array(stripped).write_json(Spacing::Compact, &mut text);
        Some(text)
    }

    #[test]
    fn keys_that_are_null_are_gone_at_every_level() {
        assert_eq!(
            stripped_text(
                r#"[{"function": {"name": "f", "description": null, "parameters": {
                    "properties": {"a": null, "b": {"type": "string", "enum": null, "items": {"title": null}}},
                    "anyOf": [{"$ref": null, "type": "string"}]}}, "strict": null}]"#
            )
            .unwrap(),
            r#"[{"function":{"name":"f","parameters":{"properties":{"b":{"type":"string","items":{}}},"anyOf":[{"type":"string"}]}}}]"#
        );
    }

    #[test]
    fn nulls_that_say_something_stay() {
        let meaningful = r#"[{"function": {"parameters": {"properties": {
            "a": {"default": null, "const": null, "enum": ["x", null], "examples": [null, {"k": null}]},
            "b": {"default": {"k": null}}}, "required": [null]}}}]"#;
        assert_eq!(stripped_text(meaningful), None);
    }

    #[test]
    fn a_property_may_be_called_like_a_keyword() {
        assert_eq!(
            stripped_text(
                r#"[{"properties": {"default": {"title": null, "type": "string"}, "const": null}, "default": null}]"#
            )
            .unwrap(),
            r#"[{"properties":{"default":{"type":"string"}},"default":null}]"#
        );
    }
}
