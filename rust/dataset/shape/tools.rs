//! Tools as other spellings than OpenAI's declare them: functions without the object around them.
//!
//! `LLaMA-Factory` documents the bare form for its own files and reads both. Kimi's templates would print a bare function
//! as it is, which is not what the models have seen.

use super::message::{entry, text};
use super::{Layout, Shape};
use crate::chat::json::{Object, Value};

impl Layout {
    /// The tools as `OpenAI` spells them. Whoever spells messages as `OpenAI` does means their tools as they are.
    pub(super) fn tools<'v>(&self, tools: Value<'v>) -> Value<'v> {
        match tools {
            Value::Array(tools) if self.shape != Shape::Messages => {
                Value::Array(tools.into_iter().map(declared).collect())
            }
            tools => tools,
        }
    }
}

fn declared(tool: Value<'_>) -> Value<'_> {
    if is_bare_function(&tool) {
        let entries = vec![entry("type", text("function")), entry("function", tool)];
        Value::Object(Object::from_entries(entries))
    } else {
        tool
    }
}

/// Whether it is what `OpenAI` has under `function`. What has a type says itself what it is.
pub(super) fn is_bare_function(tool: &Value<'_>) -> bool {
    let has = |key| tool.as_object().is_some_and(|tool| tool.get(key).is_some());
    has("name") && !has("type") && !has("function")
}

#[cfg(test)]
mod tests {
    use super::super::testing::became;

    #[test]
    fn a_bare_function_becomes_a_tool_and_nothing_else_does() {
        let record = r#"{"conversations": [{"from": "gpt", "value": "a"}], "tools":
            "[{\"name\": \"f\"}, {\"type\": \"function\", \"function\": {\"name\": \"g\"}}, {\"type\": \"plugin\", \"name\": \"h\"}]"}"#;
        let expected = "'tools':[{'type':'function','function':{'name':'f'}},\
            {'type':'function','function':{'name':'g'}},{'type':'plugin','name':'h'}]}";
        let (_, out) = became(record, &[]).unwrap();
        assert!(out.ends_with(expected), "{out}");
    }

    #[test]
    fn the_tools_of_messages_stay_as_they_are() {
        let record =
            r#"{"messages": [{"role": "user", "content": "a"}], "tools": "[{\"name\": \"f\"}]"}"#;
        let (_, out) = became(record, &[]).unwrap();
        assert!(out.ends_with("'tools':[{'name':'f'}]}"), "{out}");
    }
}
