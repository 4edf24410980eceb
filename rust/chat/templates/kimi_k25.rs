//! Kimi-K2.5: TypeScript declarations, no default system message, reasoning since the last answer, `thinking`.

use crate::chat::conversation::{Conversation, Message};
use crate::chat::segment::{ControlToken, Part, Segments};
use crate::chat::templates::im_chat::{self, MediaRule, Prefill, Writer};
use crate::chat::templates::{
    CallsNamedBy, Definition, Marks, RenderOptions, ShownReasoning, SpelledTokens,
};
use crate::chat::tool_declaration;
use crate::error::Result;

pub(super) const DEFINITION: Definition = Definition {
    name: "kimi-k2.5",
    models: &[],
    special_tokens: "kimi-k2.5",
    control_tokens: CONTROL_TOKENS,
    spelled_tokens: SpelledTokens::BecomeTokens,
    shown_reasoning: ShownReasoning::SinceLastAnswer(im_chat::reasoning_content),
    thinking_switch: true,
    calls_named_by: CallsNamedBy::Id,
    marks: Marks {
        holds: &["tool_calls_section_begin", "media_begin", "<think>"],
        lacks: &["preserve_thinking"],
    },
    render,
};

/// The special tokens of K2.5 and its successors.
pub(super) const CONTROL_TOKENS: &[&[ControlToken]] = &[
    im_chat::TOKENS,
    im_chat::TOOL_TOKENS,
    im_chat::THINK_TOKENS,
    im_chat::MEDIA_TOKENS,
    &[ControlToken::MediaBegin],
];

fn render(
    conversation: &Conversation<'_>,
    options: RenderOptions<'_>,
    segments: &mut Segments,
) -> Result<u32> {
    let history = im_chat::history_len(&conversation.messages, options);
    let reasoning = ReasoningRule {
        text: im_chat::reasoning_content,
        is_shown: |index| index >= history && options.thinking,
    };
    render_with(conversation, options, segments, &reasoning)
}

/// Which reasoning a message has, and whether the template shows that of message `index`.
pub(super) struct ReasoningRule<F> {
    pub text: for<'v> fn(&Message<'v>) -> &'v str,
    pub is_shown: F,
}

/// What K2.5 and its successors share; they differ in `reasoning`.
pub(super) fn render_with(
    conversation: &Conversation<'_>,
    options: RenderOptions<'_>,
    segments: &mut Segments,
    reasoning: &ReasoningRule<impl Fn(usize) -> bool>,
) -> Result<u32> {
    im_chat::prologue(
        conversation,
        segments,
        Some(tool_declaration::typescript_or_json),
        None,
    )?;
    let prefill = if options.thinking {
        Prefill::Opener
    } else {
        Prefill::Pair
    };
    let mut dropped_reasoning = 0;
    im_chat::messages(
        conversation,
        segments,
        MediaRule::K25,
        |writer, index, message| {
            let text = (reasoning.text)(message);
            let is_shown = (reasoning.is_shown)(index);
            let shown = if is_shown { text } else { "" };
            dropped_reasoning += u32::from(message.reasoning.is_lost(shown));
            writer.think(shown, prefill);
            writer.content(&message.content, MediaRule::K25);
            writer.tool_calls(&message.tool_calls)
        },
    )?;
    if options.add_generation_prompt {
        let mut writer = Writer::generation_prompt(segments);
        writer.prefilled_token(Part::ThinkOpen, ControlToken::ThinkOpen);
        if !options.thinking {
            writer.prefilled_token(Part::ThinkClose, ControlToken::ThinkClose);
        }
    }
    Ok(dropped_reasoning)
}
