//! A conversation as the rows that training on all its reasoning takes.
//!
//! Some templates show reasoning only since the last answer, so a finished conversation has lost most of it. Serving
//! showed it all, turn by turn, in prompts that differ. Each row here is such a prompt, grown to the answer that ends
//! it: every assistant message is trained in one row, after just the text that the model had before it.

use crate::chat::conversation::{Conversation, Message};

/// The first messages of a conversation, and what is made of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// How many messages.
    pub len: usize,
    /// How many of them are history, whose reasoning is not shown.
    pub history: usize,
    /// The first message that this row trains; those before it are trained by the rows before.
    pub train_from: usize,
}

/// The fewest rows. `reasoning` gives what the template would show of a message.
///
/// A row ends with an answer, since that turns what came before it into history. Where no reasoning gets lost by that,
/// the next row begins with the same text, and the two are one.
#[must_use]
pub fn rows(messages: &[Message<'_>], reasoning: for<'v> fn(&Message<'v>) -> &'v str) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut row = Row {
        len: 0,
        history: 0,
        train_from: 0,
    };
    let mut has_reasoning = false;
    let mut has_assistant = false;
    for (index, message) in messages.iter().enumerate() {
        row.len = index + 1;
        if !message.is_assistant() {
            continue;
        }
        has_assistant = true;
        has_reasoning |= !reasoning(message).is_empty();
        if !message.tool_calls.is_empty() {
            continue;
        }
        if has_reasoning {
            rows.push(row);
            row.train_from = index + 1;
            has_assistant = false;
            has_reasoning = false;
        }
        row.history = index + 1;
    }
    // What follows the last answer is trained if it holds an assistant message; a conversation without any is one row.
    if has_assistant || rows.is_empty() {
        row.len = messages.len();
        rows.push(row);
    }
    rows
}

impl Conversation<'_> {
    /// The conversation of a row: its messages, of which those before `train_from` weigh nothing.
    #[must_use]
    pub fn row(&self, row: Row) -> Self {
        let mut messages = self.messages[..row.len].to_vec();
        for message in messages[..row.train_from]
            .iter_mut()
            .filter(|message| message.is_assistant())
        {
            message.weight = Some(0.0);
        }
        Self {
            messages,
            tools: self.tools,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::json::Value;

    /// One letter a message: u user, t tool; c a call, C a call with reasoning; a an answer, A an answer with
    /// reasoning.
    fn rows_of(pattern: &str) -> Vec<(usize, usize, usize)> {
        let message = |letter: char| {
            let role = match letter {
                'u' => "user",
                't' => "tool",
                _ => "assistant",
            };
            let calls = match letter {
                'c' | 'C' => r#", "tool_calls": [{"id": "f", "function": {"arguments": "{}"}}]"#,
                _ => "",
            };
            let reasoning = if letter.is_uppercase() { "why" } else { "" };
            format!(r#"{{"role": "{role}", "reasoning_content": "{reasoning}"{calls}}}"#)
        };
        let messages: Vec<String> = pattern.chars().map(message).collect();
        let json = format!("[{}]", messages.join(","));
        let value = Value::from_json(json.as_bytes()).unwrap();
        let conversation = Conversation::from_value(&value, None).unwrap();
        rows(&conversation.messages, |message| {
            message.reasoning.reasoning_content.unwrap_or("")
        })
        .into_iter()
        .map(|row| (row.len, row.history, row.train_from))
        .collect()
    }

    #[test]
    fn a_row_ends_where_reasoning_would_get_lost() {
        assert_eq!(rows_of("uCtA"), [(4, 0, 0)]);
        assert_eq!(rows_of("uCtAuA"), [(4, 0, 0), (6, 4, 4)]);
        assert_eq!(rows_of("uCtAuCt"), [(4, 0, 0), (7, 4, 4)]);
        assert_eq!(rows_of("uAuAuA"), [(2, 0, 0), (4, 2, 2), (6, 4, 4)]);
    }

    #[test]
    fn rows_that_begin_alike_are_one() {
        assert_eq!(rows_of("uauaua"), [(6, 6, 0)]);
        assert_eq!(rows_of("uauA"), [(4, 2, 0)]);
        assert_eq!(rows_of("uAuaua"), [(2, 0, 0), (6, 6, 2)]);
        assert_eq!(rows_of("uctauCtA"), [(8, 4, 0)]);
    }

    #[test]
    fn what_no_assistant_follows_is_in_no_row() {
        assert_eq!(rows_of("uAu"), [(2, 0, 0)]);
        assert_eq!(rows_of("uau"), [(3, 2, 0)]);
        assert_eq!(rows_of("u"), [(1, 0, 0)]);
    }
}
