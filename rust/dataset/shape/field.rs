//! The fields that the shapes read, and the names under which datasets have them.
//!
//! Everybody names the same few things differently. A name is here because published datasets use it and it means nothing
//! else in them; any other has to be given.

use serde::{Deserialize, Serialize};

use super::by_name;
use crate::error::Result;

/// A field of a record, or of one turn of it, that a shape reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Field {
    /// A list of messages.
    Messages,
    /// A list of turns.
    Conversations,
    /// Who speaks in a turn.
    From,
    /// What is said in a turn.
    Value,
    /// What the user says.
    Prompt,
    /// What the assistant says.
    Response,
    /// What the user asks for.
    Instruction,
    /// What the user adds to that.
    Input,
    /// What the assistant says.
    Output,
    /// A system message before all others.
    System,
    /// Pairs of earlier turns.
    History,
    /// Tool declarations.
    Tools,
}

impl Field {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Messages,
        Self::Conversations,
        Self::From,
        Self::Value,
        Self::Prompt,
        Self::Response,
        Self::Instruction,
        Self::Input,
        Self::Output,
        Self::System,
        Self::History,
        Self::Tools,
    ];

    /// The names under which it is looked for if none is given, its own first.
    #[must_use]
    pub fn names(self) -> &'static [&'static str] {
        match self {
            Self::Messages => &["messages", "conversations", "conversation", "trajectory"],
            Self::Conversations => &["conversations", "conversation", "messages", "trajectory"],
            Self::From => &["from", "role"],
            Self::Value => &["value", "text"],
            Self::Prompt => &["prompt", "question", "query", "problem"],
            Self::Response => &["response", "completion", "answer", "solution"],
            Self::Instruction => &["instruction"],
            Self::Input => &["input"],
            Self::Output => &["output", "response"],
            Self::System => &["system", "system_prompt"],
            Self::History => &["history"],
            Self::Tools => &["tools"],
        }
    }

    /// The field of this name.
    ///
    /// # Errors
    /// [`ErrorKind::Option`](crate::error::ErrorKind::Option) if there is none.
    pub fn from_name(name: &str) -> Result<Self> {
        by_name(Self::ALL, Self::as_str, name, "fields")
    }

    /// Its own name, among options and in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.names()[0]
    }
}
