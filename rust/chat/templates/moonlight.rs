//! Moonlight-16B-A3B-Instruct: text only, no tools, no names.

use crate::chat::conversation::{Content, Conversation, Message};
use crate::chat::segment::{ControlToken, Part, Role, Segments};
use crate::chat::templates::im_chat::{self, Writer};
use crate::chat::templates::{
    CallsNamedBy, Definition, Marks, RenderOptions, ShownReasoning, SpelledTokens,
};
use crate::error::{Error, ErrorKind, Result};

pub(super) const DEFINITION: Definition = Definition {
    name: "moonlight",
    models: &["moonlight-16b-a3b-instruct"],
    special_tokens: "moonlight",
    control_tokens: &[im_chat::TOKENS],
    spelled_tokens: SpelledTokens::BecomeTokens,
    shown_reasoning: ShownReasoning::None,
    thinking_switch: false,
    calls_named_by: CallsNamedBy::Function,
    marks: Marks {
        holds: &["<|im_middle|>", "You are a helpful assistant"],
        lacks: &["tool_calls_section_begin", "media_start"],
    },
    render,
};

fn render(
    conversation: &Conversation<'_>,
    options: RenderOptions<'_>,
    segments: &mut Segments,
) -> Result<u32> {
    render_with(conversation, options, segments, |writer, message| {
        match &message.content {
            Content::Text(text) => writer.text(Part::Text, text),
            Content::Parts(parts) => {
                // The reference prints the list in Python's own notation.
                let message = format!(
                    "expected a string, found a list of {} parts: this model reads text only",
                    parts.len()
                );
                return Err(Error::new(ErrorKind::Conversation, message).at("content"));
            }
        }
        Ok(())
    })
}

/// What Moonlight and Kimi-VL share; they differ in `content`.
pub(super) fn render_with(
    conversation: &Conversation<'_>,
    options: RenderOptions<'_>,
    segments: &mut Segments,
    content: impl Fn(&mut Writer<'_>, &Message<'_>) -> Result<()>,
) -> Result<u32> {
    im_chat::prologue(conversation, segments, None, Some(im_chat::HELPFUL_SYSTEM))?;
    let mut dropped_reasoning = 0;
    for (index, message) in conversation.messages.iter().enumerate() {
        let mut writer = Writer::for_message(segments, index, message);
        match writer.role {
            Role::User | Role::Assistant | Role::System => writer.header(message.role),
            // Other roles have a label without a token before it.
            Role::Tool | Role::Other => {
                writer.text(Part::Header, message.role);
                writer.token(Part::Header, ControlToken::ImMiddle);
            }
        }
        content(&mut writer, message).map_err(|error| error.at_index(index).at("messages"))?;
        if writer.role == Role::Assistant {
            dropped_reasoning += u32::from(message.reasoning.is_lost(""));
        }
        writer.end();
    }
    if options.add_generation_prompt {
        Writer::generation_prompt(segments);
    }
    Ok(dropped_reasoning)
}
