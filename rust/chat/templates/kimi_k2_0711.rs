//! Kimi-K2-Instruct as first released, in July 2025. Its template had quirks that the next one mended: arguments that
//! are strings are encoded as JSON a second time, call ids are made up, a line feed is written as a backslash and an n.

use crate::chat::conversation::{Arguments, Conversation, ToolCall};
use crate::chat::json::Value;
use crate::chat::segment::{ControlToken, Part, Role, Segments};
use crate::chat::templates::im_chat::{self, MediaRule, Writer};
use crate::chat::templates::{
    CallsNamedBy, Definition, Marks, RenderOptions, ShownReasoning, SpelledTokens,
};
use crate::chat::tool_declaration;
use crate::error::Result;

pub(super) const DEFINITION: Definition = Definition {
    name: "kimi-k2-0711",
    models: &["kimi-k2-instruct-0711"],
    special_tokens: "kimi-k2",
    control_tokens: &[im_chat::TOKENS, im_chat::TOOL_TOKENS],
    spelled_tokens: SpelledTokens::BecomeTokens,
    shown_reasoning: ShownReasoning::None,
    thinking_switch: false,
    calls_named_by: CallsNamedBy::Place,
    marks: Marks {
        holds: &["tool_calls_section_begin", "You are a helpful assistant"],
        lacks: &["<think>"],
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
        Some(|tools| Ok(tool_declaration::spaced_json(tools))),
        Some(im_chat::HELPFUL_SYSTEM),
    )?;
    let mut dropped_reasoning = 0;
    for (index, message) in conversation.messages.iter().enumerate() {
        let mut writer = Writer::for_message(segments, index, message);
        // A message of any other role has no header at all.
        if writer.role != Role::Other {
            writer.header(message.role);
        }
        if writer.role == Role::Tool {
            writer.text(Part::Text, "## Return of ");
            writer.text(Part::Text, message.tool_call_id.unwrap_or(""));
            writer.text(Part::Text, "\\n");
        }
        writer.content(&message.content, MediaRule::K2);
        if writer.role == Role::Assistant {
            dropped_reasoning += u32::from(message.reasoning.is_lost(""));
            tool_calls(&mut writer, &message.tool_calls)?;
        }
        writer.end();
    }
    if options.add_generation_prompt {
        Writer::generation_prompt(segments);
    }
    Ok(dropped_reasoning)
}

fn tool_calls(writer: &mut Writer<'_>, calls: &[ToolCall<'_>]) -> Result<()> {
    if calls.is_empty() {
        return Ok(());
    }
    writer.token(Part::ToolCallMarker, ControlToken::ToolCallsSectionBegin);
    for (index, call) in calls.iter().enumerate() {
        // The position in the message, not in the conversation.
        writer.open_call(&format!("functions.{}:{index}", call.name.unwrap_or("")));
        match call.arguments {
            Arguments::Text(text) => writer.json(Part::ToolArguments, &Value::String(text.into())),
            Arguments::Object(value) => writer.json(Part::ToolArguments, value),
            Arguments::Absent => return Err(writer.without_arguments(index)),
        }
        writer.token(Part::ToolCallMarker, ControlToken::ToolCallEnd);
    }
    writer.token(Part::ToolCallMarker, ControlToken::ToolCallsSectionEnd);
    Ok(())
}
