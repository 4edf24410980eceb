//! Kimi-VL: Moonlight with images.

use crate::chat::conversation::Conversation;
use crate::chat::segment::{ControlToken, Segments};
use crate::chat::templates::im_chat::{self, MediaRule};
use crate::chat::templates::{
    CallsNamedBy, Definition, Marks, RenderOptions, ShownReasoning, SpelledTokens, moonlight,
};
use crate::error::Result;

pub(super) const DEFINITION: Definition = Definition {
    name: "kimi-vl",
    models: &["kimi-vl-a3b-instruct"],
    special_tokens: "moonlight",
    control_tokens: &[
        im_chat::TOKENS,
        im_chat::MEDIA_TOKENS,
        &[ControlToken::MediaStart],
    ],
    spelled_tokens: SpelledTokens::BecomeTokens,
    shown_reasoning: ShownReasoning::None,
    thinking_switch: false,
    calls_named_by: CallsNamedBy::Function,
    marks: Marks {
        holds: &["<|im_middle|>", "media_start"],
        lacks: &["tool_calls_section_begin"],
    },
    render,
};

fn render(
    conversation: &Conversation<'_>,
    options: RenderOptions<'_>,
    segments: &mut Segments,
) -> Result<u32> {
    moonlight::render_with(conversation, options, segments, |writer, message| {
        writer.content(&message.content, MediaRule::KimiVl);
        Ok(())
    })
}
