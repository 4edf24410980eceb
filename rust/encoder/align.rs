//! Tokens of a run back to the segments they came from.
//!
//! A token may cross the border between two segments of a run. It belongs to the segment of its first byte.

use crate::chat::segment::{Body, Facts, Segment};
use crate::encoder::encoded::Span;
use crate::tokenizer::{TokenId, Tokenizer};

/// Appends tokens `..end` to the spans: to the last one if the facts are the same, else as a new one.
pub(super) fn push_span(spans: &mut Vec<Span>, facts: Facts, end: usize) {
    let start = spans.last().map_or(0, |span| span.end);
    let end = end as u32;
    match spans.last_mut() {
        _ if start == end => {}
        Some(last) if last.facts == facts => last.end = end,
        _ => spans.push(Span { facts, start, end }),
    }
}

/// Appends the spans of a run: `ids[first..]` are its tokens, `run` its segments, all of them text.
pub(super) fn push_run(
    tokenizer: &Tokenizer,
    run: &[Segment],
    ids: &[TokenId],
    first: usize,
    spans: &mut Vec<Span>,
) {
    let Some((last, others)) = run.split_last() else {
        return;
    };
    let mut token = first;
    let mut token_start = 0;
    let mut segment_end = 0;
    for segment in others {
        if let Body::Text(range) = &segment.body {
            segment_end += range.len();
        }
        while token < ids.len() && token_start < segment_end {
            token_start += tokenizer.token_bytes(ids[token]).map_or(0, <[u8]>::len);
            token += 1;
        }
        push_span(spans, segment.facts, token);
    }
    push_span(spans, last.facts, ids.len());
}
