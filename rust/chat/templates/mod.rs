//! Chat templates by name. One file a family; this file knows which names lead to which.

mod kimi_k25;

use crate::chat::conversation::Conversation;
use crate::chat::segment::Segments;
use crate::error::{Error, ErrorKind, Result};

/// The prompt format of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Template {
    /// Kimi-K2.5
    KimiK25,
    /// Kimi-K2.6
    KimiK26,
}

/// The switches of a template, with the defaults of the models' own `apply_chat_template` for whole conversations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenderOptions {
    /// Ends the prompt with the header of an assistant turn, for the model to go on.
    pub add_generation_prompt: bool,
    /// False shows the model no reasoning and asks for none.
    pub thinking: bool,
    /// Keeps the reasoning of finished turns. K2.6 only; K2.5 has no such switch and, like its reference, ignores it.
    pub preserve_thinking: bool,
}

impl Default for RenderOptions {
    fn default() -> Self {
        Self {
            add_generation_prompt: false,
            thinking: true,
            preserve_thinking: false,
        }
    }
}

impl Template {
    /// Every template, in the order in which an error lists them.
    pub const ALL: &[Self] = &[Self::KimiK25, Self::KimiK26];

    /// The name by which it is asked for.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::KimiK25 => "kimi-k2.5",
            Self::KimiK26 => "kimi-k2.6",
        }
    }

    /// The template of a name such as `kimi-k2.5`, `Kimi-K2.5` or `moonshotai/Kimi-K2.5`.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownModel`], with the known names.
    pub fn from_name(name: &str) -> Result<Self> {
        let lower = name.to_ascii_lowercase();
        let short = lower.strip_prefix("moonshotai/").unwrap_or(&lower);
        Self::ALL
            .iter()
            .copied()
            .find(|template| template.name() == short)
            .ok_or_else(|| {
                let known: Vec<&str> = Self::ALL.iter().map(|template| template.name()).collect();
                let message = format!(
                    "unknown model `{name}`: the known ones are {}",
                    known.join(", ")
                );
                Error::new(ErrorKind::UnknownModel, message)
            })
    }

    /// Renders a conversation, appending to `segments`. Returns how many messages had reasoning that the template does
    /// not show.
    ///
    /// # Errors
    /// [`ErrorKind::Conversation`] where a tool declaration cannot be printed faithfully.
    pub fn render_into(
        self,
        conversation: &Conversation<'_>,
        options: RenderOptions,
        segments: &mut Segments,
    ) -> Result<u32> {
        match self {
            Self::KimiK25 => {
                kimi_k25::render(kimi_k25::Version::K25, conversation, options, segments)
            }
            Self::KimiK26 => {
                kimi_k25::render(kimi_k25::Version::K26, conversation, options, segments)
            }
        }
    }
}
