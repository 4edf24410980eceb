//! Special tokens: name ↔ id, and where they occur in text.
//!
//! Ids from 163,584 to 163,839 are special. A model names some of them; the others are called
//! `<|reserved_token_⟨id⟩|>`, which is a special token all the same when text is encoded with special tokens parsed.

use std::collections::BTreeSet;
use std::ops::Range;

use aho_corasick::packed::Searcher;
use aho_corasick::{AhoCorasick, AhoCorasickKind, Anchored, Input, MatchKind, StartKind};

use crate::error::Result;
use crate::tokenizer::TokenId;
use crate::tokenizer::vocab::{KIMI_VOCAB_LEN, fault};

/// How many special tokens there are, named or not.
pub const SPECIAL_TOKENS_LEN: usize = 256;

const FIRST: TokenId = KIMI_VOCAB_LEN as TokenId;

type Names = &'static [(TokenId, &'static str)];

/// The sets of names that models give, from their `tokenizer_config.json`: each under a name of its own, in groups that
/// other sets share.
const SETS: [(&str, &[Names]); 5] = [
    ("kimi-k2", &[EVERY_MODEL, IM, TOOL_CALLS]),
    ("kimi-k2-thinking", &[EVERY_MODEL, IM, TOOL_CALLS, THINK]),
    (
        "kimi-k2.5",
        &[EVERY_MODEL, IM, TOOL_CALLS, THINK, MEDIA, MEDIA_BEGIN],
    ),
    ("kimi-k3", &[EVERY_MODEL, TAGS, MEDIA, MEDIA_BEGIN]),
    ("moonlight", &[EVERY_MODEL, IM, MEDIA, MEDIA_START]),
];

const EVERY_MODEL: Names = &[
    (163_584, "[BOS]"),
    (163_585, "[EOS]"),
    (163_590, "<|start_header_id|>"),
    (163_591, "<|end_header_id|>"),
    (163_593, "[EOT]"),
    (163_838, "[UNK]"),
    (163_839, "[PAD]"),
];

/// What frames messages before K3.
const IM: Names = &[
    (163_586, "<|im_end|>"),
    (163_587, "<|im_user|>"),
    (163_588, "<|im_assistant|>"),
    (163_594, "<|im_system|>"),
    (163_601, "<|im_middle|>"),
];

/// What frames everything in K3: the same ids mean something else. K3 names one more, 163649, whose name is not known.
const TAGS: Names = &[
    (163_586, "<|end_of_msg|>"),
    (163_587, "<|open|>"),
    (163_588, "<|close|>"),
    (163_589, "<|sep|>"),
];

const TOOL_CALLS: Names = &[
    (163_595, "<|tool_calls_section_begin|>"),
    (163_596, "<|tool_calls_section_end|>"),
    (163_597, "<|tool_call_begin|>"),
    (163_598, "<|tool_call_argument_begin|>"),
    (163_599, "<|tool_call_end|>"),
];

const THINK: Names = &[(163_606, "<think>"), (163_607, "</think>")];

const MEDIA: Names = &[
    (163_603, "<|media_content|>"),
    (163_604, "<|media_end|>"),
    (163_605, "<|media_pad|>"),
];

const MEDIA_BEGIN: Names = &[(163_602, "<|media_begin|>")];

const MEDIA_START: Names = &[(163_602, "<|media_start|>")];

/// The special tokens of one model.
pub struct SpecialTokens {
    /// By id, from the first special id on.
    names: Vec<String>,
    /// Whether the model names it, likewise by id.
    is_named: Vec<bool>,
    finder: AhoCorasick,
    /// What all names begin with, which is searched for many bytes at once; None if they have too little in common.
    openings: Option<Searcher>,
}

/// Bytes of a name's opening. The names that Kimi's models give have a dozen different ones.
const OPENING_LEN: usize = 3;

/// More are not searched for many bytes at once.
const MOST_OPENINGS: usize = 32;

/// A special token found in text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// Where it stands, in bytes.
    pub range: Range<usize>,
    /// Which one it is.
    pub id: TokenId,
}

impl SpecialTokens {
    /// The special tokens of the models whose set has this name: `kimi-k2`, `kimi-k2-thinking`, `kimi-k2.5` (also of
    /// K2.6 and K2.7), `kimi-k3` or `moonlight` (also of Kimi-VL).
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::Vocab`] for another name.
    pub fn of_models(set: &str) -> Result<Self> {
        match SETS.iter().find(|(name, _)| *name == set) {
            Some((_, groups)) => Self::from_names(groups.concat()),
            None => Err(fault(format!("no set of special tokens is called `{set}`"))),
        }
    }

    /// The special tokens that have these names; all others are reserved ones.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::Vocab`] for an id that is not special, or a name given twice.
    pub fn from_names<'n>(names: impl IntoIterator<Item = (TokenId, &'n str)>) -> Result<Self> {
        let reserved = |offset: usize| format!("<|reserved_token_{}|>", KIMI_VOCAB_LEN + offset);
        let mut all: Vec<String> = (0..SPECIAL_TOKENS_LEN).map(reserved).collect();
        let mut is_named = vec![false; SPECIAL_TOKENS_LEN];
        for (id, name) in names {
            let offset = id.checked_sub(FIRST).map(|offset| offset as usize);
            let Some(offset) = offset.filter(|&offset| offset < SPECIAL_TOKENS_LEN) else {
                let last = KIMI_VOCAB_LEN + SPECIAL_TOKENS_LEN - 1;
                return Err(fault(format!(
                    "expected special tokens from {FIRST} to {last}, found {id} for `{name}`"
                )));
            };
            // Converters write the reserved tokens out too; they stay reserved.
            if name == all[offset] && !is_named[offset] {
                continue;
            }
            if name.is_empty() || all.iter().any(|known| known == name) {
                return Err(fault(format!(
                    "expected another name for special token {id}, found `{name}` again"
                )));
            }
            name.clone_into(&mut all[offset]);
            is_named[offset] = true;
        }
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .start_kind(StartKind::Both)
            .build(&all);
        let finder = finder.map_err(|error| fault(error.to_string()))?;
        let openings: BTreeSet<&[u8]> = all
            .iter()
            .map(|name| &name.as_bytes()[..name.len().min(OPENING_LEN)])
            .collect();
        let openings = (openings.len() <= MOST_OPENINGS).then(|| Searcher::new(openings));
        Ok(Self {
            names: all,
            is_named,
            finder,
            openings: openings.flatten(),
        })
    }

    /// The id of a special token, by its name.
    #[must_use]
    pub fn id(&self, name: &str) -> Option<TokenId> {
        self.names
            .iter()
            .position(|known| known == name)
            .map(|offset| FIRST + offset as TokenId)
    }

    /// The name of a special token, by its id.
    #[must_use]
    pub fn name(&self, id: TokenId) -> Option<&str> {
        self.names
            .get(id.checked_sub(FIRST)? as usize)
            .map(String::as_str)
    }

    /// Whether the model gives the token a name of its own; reserved ones are not.
    #[must_use]
    pub fn is_named(&self, id: TokenId) -> bool {
        id.checked_sub(FIRST)
            .and_then(|offset| self.is_named.get(offset as usize))
            .copied()
            .unwrap_or(false)
    }

    /// The tokens that the model names, in the order of their ids.
    pub fn named(&self) -> impl Iterator<Item = (&str, TokenId)> {
        let ids = FIRST..FIRST + SPECIAL_TOKENS_LEN as TokenId;
        ids.filter(|&id| self.is_named(id))
            .filter_map(|id| Some((self.name(id)?, id)))
    }

    /// The special tokens in a text, from left to right.
    pub fn find<'s>(&'s self, text: &'s str) -> impl Iterator<Item = Occurrence> + 's {
        let mut at = 0;
        std::iter::from_fn(move || {
            let found = self.next_at(text, at)?;
            at = found.range.end;
            Some(found)
        })
    }

    /// The first special token from `at` on, and the longest that begins there.
    fn next_at(&self, text: &str, mut at: usize) -> Option<Occurrence> {
        let Some(openings) = &self.openings else {
            return self.occurrence(Input::new(text).range(at..));
        };
        loop {
            at = openings.find_in(text, (at..text.len()).into())?.start();
            let here = Input::new(text).range(at..).anchored(Anchored::Yes);
            if let Some(found) = self.occurrence(here) {
                return Some(found);
            }
            at += 1;
        }
    }

    fn occurrence(&self, input: Input<'_>) -> Option<Occurrence> {
        let found = self.finder.find(input)?;
        Some(Occurrence {
            range: found.range(),
            id: FIRST + found.pattern().as_u32(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_tokens_are_special_but_not_named() {
        let specials = SpecialTokens::of_models("kimi-k2.5").unwrap();
        assert_eq!(specials.id("<|im_end|>"), Some(163_586));
        assert_eq!(specials.name(163_589), Some("<|reserved_token_163589|>"));
        assert!(!specials.is_named(163_589));
        assert_eq!(specials.named().count(), 23);
        assert_eq!(specials.name(163_840), None);
        assert_eq!(specials.id("<|im_start|>"), None);
    }

    #[test]
    fn occurrences_come_from_left_to_right() {
        let specials = SpecialTokens::of_models("kimi-k2.5").unwrap();
        let text = "a<|im_<|im_end|>[BOS<think></think><|reserved_token_163589|>";
        let found: Vec<(&str, TokenId)> = specials
            .find(text)
            .map(|o| (&text[o.range], o.id))
            .collect();
        assert_eq!(
            found,
            [
                ("<|im_end|>", 163_586),
                ("<think>", 163_606),
                ("</think>", 163_607),
                ("<|reserved_token_163589|>", 163_589)
            ]
        );
    }

    #[test]
    fn openings_hide_no_token() {
        let many = (0..200_u8).map(|n| {
            (
                FIRST + u32::from(n),
                format!("{}{n}", char::from(b' ' + n % 90)),
            )
        });
        let many: Vec<_> = many.collect();
        let many = many.iter().map(|(id, name)| (*id, name.as_str()));
        let many = SpecialTokens::from_names(many).unwrap();
        assert!(many.openings.is_none());
        let few = SpecialTokens::of_models("kimi-k2.5").unwrap();
        assert!(few.openings.is_some());
        for specials in [many, few] {
            let text = "<|i".repeat(100) + &specials.names.join("<|im_") + "<|im_";
            for start in 0..300 {
                let text = &text[start..];
                let plain = specials.finder.find_iter(text).map(|found| found.range());
                assert!(plain.eq(specials.find(text).map(|found| found.range)));
            }
        }
    }

    #[test]
    fn wrong_names_are_refused() {
        let twice = SpecialTokens::from_names([(163_584, "[BOS]"), (163_585, "[BOS]")])
            .err()
            .unwrap();
        assert_eq!(
            twice.message(),
            "expected another name for special token 163585, found `[BOS]` again"
        );
        assert!(SpecialTokens::from_names([(5, "<x>")]).is_err());
        assert!(SpecialTokens::from_names([(163_840, "<x>")]).is_err());
    }
}
