//! A conversation, read from JSON in OpenAI's spelling.
//!
//! Reading checks the types; what only one template cannot render is that template's error. What the references would
//! lose or garble without a word (a dict as content, a bare string among content parts, arguments that are a list) is
//! an error here; a null is absent, at every level.

use crate::chat::json::{Object, Spacing, Value};
use crate::error::{Error, ErrorKind, Result};

/// Messages, and the tools declared to the model. Borrows from the [`Value`]s it was read from.
#[derive(Clone, Debug)]
pub struct Conversation<'v> {
    /// What was said, in order.
    pub messages: Vec<Message<'v>>,
    /// Tool declarations as the caller gave them; empty if there are none.
    pub tools: &'v [Value<'v>],
}

/// One entry of a conversation.
#[derive(Clone, Debug)]
pub struct Message<'v> {
    /// `system`, `user`, `assistant`, `tool`, or any other string.
    pub role: &'v str,
    /// Stands in the header in place of the role; never empty.
    pub name: Option<&'v str>,
    /// What is said.
    pub content: Content<'v>,
    /// The keys that may hold the model's reasoning; which one counts is the template's rule.
    pub reasoning: Reasoning<'v>,
    /// Calls; read for assistant messages only, since the templates ignore them elsewhere.
    pub tool_calls: Vec<ToolCall<'v>>,
    /// The call that a tool message answers.
    pub tool_call_id: Option<&'v str>,
    /// What nothing reads.
    pub ignored: Vec<Ignored<'v>>,
    /// How much an assistant message weighs in training, if it says; under any of [`WEIGHT_KEYS`].
    pub weight: Option<f32>,
    /// K3 only: the id of a tool message under its other name, if it is a string.
    pub id: Option<&'v str>,
    /// K3 only: the tool that a tool message answers for.
    pub tool: Option<&'v str>,
    /// K3 only: tools that a system message adds. Empty if there are none.
    pub tools: &'v [Value<'v>],
}

/// Something in a message that looks as if it had a meaning, and has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ignored<'v> {
    /// `tool_calls` on a message that is not the assistant's.
    ToolCalls,
    /// One of [`WEIGHT_KEYS`] on a message that never trains.
    Flag(&'v str),
    /// One of [`UNREAD_REASONING_KEYS`].
    Reasoning(&'v str),
    /// A null under the key of an image, in a part of the content.
    NullMedia {
        /// The index of the part.
        part: usize,
        /// The key.
        key: &'v str,
    },
}

/// The reasoning of a message under each of its spellings.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reasoning<'v> {
    /// Kimi's own key.
    pub reasoning_content: Option<&'v str>,
    /// What many servers return.
    pub reasoning: Option<&'v str>,
    /// An alias that transformers 5.24 reads as `reasoning_content`.
    pub thinking: Option<&'v str>,
}

impl Reasoning<'_> {
    /// Whether there is none, under whatever key.
    #[must_use]
    pub fn is_absent(self) -> bool {
        let keys = [self.reasoning_content, self.reasoning, self.thinking];
        keys.into_iter().flatten().all(str::is_empty)
    }

    /// Whether there is some, under whatever key, and the template shows none.
    #[must_use]
    pub fn is_lost(self, shown: &str) -> bool {
        shown.is_empty() && !self.is_absent()
    }
}

/// The content of a message.
#[derive(Clone, Debug)]
pub enum Content<'v> {
    /// A string; empty if there was none.
    Text(&'v str),
    /// A list of parts.
    Parts(Vec<ContentPart<'v>>),
}

/// One part of a content list. Which parts are media is the template's rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentPart<'v> {
    /// By its `type`.
    pub kind: PartKind,
    /// Whether it has a key `image` or `image_url`.
    pub has_image_key: bool,
    /// Its text, if it has one.
    pub text: Option<&'v str>,
}

/// The `type` of a content part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// `image`
    Image,
    /// `image_url`
    ImageUrl,
    /// `video` or `video_url`
    Video,
    /// `text`, any other, or none.
    Other,
}

/// One call of a tool.
#[derive(Clone, Debug)]
pub struct ToolCall<'v> {
    /// `functions.<name>:<n>` from a Kimi model.
    pub id: Option<&'v str>,
    /// The name of the function, if it is given.
    pub name: Option<&'v str>,
    /// What it is called with.
    pub arguments: Arguments<'v>,
}

/// The arguments of a call.
#[derive(Clone, Copy, Debug)]
pub enum Arguments<'v> {
    /// A string, rendered byte for byte.
    Text(&'v str),
    /// An object, rendered as `json.dumps` prints it.
    Object(&'v Value<'v>),
    /// There are none: an error in all templates but K3's.
    Absent,
}

impl<'v> Conversation<'v> {
    /// Reads a list of messages, or an object with `messages` and optional `tools`. `tools` given here take the place
    /// of the object's own.
    ///
    /// # Errors
    /// [`ErrorKind::Conversation`] with the place of whatever is missing or has the wrong type.
    pub fn from_value(value: &'v Value<'v>, tools: Option<&'v Value<'v>>) -> Result<Self> {
        let (messages, own_tools) = match value {
            Value::Array(messages) => (messages.as_slice(), None),
            Value::Object(object) => match object.get("messages") {
                Some(Value::Array(messages)) => (messages.as_slice(), object.get("tools")),
                Some(other) => return Err(expected("a list of messages", other).at("messages")),
                None => return Err(fault("missing").at("messages")),
            },
            other => {
                return Err(expected(
                    "a list of messages or an object with `messages`",
                    other,
                ));
            }
        };
        let read = |(index, message)| {
            Message::from_value(message)
                .map_err(|error: Error| error.at_index(index).at("messages"))
        };
        let messages = messages
            .iter()
            .enumerate()
            .map(read)
            .collect::<Result<_>>()?;
        let tools = tools
            .filter(|tools| !matches!(tools, Value::Null))
            .or(own_tools);
        let tools = tool_list(tools)?;
        Ok(Self { messages, tools })
    }
}

fn tool_list<'v>(tools: Option<&'v Value<'v>>) -> Result<&'v [Value<'v>]> {
    let tools = match tools {
        None => &[],
        Some(Value::Array(tools)) => tools.as_slice(),
        Some(other) => return Err(expected("a list of tools", other).at("tools")),
    };
    let is_object = |tool: &Value<'_>| tool.as_object().is_some();
    match tools.iter().position(|tool| !is_object(tool)) {
        None => Ok(tools),
        Some(index) => {
            let error = expected("an object", &tools[index]);
            Err(error.at_index(index).at("tools"))
        }
    }
}

/// The values of a message under the keys that are read, found in one pass. A null is absent.
#[derive(Default)]
struct Fields<'v> {
    role: Option<&'v Value<'v>>,
    name: Option<&'v Value<'v>>,
    content: Option<&'v Value<'v>>,
    reasoning_content: Option<&'v Value<'v>>,
    reasoning: Option<&'v Value<'v>>,
    thinking: Option<&'v Value<'v>>,
    tool_calls: Option<&'v Value<'v>>,
    tool_call_id: Option<&'v Value<'v>>,
    id: Option<&'v Value<'v>>,
    tool: Option<&'v Value<'v>>,
    tools: Option<&'v Value<'v>>,
    /// Whether there is anything under any other key.
    has_others: bool,
}

impl<'v> Fields<'v> {
    fn of(message: &'v Object<'v>) -> Self {
        let mut fields = Self::default();
        for (key, value) in message.iter() {
            if matches!(value, Value::Null) {
                continue;
            }
            let field = match key {
                "role" => &mut fields.role,
                "name" => &mut fields.name,
                "content" => &mut fields.content,
                "reasoning_content" => &mut fields.reasoning_content,
                "reasoning" => &mut fields.reasoning,
                "thinking" => &mut fields.thinking,
                "tool_calls" => &mut fields.tool_calls,
                "tool_call_id" => &mut fields.tool_call_id,
                "id" => &mut fields.id,
                "tool" => &mut fields.tool,
                "tools" => &mut fields.tools,
                _ => {
                    fields.has_others = true;
                    continue;
                }
            };
            *field = Some(value);
        }
        fields
    }
}

impl<'v> Message<'v> {
    fn from_value(value: &'v Value<'v>) -> Result<Self> {
        let message = value
            .as_object()
            .ok_or_else(|| expected("an object", value))?;
        let fields = Fields::of(message);
        let role = as_string(fields.role, "role")?.ok_or_else(|| fault("missing").at("role"))?;
        let is_assistant = role == "assistant";
        let content = match fields.content {
            None => Content::Text(""),
            Some(Value::String(text)) => Content::Text(text),
            Some(Value::Array(parts)) => {
                let read = |(index, part)| {
                    ContentPart::from_value(part).map_err(|error: Error| error.at_index(index))
                };
                let parts = parts.iter().enumerate().map(read).collect::<Result<_>>();
                Content::Parts(parts.map_err(|error| error.at("content"))?)
            }
            Some(other) => {
                return Err(expected("a string, a list of parts or null", other).at("content"));
            }
        };
        let tool_calls = match fields.tool_calls {
            Some(Value::Array(calls)) if is_assistant => {
                let read = |(index, call)| {
                    ToolCall::from_value(call)
                        .map_err(|error: Error| error.at_index(index).at("tool_calls"))
                };
                calls.iter().enumerate().map(read).collect::<Result<_>>()?
            }
            Some(other) if is_assistant => {
                return Err(expected("a list or null", other).at("tool_calls"));
            }
            _ => Vec::new(),
        };
        let reasoning = Reasoning {
            reasoning_content: as_string(fields.reasoning_content, "reasoning_content")?,
            reasoning: as_string(fields.reasoning, "reasoning")?,
            thinking: as_string(fields.thinking, "thinking")?,
        };
        let may_be_ignored = fields.has_others
            || matches!(content, Content::Parts(_))
            || (fields.tool_calls.is_some() && !is_assistant);
        Ok(Self {
            role,
            name: as_string(fields.name, "name")?.filter(|name| !name.is_empty()),
            content,
            reasoning,
            tool_calls,
            tool_call_id: as_string(fields.tool_call_id, "tool_call_id")?,
            ignored: if may_be_ignored {
                ignored(message, is_assistant)
            } else {
                Vec::new()
            },
            weight: if fields.has_others && is_assistant {
                weight(message)?
            } else {
                None
            },
            id: if role == "tool" {
                fields.id.and_then(Value::as_str)
            } else {
                None
            },
            tool: if role == "tool" {
                as_string(fields.tool, "tool")?
            } else {
                None
            },
            tools: if role == "system" {
                tool_list(fields.tools)?
            } else {
                &[]
            },
        })
    }

    /// The call that a tool message says it answers, under either key. K3 takes an empty id for one.
    #[must_use]
    pub fn result_id(&self) -> Option<&'v str> {
        self.tool_call_id.or(self.id)
    }

    /// Whether the message is the model's own.
    #[must_use]
    pub fn is_assistant(&self) -> bool {
        self.role == "assistant"
    }
}

impl<'v> ContentPart<'v> {
    fn from_value(value: &'v Value<'v>) -> Result<Self> {
        let part = value
            .as_object()
            .ok_or_else(|| expected("an object such as {\"type\": \"text\", …}", value))?;
        let declared = string(part, "type")?;
        let kind = match declared {
            Some("image") => PartKind::Image,
            Some("image_url") => PartKind::ImageUrl,
            Some("video" | "video_url") => PartKind::Video,
            _ => PartKind::Other,
        };
        let has_image_key = part.get("image").or(part.get("image_url")).is_some();
        // Media may carry anything under the name of text.
        let text = match kind {
            PartKind::Other => string(part, "text")?,
            _ => part.get("text").and_then(Value::as_str),
        };
        if kind == PartKind::Other && text.is_none() && !has_image_key {
            return Err(fault(
                "expected `text`, or a `type` of image, image_url, video or video_url",
            ));
        }
        Ok(Self {
            kind,
            has_image_key,
            text,
        })
    }
}

impl<'v> ToolCall<'v> {
    fn from_value(value: &'v Value<'v>) -> Result<Self> {
        let call = value
            .as_object()
            .ok_or_else(|| expected("an object", value))?;
        let function = match call.get("function") {
            Some(Value::Object(function)) => function,
            Some(other) => return Err(expected("an object", other).at("function")),
            None => return Err(fault("missing").at("function")),
        };
        let arguments = match function.raw("arguments") {
            Some(Value::String(text)) => Arguments::Text(text),
            Some(object @ Value::Object(_)) => Arguments::Object(object),
            None | Some(Value::Null) => Arguments::Absent,
            Some(other) => {
                return Err(expected("a string or an object", other)
                    .at("arguments")
                    .at("function"));
            }
        };
        Ok(Self {
            id: string(call, "id")?,
            name: string(function, "name").map_err(|error| error.at("function"))?,
            arguments,
        })
    }
}

/// The keys under which tools flag or weigh a message. All of them take flags, `weight` any number from 0 on.
pub const WEIGHT_KEYS: [&str; 6] = [
    "train",
    "trainable",
    "weight",
    "loss",
    "loss_mask",
    "step_loss_mask",
];

/// The keys under which other tools keep reasoning, and which no Kimi template reads.
pub const UNREAD_REASONING_KEYS: [&str; 10] = [
    "reasoning_text",
    "reasoning_details",
    "reasoning_summary",
    "thinking_content",
    "thinking_blocks",
    "thought",
    "thoughts",
    "think",
    "cot",
    "chain_of_thought",
];

/// Whether a key of a message is looked at; others may hold anything.
#[must_use]
pub fn is_message_key(key: &str) -> bool {
    const KEYS: [&str; 11] = [
        "role",
        "name",
        "content",
        "reasoning_content",
        "reasoning",
        "thinking",
        "tool_calls",
        "tool_call_id",
        "id",
        "tool",
        "tools",
    ];
    KEYS.contains(&key) || WEIGHT_KEYS.contains(&key) || UNREAD_REASONING_KEYS.contains(&key)
}

fn ignored<'v>(message: &'v Object<'v>, is_assistant: bool) -> Vec<Ignored<'v>> {
    let mut ignored = Vec::new();
    for (key, value) in message.iter() {
        match (key, value) {
            ("content", Value::Array(parts)) => {
                ignored.extend(parts.iter().enumerate().filter_map(null_media));
            }
            // What nearly every message has is not looked up in the lists below.
            ("role" | "content" | "reasoning_content" | "tool_call_id" | "name", _)
            | (_, Value::Null) => {}
            ("tool_calls", calls) if !is_assistant && calls.is_truthy() => {
                ignored.push(Ignored::ToolCalls);
            }
            // False and 0 are flags too.
            (key, _) if !is_assistant && WEIGHT_KEYS.contains(&key) => {
                ignored.push(Ignored::Flag(key));
            }
            (key, reasoning) if UNREAD_REASONING_KEYS.contains(&key) && reasoning.is_truthy() => {
                ignored.push(Ignored::Reasoning(key));
            }
            _ => {}
        }
    }
    ignored
}

fn null_media<'v>((part, value): (usize, &'v Value<'v>)) -> Option<Ignored<'v>> {
    let mut keys = value.as_object()?.iter();
    let (key, _) = keys.find(|(key, value)| {
        matches!(*key, "image" | "image_url") && matches!(value, Value::Null)
    })?;
    Some(Ignored::NullMedia { part, key })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a weight beyond 16 million is near enough"
)]
fn weight(message: &Object<'_>) -> Result<Option<f32>> {
    let mut found: Option<(&str, f32)> = None;
    for key in WEIGHT_KEYS {
        let Some(value) = message.get(key) else {
            continue;
        };
        let weight = match value {
            Value::Bool(flag) => Some(f32::from(u8::from(*flag))),
            Value::Int(number) => Some(*number as f32),
            // One that float32 rounds to zero would not train, whatever the message said. Minus zero is zero.
            Value::Float(number) => {
                let weight = *number as f32;
                (weight != 0.0 || *number == 0.0).then_some(weight + 0.0)
            }
            _ => None,
        };
        let is_flag = |weight: &f32| [0.0, 1.0].contains(weight);
        let (takes, what): (fn(&f32) -> bool, _) = if key == "weight" {
            (
                |weight| weight.is_finite() && *weight >= 0.0,
                "true, false or a number from 0 on that float32 can hold",
            )
        } else {
            (is_flag, "true, false, 0 or 1")
        };
        let weight = weight.filter(takes);
        let weight = weight.ok_or_else(|| {
            let mut found = String::new();
            match value {
                Value::Int(_) | Value::BigInt(_) | Value::Float(_) => {
                    value.write_json(Spacing::Spaced, &mut found);
                }
                other => found.push_str(other.kind()),
            }
            fault(format!("expected {what}, found {found}")).at(key)
        })?;
        match found {
            Some((first, before)) if before.to_bits() != weight.to_bits() => {
                return Err(fault(format!(
                    "expected the {before} that `{first}` says, found {weight}"
                ))
                .at(key));
            }
            Some(_) => {}
            None => found = Some((key, weight)),
        }
    }
    Ok(found.map(|(_, weight)| weight))
}

fn string<'v>(object: &'v Object<'v>, key: &'static str) -> Result<Option<&'v str>> {
    as_string(object.get(key), key)
}

/// The string that stands under `key`, if there is anything.
fn as_string<'v>(value: Option<&'v Value<'v>>, key: &'static str) -> Result<Option<&'v str>> {
    match value {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(expected("a string", other).at(key)),
    }
}

pub(crate) fn expected(what: &str, found: &Value<'_>) -> Error {
    fault(format!("expected {what}, found {}", found.kind()))
}

pub(crate) fn fault(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::Conversation, message)
}
