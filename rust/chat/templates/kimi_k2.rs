//! Kimi-K2-Instruct and -0905: declarations in JSON, a default system message, no reasoning.

use crate::chat::conversation::Conversation;
use crate::chat::segment::{Part, Role, Segments};
use crate::chat::templates::im_chat::{self, MediaRule, Writer};
use crate::chat::templates::{
    CallsNamedBy, Definition, Marks, RenderOptions, ShownReasoning, SpelledTokens,
};
use crate::chat::tool_declaration;
use crate::error::Result;

pub(super) const DEFINITION: Definition = Definition {
    name: "kimi-k2",
    models: &["kimi-k2-instruct", "kimi-k2-instruct-0905", "kimi-k2-0905"],
    special_tokens: "kimi-k2",
    control_tokens: &[im_chat::TOKENS, im_chat::TOOL_TOKENS],
    spelled_tokens: SpelledTokens::BecomeTokens,
    shown_reasoning: ShownReasoning::None,
    thinking_switch: false,
    calls_named_by: CallsNamedBy::Id,
    marks: Marks {
        holds: &["tool_calls_section_begin", "You are Kimi"],
        lacks: &["<think>"],
    },
    render,
};

pub(super) fn render(
    conversation: &Conversation<'_>,
    options: RenderOptions<'_>,
    segments: &mut Segments,
) -> Result<u32> {
    let has_default = im_chat::prologue(
        conversation,
        segments,
        Some(|tools| Ok(tool_declaration::sorted_json(tools))),
        Some(im_chat::KIMI_SYSTEM),
    )?;
    if has_default {
        // An accident of the template, and what the model was trained on; a system message of the caller's has none.
        Writer::inserted(segments, Role::System).text(Part::Text, "\n");
    }
    let mut dropped_reasoning = 0;
    im_chat::messages(
        conversation,
        segments,
        MediaRule::K2,
        |writer, _, message| {
            dropped_reasoning += u32::from(message.reasoning.is_lost(""));
            writer.content(&message.content, MediaRule::K2);
            writer.tool_calls(&message.tool_calls)
        },
    )?;
    if options.add_generation_prompt {
        Writer::generation_prompt(segments);
    }
    Ok(dropped_reasoning)
}
