//! Kimi-K2.7-Code: K2.6 that always shows all reasoning and always asks for it.

use crate::chat::conversation::Conversation;
use crate::chat::segment::Segments;
use crate::chat::templates::kimi_k25::{self, ReasoningRule};
use crate::chat::templates::{
    CallsNamedBy, Definition, Marks, RenderOptions, ShownReasoning, SpelledTokens, kimi_k26,
};
use crate::error::Result;

pub(super) const DEFINITION: Definition = Definition {
    name: "kimi-k2.7-code",
    models: &[],
    special_tokens: "kimi-k2.5",
    control_tokens: kimi_k25::CONTROL_TOKENS,
    spelled_tokens: SpelledTokens::BecomeTokens,
    shown_reasoning: ShownReasoning::All,
    thinking_switch: false,
    calls_named_by: CallsNamedBy::Id,
    marks: Marks {
        holds: &["tool_calls_section_begin", "media_begin", "<think>"],
        lacks: &[],
    },
    render,
};

fn render(
    conversation: &Conversation<'_>,
    options: RenderOptions<'_>,
    segments: &mut Segments,
) -> Result<u32> {
    let options = RenderOptions {
        thinking: true,
        ..options
    };
    let reasoning = ReasoningRule {
        text: kimi_k26::reasoning_text,
        is_shown: |_| true,
    };
    kimi_k25::render_with(conversation, options, segments, &reasoning)
}
