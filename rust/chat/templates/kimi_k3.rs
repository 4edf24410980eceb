//! Kimi-K3: tags (XTML) in place of role tokens, every string encoded on its own.
//!
//! A tag is `<|open|>name key="value"<|sep|>` or `<|close|>name<|sep|>`. The model's own encoder takes the name and the
//! four strings of each attribute one by one, so no token crosses from one to the next; and it reads no special token
//! in them, so no text of a message becomes one. Facts: the model repository's `encoding_k3.py`, revision b9cb7ae1.

mod arguments;
mod tool_results;

use crate::chat::conversation::{Content, ContentPart, Conversation, Message, PartKind, ToolCall};
use crate::chat::json::Value;
use crate::chat::segment::{ControlToken, Facts, Part, Role, Segments};
use crate::chat::templates::{
    CallsNamedBy, Definition, Marks, RenderOptions, ResponseFormat, ShownReasoning, SpelledTokens,
    ThinkingEffort, ToolChoice,
};
use crate::chat::tool_declaration;
use crate::error::{Error, ErrorKind, Result};

pub(super) const DEFINITION: Definition = Definition {
    name: "kimi-k3",
    models: &[],
    special_tokens: "kimi-k3",
    control_tokens: &[&[
        ControlToken::Open,
        ControlToken::Close,
        ControlToken::Sep,
        ControlToken::EndOfMsg,
    ]],
    spelled_tokens: SpelledTokens::StayText,
    shown_reasoning: ShownReasoning::All,
    thinking_switch: true,
    calls_named_by: CallsNamedBy::Function,
    // K3 comes without a chat template.
    marks: Marks {
        holds: &["encoding_k3"],
        lacks: &[],
    },
    render,
};

/// Stands for an image until the model's processor replaces it. Not a token.
const IMAGE_PLACEHOLDER: &str = "<|kimi_image_placeholder|>";

const THINK_TAG: &str = "think";
const RESPONSE_TAG: &str = "response";

fn render(
    conversation: &Conversation<'_>,
    options: RenderOptions<'_>,
    segments: &mut Segments,
) -> Result<u32> {
    if !conversation.tools.is_empty() {
        let tools = tool_declaration::sorted_json(conversation.tools);
        let body = format!(
            "# Tools\nHere are the available tools, described in JSONSchema.\n\n```json\n{tools}\n```"
        );
        system_message(segments, None, "tool-declare", &body);
    }
    if options.thinking
        && let Some(effort) = effort(options.thinking_effort)
    {
        let body = format!(
            "`thinking_effort` guides on how much to think in your thinking channel (not including the response \
             channel), supported values include `low`, `medium`, `high`, and `max`.\n\
             Now the system is invoked with `thinking_effort={effort}`."
        );
        system_message(segments, None, "thinking-effort", &body);
    }
    let dropped_reasoning = messages(conversation, options, segments)?;
    match options.tool_choice {
        ToolChoice::Auto => {}
        ToolChoice::Required => system_message(
            segments,
            None,
            "tool-choice",
            "The system is invoked with `tool_choice=required`.\nYou MUST call tools in the next message.",
        ),
        ToolChoice::None => system_message(
            segments,
            None,
            "tool-choice",
            "The system is invoked with `tool_choice=none`.\nYou MUST NOT call any tools in the next message.",
        ),
    }
    if let Some(body) = response_format(options.response_format) {
        system_message(segments, None, "response-format", &body);
    }
    if options.add_generation_prompt {
        let mut writer = Writer::new(segments, Role::Assistant, None);
        writer.open_message("assistant", &[]);
        if options.thinking {
            writer.prefilled_tag(Part::ThinkOpen, THINK_TAG);
        } else {
            writer.prefilled_tag(Part::Text, RESPONSE_TAG);
        }
    }
    Ok(dropped_reasoning)
}

fn effort(effort: ThinkingEffort) -> Option<&'static str> {
    match effort {
        ThinkingEffort::Low => Some("low"),
        ThinkingEffort::High => Some("high"),
        ThinkingEffort::Max => Some("max"),
        ThinkingEffort::Unstated => None,
    }
}

fn response_format(format: ResponseFormat<'_>) -> Option<String> {
    let form = |name: &str| {
        format!(
            "The system is invoked with `response_format={name}`.\nYour response must be raw JSON data without markdown \
             code blocks (```json) or any additional formatting."
        )
    };
    match format {
        ResponseFormat::Text => None,
        ResponseFormat::JsonObject => Some(form("json_object")),
        ResponseFormat::JsonSchema(schema) => {
            let mut body = form("json_schema");
            body.push_str("\nThe JSON data must match the following schema:\n```json\n");
            let sorted = schema.sorted_by_key();
            sorted.write_json(crate::chat::json::Spacing::Compact, &mut body);
            body.push_str("\n```");
            Some(body)
        }
    }
}

fn system_message(segments: &mut Segments, message_index: Option<u32>, kind: &str, body: &str) {
    let mut writer = Writer::new(segments, Role::System, message_index);
    writer.open_message("system", &[("type", kind)]);
    writer.text(Part::Text, body);
    writer.close_message();
}

fn messages(
    conversation: &Conversation<'_>,
    options: RenderOptions<'_>,
    segments: &mut Segments,
) -> Result<u32> {
    let mut dropped_reasoning = 0;
    let mut results = tool_results::Results::default();
    for placed in tool_results::in_call_order(&conversation.messages) {
        let index = placed.index;
        let message = &conversation.messages[index];
        let mut writer = Writer::new(segments, Role::from_name(message.role), Some(index as u32));
        writer.calls = !message.tool_calls.is_empty();
        let written = match writer.role {
            Role::System if !message.tools.is_empty() => {
                let tools = tool_declaration::sorted_json(message.tools);
                let body = format!(
                    "## New Tools Available\nThe system dynamically extends the toolset via lazy-loading.\nYou have \
                     access to all existing and extended tools.\nHere are the specs for the extended tools.\n\n\
                     ```json\n{tools}\n```"
                );
                system_message(segments, Some(index as u32), "tool-declare", &body);
                Ok(())
            }
            Role::System | Role::User => writer.plain_message(message),
            Role::Assistant => {
                results.begin(message);
                let reasoning = reasoning(message);
                let shown = options.thinking.then_some(reasoning);
                dropped_reasoning += u32::from(message.reasoning.is_lost(shown.unwrap_or("")));
                writer.assistant_message(message, shown)
            }
            Role::Tool => {
                let tool = results.next(message, &placed);
                tool.and_then(|tool| writer.tool_message(message, tool))
            }
            // Left out without a word, as in the reference.
            Role::Other => Ok(()),
        };
        written.map_err(|error| error.at_index(index).at("messages"))?;
    }
    Ok(dropped_reasoning)
}

/// Reasoning of white space alone counts as none; other reasoning keeps its white space.
fn reasoning<'v>(message: &Message<'v>) -> &'v str {
    let keys = message.reasoning;
    let text = keys
        .reasoning_content
        .filter(|text| !text.is_empty())
        .or(keys.reasoning)
        .unwrap_or("");
    if is_blank(text) { "" } else { text }
}

/// Whether Python's `str.strip` leaves nothing.
fn is_blank(text: &str) -> bool {
    let is_python_space = |char: char| char.is_whitespace() || matches!(char, '\u{1c}'..='\u{1f}');
    text.chars().all(is_python_space)
}

/// Writes the segments of one message.
struct Writer<'s> {
    segments: &'s mut Segments,
    role: Role,
    message_index: Option<u32>,
    /// Whether the message calls tools.
    calls: bool,
}

impl<'s> Writer<'s> {
    fn new(segments: &'s mut Segments, role: Role, message_index: Option<u32>) -> Self {
        Self {
            segments,
            role,
            message_index,
            calls: false,
        }
    }

    fn plain_message(&mut self, message: &Message<'_>) -> Result<()> {
        let name = message.name.map(|name| ("name", name));
        self.open_message(message.role, name.as_slice());
        self.content(&message.content)?;
        self.close_message();
        Ok(())
    }

    /// `reasoning` is None if there is to be no think channel.
    fn assistant_message(&mut self, message: &Message<'_>, reasoning: Option<&str>) -> Result<()> {
        let name = message.name.map(|name| ("name", name));
        self.open_message(message.role, name.as_slice());
        match reasoning {
            Some(reasoning) => {
                self.prefilled_tag(Part::ThinkOpen, THINK_TAG);
                self.text(Part::Think, reasoning);
                let sampled = !reasoning.is_empty();
                self.closing_tag(self.facts(Part::ThinkClose, sampled, false), THINK_TAG);
                self.opening_tag(Part::Text, RESPONSE_TAG);
            }
            None => self.prefilled_tag(Part::Text, RESPONSE_TAG),
        }
        self.content(&message.content)?;
        self.closing_tag(self.facts_of(Part::Text), RESPONSE_TAG);
        if !message.tool_calls.is_empty() {
            self.opening_tag(Part::ToolCallMarker, "tools");
            for (index, call) in message.tool_calls.iter().enumerate() {
                self.tool_call(index, call)
                    .map_err(|error| error.at("function").at_index(index).at("tool_calls"))?;
            }
            self.closing_tag(self.facts_of(Part::ToolCallMarker), "tools");
        }
        self.close_message();
        Ok(())
    }

    fn tool_call(&mut self, index: usize, call: &ToolCall<'_>) -> Result<()> {
        let Some(name) = call.name else {
            return Err(missing("a string").at("name"));
        };
        let marker = self.facts_of(Part::ToolCallMarker);
        self.begin_tag(marker, ControlToken::Open, "call");
        self.attribute(marker, self.facts_of(Part::ToolName), "tool", name);
        self.attribute(marker, marker, "index", &(index + 1).to_string());
        self.token(marker, ControlToken::Sep);
        arguments::write(self, call.arguments).map_err(|error| error.at("arguments"))?;
        self.closing_tag(marker, "call");
        Ok(())
    }

    /// `tool` is the name of the tool and the number of the result.
    fn tool_message(&mut self, message: &Message<'_>, (tool, index): (&str, usize)) -> Result<()> {
        self.open_message(
            message.role,
            &[("tool", tool), ("index", &index.to_string())],
        );
        self.content(&message.content)?;
        self.close_message();
        Ok(())
    }

    fn content(&mut self, content: &Content<'_>) -> Result<()> {
        match content {
            Content::Text(text) => self.text(Part::Text, text),
            Content::Parts(parts) => {
                for (index, part) in parts.iter().enumerate() {
                    self.part(*part)
                        .map_err(|error| error.at_index(index).at("content"))?;
                }
            }
        }
        Ok(())
    }

    fn part(&mut self, part: ContentPart<'_>) -> Result<()> {
        match (part.kind, part.text) {
            (PartKind::Image | PartKind::ImageUrl, _) => self.text(Part::Media, IMAGE_PLACEHOLDER),
            (PartKind::Video | PartKind::Other, Some(text)) => self.text(Part::Text, text),
            (PartKind::Video, None) => {
                let message =
                    "expected text or an image, found a video: Kimi-K3 has no prompt for one";
                return Err(Error::new(ErrorKind::Conversation, message));
            }
            (PartKind::Other, None) => return Err(missing("a string").at("text")),
        }
        Ok(())
    }

    fn open_message(&mut self, role: &str, attributes: &[(&str, &str)]) {
        let header = self.facts_of(Part::Header);
        self.begin_tag(header, ControlToken::Open, "message");
        for (key, value) in [("role", role)].iter().chain(attributes) {
            self.attribute(header, header, key, value);
        }
        self.token(header, ControlToken::Sep);
    }

    fn close_message(&mut self) {
        self.closing_tag(self.facts_of(Part::Text), "message");
        self.token(self.facts_of(Part::End), ControlToken::EndOfMsg);
    }

    /// A tag that the generation prompt ends with.
    fn prefilled_tag(&mut self, part: Part, name: &str) {
        let facts = self.facts(part, false, true);
        self.begin_tag(facts, ControlToken::Open, name);
        self.token(facts, ControlToken::Sep);
    }

    fn opening_tag(&mut self, part: Part, name: &str) {
        let facts = self.facts_of(part);
        self.begin_tag(facts, ControlToken::Open, name);
        self.token(facts, ControlToken::Sep);
    }

    fn closing_tag(&mut self, facts: Facts, name: &str) {
        self.begin_tag(facts, ControlToken::Close, name);
        self.token(facts, ControlToken::Sep);
    }

    fn begin_tag(&mut self, facts: Facts, token: ControlToken, name: &str) {
        self.token(facts, token);
        self.alone(facts, name);
    }

    /// Four strings, each a run. In a value `&` and `"` are escaped, and nothing else.
    fn attribute(&mut self, frame: Facts, inside: Facts, key: &str, value: &str) {
        self.segments.push_with(frame, |out| {
            out.push(' ');
            out.push_str(key);
        });
        self.segments.end_run();
        self.alone(frame, "=\"");
        if value.contains(['&', '"']) {
            self.alone(inside, &value.replace('&', "&amp;").replace('"', "&quot;"));
        } else {
            self.alone(inside, value);
        }
        self.alone(frame, "\"");
    }

    fn text(&mut self, part: Part, text: &str) {
        self.alone(self.facts_of(part), text);
    }

    /// A value as `json.dumps` prints it.
    fn json(&mut self, facts: Facts, value: &Value<'_>) {
        self.segments.push_with(facts, |out| {
            value.write_json(crate::chat::json::Spacing::Spaced, out);
        });
        self.segments.end_run();
    }

    /// Text that is a run of its own.
    fn alone(&mut self, facts: Facts, text: &str) {
        self.segments.push_text(facts, text);
        self.segments.end_run();
    }

    fn token(&mut self, facts: Facts, token: ControlToken) {
        self.segments.push_token(facts, token);
    }

    /// The model samples all of its own turns but the header and what the media processor supplies.
    fn facts_of(&self, part: Part) -> Facts {
        self.facts(part, !matches!(part, Part::Header | Part::Media), false)
    }

    fn facts(&self, part: Part, sampled: bool, prefilled: bool) -> Facts {
        let is_turn = self.role == Role::Assistant && self.message_index.is_some();
        Facts {
            role: self.role,
            message_index: self.message_index,
            part,
            sampled: sampled && is_turn,
            prefilled,
            calls: self.calls,
        }
    }
}

fn missing(what: &str) -> Error {
    Error::new(
        ErrorKind::Conversation,
        format!("expected {what}, found nothing"),
    )
}
