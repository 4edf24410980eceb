//! Kimi-VL: Moonlight with images.

use crate::chat::conversation::Conversation;
use crate::chat::segment::{ControlToken, Segments};
use crate::chat::templates::im_chat::MediaRule;
use crate::chat::templates::{ControlStrings, Definition, Marks, RenderOptions, moonlight};
use crate::error::Result;

pub(super) const DEFINITION: Definition = Definition {
    name: "kimi-vl",
    models: &["kimi-vl-a3b-instruct"],
    special_tokens: "moonlight",
    control_tokens: &CONTROL_TOKENS,
    control_strings: ControlStrings::BecomeTokens,
    marks: Marks {
        holds: &["<|im_middle|>", "media_start"],
        lacks: &["tool_calls_section_begin"],
    },
    render,
};

const CONTROL_TOKENS: [ControlToken; 9] = [
    ControlToken::ImUser,
    ControlToken::ImAssistant,
    ControlToken::ImSystem,
    ControlToken::ImMiddle,
    ControlToken::ImEnd,
    ControlToken::MediaStart,
    ControlToken::MediaContent,
    ControlToken::MediaPad,
    ControlToken::MediaEnd,
];

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
