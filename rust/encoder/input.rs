//! What is encoded, as it comes.

use crate::chat::conversation::Conversation;
use crate::chat::json::Value;
use crate::error::Result;

/// A conversation as it comes: JSON text, or values already read.
#[derive(Debug)]
pub enum Input<'a> {
    /// JSON text: a list of messages, or an object with `messages`.
    Json(&'a [u8]),
    /// The same as values.
    Value(Value<'a>),
}

impl Input<'_> {
    /// About how long the text is, to tell how many threads there is work for.
    #[must_use]
    pub fn text_len(&self) -> usize {
        match self {
            Self::Json(text) => text.len(),
            Self::Value(value) => value.text_len(),
        }
    }

    /// Reads the conversation and hands it to `use_it`.
    ///
    /// # Errors
    /// As [`Value::from_json`] and [`Conversation::from_value`], and whatever `use_it` returns.
    pub fn read<T>(
        &self,
        tools: Option<&Value<'_>>,
        use_it: impl FnOnce(&Conversation<'_>) -> Result<T>,
    ) -> Result<T> {
        match self {
            Self::Json(text) => use_it(&Conversation::from_value(&Value::from_json(text)?, tools)?),
            Self::Value(value) => use_it(&Conversation::from_value(value, tools)?),
        }
    }
}
