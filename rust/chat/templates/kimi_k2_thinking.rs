//! Kimi-K2-Thinking: K2 with reasoning since the last answer. The model samples `<think>` itself.

use crate::chat::conversation::Conversation;
use crate::chat::segment::Segments;
use crate::chat::templates::im_chat::{self, MediaRule, Prefill, Writer};
use crate::chat::templates::{
    CallsNamedBy, Definition, Marks, RenderOptions, ShownReasoning, SpelledTokens,
};
use crate::chat::tool_declaration;
use crate::error::Result;

pub(super) const DEFINITION: Definition = Definition {
    name: "kimi-k2-thinking",
    models: &[],
    special_tokens: "kimi-k2-thinking",
    control_tokens: &[im_chat::TOKENS, im_chat::TOOL_TOKENS, im_chat::THINK_TOKENS],
    spelled_tokens: SpelledTokens::BecomeTokens,
    shown_reasoning: ShownReasoning::SinceLastAnswer(im_chat::reasoning_content),
    thinking_switch: false,
    calls_named_by: CallsNamedBy::Id,
    marks: Marks {
        holds: &["tool_calls_section_begin", "You are Kimi", "<think>"],
        lacks: &["media_begin"],
    },
    render,
};

fn render(
    conversation: &Conversation<'_>,
    options: RenderOptions<'_>,
    segments: &mut Segments,
) -> Result<u32> {
    im_chat::prologue(
        conversation,
        segments,
        Some(|tools| Ok(tool_declaration::sorted_json(tools))),
        Some(im_chat::KIMI_SYSTEM),
    )?;
    let history = im_chat::history_len(&conversation.messages, options);
    let mut dropped_reasoning = 0;
    im_chat::messages(
        conversation,
        segments,
        MediaRule::K2,
        |writer, index, message| {
            let reasoning = im_chat::reasoning_content(message);
            let shown = if index >= history { reasoning } else { "" };
            dropped_reasoning += u32::from(message.reasoning.is_lost(shown));
            writer.think(shown, Prefill::Nothing);
            writer.content(&message.content, MediaRule::K2);
            writer.tool_calls(&message.tool_calls)
        },
    )?;
    if options.add_generation_prompt {
        Writer::generation_prompt(segments);
    }
    Ok(dropped_reasoning)
}
