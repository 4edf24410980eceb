//! What encoding does where it has a choice, and the names of the choices in Python, on the command line and in files.

use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use crate::chat::mask::{MaskPolicy, TrainOn};
use crate::chat::templates::RenderOptions;
use crate::encoder::length::{MaxLength, Truncate};
use crate::error::{Error, ErrorKind, Result};

/// What to render and what to train.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EncodeOptions<'v> {
    /// The switches of the template.
    pub render: RenderOptions<'v>,
    /// Which tokens train.
    pub mask: MaskPolicy,
    /// What becomes of a conversation in which no token trains.
    pub on_empty: OnEmpty,
    /// What becomes of special tokens that the text of a message spells out.
    pub control_strings: ControlStrings,
    /// What becomes of reasoning that the template does not show.
    pub reasoning: Reasoning,
    /// What becomes of the ids of tool calls, where the template shows them.
    pub tool_call_ids: ToolCallIds,
    /// How long a row may be; None for no limit.
    pub max_length: Option<MaxLength>,
    /// What becomes of what is odd in a conversation.
    pub validate: Validate,
}

/// What becomes of what is odd in a conversation: see [`crate::chat::validation`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Validate {
    /// It is noted.
    #[default]
    Warn,
    /// The first oddity is an error.
    Strict,
    /// Nobody looks.
    Off,
}

impl Validate {
    /// The choice of this name: `warn`, `strict` or `off`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "warn" => Some(Self::Warn),
            "strict" => Some(Self::Strict),
            "off" => Some(Self::Off),
            _ => None,
        }
    }
}

/// What becomes of the ids of tool calls, where the template shows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolCallIds {
    /// They stay as they are; those that hide the name of their function are counted.
    #[default]
    Verbatim,
    /// They become `functions.⟨name⟩:⟨n⟩`, which Kimi models write themselves, in calls and in their results.
    Canonical,
}

impl ToolCallIds {
    /// The choice of this name: `verbatim` or `canonical`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "verbatim" => Some(Self::Verbatim),
            "canonical" => Some(Self::Canonical),
            _ => None,
        }
    }
}

/// What becomes of reasoning that the template does not show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reasoning {
    /// It is left out, and counted.
    #[default]
    Template,
    /// All is shown, where the template can do that; elsewhere it is an error.
    Preserve,
    /// The conversation becomes several rows, each with the reasoning that the model was shown: see
    /// [`crate::chat::expand`].
    Expand,
}

impl Reasoning {
    /// The choice of this name: `template`, `preserve` or `expand`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "template" => Some(Self::Template),
            "preserve" => Some(Self::Preserve),
            "expand" => Some(Self::Expand),
            _ => None,
        }
    }
}

/// What becomes of special tokens that the text of a message spells out. The mask is the same in every case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlStrings {
    /// What the template's reference makes of them.
    #[default]
    AsReference,
    /// They stay text, so no message can hold a token that frames messages; the ids are not the reference's.
    Text,
    /// They are an error, where the reference would make tokens of them.
    Error,
}

impl ControlStrings {
    /// The choice of this name: `as_reference`, `text` or `error`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "as_reference" => Some(Self::AsReference),
            "text" => Some(Self::Text),
            "error" => Some(Self::Error),
            _ => None,
        }
    }
}

/// What becomes of a conversation in which no token trains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OnEmpty {
    /// It is kept, and counted.
    #[default]
    Keep,
    /// A batch or a dataset leaves it out, and counts it; a single conversation cannot be left out, and is kept.
    Skip,
    /// It is an error.
    Raise,
}

impl OnEmpty {
    /// The choice of this name: `keep`, `skip` or `raise`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "keep" => Some(Self::Keep),
            "skip" => Some(Self::Skip),
            "raise" => Some(Self::Raise),
            _ => None,
        }
    }
}

impl<'v> From<RenderOptions<'v>> for EncodeOptions<'v> {
    /// With the default mask.
    fn from(render: RenderOptions<'v>) -> Self {
        Self {
            render,
            ..Self::default()
        }
    }
}

impl EncodeOptions<'_> {
    /// Every option by its name in Python, with its value there.
    #[must_use]
    pub fn to_json(&self) -> Map<String, Json> {
        let mut options = self.render.to_json();
        let truncate = self
            .max_length
            .map_or_else(Truncate::default, |max_length| max_length.truncate);
        for (name, value) in [
            ("mask", json!(self.mask.to_string())),
            ("on_empty", json!(self.on_empty)),
            ("control_strings", json!(self.control_strings)),
            ("reasoning", json!(self.reasoning)),
            ("tool_call_ids", json!(self.tool_call_ids)),
            (
                "max_length",
                json!(self.max_length.map(|max_length| max_length.tokens)),
            ),
            ("truncate", json!(truncate)),
            ("validate", json!(self.validate)),
        ] {
            options.insert(name.to_owned(), value);
        }
        options
    }

    /// Rows repeat the beginning of their conversation, which rules some options out.
    pub(super) fn check_expand(self) -> Result<()> {
        let wrong = |message: String| Err(Error::new(ErrorKind::Option, message).at("reasoning"));
        if self.render.add_generation_prompt {
            return wrong(
                "expand is for training, and add_generation_prompt for prompts".to_owned(),
            );
        }
        match self.mask.train_on {
            TrainOn::AllAssistantMessages | TrainOn::PerMessage => Ok(()),
            _ => wrong(format!(
                "expand trains each assistant message once, which the mask {} does not",
                self.mask
            )),
        }
    }
}
