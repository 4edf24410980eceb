//! The ids of tool calls, which in the K2 family are all that the model sees of a function's name.
//!
//! Kimi models write `functions.⟨name⟩:⟨n⟩`, n counting the calls of the whole conversation from 0. An id from
//! elsewhere, such as `call_9f3c`, takes the name away.

use crate::chat::conversation::{Conversation, Message};
use crate::chat::pairing::Pairing;

/// How many calls have an id that does not hold the name of their function as a word of its own.
#[must_use]
pub fn hidden_names(messages: &[Message<'_>]) -> u32 {
    let calls = messages.iter().flat_map(|message| &message.tool_calls);
    let hides = calls.filter(|call| !holds_word(call.id.unwrap_or(""), call.name.unwrap_or("")));
    hides.count() as u32
}

/// Whether `word` stands in `text` with no letter or digit before or after it.
fn holds_word(text: &str, word: &str) -> bool {
    let is_edge = |char: Option<char>| !char.is_some_and(char::is_alphanumeric);
    let mut found = text.match_indices(word);
    word.is_empty()
        || found.any(|(at, _)| {
            let (before, after) = (&text[..at], &text[at + word.len()..]);
            is_edge(before.chars().next_back()) && is_edge(after.chars().next())
        })
}

/// What the number in an id counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbering {
    /// The calls of the conversation.
    Conversation,
    /// Those of their message.
    Message,
}

/// An id in Kimi's form for each call, in order; None for a call whose function has no name.
#[must_use]
pub fn canonical(messages: &[Message<'_>], numbering: Numbering) -> Vec<Option<String>> {
    let calls = messages
        .iter()
        .flat_map(|message| message.tool_calls.iter().enumerate());
    calls
        .enumerate()
        .map(|(n, (position, call))| {
            let n = match numbering {
                Numbering::Conversation => n,
                Numbering::Message => position,
            };
            Some(format!("functions.{}:{n}", call.name?))
        })
        .collect()
}

/// The conversation with `ids` in place of its own, in calls and in the results that answer them. A result that answers
/// no call keeps its id.
#[must_use]
pub fn renamed<'v>(
    conversation: &Conversation<'v>,
    pairing: &Pairing,
    ids: &'v [Option<String>],
) -> Conversation<'v> {
    let mut renamed = conversation.clone();
    let messages = &mut renamed.messages;
    let ids = |call: usize| ids.get(call).and_then(Option::as_deref);
    for (index, call) in pairing.calls.iter().enumerate() {
        let call = &mut messages[call.message].tool_calls[call.position];
        call.id = ids(index).or(call.id);
    }
    for &(message, answer) in &pairing.answers {
        if let Some(id) = answer.call().and_then(ids) {
            messages[message].tool_call_id = Some(id);
        }
    }
    renamed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::json::Value;
    use crate::chat::templates::CallsNamedBy;

    /// The ids after renaming: of calls as they are, of results in brackets.
    fn ids(messages: &str) -> Vec<String> {
        let value = Value::from_json(messages.as_bytes()).unwrap();
        let conversation = Conversation::from_value(&value, None).unwrap();
        let pairing = Pairing::of(&conversation.messages, CallsNamedBy::Id);
        let ids = canonical(&conversation.messages, Numbering::Conversation);
        let renamed = renamed(&conversation, &pairing, &ids);
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
    fn results_find_their_calls_wherever_they_stand() {
        let answer = r#"{"role": "assistant", "content": "wait"}"#.to_owned();
        let unnamed = r#"{"role": "tool", "content": "r"}"#.to_owned();
        for (chat, expected) in [
            (
                vec![
                    calls(&[("x", "f"), ("y", "g")]),
                    result("x"),
                    answer,
                    result("y"),
                ],
                [
                    "functions.f:0",
                    "functions.g:1",
                    "[functions.f:0]",
                    "[functions.g:1]",
                ],
            ),
            (
                vec![calls(&[("x", "f"), ("y", "g")]), result("y"), unnamed],
                [
                    "functions.f:0",
                    "functions.g:1",
                    "[functions.g:1]",
                    "[functions.f:0]",
                ],
            ),
        ] {
            assert_eq!(ids(&format!("[{}]", chat.join(", "))), expected);
        }
    }

    #[test]
    fn a_name_is_shown_as_a_word() {
        for (id, name, is_hidden) in [
            ("functions.ls:0", "ls", false),
            ("call_ls_9", "ls", false),
            ("call_x7lsQ9", "ls", true),
            ("call_def", "f", true),
            ("functions.get_weather:3", "get_weather", false),
            ("", "f", true),
            ("call_1", "", false),
        ] {
            assert_eq!(!holds_word(id, name), is_hidden, "{id} {name}");
        }
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
