//! Which result answers which call: K3 puts results in the order of the calls, and names and numbers them.

use rustc_hash::FxHashMap;

use super::missing;
use crate::chat::conversation::{Message, ToolCall};
use crate::error::Result;

/// A message in its place.
pub(super) struct Placed<'v> {
    pub index: usize,
    /// The name of the call that it answers, if it is a result in a run of which every one names a call.
    call_name: Option<&'v str>,
}

/// The messages in the order in which they are rendered.
///
/// A run of tool messages is put in the order of the last assistant message's calls if every result of the run names
/// one of these; if one does not, the run stays as it is, and none takes its name from the id. Of calls with one id the
/// first counts.
pub(super) fn in_call_order<'v>(messages: &[Message<'v>]) -> Vec<Placed<'v>> {
    let mut placed = Vec::with_capacity(messages.len());
    let mut calls: FxHashMap<&str, (usize, Option<&'v str>)> = FxHashMap::default();
    for run in messages.chunk_by(|a, b| is_tool(a) && is_tool(b)) {
        let start = placed.len();
        if run[0].is_assistant() {
            calls.clear();
            for (position, call) in run[0].tool_calls.iter().enumerate() {
                if let Some(id) = call.id {
                    calls.entry(id).or_insert((position, call.name));
                }
            }
        }
        let call_of = |message: &Message<'v>| calls.get(message.result_id()?).copied();
        let answered: Option<Vec<_>> = run.iter().map(call_of).collect();
        match answered {
            Some(answered) if is_tool(&run[0]) => {
                let mut order: Vec<usize> = (0..run.len()).collect();
                order.sort_by_key(|&at| answered[at].0);
                placed.extend(order.into_iter().map(|at| Placed {
                    index: start + at,
                    call_name: answered[at].1,
                }));
            }
            _ => placed.extend((start..start + run.len()).map(|index| Placed {
                index,
                call_name: None,
            })),
        }
    }
    placed
}

fn is_tool(message: &Message<'_>) -> bool {
    message.role == "tool"
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
    pub(super) fn next<'v>(
        &mut self,
        message: &Message<'v>,
        placed: &Placed<'v>,
    ) -> Result<(&'v str, usize)>
    where
        'c: 'v,
    {
        let position = self.seen;
        self.seen += 1;
        let by_position = || self.calls.get(position).and_then(|call| call.name);
        let tool = placed
            .call_name
            .or(message.tool.filter(|tool| !tool.is_empty()))
            .or(message.name)
            .or_else(by_position)
            .ok_or_else(|| missing("a tool's name, or the id of a call").at("name"))?;
        Ok((tool, self.seen))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::conversation::Conversation;
    use crate::chat::json::Value;

    const CALLS: &str = r#"{"role": "assistant", "tool_calls": [
        {"id": "a", "function": {"name": "f", "arguments": "{}"}},
        {"id": "b", "function": {"name": "g", "arguments": "{}"}}]}"#;

    /// The results of two calls, `a` of `f` and `b` of `g`, as they are rendered: index, name and number.
    fn results(results: &str) -> Vec<(usize, String, usize)> {
        let json = format!("[{CALLS}, {results}]");
        let value = Value::from_json(json.as_bytes()).unwrap();
        let conversation = Conversation::from_value(&value, None).unwrap();
        let mut results = Results::default();
        results.begin(&conversation.messages[0]);
        let placed = in_call_order(&conversation.messages);
        let placed = placed[1..].iter();
        placed
            .filter(|placed| is_tool(&conversation.messages[placed.index]))
            .map(|placed| {
                let message = &conversation.messages[placed.index];
                let (name, number) = results.next(message, placed).unwrap();
                (placed.index, name.to_owned(), number)
            })
            .collect()
    }

    fn named(list: &[(usize, &str, usize)]) -> Vec<(usize, String, usize)> {
        list.iter()
            .map(|&(index, name, number)| (index, name.to_owned(), number))
            .collect()
    }

    #[test]
    fn results_take_order_and_names_from_the_calls() {
        let swapped =
            r#"{"role": "tool", "tool_call_id": "b"}, {"role": "tool", "id": "a", "name": "x"}"#;
        assert_eq!(results(swapped), named(&[(2, "f", 1), (1, "g", 2)]));
        let apart = r#"{"role": "tool", "tool_call_id": "b"}, {"role": "user"}, {"role": "tool", "tool_call_id": "a"}"#;
        assert_eq!(results(apart), named(&[(1, "g", 1), (3, "f", 2)]));
    }

    #[test]
    fn one_result_without_a_call_takes_order_and_names_from_all() {
        let unknown = r#"{"role": "tool", "tool_call_id": "b"}, {"role": "tool", "tool_call_id": "z", "name": "x"}"#;
        assert_eq!(results(unknown), named(&[(1, "f", 1), (2, "x", 2)]));
        let without =
            r#"{"role": "tool", "tool_call_id": "b", "tool": "y", "name": "x"}, {"role": "tool"}"#;
        assert_eq!(results(without), named(&[(1, "y", 1), (2, "g", 2)]));
    }
}
