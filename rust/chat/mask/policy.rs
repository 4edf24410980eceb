//! The mask language: one small value, spelled the same in Python, on the command line and in files.
//!
//! `NAME`, or `NAME+part-part…`: a choice of messages or a preset, then parts switched on or off.

use std::fmt;

use crate::chat::segment::{Facts, Part};
use crate::chat::templates::Template;
use crate::error::{Error, ErrorKind, Result};

/// Which tokens train: a choice of messages, and of their parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MaskPolicy {
    /// Which messages.
    pub train_on: TrainOn,
    /// Which of their parts.
    pub parts: Parts,
}

/// Which messages train. tinker's words, where it has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TrainOn {
    /// All that the assistant says.
    #[default]
    AllAssistantMessages,
    /// The last assistant message.
    LastAssistantMessage,
    /// All assistant messages after the last user message.
    LastAssistantTurn,
    /// The last assistant message without tool calls.
    FinalAnswer,
    /// Every token after the first user message, headers and tool results included: a common heuristic, for comparison.
    AfterFirstUser,
    /// Every token.
    AllTokens,
    /// The assistant messages that carry a weight or flag above zero, and no others.
    PerMessage,
}

impl TrainOn {
    const ALL: [(Self, &'static str); 7] = [
        (Self::AllAssistantMessages, "all_assistant_messages"),
        (Self::LastAssistantMessage, "last_assistant_message"),
        (Self::LastAssistantTurn, "last_assistant_turn"),
        (Self::FinalAnswer, "final_answer"),
        (Self::AfterFirstUser, "after_first_user"),
        (Self::AllTokens, "all_tokens"),
        (Self::PerMessage, "per_message"),
    ];
}

/// A set of parts of assistant messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Parts(u8);

impl Parts {
    /// Reasoning, and tags around it that the model samples.
    pub const THINK: Self = Self(1);
    /// What the generation prompt supplies after the header, such as `<think>`.
    pub const THINK_PREFILL: Self = Self(2);
    /// Tags that the template writes where there is no reasoning.
    pub const EMPTY_THINK: Self = Self(4);
    /// Content.
    pub const TEXT: Self = Self(8);
    /// The tokens that frame tool calls.
    pub const TOOL_CALL_MARKERS: Self = Self(16);
    /// What names a call.
    pub const TOOL_NAMES: Self = Self(32);
    /// The arguments of calls.
    pub const TOOL_ARGUMENTS: Self = Self(64);
    /// The token that ends a message.
    pub const END: Self = Self(128);

    const ALL: [(Self, &'static str); 8] = [
        (Self::THINK, "think"),
        (Self::THINK_PREFILL, "think_prefill"),
        (Self::EMPTY_THINK, "empty_think"),
        (Self::TEXT, "text"),
        (Self::TOOL_CALL_MARKERS, "tool_call_markers"),
        (Self::TOOL_NAMES, "tool_names"),
        (Self::TOOL_ARGUMENTS, "tool_arguments"),
        (Self::END, "end"),
    ];

    /// These parts and those.
    #[must_use]
    pub const fn with(self, parts: Self) -> Self {
        Self(self.0 | parts.0)
    }

    /// These parts but those.
    #[must_use]
    pub const fn without(self, parts: Self) -> Self {
        Self(self.0 & !parts.0)
    }

    /// Whether what these facts are about is one of the parts. Headers and media placeholders never are.
    #[must_use]
    pub fn contain(self, facts: Facts) -> bool {
        let part = match facts.part {
            Part::Header | Part::Media => return false,
            _ if facts.prefilled => Self::THINK_PREFILL,
            Part::ThinkOpen | Part::ThinkClose if !facts.sampled => Self::EMPTY_THINK,
            Part::ThinkOpen | Part::Think | Part::ThinkClose => Self::THINK,
            Part::Text => Self::TEXT,
            Part::ToolCallMarker => Self::TOOL_CALL_MARKERS,
            Part::ToolName => Self::TOOL_NAMES,
            Part::ToolArguments => Self::TOOL_ARGUMENTS,
            Part::End => Self::END,
        };
        self.0 & part.0 != 0
    }
}

impl Default for Parts {
    /// What the model samples: all but what the prompt or the template supplies.
    fn default() -> Self {
        Self(u8::MAX)
            .without(Self::THINK_PREFILL)
            .without(Self::EMPTY_THINK)
    }
}

/// What other tools train on in all assistant messages. They differ by a token or two a turn.
const PRESETS: [&str; 4] = ["specforge", "speculators", "renderers", "tinker"];

impl MaskPolicy {
    /// Reads a policy such as `all_assistant_messages`, `last_assistant_turn-think`, `specforge`. What a preset means
    /// depends on the template.
    ///
    /// # Errors
    /// [`ErrorKind::Option`] with the known names.
    pub fn parse(text: &str, template: Template) -> Result<Self> {
        let name_end = text.find(['+', '-']).unwrap_or(text.len());
        let (name, mut switches) = text.split_at(name_end);
        let mut policy = Self::named(name, template)?;
        while let Some(sign) = switches.chars().next() {
            let rest = &switches[1..];
            let end = rest.find(['+', '-']).unwrap_or(rest.len());
            let (part, next) = rest.split_at(end);
            let Some((part, _)) = Parts::ALL.iter().find(|(_, known)| *known == part) else {
                let known = names(&Parts::ALL);
                return Err(unknown(&format!("part `{part}`"), &known));
            };
            policy.parts = if sign == '+' {
                policy.parts.with(*part)
            } else {
                policy.parts.without(*part)
            };
            switches = next;
        }
        Ok(policy)
    }

    fn named(name: &str, template: Template) -> Result<Self> {
        if let Some((train_on, _)) = TrainOn::ALL.iter().find(|(_, known)| *known == name) {
            return Ok(Self {
                train_on: *train_on,
                ..Self::default()
            });
        }
        let sampled = Parts::default();
        let body = sampled.with(Parts::THINK_PREFILL).with(Parts::EMPTY_THINK);
        let parts = match name {
            // Its expression for K3 begins after the tag that opens the think channel and leaves the last token out.
            "specforge" if template.name() == "kimi-k3" => {
                sampled.with(Parts::EMPTY_THINK).without(Parts::END)
            }
            "specforge" | "renderers" => body,
            // All that a full rendering adds to the generation prompt.
            "speculators" | "tinker" => sampled.with(Parts::EMPTY_THINK),
            _ => {
                let known = format!("{}, {}", names(&TrainOn::ALL), PRESETS.join(", "));
                return Err(unknown(&format!("mask `{name}`"), &known));
            }
        };
        Ok(Self {
            train_on: TrainOn::AllAssistantMessages,
            parts,
        })
    }
}

impl fmt::Display for MaskPolicy {
    /// The policy as [`MaskPolicy::parse`] reads it, presets spelled out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = TrainOn::ALL
            .iter()
            .find(|(known, _)| *known == self.train_on);
        f.write_str(name.map_or("", |(_, name)| name))?;
        let default = Parts::default();
        for (part, name) in Parts::ALL {
            match (self.parts.0 & part.0 != 0, default.0 & part.0 != 0) {
                (true, false) => write!(f, "+{name}")?,
                (false, true) => write!(f, "-{name}")?,
                _ => {}
            }
        }
        Ok(())
    }
}

fn names<T>(list: &[(T, &str)]) -> String {
    let names: Vec<&str> = list.iter().map(|(_, name)| *name).collect();
    names.join(", ")
}

fn unknown(what: &str, known: &str) -> Error {
    let message = format!("unknown {what}: the known ones are {known}");
    Error::new(ErrorKind::Option, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, template: &str) -> Result<MaskPolicy> {
        MaskPolicy::parse(text, Template::from_name(template)?)
    }

    #[test]
    fn a_policy_reads_what_it_prints() {
        for (text, printed) in [
            ("all_assistant_messages", "all_assistant_messages"),
            ("final_answer-end+think", "final_answer-end"),
            (
                "per_message+empty_think-think",
                "per_message-think+empty_think",
            ),
            (
                "renderers",
                "all_assistant_messages+think_prefill+empty_think",
            ),
            (
                "specforge-end",
                "all_assistant_messages+think_prefill+empty_think-end",
            ),
            ("speculators", "all_assistant_messages+empty_think"),
        ] {
            let policy = parse(text, "kimi-k2.5").unwrap();
            assert_eq!(policy.to_string(), printed);
            assert_eq!(parse(printed, "kimi-k2.5").unwrap(), policy);
        }
        assert_eq!(
            parse("specforge", "kimi-k3").unwrap().to_string(),
            "all_assistant_messages+empty_think-end"
        );
    }

    #[test]
    fn an_unknown_word_is_refused_with_the_known_ones() {
        let error = parse("assistant", "kimi-k2.5").unwrap_err();
        assert!(error.message().starts_with(
            "unknown mask `assistant`: the known ones are all_assistant_messages, last_assistant_message,"
        ));
        let error = parse("all_tokens+thought", "kimi-k2.5").unwrap_err();
        assert!(
            error
                .message()
                .starts_with("unknown part `thought`: the known ones are think,")
        );
        assert!(parse("all_tokens+", "kimi-k2.5").is_err());
        assert!(parse("", "kimi-k2.5").is_err());
    }
}
