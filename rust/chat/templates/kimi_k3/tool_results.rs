//! Which result answers which call: K3 puts results in the order of the calls, and names and numbers them.

use std::ops::Range;

use super::missing;
use crate::chat::conversation::{Message, ToolCall};
use crate::error::Result;

fn is_tool(message: &Message<'_>) -> bool {
    message.role == "tool"
}

fn call_id<'v>(message: &Message<'v>) -> Option<&'v str> {
    message.tool_call_id.or(message.id)
}

/// The indices of the messages in the order in which they are rendered.
///
/// A run of tool messages is put in the order of the last assistant message's calls, if each of them names one of these.
pub(super) fn in_call_order(messages: &[Message<'_>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..messages.len()).collect();
    let mut calls: &[ToolCall<'_>] = &[];
    let mut index = 0;
    while index < messages.len() {
        if is_tool(&messages[index]) {
            let run = run_at(messages, index);
            index = run.end;
            let position = |message: usize| {
                let id = call_id(&messages[message])?;
                calls.iter().position(|call| call.id == Some(id))
            };
            if run.clone().all(|message| position(message).is_some()) {
                order[run].sort_by_key(|&message| position(message));
            }
        } else {
            if messages[index].is_assistant() {
                calls = &messages[index].tool_calls;
            }
            index += 1;
        }
    }
    order
}

fn run_at(messages: &[Message<'_>], start: usize) -> Range<usize> {
    let len = messages[start..]
        .iter()
        .take_while(|message| is_tool(message))
        .count();
    start..start + len
}

/// The calls that results may still answer.
#[derive(Default)]
pub(super) struct Results<'c> {
    calls: &'c [ToolCall<'c>],
    /// Tool messages since the last assistant message.
    seen: usize,
}

impl<'c> Results<'c> {
    /// A new assistant message: counting starts anew.
    pub(super) fn begin(&mut self, message: &'c Message<'c>) {
        self.calls = &message.tool_calls;
        self.seen = 0;
    }

    /// The name of the tool that a result comes from, and the number of the result, from 1.
    pub(super) fn next<'v>(&mut self, message: &Message<'v>) -> Result<(&'v str, usize)>
    where
        'c: 'v,
    {
        let position = self.seen;
        self.seen += 1;
        let by_id = call_id(message)
            .and_then(|id| self.calls.iter().find(|call| call.id == Some(id)))
            .and_then(|call| call.name);
        let by_position = || self.calls.get(position).and_then(|call| call.name);
        let tool = by_id
            .or(message.tool)
            .or(message.name)
            .or_else(by_position)
            .ok_or_else(|| missing("a tool's name, or the id of a call").at("name"))?;
        Ok((tool, self.seen))
    }
}
