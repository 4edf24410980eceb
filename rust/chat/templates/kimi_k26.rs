//! Kimi-K2.6: K2.5 with `preserve_thinking`, and `reasoning` before `reasoning_content`, even an empty one.

use crate::chat::conversation::{Conversation, Message};
use crate::chat::segment::Segments;
use crate::chat::templates::kimi_k25::{self, ReasoningRule};
use crate::chat::templates::{
    CallsNamedBy, Definition, Marks, RenderOptions, ShownReasoning, SpelledTokens, im_chat,
};
use crate::error::Result;

pub(super) const DEFINITION: Definition = Definition {
    name: "kimi-k2.6",
    models: &[],
    special_tokens: "kimi-k2.5",
    control_tokens: kimi_k25::CONTROL_TOKENS,
    spelled_tokens: SpelledTokens::BecomeTokens,
    shown_reasoning: ShownReasoning::SinceLastAnswerOrAll(reasoning_text),
    thinking_switch: true,
    calls_named_by: CallsNamedBy::Id,
    marks: Marks {
        holds: &[
            "tool_calls_section_begin",
            "media_begin",
            "preserve_thinking",
        ],
        lacks: &[],
    },
    render,
};

fn render(
    conversation: &Conversation<'_>,
    options: RenderOptions<'_>,
    segments: &mut Segments,
) -> Result<u32> {
    let history = im_chat::history_len(&conversation.messages, options);
    let reasoning = ReasoningRule {
        text: reasoning_text,
        is_shown: |index| options.preserve_thinking || (index >= history && options.thinking),
    };
    kimi_k25::render_with(conversation, options, segments, &reasoning)
}

/// `reasoning` comes first here, even an empty one.
pub(super) fn reasoning_text<'v>(message: &Message<'v>) -> &'v str {
    let keys = message.reasoning;
    let found = keys.reasoning.or(keys.reasoning_content).or(keys.thinking);
    found.unwrap_or("")
}
