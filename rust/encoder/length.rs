//! Rows that are longer than they may be.
//!
//! What is left out is left out of the full rendering, message by message, so the ids that stay are the ones that they
//! were. Messages are told apart by their spans.

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::chat::segment::Role;
use crate::encoder::encoded::{EncodedConversation, Span};
use crate::error::{Error, ErrorKind, Result};

/// How long a row may be, and what becomes of a longer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxLength {
    /// In tokens.
    pub tokens: usize,
    /// What becomes of a longer row.
    pub truncate: Truncate,
}

/// What becomes of a row that is too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Truncate {
    /// Whole messages are left out from the end.
    #[default]
    Turn,
    /// All up to the first user message stays (without one, all up to the first answer); of the rest the oldest whole
    /// messages are left out, a call together with its results.
    LeftTurn,
    /// It ends after the last token that fits.
    Token,
    /// The row is left out.
    Drop,
    /// It is an error.
    Raise,
}

impl Truncate {
    /// The choice of this name: `turn`, `left_turn`, `token`, `drop` or `raise`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "turn" => Some(Self::Turn),
            "left_turn" => Some(Self::LeftTurn),
            "token" => Some(Self::Token),
            "drop" => Some(Self::Drop),
            "raise" => Some(Self::Raise),
            _ => None,
        }
    }
}

/// Neighbouring spans of one message, or of what no message holds.
struct Unit {
    start: usize,
    end: usize,
    message_index: Option<u32>,
    role: Role,
}

fn units(spans: &[Span]) -> Vec<Unit> {
    spans
        .chunk_by(|a, b| a.facts.message_index == b.facts.message_index)
        .map(|spans| Unit {
            start: spans[0].start as usize,
            end: spans[spans.len() - 1].end as usize,
            message_index: spans[0].facts.message_index,
            role: spans[0].facts.role,
        })
        .collect()
}

/// For each tool message that answers a call the index of that call's message.
pub(super) type CallsOfResults = FxHashMap<u32, u32>;

/// Makes `row` fit, before its mask is written. Returns false if it is to be left out.
///
/// # Errors
/// [`ErrorKind::Conversation`] with [`Truncate::Raise`], or if not even the part that must stay fits.
pub(super) fn fit(
    row: &mut EncodedConversation,
    max_length: MaxLength,
    calls: &CallsOfResults,
) -> Result<bool> {
    let MaxLength { tokens, truncate } = max_length;
    let len = row.input_ids.len();
    if len <= tokens {
        return Ok(true);
    }
    let too_long = |what: &str, len: usize| {
        let message = format!("expected at most {tokens} tokens, found {len}{what}");
        Err(Error::new(ErrorKind::Conversation, message))
    };
    let units = units(&row.spans);
    match truncate {
        Truncate::Drop => return Ok(false),
        Truncate::Raise => return too_long("", len),
        Truncate::Token => remove(row, tokens, len),
        Truncate::Turn => {
            let kept = units.iter().take_while(|unit| unit.end <= tokens).last();
            let Some(last) = kept else {
                let what = match units[0].message_index {
                    Some(_) => " in the first message",
                    None => " before the first message",
                };
                return too_long(what, units[0].end);
            };
            remove(row, last.end, len);
        }
        Truncate::LeftTurn => {
            let first_user = units.iter().position(|unit| unit.role == Role::User);
            let is_said = |unit: &Unit| matches!(unit.role, Role::Assistant | Role::Tool);
            let before = || units.iter().take_while(|unit| !is_said(unit)).count();
            let head = first_user.map_or_else(before, |first_user| first_user + 1);
            let head_len = head.checked_sub(1).map_or(0, |last| units[last].end);
            let starts = starts(&units[head..], calls);
            let fits = |unit: &&Unit| head_len + (len - unit.start) <= tokens;
            match starts.into_iter().find(fits) {
                Some(unit) => remove(row, head_len, unit.start),
                None if head_len > tokens => {
                    let what = match first_user {
                        Some(_) => " up to the first user message",
                        None => " before the first answer",
                    };
                    return too_long(what, head_len);
                }
                // Not even the last message fits beside the beginning.
                None => remove(row, head_len, len),
            }
        }
    }
    row.notices.cut_tokens = (len - row.input_ids.len()) as u32;
    Ok(true)
}

/// The messages at which what is kept may begin: no result is kept whose call is not.
fn starts<'u>(units: &'u [Unit], calls: &CallsOfResults) -> Vec<&'u Unit> {
    let mut starts = Vec::new();
    // The earliest call that a result from here on answers.
    let mut earliest = u32::MAX;
    for unit in units.iter().rev() {
        let Some(index) = unit.message_index else {
            continue;
        };
        earliest = earliest.min(calls.get(&index).copied().unwrap_or(u32::MAX));
        // A result that answers no call belongs to what is before it.
        if unit.role != Role::Tool && earliest >= index {
            starts.push(unit);
        }
    }
    starts.reverse();
    starts
}

/// Leaves tokens `from..to` out.
fn remove(row: &mut EncodedConversation, from: usize, to: usize) {
    row.input_ids.drain(from..to);
    let moved = |at: u32| {
        let at = at as usize;
        (if at <= from {
            at
        } else {
            at.max(to) - (to - from)
        }) as u32
    };
    for span in &mut row.spans {
        span.start = moved(span.start);
        span.end = moved(span.end);
    }
    row.spans.retain(|span| !span.is_empty());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::conversation::Conversation;
    use crate::chat::json::Value;
    use crate::encoder::{EncodeOptions, Encoder};

    const CHAT: &[u8] = br#"[
        {"role": "system", "content": "s"}, {"role": "user", "content": "u1"},
        {"role": "assistant", "tool_calls": [{"id": "functions.f:0", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "functions.f:0", "content": "result"},
        {"role": "assistant", "content": "a1"}, {"role": "user", "content": "u2"}, {"role": "assistant", "content": "a2"}
    ]"#;

    fn encoded(chat: &[u8], max_length: Option<MaxLength>) -> Result<EncodedConversation> {
        let encoder = Encoder::from_model("kimi-k2.5", None).unwrap();
        let value = Value::from_json(chat).unwrap();
        let conversation = Conversation::from_value(&value, None).unwrap();
        let options = EncodeOptions {
            max_length,
            ..EncodeOptions::default()
        };
        encoder.encode_conversation(&conversation, options)
    }

    /// The messages that are left when at most `tokens` may stay, t for the tools, or the error.
    fn left_of(chat: &[u8], tokens: usize, truncate: Truncate) -> String {
        match encoded(chat, Some(MaxLength { tokens, truncate })) {
            Ok(one) => {
                assert!(one.input_ids.len() <= tokens);
                assert_eq!(one.input_ids.len(), one.loss_mask.len());
                assert_eq!(one.spans.last().unwrap().end as usize, one.input_ids.len());
                let full = encoded(chat, None).unwrap();
                let cut = full.input_ids.len() - one.input_ids.len();
                assert_eq!(one.notices.cut_tokens as usize, cut);
                let units = units(&one.spans);
                let name = |unit: &Unit| match unit.message_index {
                    Some(index) => index.to_string(),
                    None => "t".to_owned(),
                };
                units.iter().map(name).collect()
            }
            Err(error) => error.to_string(),
        }
    }

    fn left(tokens: usize, truncate: Truncate) -> String {
        left_of(CHAT, tokens, truncate)
    }

    #[test]
    fn a_result_is_never_kept_without_its_call() {
        let chat = br#"[{"role": "user", "content": "u"}, {"role": "assistant", "tool_calls": [
            {"id": "a", "function": {"name": "f", "arguments": "{}"}}, {"id": "b", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "a", "content": "r"}, {"role": "user", "content": "v"},
            {"role": "tool", "tool_call_id": "b", "content": "r"}, {"role": "assistant", "content": "x"}]"#;
        assert_eq!(left_of(chat, 1000, Truncate::LeftTurn), "012345");
        let kept = (6..70).map(|tokens| left_of(chat, tokens, Truncate::LeftTurn));
        let mut kept: Vec<String> = kept.collect();
        kept.dedup();
        assert_eq!(kept, ["0", "05", "012345"]);
    }

    #[test]
    fn without_a_user_all_up_to_the_first_answer_stays() {
        let chat = br#"{"messages": [{"role": "system", "content": "s"}, {"role": "assistant", "content": "x"},
            {"role": "assistant", "content": "y"}], "tools": [{"type": "function", "function": {"name": "f"}}]}"#;
        let kept = (1..60).map(|tokens| left_of(chat, tokens, Truncate::LeftTurn));
        let mut kept: Vec<String> = kept.filter(|kept| !kept.starts_with("expected")).collect();
        kept.dedup();
        assert_eq!(kept, ["t0", "t02", "t012"]);
    }

    #[test]
    fn whole_messages_are_left_out() {
        // The messages end at 5, 11, 27, 40, 48, 54 and 62 tokens.
        let lengths = [62, 61, 54, 47, 39, 27, 26, 11, 5];
        let turn = lengths.map(|tokens| left(tokens, Truncate::Turn));
        assert_eq!(
            turn,
            [
                "0123456", "012345", "012345", "0123", "012", "012", "01", "01", "0"
            ]
        );
        assert_eq!(
            left(4, Truncate::Turn),
            "expected at most 4 tokens, found 5 in the first message"
        );
        let left_turn = lengths.map(|tokens| left(tokens, Truncate::LeftTurn));
        assert_eq!(
            left_turn,
            [
                "0123456",
                "01456",
                "01456",
                "01456",
                "01456",
                "0156",
                "0156",
                "01",
                "expected at most 5 tokens, found 11 up to the first user message"
            ]
        );
    }

    #[test]
    fn a_row_may_be_cut_anywhere_left_out_or_refused() {
        assert_eq!(left(30, Truncate::Token), "0123");
        assert_eq!(
            left(61, Truncate::Raise),
            "expected at most 61 tokens, found 62"
        );
        assert_eq!(left(62, Truncate::Raise), "0123456");
        assert_eq!(
            left(61, Truncate::Drop),
            "longer than 61 tokens, and to be left out"
        );
    }
}
