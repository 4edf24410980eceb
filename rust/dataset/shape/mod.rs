//! The shapes in which datasets hold conversations, and how a record of each becomes messages.
//!
//! A record in OpenAI's spelling is read as it is. All others become such a record first, with their strings borrowed:
//! what reads, checks and renders a conversation knows one spelling. Whatever is said of a record names the fields that
//! it has, not those that it became.

mod calls;
mod detect;
mod field;
mod instruction;
mod json_text;
mod layout;
mod message;
mod place;
mod prompt_response;
#[cfg(test)]
mod published;
mod share_gpt;
mod tools;

pub use field::Field;
pub use layout::Layout;
use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};

/// How a record holds a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// `messages` (`role`, `content`, …) and `tools`, as `OpenAI` spells them.
    Messages,
    /// `conversations` (`from`, `value`), `system` and `tools`, as `ShareGPT` and `LLaMA-Factory` spell them.
    #[serde(rename = "sharegpt")]
    ShareGpt,
    /// `prompt` and `response`: two texts, or two lists of messages.
    PromptResponse,
    /// `instruction`, `input` and `output`, as Alpaca spells them; `system` and `history` as `LLaMA-Factory` adds them.
    Instruction,
}

impl Shape {
    /// All of them, in the order in which a record is tried.
    pub const ALL: [Self; 4] = [
        Self::Messages,
        Self::ShareGpt,
        Self::PromptResponse,
        Self::Instruction,
    ];

    /// Its name among options and in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::ShareGpt => "sharegpt",
            Self::PromptResponse => "prompt_response",
            Self::Instruction => "instruction",
        }
    }

    /// The shape of this name.
    ///
    /// # Errors
    /// [`ErrorKind::Option`] if there is none.
    pub fn from_name(name: &str) -> Result<Self> {
        by_name(Self::ALL, Self::as_str, name, "shape")
    }

    /// The fields that it reads.
    #[must_use]
    pub fn fields(self) -> &'static [Field] {
        match self {
            Self::Messages => &[Field::Messages, Field::Tools],
            Self::ShareGpt => &[
                Field::Conversations,
                Field::From,
                Field::Value,
                Field::System,
                Field::Tools,
            ],
            Self::PromptResponse => &[Field::Prompt, Field::Response, Field::System, Field::Tools],
            Self::Instruction => &[
                Field::Instruction,
                Field::Output,
                Field::Input,
                Field::System,
                Field::History,
                Field::Tools,
            ],
        }
    }
}

/// The one of `known` that is called `name`, which `option` gives.
fn by_name<T: Copy, const N: usize>(
    known: [T; N],
    as_str: fn(T) -> &'static str,
    name: &str,
    option: &'static str,
) -> Result<T> {
    let found = known.into_iter().find(|known| as_str(*known) == name);
    found.ok_or_else(|| {
        let names = known.map(as_str).join(", ");
        let message = format!("expected one of {names}, found {name:?}");
        Error::new(ErrorKind::Option, message).at(option)
    })
}

/// What the tests of all shapes ask.
#[cfg(test)]
mod testing {
    use super::{Field, Layout, Shape};
    use crate::chat::json::{Spacing, Value};
    use crate::error::Result;

    pub(super) fn read(record: &str) -> Value<'_> {
        Value::from_json(record.as_bytes()).unwrap()
    }

    /// What a record becomes, in the layout that is found for it.
    pub(super) fn became(record: &str, names: &[(Field, String)]) -> Result<(Shape, String)> {
        let record = read(record);
        let record = record.as_object().unwrap();
        let layout = Layout::of([record], None, &names.iter().cloned().collect())?;
        let mut out = String::new();
        let conversation = layout.conversation(record)?;
        conversation.write_json(Spacing::Compact, &mut out);
        Ok((layout.shape, out.replace('"', "'")))
    }

    pub(super) fn error_of(record: &str) -> String {
        became(record, &[]).unwrap_err().to_string()
    }
}
