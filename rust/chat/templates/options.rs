//! The switches of templates, and their spelling in Python, on the command line and in files.

use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use crate::chat::json::{Object, Spacing, Value};
use crate::error::{Error, ErrorKind, Result};

/// The switches of a template, with the defaults of the models' own `apply_chat_template` for whole conversations. A
/// template ignores the switches that its model does not have, as its reference does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RenderOptions<'v> {
    /// Ends the prompt with the header of an assistant turn, for the model to go on.
    pub add_generation_prompt: bool,
    /// False shows the model no reasoning and asks for none. K2.5, K2.6 and K3.
    pub thinking: bool,
    /// Keeps the reasoning of finished turns. K2.6.
    pub preserve_thinking: bool,
    /// How many messages are history, whose reasoning is not shown, in place of the rule of the template, if it has
    /// one. Rows of an expanded conversation say so; it has no name in Python or in files.
    pub history: Option<usize>,
    /// How much to think. K3.
    pub thinking_effort: ThinkingEffort,
    /// Whether to call tools. K3.
    pub tool_choice: ToolChoice,
    /// The form of the answer. K3.
    pub response_format: ResponseFormat<'v>,
    /// What becomes of nulls in tool declarations.
    pub tool_nulls: ToolNulls,
}

/// How much K3 is asked to think; the model's own tokenizer asks for `max`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingEffort {
    /// Little.
    Low,
    /// More.
    High,
    /// All it can.
    #[default]
    Max,
    /// Nothing is said of it.
    Unstated,
}

/// Whether K3 is told to call tools, or not to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// Nothing is said of it.
    #[default]
    Auto,
    /// It must.
    Required,
    /// It must not.
    None,
}

/// What becomes of nulls in tool declarations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolNulls {
    /// One that says nothing counts as absent, as in messages: see [`crate::chat::tool_declaration::UnpaddedTools`].
    #[default]
    Absent,
    /// They are printed, as the reference prints them.
    AsReference,
}

/// The form that K3's answer must have.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum ResponseFormat<'v> {
    /// Nothing is said of it.
    #[default]
    Text,
    /// JSON.
    JsonObject,
    /// JSON that fits this schema.
    JsonSchema(&'v Value<'v>),
}

impl Default for RenderOptions<'_> {
    fn default() -> Self {
        Self {
            add_generation_prompt: false,
            thinking: true,
            preserve_thinking: false,
            history: None,
            thinking_effort: ThinkingEffort::default(),
            tool_choice: ToolChoice::default(),
            response_format: ResponseFormat::default(),
            tool_nulls: ToolNulls::default(),
        }
    }
}

impl<'v> RenderOptions<'v> {
    /// The names of the switches.
    pub const NAMES: [&'static str; 7] = [
        "add_generation_prompt",
        "thinking",
        "preserve_thinking",
        "thinking_effort",
        "tool_choice",
        "response_format",
        "tool_nulls",
    ];

    /// The switches that an object spells out, the others at their defaults. Null is a default too, but for
    /// `thinking_effort`, of which it says nothing.
    ///
    /// # Errors
    /// [`ErrorKind::Option`] for a name that is not known, or a value that it cannot take.
    pub fn from_object(object: &'v Object<'v>) -> Result<Self> {
        let mut options = Self::default();
        for (name, value) in object.iter() {
            let set = options.set(name, value);
            set.map_err(|error| error.at(name.to_owned()))?;
        }
        Ok(options)
    }

    /// Every switch by its name, with its value as [`Self::from_object`] reads it.
    #[must_use]
    pub fn to_json(&self) -> Map<String, Json> {
        let effort = match self.thinking_effort {
            ThinkingEffort::Unstated => Json::Null,
            said => json!(said),
        };
        let values = [
            json!(self.add_generation_prompt),
            json!(self.thinking),
            json!(self.preserve_thinking),
            effort,
            json!(self.tool_choice),
            self.response_format.to_json(),
            json!(self.tool_nulls),
        ];
        let names = Self::NAMES.map(str::to_owned);
        names.into_iter().zip(values).collect()
    }

    fn set(&mut self, name: &str, value: &'v Value<'v>) -> Result<()> {
        match (name, value) {
            ("thinking_effort", Value::Null) => self.thinking_effort = ThinkingEffort::Unstated,
            (name, Value::Null) if Self::NAMES.contains(&name) => {}
            ("add_generation_prompt", value) => self.add_generation_prompt = boolean(value)?,
            ("thinking", value) => self.thinking = boolean(value)?,
            ("preserve_thinking", value) => self.preserve_thinking = boolean(value)?,
            ("thinking_effort", value) => {
                self.thinking_effort = match value.as_str() {
                    Some("low") => ThinkingEffort::Low,
                    Some("high") => ThinkingEffort::High,
                    Some("max") => ThinkingEffort::Max,
                    _ => return Err(not_one_of("low, high, max or null", value)),
                }
            }
            ("tool_choice", value) => {
                self.tool_choice = match value.as_str() {
                    Some("auto") => ToolChoice::Auto,
                    Some("required") => ToolChoice::Required,
                    Some("none") => ToolChoice::None,
                    _ => return Err(not_one_of("auto, required, none or null", value)),
                }
            }
            ("tool_nulls", value) => {
                self.tool_nulls = match value.as_str() {
                    Some("absent") => ToolNulls::Absent,
                    Some("as_reference") => ToolNulls::AsReference,
                    _ => return Err(not_one_of("absent or as_reference", value)),
                }
            }
            ("response_format", value) => self.response_format = ResponseFormat::from_value(value)?,
            _ => {
                let known = Self::NAMES.join(", ");
                return Err(wrong(format!("unknown option: the known ones are {known}")));
            }
        }
        Ok(())
    }
}

impl<'v> ResponseFormat<'v> {
    /// What [`Self::from_value`] reads.
    fn to_json(self) -> Json {
        match self {
            Self::Text => Json::Null,
            Self::JsonObject => json!({"type": "json_object"}),
            Self::JsonSchema(schema) => {
                let mut text = String::new();
                schema.write_json(Spacing::Compact, &mut text);
                // What JSON cannot hold, such as NaN, stays the text that it is printed as.
                let schema = serde_json::from_str(&text).unwrap_or(Json::String(text));
                json!({"type": "json_schema", "json_schema": {"schema": schema}})
            }
        }
    }

    /// As an API request spells it: `{"type": "json_object"}`, or `{"type": "json_schema", "json_schema": {"schema":
    /// …}}`.
    fn from_value(value: &'v Value<'v>) -> Result<Self> {
        let Some(format) = value.as_object() else {
            return Err(not_one_of("an object", value));
        };
        match format.get("type").and_then(Value::as_str) {
            Some("text") => Ok(Self::Text),
            Some("json_object") => Ok(Self::JsonObject),
            Some("json_schema") => {
                let schema = format.get("json_schema").and_then(Value::as_object);
                match schema.and_then(|schema| schema.get("schema")) {
                    Some(schema) => Ok(Self::JsonSchema(schema)),
                    None => Err(wrong("expected a `schema` in `json_schema`, found none")),
                }
            }
            _ => Err(wrong(
                "expected a `type` of text, json_object or json_schema",
            )),
        }
    }
}

fn boolean(value: &Value<'_>) -> Result<bool> {
    match value {
        Value::Bool(value) => Ok(*value),
        other => Err(not_one_of("true or false", other)),
    }
}

fn not_one_of(expected: &str, found: &Value<'_>) -> Error {
    match found.as_str() {
        Some(text) => wrong(format!("expected {expected}, found `{text}`")),
        None => wrong(format!("expected {expected}, found {}", found.kind())),
    }
}

fn wrong(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::Option, message)
}
