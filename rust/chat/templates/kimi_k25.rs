//! Kimi-K2.5 and Kimi-K2.6.
//!
//! A message is `HEAD label <|im_middle|> body <|im_end|>`, with nothing between messages and no default system
//! message. The two differ in which key holds reasoning and in `preserve_thinking`. Facts: the models' own
//! `chat_template.jinja`, checked case by case in `tests/golden/`.

use crate::chat::conversation::{
    Arguments, Content, ContentPart, Conversation, Message, Reasoning, ToolCall,
};
use crate::chat::json::Spacing;
use crate::chat::segment::{ControlToken, Facts, Part, Role, Segments};
use crate::chat::templates::RenderOptions;
use crate::chat::tool_declaration;
use crate::error::Result;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    K25,
    K26,
}

/// Stands for a video until the model's processor replaces it. Not a token: it is encoded as ordinary text.
const VIDEO_PLACEHOLDER: &str = "<|kimi_k25_video_placeholder|>";

pub(super) fn render(
    version: Version,
    conversation: &Conversation<'_>,
    options: RenderOptions,
    segments: &mut Segments,
) -> Result<u32> {
    if !conversation.tools.is_empty() {
        let declaration =
            tool_declaration::declaration(conversation.tools).map_err(|error| error.at("tools"))?;
        let mut writer = Writer {
            segments,
            role: Role::System,
            message_index: None,
        };
        writer.header(ControlToken::ImSystem, "tool_declare");
        writer.text(Part::Text, &declaration);
        writer.token(Part::End, ControlToken::ImEnd);
    }

    let preserves = version == Version::K26 && options.preserve_thinking;
    let history = if preserves {
        0
    } else {
        history_len(&conversation.messages)
    };
    let mut dropped_reasoning = 0;
    for (index, message) in conversation.messages.iter().enumerate() {
        let mut writer = Writer {
            segments,
            role: Role::from_name(message.role),
            message_index: Some(index as u32),
        };
        let label = message.name.unwrap_or(message.role);
        match writer.role {
            Role::Assistant => {
                let reasoning = version.reasoning(message.reasoning);
                let shown = if preserves || (index >= history && options.thinking) {
                    reasoning
                } else {
                    ""
                };
                dropped_reasoning += u32::from(shown.len() < reasoning.len());
                writer.header(ControlToken::ImAssistant, label);
                writer.assistant_body(shown, message);
            }
            Role::Tool => {
                writer.header(ControlToken::ImSystem, label);
                writer.tool_result(message);
            }
            Role::User => {
                writer.header(ControlToken::ImUser, label);
                writer.content(&message.content);
            }
            Role::System | Role::Other => {
                writer.header(ControlToken::ImSystem, label);
                writer.content(&message.content);
            }
        }
        writer.token(Part::End, ControlToken::ImEnd);
    }

    if options.add_generation_prompt {
        let mut writer = Writer {
            segments,
            role: Role::Assistant,
            message_index: None,
        };
        writer.header(ControlToken::ImAssistant, "assistant");
        writer.token(Part::ThinkOpen, ControlToken::ThinkOpen);
        if !options.thinking {
            writer.token(Part::ThinkClose, ControlToken::ThinkClose);
        }
    }
    Ok(dropped_reasoning)
}

/// How many messages are history, whose reasoning is not shown: all up to the last assistant message without calls,
/// that message included.
fn history_len(messages: &[Message<'_>]) -> usize {
    let is_answer = |message: &Message<'_>| message.is_assistant() && message.tool_calls.is_empty();
    messages
        .iter()
        .rposition(is_answer)
        .map_or(0, |last| last + 1)
}

impl Version {
    /// The reasoning that counts. transformers 5.24 copies the other spellings to `reasoning_content` before K2.5's
    /// template looks; K2.6's template itself prefers `reasoning`, even an empty one.
    fn reasoning(self, keys: Reasoning<'_>) -> &str {
        let Reasoning {
            reasoning_content,
            reasoning,
            thinking,
        } = keys;
        let found = match self {
            Self::K25 => reasoning_content.or(reasoning).or(thinking),
            Self::K26 => reasoning.or(reasoning_content).or(thinking),
        };
        found.unwrap_or("")
    }
}

/// Writes the segments of one message.
struct Writer<'s> {
    segments: &'s mut Segments,
    role: Role,
    message_index: Option<u32>,
}

impl Writer<'_> {
    fn header(&mut self, head: ControlToken, label: &str) {
        self.token(Part::Header, head);
        self.text(Part::Header, label);
        self.token(Part::Header, ControlToken::ImMiddle);
    }

    /// The generation prompt ends with `<think>`, so the opener is never sampled, and neither is an empty pair.
    fn assistant_body(&mut self, reasoning: &str, message: &Message<'_>) {
        let thinks = !reasoning.is_empty();
        self.token(Part::ThinkOpen, ControlToken::ThinkOpen);
        self.text(Part::Think, reasoning);
        self.segments.push_token(
            self.facts(Part::ThinkClose, thinks),
            ControlToken::ThinkClose,
        );
        self.content(&message.content);
        if !message.tool_calls.is_empty() {
            self.token(Part::ToolCallMarker, ControlToken::ToolCallsSectionBegin);
            for call in &message.tool_calls {
                self.tool_call(call);
            }
            self.token(Part::ToolCallMarker, ControlToken::ToolCallsSectionEnd);
        }
    }

    fn tool_call(&mut self, call: &ToolCall<'_>) {
        self.token(Part::ToolCallMarker, ControlToken::ToolCallBegin);
        self.text(Part::ToolName, call.id);
        self.token(Part::ToolCallMarker, ControlToken::ToolCallArgumentBegin);
        match call.arguments {
            Arguments::Text(text) => self.text(Part::ToolArguments, text),
            Arguments::Object(value) => {
                let facts = self.facts(Part::ToolArguments, true);
                self.segments
                    .push_with(facts, |out| value.write_json(Spacing::Spaced, out));
            }
        }
        self.token(Part::ToolCallMarker, ControlToken::ToolCallEnd);
    }

    fn tool_result(&mut self, message: &Message<'_>) {
        self.text(Part::Text, "## Return of ");
        self.text(Part::Text, message.tool_call_id.unwrap_or(""));
        self.text(Part::Text, "\n");
        self.content(&message.content);
    }

    fn content(&mut self, content: &Content<'_>) {
        match content {
            Content::Text(text) => self.text(Part::Text, text),
            Content::Parts(parts) => {
                for part in parts {
                    match part {
                        ContentPart::Text(text) => self.text(Part::Text, text),
                        ContentPart::Image => {
                            self.token(Part::Media, ControlToken::MediaBegin);
                            self.text(Part::Media, "image");
                            self.token(Part::Media, ControlToken::MediaContent);
                            self.token(Part::Media, ControlToken::MediaPad);
                            self.token(Part::Media, ControlToken::MediaEnd);
                            self.text(Part::Media, "\n");
                        }
                        ContentPart::Video => {
                            self.text(Part::Media, VIDEO_PLACEHOLDER);
                            self.text(Part::Media, "\n");
                        }
                    }
                }
            }
        }
    }

    fn text(&mut self, part: Part, text: &str) {
        self.segments.push_text(self.facts_of(part), text);
    }

    fn token(&mut self, part: Part, token: ControlToken) {
        self.segments.push_token(self.facts_of(part), token);
    }

    /// The model samples everything of its own turns but what the generation prompt or the media processor supplies.
    fn facts_of(&self, part: Part) -> Facts {
        let supplied = matches!(part, Part::Header | Part::ThinkOpen | Part::Media);
        let is_turn = self.role == Role::Assistant && self.message_index.is_some();
        self.facts(part, is_turn && !supplied)
    }

    fn facts(&self, part: Part, sampled: bool) -> Facts {
        Facts {
            role: self.role,
            message_index: self.message_index,
            part,
            sampled,
        }
    }
}
