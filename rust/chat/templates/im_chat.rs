//! What all templates before K3 share: `HEAD label <|im_middle|> body <|im_end|>`, tool calls, tool results.
//!
//! Nothing is trimmed and nothing stands between messages. Facts: the models' own chat templates, checked case by case
//! in `tests/golden/`.

use crate::chat::conversation::{
    Arguments, Content, ContentPart, Conversation, Message, PartKind, ToolCall,
};
use crate::chat::json::{Spacing, Value};
use crate::chat::segment::{ControlToken, Facts, Part, Role, Segments};
use crate::chat::templates::RenderOptions;
use crate::error::{Error, ErrorKind, Result};

/// The special tokens of every template of this grammar.
pub(super) const TOKENS: &[ControlToken] = &[
    ControlToken::ImUser,
    ControlToken::ImAssistant,
    ControlToken::ImSystem,
    ControlToken::ImMiddle,
    ControlToken::ImEnd,
];

/// Those of tool calls.
pub(super) const TOOL_TOKENS: &[ControlToken] = &[
    ControlToken::ToolCallsSectionBegin,
    ControlToken::ToolCallsSectionEnd,
    ControlToken::ToolCallBegin,
    ControlToken::ToolCallArgumentBegin,
    ControlToken::ToolCallEnd,
];

/// Those of reasoning.
pub(super) const THINK_TOKENS: &[ControlToken] =
    &[ControlToken::ThinkOpen, ControlToken::ThinkClose];

/// Those of images, but for the first.
pub(super) const MEDIA_TOKENS: &[ControlToken] = &[
    ControlToken::MediaContent,
    ControlToken::MediaPad,
    ControlToken::MediaEnd,
];

/// The system message that K2 and K2-Thinking begin with if the conversation does not.
pub(super) const KIMI_SYSTEM: &str = "You are Kimi, an AI assistant created by Moonshot AI.";

/// The one that the first K2 and the models before it begin with.
pub(super) const HELPFUL_SYSTEM: &str = "You are a helpful assistant";

/// Tools to the text that declares them.
type Declare = fn(&[Value<'_>]) -> Result<String>;

/// What stands before the messages: the declaration of tools, if the template has one and there are any, and a default
/// system message, if there is one and the conversation does not begin with its own. Returns whether the default was
/// written.
///
/// # Errors
/// For an empty conversation, which transformers refuses before the template is run; and whatever `declare` returns.
pub(super) fn prologue(
    conversation: &Conversation<'_>,
    segments: &mut Segments,
    declare: Option<Declare>,
    default_system: Option<&str>,
) -> Result<bool> {
    let Some(first) = conversation.messages.first() else {
        let message = "expected at least one message, found an empty list";
        return Err(Error::new(ErrorKind::Conversation, message).at("messages"));
    };
    if let Some(declare) = declare
        && !conversation.tools.is_empty()
    {
        let declaration = declare(conversation.tools).map_err(|error| error.at("tools"))?;
        Writer::system_message(segments, "tool_declare", &declaration);
    }
    match default_system {
        Some(default) if first.role != "system" => {
            Writer::system_message(segments, "system", default);
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// How many messages are history, whose reasoning K2-Thinking, K2.5 and K2.6 do not show: all up to the last assistant
/// message without calls, that message included.
pub(super) fn history_len(messages: &[Message<'_>], options: RenderOptions<'_>) -> usize {
    if let Some(history) = options.history {
        return history;
    }
    let is_answer = |message: &Message<'_>| message.is_assistant() && message.tool_calls.is_empty();
    messages
        .iter()
        .rposition(is_answer)
        .map_or(0, |last| last + 1)
}

/// The reasoning that K2-Thinking and K2.5 show: transformers 5.24 copies the other spellings to `reasoning_content`
/// before the template looks.
pub(super) fn reasoning_content<'v>(message: &Message<'v>) -> &'v str {
    let keys = message.reasoning;
    let found = keys.reasoning_content.or(keys.reasoning).or(keys.thinking);
    found.unwrap_or("")
}

/// Who supplied the tags around reasoning, if the model did not sample them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Prefill {
    /// Nobody: the model samples both.
    Nothing,
    /// The generation prompt ends with `<think>`.
    Opener,
    /// It ends with `<think></think>`.
    Pair,
}

/// Which parts of a content list are media, and what stands for them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MediaRule {
    /// What is of type `image` or has the key of one. The tags are plain text in these vocabularies, and a video is
    /// lost.
    K2,
    /// By type. A line feed follows.
    K25,
    /// By type. No line feed follows, and a video is lost.
    KimiVl,
}

/// Writes the segments of one message.
pub(super) struct Writer<'s> {
    pub segments: &'s mut Segments,
    pub role: Role,
    /// None for what no message holds.
    pub message_index: Option<u32>,
    /// Whether the message calls tools.
    pub calls: bool,
}

impl<'s> Writer<'s> {
    /// For message `index`.
    pub(super) fn for_message(
        segments: &'s mut Segments,
        index: usize,
        message: &Message<'_>,
    ) -> Self {
        Self {
            segments,
            role: Role::from_name(message.role),
            message_index: Some(index as u32),
            calls: !message.tool_calls.is_empty(),
        }
    }

    /// For something of `role` that no message holds.
    pub(super) fn inserted(segments: &'s mut Segments, role: Role) -> Self {
        Self {
            segments,
            role,
            message_index: None,
            calls: false,
        }
    }

    /// A whole message that the template inserts.
    pub(super) fn system_message(segments: &'s mut Segments, label: &str, body: &str) {
        let mut writer = Self::inserted(segments, Role::System);
        writer.header(label);
        writer.text(Part::Text, body);
        writer.end();
    }

    /// The generation prompt up to the body.
    pub(super) fn generation_prompt(segments: &'s mut Segments) -> Self {
        let mut writer = Self::inserted(segments, Role::Assistant);
        writer.header("assistant");
        writer
    }

    /// The token of the role, a label, and `<|im_middle|>`.
    pub(super) fn header(&mut self, label: &str) {
        let head = match self.role {
            Role::User => ControlToken::ImUser,
            Role::Assistant => ControlToken::ImAssistant,
            Role::System | Role::Tool | Role::Other => ControlToken::ImSystem,
        };
        self.token(Part::Header, head);
        self.text(Part::Header, label);
        self.token(Part::Header, ControlToken::ImMiddle);
    }

    pub(super) fn end(&mut self) {
        self.token(Part::End, ControlToken::ImEnd);
    }

    /// `<think>⟨reasoning⟩</think>`. The template also writes the tags where there is no reasoning; the model did not
    /// sample that pair, and to train on it would teach it not to think.
    pub(super) fn think(&mut self, reasoning: &str, prefill: Prefill) {
        let has_reasoning = !reasoning.is_empty();
        self.fact_token(
            Part::ThinkOpen,
            has_reasoning && prefill == Prefill::Nothing,
            prefill != Prefill::Nothing,
            ControlToken::ThinkOpen,
        );
        self.text(Part::Think, reasoning);
        self.fact_token(
            Part::ThinkClose,
            has_reasoning,
            prefill == Prefill::Pair && !has_reasoning,
            ControlToken::ThinkClose,
        );
    }

    pub(super) fn content(&mut self, content: &Content<'_>, media: MediaRule) {
        match content {
            Content::Text(text) => self.text(Part::Text, text),
            Content::Parts(parts) => {
                for part in parts {
                    self.part(*part, media);
                }
            }
        }
    }

    /// A part of a list; nothing stands between parts.
    fn part(&mut self, part: ContentPart<'_>, media: MediaRule) {
        match (media, part.kind) {
            (MediaRule::KimiVl, PartKind::Image | PartKind::ImageUrl) => {
                self.image(ControlToken::MediaStart);
            }
            (MediaRule::K25, PartKind::Image | PartKind::ImageUrl) => {
                self.image(ControlToken::MediaBegin);
                self.text(Part::Media, "\n");
            }
            // Stands for a video until the model's processor replaces it. Not a token: it is encoded as text.
            (MediaRule::K25, PartKind::Video) => {
                self.text(Part::Media, "<|kimi_k25_video_placeholder|>\n");
            }
            (MediaRule::K2, kind) if kind == PartKind::Image || part.has_image_key => {
                self.text(
                    Part::Media,
                    "<|media_start|>image<|media_content|><|media_pad|><|media_end|>\n",
                );
            }
            _ => self.text(Part::Text, part.text.unwrap_or("")),
        }
    }

    /// The placeholder of one image.
    fn image(&mut self, begin: ControlToken) {
        self.token(Part::Media, begin);
        self.text(Part::Media, "image");
        self.token(Part::Media, ControlToken::MediaContent);
        self.token(Part::Media, ControlToken::MediaPad);
        self.token(Part::Media, ControlToken::MediaEnd);
    }

    /// The section of tool calls, if there are calls.
    pub(super) fn tool_calls(&mut self, calls: &[ToolCall<'_>]) -> Result<()> {
        if calls.is_empty() {
            return Ok(());
        }
        self.token(Part::ToolCallMarker, ControlToken::ToolCallsSectionBegin);
        for (index, call) in calls.iter().enumerate() {
            self.open_call(call.id.unwrap_or(""));
            match call.arguments {
                Arguments::Text(text) => self.text(Part::ToolArguments, text),
                Arguments::Object(value) => self.json(Part::ToolArguments, value),
                Arguments::Absent => return Err(self.without_arguments(index)),
            }
            self.token(Part::ToolCallMarker, ControlToken::ToolCallEnd);
        }
        self.token(Part::ToolCallMarker, ControlToken::ToolCallsSectionEnd);
        Ok(())
    }

    pub(super) fn open_call(&mut self, id: &str) {
        self.token(Part::ToolCallMarker, ControlToken::ToolCallBegin);
        self.text(Part::ToolName, id);
        self.token(Part::ToolCallMarker, ControlToken::ToolCallArgumentBegin);
    }

    /// The error for call `index` of this message, whose arguments the reference cannot print.
    pub(super) fn without_arguments(&self, index: usize) -> Error {
        Error::new(ErrorKind::Conversation, "missing")
            .at("arguments")
            .at("function")
            .at_index(index)
            .at("tool_calls")
            .at_index(self.message_index.unwrap_or(0) as usize)
            .at("messages")
    }

    /// A value as `json.dumps` prints it.
    pub(super) fn json(&mut self, part: Part, value: &Value<'_>) {
        let facts = self.facts_of(part);
        self.segments
            .push_with(facts, |out| value.write_json(Spacing::Spaced, out));
    }

    /// What stands before the content of a tool result.
    pub(super) fn result_prefix(&mut self, message: &Message<'_>) {
        self.text(Part::Text, "## Return of ");
        self.text(Part::Text, message.tool_call_id.unwrap_or(""));
        self.text(Part::Text, "\n");
    }

    pub(super) fn text(&mut self, part: Part, text: &str) {
        self.segments.push_text(self.facts_of(part), text);
    }

    pub(super) fn token(&mut self, part: Part, token: ControlToken) {
        self.segments.push_token(self.facts_of(part), token);
    }

    /// A token with which the generation prompt goes on after its header.
    pub(super) fn prefilled_token(&mut self, part: Part, token: ControlToken) {
        self.fact_token(part, false, true, token);
    }

    fn fact_token(&mut self, part: Part, sampled: bool, prefilled: bool, token: ControlToken) {
        let facts = Facts {
            sampled: sampled && self.is_turn(),
            prefilled: prefilled && self.role == Role::Assistant,
            ..self.facts_of(part)
        };
        self.segments.push_token(facts, token);
    }

    /// The model samples everything of its own turns but what a prompt or the media processor supplies.
    fn facts_of(&self, part: Part) -> Facts {
        let supplied = matches!(part, Part::Header | Part::Media);
        Facts {
            role: self.role,
            message_index: self.message_index,
            part,
            sampled: self.is_turn() && !supplied,
            prefilled: false,
            calls: self.calls,
        }
    }

    fn is_turn(&self) -> bool {
        self.role == Role::Assistant && self.message_index.is_some()
    }
}

/// `⟨name⟩`, or the role where there is none: the label of K2 and later.
pub(super) fn label<'v>(message: &Message<'v>) -> &'v str {
    message.name.unwrap_or(message.role)
}

/// Renders the messages of K2 and later: `body` writes what an assistant says.
pub(super) fn messages(
    conversation: &Conversation<'_>,
    segments: &mut Segments,
    media: MediaRule,
    mut body: impl FnMut(&mut Writer<'_>, usize, &Message<'_>) -> Result<()>,
) -> Result<()> {
    for (index, message) in conversation.messages.iter().enumerate() {
        let mut writer = Writer::for_message(segments, index, message);
        writer.header(label(message));
        match writer.role {
            Role::Assistant => body(&mut writer, index, message)?,
            Role::Tool => {
                writer.result_prefix(message);
                writer.content(&message.content, media);
            }
            Role::User | Role::System | Role::Other => writer.content(&message.content, media),
        }
        writer.end();
    }
    Ok(())
}
