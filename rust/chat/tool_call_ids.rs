//! The ids of tool calls, which in the K2 family are all that the model sees of a function's name.
//!
//! Kimi models write `functions.⟨name⟩:⟨n⟩`, n counting the calls of the whole conversation from 0. An id from elsewhere, such
//! as `call_9f3c`, takes the name away.

use crate::chat::conversation::{Conversation, Message};

/// How many calls have an id that does not hold the name of their function.
#[must_use]
pub fn hidden_names(messages: &[Message<'_>]) -> u32 {
    let calls = messages.iter().flat_map(|message| &message.tool_calls);
    let hides = calls.filter(|call| {
        let name = call.name.unwrap_or("");
        !call.id.unwrap_or("").contains(name)
    });
    hides.count() as u32
}

/// An id in Kimi's form for each call, in order; None for a call whose function has no name.
#[must_use]
pub fn canonical(messages: &[Message<'_>]) -> Vec<Option<String>> {
    let calls = messages.iter().flat_map(|message| &message.tool_calls);
    calls
        .enumerate()
        .map(|(n, call)| Some(format!("functions.{}:{n}", call.name?)))
        .collect()
}

/// A call that results may still answer.
struct Open<'v> {
    id: Option<&'v str>,
    renamed: Option<&'v str>,
    is_answered: bool,
}

/// The conversation with `ids` in place of its own, in calls and in their results.
///
/// A result belongs to the call of its place in the turn if that has the same id or it has none itself, else to the first
/// call of the last assistant message that has its id and no result yet. One that answers no call keeps its id.
#[must_use]
pub fn renamed<'v>(conversation: &Conversation<'v>, ids: &'v [Option<String>]) -> Conversation<'v> {
    let mut messages = conversation.messages.clone();
    let mut ids = ids.iter().map(Option::as_deref);
    let mut open: Vec<Open<'v>> = Vec::new();
    let mut results = 0;
    for message in &mut messages {
        if message.is_assistant() {
            open.clear();
            results = 0;
            for call in &mut message.tool_calls {
                let renamed = ids.next().flatten();
                open.push(Open {
                    id: call.id,
                    renamed,
                    is_answered: false,
                });
                call.id = renamed.or(call.id);
            }
        } else if message.role == "tool" {
            let at_its_place = open.get(results).is_some_and(|call| {
                message.tool_call_id.is_none() || call.id == message.tool_call_id
            });
            let by_id = || {
                let mut calls = open.iter();
                calls.position(|call| call.id == message.tool_call_id && !call.is_answered)
            };
            let answered = if at_its_place { Some(results) } else { by_id() };
            if let Some(call) = answered.and_then(|position| open.get_mut(position)) {
                call.is_answered = true;
                message.tool_call_id = call.renamed.or(message.tool_call_id);
            }
            results += 1;
        }
    }
    Conversation {
        messages,
        tools: conversation.tools,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::json::Value;

    /// The ids after renaming: of calls as they are, of results in brackets.
    fn ids(messages: &str) -> Vec<String> {
        let value = Value::from_json(messages.as_bytes()).unwrap();
        let conversation = Conversation::from_value(&value, None).unwrap();
        let ids = canonical(&conversation.messages);
        let renamed = renamed(&conversation, &ids);
        let mut found = Vec::new();
        for message in &renamed.messages {
            found.extend(
                message
                    .tool_calls
                    .iter()
                    .map(|call| call.id.unwrap_or("").to_owned()),
            );
            found.extend(message.tool_call_id.map(|id| format!("[{id}]")));
        }
        found
    }

    fn calls(calls: &[(&str, &str)]) -> String {
        let call = |(id, name): &(&str, &str)| {
            format!(r#"{{"id": "{id}", "function": {{"name": "{name}", "arguments": "{{}}"}}}}"#)
        };
        let calls: Vec<String> = calls.iter().map(call).collect();
        format!(
            r#"{{"role": "assistant", "tool_calls": [{}]}}"#,
            calls.join(", ")
        )
    }

    fn result(id: &str) -> String {
        format!(r#"{{"role": "tool", "content": "r", "tool_call_id": "{id}"}}"#)
    }

    #[test]
    fn one_counter_runs_through_the_conversation() {
        let chat = [
            calls(&[("call_a", "f"), ("call_b", "g")]),
            result("call_b"),
            result("call_a"),
            calls(&[("call_a", "f")]),
            result("call_a"),
        ];
        assert_eq!(
            ids(&format!("[{}]", chat.join(", "))),
            [
                "functions.f:0",
                "functions.g:1",
                "[functions.g:1]",
                "[functions.f:0]",
                "functions.f:2",
                "[functions.f:2]"
            ]
        );
    }

    #[test]
    fn equal_ids_are_told_apart_by_their_place() {
        let chat = [calls(&[("x", "f"), ("x", "f")]), result("x"), result("x")];
        assert_eq!(
            ids(&format!("[{}]", chat.join(", "))),
            [
                "functions.f:0",
                "functions.f:1",
                "[functions.f:0]",
                "[functions.f:1]"
            ]
        );
    }

    #[test]
    fn what_answers_no_call_keeps_its_id() {
        let chat = [calls(&[("x", "f")]), result("y"), result("x"), result("x")];
        assert_eq!(
            ids(&format!("[{}]", chat.join(", "))),
            ["functions.f:0", "[y]", "[functions.f:0]", "[x]"]
        );
    }
}
