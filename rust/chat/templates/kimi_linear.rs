//! Kimi-Linear-48B-A3B-Instruct: K2's template with K2's tokens, as far as is known.

use crate::chat::templates::{
    CallsNamedBy, Definition, Marks, ShownReasoning, SpelledTokens, im_chat, kimi_k2,
};

pub(super) const DEFINITION: Definition = Definition {
    name: "kimi-linear",
    models: &["kimi-linear-48b-a3b-instruct"],
    special_tokens: "kimi-k2",
    control_tokens: &[im_chat::TOKENS, im_chat::TOOL_TOKENS],
    spelled_tokens: SpelledTokens::BecomeTokens,
    shown_reasoning: ShownReasoning::None,
    thinking_switch: false,
    calls_named_by: CallsNamedBy::Id,
    marks: Marks {
        holds: &["tool_calls_section_begin"],
        lacks: &["<think>"],
    },
    render: kimi_k2::render,
};
