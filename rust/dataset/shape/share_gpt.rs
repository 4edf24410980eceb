//! `ShareGPT`'s turns to messages.
//!
//! A turn says who speaks and what, and the speakers have had many names. What else a turn has stays in the message:
//! weights and the like are spelled the same everywhere. A system turn may have its text where the records of others have
//! it: `SWE-agent`'s do.

use std::borrow::Cow;

use super::calls::Calls;
use super::message::{entry, text};
use super::{Field, Layout};
use crate::chat::conversation::{expected, fault};
use crate::chat::json::{Object, Value};
use crate::error::{Error, Result};

impl Layout {
    pub(super) fn share_gpt<'v>(&self, record: &'v Object<'v>) -> Result<Value<'v>> {
        let name = self.name(Field::Conversations).to_owned();
        let turns = self.needed(record, Field::Conversations)?;
        let Value::Array(turns) = turns else {
            return Err(expected("a list of turns", &turns).at(name));
        };
        let mut messages = self.system_message(record)?;
        let mut calls = Calls::default();
        for (index, turn) in turns.into_iter().enumerate() {
            let message = self.share_gpt_message(turn, &mut calls);
            let at = |error: Error| error.at_index(index).at(name.clone());
            messages.push(message.map_err(at)?);
        }
        Ok(Value::Array(messages))
    }

    fn share_gpt_message<'v>(&self, turn: Value<'v>, calls: &mut Calls) -> Result<Value<'v>> {
        let Value::Object(turn) = turn else {
            return Err(expected("an object", &turn));
        };
        let speaker = self.speaker(&turn)?;
        let has_id = turn.get("tool_call_id").is_some();
        let (from_key, value_key) = (self.name(Field::From), self.name(Field::Value));
        let mut said = Value::Null;
        let mut others = Vec::new();
        for (key, value) in turn.into_entries() {
            if key == value_key {
                said = value;
            } else if key != from_key && key != "role" {
                others.push((key, value));
            }
        }
        let mut entries = vec![entry("role", text(speaker.role()))];
        if speaker == Speaker::System && !said.is_truthy() {
            let is_prompt = |(key, _): &(Cow<'_, str>, _)| Field::System.names().contains(&&**key);
            if let Some(index) = others.iter().position(is_prompt) {
                said = others.swap_remove(index).1;
            }
        }
        let (said_key, said) = match speaker {
            Speaker::Call => {
                let made = calls.made(said);
                let made = made.map_err(|error| error.at(value_key.to_owned()))?;
                ("tool_calls", made)
            }
            _ => ("content", said),
        };
        if said != Value::Null {
            // Tables fill the keys of other spellings with null, which must not take the place of what is said.
            others.retain(|(key, _)| key != said_key);
            entries.push(entry(said_key, said));
        }
        entries.extend(others);
        match speaker {
            Speaker::User => calls.forget(),
            Speaker::Tool if !has_id => {
                if let Some(id) = calls.answered() {
                    entries.push(entry("tool_call_id", Value::String(Cow::Owned(id))));
                }
            }
            _ => {}
        }
        Ok(Value::Object(Object::from_entries(entries)))
    }

    fn speaker(&self, turn: &Object<'_>) -> Result<Speaker> {
        let from_key = self.name(Field::From);
        let found = match turn.get(from_key) {
            Some(Value::String(name)) => Speaker::of(name).ok_or_else(|| {
                fault(format!(
                    "expected human, user, gpt, assistant, system, tool, observation, function_response or \
                     function_call, found {name:?}"
                ))
            }),
            Some(other) => Err(expected("a string", other)),
            None => Err(fault("missing")),
        };
        found.map_err(|error| error.at(from_key.to_owned()))
    }
}

/// Who speaks in a turn of `ShareGPT`'s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaker {
    System,
    User,
    Assistant,
    /// The assistant, calling functions.
    Call,
    Tool,
}

impl Speaker {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "system" => Self::System,
            "human" | "user" => Self::User,
            "gpt" | "assistant" | "ai" | "chatgpt" | "bing" | "bard" | "model" => Self::Assistant,
            "function_call" | "function-call" => Self::Call,
            "tool" | "observation" | "function_response" | "function-response" => Self::Tool,
            _ => return None,
        })
    }

    fn role(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant | Self::Call => "assistant",
            Self::Tool => "tool",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Shape;
    use super::super::testing::{became, error_of};

    #[test]
    fn share_gpt_turns_become_messages() {
        let record = r#"{"system": "s", "tools": "", "conversations": [
            {"from": "human", "value": "a"},
            {"from": "function_call", "value": "{\"name\": \"f\", \"arguments\": {\"x\": 1}}"},
            {"from": "observation", "value": "r"},
            {"from": "gpt", "value": "b", "weight": 0}]}"#;
        let expected = "{'messages':[{'role':'system','content':'s'},{'role':'user','content':'a'},\
            {'role':'assistant','tool_calls':[{'id':'functions.f:0','type':'function',\
            'function':{'name':'f','arguments':{'x':1}}}]},\
            {'role':'tool','content':'r','tool_call_id':'functions.f:0'},\
            {'role':'assistant','content':'b','weight':0}],'tools':[]}";
        let (shape, out) = became(record, &[]).unwrap();
        assert_eq!((shape, out.as_str()), (Shape::ShareGpt, expected));
    }

    #[test]
    fn errors_name_the_turn() {
        let cases = [
            (
                r#"{"conversations": [{"from": "human", "value": "a"}, {"from": "narrator"}]}"#,
                "conversations[1].from: expected human",
            ),
            (
                r#"{"conversations": [{"from": "human", "value": "a"}, 3]}"#,
                "conversations[1]: expected an object, found a number",
            ),
            (
                r#"{"conversations": [{"from": "human"}, {"from": "function_call", "value": "{}"}]}"#,
                "conversations[1].value: expected an object with `name`",
            ),
        ];
        for (record, expected) in cases {
            let error = error_of(record);
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn the_speaker_and_the_value_hold_against_other_spellings() {
        let record = r#"{"conversations": [
            {"from": "human", "value": "a", "role": null, "content": null},
            {"from": "function_call", "value": "{\"name\": \"f\", \"arguments\": {}}", "tool_calls": null},
            {"from": "tool", "value": "r", "role": "user", "tool_call_id": null}]}"#;
        let expected = "{'messages':[{'role':'user','content':'a'},\
            {'role':'assistant','tool_calls':[{'id':'functions.f:0','type':'function',\
            'function':{'name':'f','arguments':{}}}]},\
            {'role':'tool','content':'r','tool_call_id':'functions.f:0'}]}";
        assert_eq!(became(record, &[]).unwrap().1, expected);
    }

    #[test]
    fn a_result_answers_no_call_from_before_the_user_spoke() {
        let record = r#"{"conversations": [
            {"from": "function_call", "value": "{\"name\": \"f\", \"arguments\": {}}"},
            {"from": "human", "value": "stop"},
            {"from": "function_call", "value": "{\"name\": \"g\", \"arguments\": {}}"},
            {"from": "observation", "value": "r"}]}"#;
        let (_, out) = became(record, &[]).unwrap();
        assert!(out.contains("'tool_call_id':'functions.g:1'"), "{out}");
    }
}
