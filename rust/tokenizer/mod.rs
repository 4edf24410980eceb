//! Text to ids and back. Nothing here knows of roles or messages.
//!
//! There are three ways from text to ids, and the reference uses all of them (`docs/architecture.md` says where):
//! [`Tokenizer::encode_ordinary`] reads special tokens as plain text; [`Tokenizer::encode_with_special_tokens`] cuts
//! first and then parses them, reserved ones included; [`Tokenizer::encode_as_served`] splits at the named ones before
//! it cuts. The last two differ only in texts of more than 25,000 characters.

pub mod bpe;
#[cfg(feature = "huggingface")]
pub mod huggingface;
mod known_texts;
pub mod piece_cache;
pub mod pretokenizer;
pub mod reference_cuts;
pub mod special_tokens;
pub mod tiktoken;
mod uncut;
pub mod vocab;

use std::fmt::Display;
use std::ops::Range;
use std::sync::Arc;

use bpe::Merger;
use known_texts::{Known, KnownTexts};
use piece_cache::PieceCache;
use special_tokens::{SPECIAL_TOKENS_LEN, SpecialTokens};
use vocab::{Vocab, fault};

use crate::error::{Error, Result};

/// The integer that stands for a token.
pub type TokenId = u32;

/// What becomes of special tokens that a text spells out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelled {
    /// They stay text, as in [`Tokenizer::encode_ordinary`].
    AsText,
    /// They become tokens, as in [`Tokenizer::encode_as_served`].
    AsTokens,
}

/// What one thread keeps from call to call with one tokenizer: pieces already encoded, and memory. It never changes a
/// result.
#[derive(Default)]
pub struct Scratch {
    cache: PieceCache,
    merger: Merger,
    recent: uncut::Recent,
    known_texts: KnownTexts,
}

impl Scratch {
    /// Gives back what is not worth its memory after the call: that of an unusually long piece, and whole texts.
    pub fn forget_large(&mut self) {
        self.merger.forget_large();
        self.known_texts = KnownTexts::default();
    }
}

/// A Kimi tokenizer: the vocabulary and the special tokens of one model.
pub struct Tokenizer {
    vocab: Arc<Vocab>,
    special_tokens: SpecialTokens,
}

impl Tokenizer {
    /// A tokenizer of these parts.
    #[must_use]
    pub fn new(vocab: Arc<Vocab>, special_tokens: SpecialTokens) -> Self {
        Self {
            vocab,
            special_tokens,
        }
    }

    /// The vocabulary.
    #[must_use]
    pub fn vocab(&self) -> &Vocab {
        &self.vocab
    }

    /// The special tokens.
    #[must_use]
    pub fn special_tokens(&self) -> &SpecialTokens {
        &self.special_tokens
    }

    /// How many ids there are, special ones included; the first id that means nothing.
    #[must_use]
    pub fn len(&self) -> usize {
        self.vocab.len() + SPECIAL_TOKENS_LEN
    }

    /// Always false.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Encodes text, reading special tokens as plain text.
    #[must_use]
    pub fn encode_ordinary(&self, text: &str) -> Vec<TokenId> {
        let mut ids = Vec::new();
        self.encode_ordinary_into(text, &mut Scratch::default(), &mut ids);
        ids
    }

    /// [`Self::encode_ordinary`], appending to `ids`.
    pub fn encode_ordinary_into(&self, text: &str, scratch: &mut Scratch, ids: &mut Vec<TokenId>) {
        for piece in reference_cuts::pieces(text) {
            self.encode_uncut(piece, scratch, ids);
        }
    }

    /// Encodes text, reading every special token in it as that token, reserved ones included. The text is cut first,
    /// so a special token that lies across a cut becomes plain text: the reference's `encode(text)`.
    #[must_use]
    pub fn encode_with_special_tokens(&self, text: &str) -> Vec<TokenId> {
        let mut ids = Vec::new();
        self.encode_with_special_tokens_into(text, &mut Scratch::default(), &mut ids);
        ids
    }

    /// [`Self::encode_with_special_tokens`], appending to `ids`. Returns how many special tokens the text held.
    pub fn encode_with_special_tokens_into(
        &self,
        text: &str,
        scratch: &mut Scratch,
        ids: &mut Vec<TokenId>,
    ) -> usize {
        reference_cuts::pieces(text)
            .map(|piece| self.encode_uncut_with_special_tokens(piece, scratch, ids))
            .sum()
    }

    /// Encodes text as a server does, and as `apply_chat_template(tokenize=True)` does for the K2 family: splits at
    /// the named special tokens, then encodes each gap with [`Self::encode_with_special_tokens`].
    #[must_use]
    pub fn encode_as_served(&self, text: &str) -> Vec<TokenId> {
        let mut ids = Vec::new();
        self.encode_as_served_into(text, &mut Scratch::default(), &mut ids);
        ids
    }

    /// [`Self::encode_as_served`], appending to `ids`. Returns how many special tokens the text held.
    pub fn encode_as_served_into(
        &self,
        text: &str,
        scratch: &mut Scratch,
        ids: &mut Vec<TokenId>,
    ) -> usize {
        if reference_cuts::is_never_cut(text) {
            return self.encode_uncut_with_special_tokens(text, scratch, ids);
        }
        let mut count = 0;
        let mut start = 0;
        for found in self
            .special_tokens
            .find(text)
            .filter(|found| self.special_tokens.is_named(found.id))
        {
            count += 1 + self.encode_with_special_tokens_into(
                &text[start..found.range.start],
                scratch,
                ids,
            );
            ids.push(found.id);
            start = found.range.end;
        }
        count + self.encode_with_special_tokens_into(&text[start..], scratch, ids)
    }

    /// [`Self::encode_ordinary_into`] or [`Self::encode_as_served_into`], as `spelled` says, for text that may come
    /// again before [`Scratch::forget_large`]: of a long one the ids are then copied.
    pub fn encode_repeating_into(
        &self,
        text: &str,
        spelled: Spelled,
        scratch: &mut Scratch,
        ids: &mut Vec<TokenId>,
    ) -> usize {
        let again = match scratch.known_texts.get(text, spelled) {
            Known::Ids(known, special_tokens) => {
                ids.extend_from_slice(known);
                return special_tokens;
            }
            Known::Again(mark) => Some(mark),
            Known::New => None,
        };
        let first = ids.len();
        let special_tokens = match spelled {
            Spelled::AsTokens => self.encode_as_served_into(text, scratch, ids),
            Spelled::AsText => {
                self.encode_ordinary_into(text, scratch, ids);
                0
            }
        };
        if let Some(mark) = again {
            let ids = &ids[first..];
            scratch
                .known_texts
                .insert(mark, text, spelled, ids, special_tokens);
        }
        special_tokens
    }

    /// Calls `take` with each part of a text that is encoded apart from the others, in order; joined they give the
    /// text.
    pub fn for_each_part(&self, text: &str, spelled: Spelled, mut take: impl FnMut(Range<usize>)) {
        let mut end = 0;
        let mut add = |part: &str| {
            take(end..end + part.len());
            end += part.len();
        };
        if reference_cuts::is_never_cut(text) {
            return add(text);
        }
        let mut start = 0;
        if spelled == Spelled::AsTokens {
            let found = self.special_tokens.find(text);
            for found in found.filter(|found| self.special_tokens.is_named(found.id)) {
                reference_cuts::pieces(&text[start..found.range.start]).for_each(&mut add);
                start = found.range.end;
                add(&text[found.range]);
            }
        }
        reference_cuts::pieces(&text[start..]).for_each(add);
    }

    /// Appends the ids of one of the parts that [`Self::for_each_part`] yields. Returns how many special tokens it
    /// held.
    pub fn encode_part_into(
        &self,
        part: &str,
        spelled: Spelled,
        scratch: &mut Scratch,
        ids: &mut Vec<TokenId>,
    ) -> usize {
        match spelled {
            Spelled::AsTokens => self.encode_uncut_with_special_tokens(part, scratch, ids),
            Spelled::AsText => {
                self.encode_uncut(part, scratch, ids);
                0
            }
        }
    }

    fn encode_uncut_with_special_tokens(
        &self,
        text: &str,
        scratch: &mut Scratch,
        ids: &mut Vec<TokenId>,
    ) -> usize {
        let mut count = 0;
        let mut start = 0;
        for found in self.special_tokens.find(text) {
            self.encode_uncut(&text[start..found.range.start], scratch, ids);
            ids.push(found.id);
            start = found.range.end;
            count += 1;
        }
        self.encode_uncut(&text[start..], scratch, ids);
        count
    }

    fn encode_uncut(&self, text: &str, scratch: &mut Scratch, ids: &mut Vec<TokenId>) {
        uncut::encode_into(&self.vocab, text, scratch, ids);
    }

    /// The bytes that an id stands for; for a special token its name.
    #[must_use]
    #[inline]
    pub fn token_bytes(&self, id: TokenId) -> Option<&[u8]> {
        self.vocab
            .token(id)
            .or_else(|| self.special_tokens.name(id).map(str::as_bytes))
    }

    /// The bytes that ids stand for, exactly.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::Vocab`] with the place of an id that means nothing.
    pub fn decode_bytes(&self, ids: &[TokenId]) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(ids.len() * 4);
        for (index, &id) in ids.iter().enumerate() {
            let Some(token) = self.token_bytes(id) else {
                return Err(self.not_an_id(id).at_index(index).at("ids"));
            };
            bytes.extend_from_slice(token);
        }
        Ok(bytes)
    }

    /// The error for a number that is no id of this tokenizer.
    pub fn not_an_id(&self, found: impl Display) -> Error {
        let last = self.len() - 1;
        fault(format!("expected an id from 0 to {last}, found {found}"))
    }

    /// The text that ids stand for. Bytes that are not UTF-8, such as half a character, become U+FFFD.
    ///
    /// # Errors
    /// As [`Self::decode_bytes`].
    pub fn decode(&self, ids: &[TokenId]) -> Result<String> {
        Ok(String::from_utf8_lossy(&self.decode_bytes(ids)?).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_decodes_and_no_other() {
        let tokenizer = Tokenizer::new(
            Vocab::embedded(),
            SpecialTokens::of_models("kimi-k2.5").unwrap(),
        );
        for id in 0..163_840 {
            assert!(!tokenizer.decode_bytes(&[id]).unwrap().is_empty());
        }
        let error = tokenizer.decode_bytes(&[1, 163_840]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "ids[1]: expected an id from 0 to 163839, found 163840"
        );
        assert_eq!(tokenizer.decode(&[163_586, 3900]).unwrap(), "<|im_end|>You");
    }
}
