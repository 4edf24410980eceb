//! Chat templates by name. One file a template; this file knows which names lead to which.
//!
//! `docs/adding-a-template.md` says how to add one.

mod im_chat;
mod options;

use std::fmt;

pub use options::{RenderOptions, ResponseFormat, ThinkingEffort, ToolChoice, ToolNulls};

use crate::chat::conversation::{Conversation, Message};
use crate::chat::segment::{ControlToken, Segments};
use crate::chat::tool_declaration::UnpaddedTools;
use crate::error::{Error, ErrorKind, Result};

/// Each line is a file of this folder with a `DEFINITION`.
macro_rules! templates {
    ($($module:ident,)*) => {
        $(mod $module;)*

        impl Template {
            /// Every template, in the order in which an error lists them.
            pub const ALL: &'static [Self] = &[$(Self(&$module::DEFINITION),)*];
        }
    };
}

templates! {
    kimi_k2_0711,
    kimi_k2,
    kimi_k2_thinking,
    kimi_k25,
    kimi_k26,
    kimi_k27_code,
    kimi_k3,
    kimi_linear,
    kimi_vl,
    moonlight,
}

/// Models that are known by name and refused, and why.
const REFUSED: &[(&str, &str)] = &[(
    "kimi-k3.1-pro",
    "its prompt format is not public, and K3's is not known to fit",
)];

/// All that a template file says of its template.
struct Definition {
    /// The name by which it is asked for, in lower case.
    name: &'static str,
    /// Names of models that have it, in lower case and without the organisation.
    models: &'static [&'static str],
    /// Which set of special tokens the models have: a name that `tokenizer::special_tokens` knows.
    special_tokens: &'static str,
    /// The special tokens that it emits, in groups.
    control_tokens: &'static [&'static [ControlToken]],
    /// What becomes of special tokens that a message's text spells out.
    spelled_tokens: SpelledTokens,
    /// Which reasoning it shows.
    shown_reasoning: ShownReasoning,
    /// Whether it shows none, and asks for none, when `thinking` is switched off.
    thinking_switch: bool,
    /// How it names the function of a call.
    calls_named_by: CallsNamedBy,
    /// How its `chat_template` is told from the others'.
    marks: Marks,
    /// Appends the segments. Returns how many messages had reasoning that is not shown.
    render: fn(&Conversation<'_>, RenderOptions<'_>, &mut Segments) -> Result<u32>,
}

/// The reasoning of a message that a template would show.
pub type ReasoningText = for<'v> fn(&Message<'v>) -> &'v str;

/// Which reasoning a template shows.
#[derive(Clone, Copy)]
pub enum ShownReasoning {
    /// None.
    None,
    /// That of messages after the last answer.
    SinceLastAnswer(ReasoningText),
    /// The same, or all with `preserve_thinking`.
    SinceLastAnswerOrAll(ReasoningText),
    /// All.
    All,
}

/// How a template names the function of a call, if it shows calls at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallsNamedBy {
    /// By the id of the call, as it was given.
    Id,
    /// By an id that it makes of the name and of the place in the message; a result keeps the id that it was given.
    Place,
    /// By the name itself.
    Function,
}

/// How a model's own template file is told from those of other models.
struct Marks {
    /// Strings that it holds.
    holds: &'static [&'static str],
    /// Strings that it does not hold.
    lacks: &'static [&'static str],
}

/// What becomes of special tokens that a message's text spells out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpelledTokens {
    /// They become those tokens, as in every template that renders to one text.
    BecomeTokens,
    /// They stay text.
    StayText,
}

/// The prompt format of a model.
#[derive(Clone, Copy)]
pub struct Template(&'static Definition);

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Template").field(&self.name()).finish()
    }
}

impl PartialEq for Template {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Template {}

impl Template {
    /// The name by which it is asked for.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// The name of the set of special tokens that its models have.
    #[must_use]
    pub fn special_tokens(self) -> &'static str {
        self.0.special_tokens
    }

    /// The special tokens that it emits.
    pub fn control_tokens(self) -> impl Iterator<Item = ControlToken> {
        self.0.control_tokens.iter().copied().flatten().copied()
    }

    /// What becomes of special tokens that a message's text spells out.
    #[must_use]
    pub fn spelled_tokens(self) -> SpelledTokens {
        self.0.spelled_tokens
    }

    /// Refuses a model's own template file that cannot be this template's.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownModel`], with what gives it away.
    pub fn check_file(self, text: &str) -> Result<()> {
        let marks = &self.0.marks;
        let odd = |mark: &&str, has: &str| {
            let message = format!(
                "expected the chat template of {}, found one that {has} `{mark}`: pass template= to say which it is",
                self.name()
            );
            Error::new(ErrorKind::UnknownModel, message)
        };
        if let Some(mark) = marks.holds.iter().find(|mark| !text.contains(**mark)) {
            return Err(odd(mark, "lacks"));
        }
        match marks.lacks.iter().find(|mark| text.contains(**mark)) {
            Some(mark) => Err(odd(mark, "holds")),
            None => Ok(()),
        }
    }

    /// Which reasoning it shows.
    #[must_use]
    pub fn shown_reasoning(self) -> ShownReasoning {
        self.0.shown_reasoning
    }

    /// Whether it shows reasoning under these options, if it shows any.
    #[must_use]
    pub fn is_thinking(self, options: RenderOptions<'_>) -> bool {
        options.thinking || !self.0.thinking_switch
    }

    /// How it names the function of a call.
    #[must_use]
    pub fn calls_named_by(self) -> CallsNamedBy {
        self.0.calls_named_by
    }

    /// The names of all templates, for a message.
    #[must_use]
    pub fn known_names() -> String {
        let names: Vec<&str> = Self::ALL.iter().map(|template| template.name()).collect();
        names.join(", ")
    }

    /// The template of a name such as `kimi-k2.5`, `Kimi-K2.5`, `moonshotai/Kimi-K2-Instruct-0905`.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownModel`], with the known names.
    pub fn from_name(name: &str) -> Result<Self> {
        let lower = name.to_ascii_lowercase();
        let short = lower.strip_prefix("moonshotai/").unwrap_or(&lower);
        let has_name =
            |template: &&Self| template.name() == short || template.0.models.contains(&short);
        if let Some(template) = Self::ALL.iter().find(has_name) {
            return Ok(*template);
        }
        let known = Self::known_names();
        let refused = REFUSED.iter().find(|(refused, _)| *refused == short);
        let message = match refused {
            Some((_, reason)) => {
                format!("cannot encode for `{name}`: {reason}; the known models are {known}")
            }
            None => format!("unknown model `{name}`: the known ones are {known}"),
        };
        Err(Error::new(ErrorKind::UnknownModel, message))
    }

    /// Renders a conversation, appending to `segments`. Returns how many messages had reasoning that the template does
    /// not show.
    ///
    /// # Errors
    /// [`ErrorKind::Conversation`] with the place of what this template cannot render faithfully.
    pub fn render_into(
        self,
        conversation: &Conversation<'_>,
        options: RenderOptions<'_>,
        segments: &mut Segments,
    ) -> Result<u32> {
        let unpadded = match options.tool_nulls {
            ToolNulls::Absent => UnpaddedTools::of(conversation),
            ToolNulls::AsReference => None,
        };
        match &unpadded {
            Some(tools) => (self.0.render)(&tools.put_into(conversation), options, segments),
            None => (self.0.render)(conversation, options, segments),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_to_one_template() {
        let mut names: Vec<&str> = Template::ALL
            .iter()
            .flat_map(|template| {
                [template.name()]
                    .into_iter()
                    .chain(template.0.models.iter().copied())
            })
            .collect();
        for name in &names {
            assert_eq!(*name, name.to_ascii_lowercase());
            assert!(Template::from_name(&format!("moonshotai/{}", name.to_uppercase())).is_ok());
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn a_model_whose_format_is_not_public_is_refused_with_the_reason() {
        let error = Template::from_name("moonshotai/Kimi-K3.1-Pro").unwrap_err();
        assert!(error.message().starts_with(
            "cannot encode for `moonshotai/Kimi-K3.1-Pro`: its prompt format is not public"
        ));
    }
}
