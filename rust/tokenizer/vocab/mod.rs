//! All ordinary tokens: bytes to id and back.
//!
//! Every Kimi model has the same 163,584 byte-level ranks, and the rank of a token is its id. Three sources lead here
//! (the embedded copy, `tiktoken.rs`, `huggingface.rs`), and each must yield exactly this vocabulary: a file with one
//! rank changed would tokenize a million rows wrongly without a sign.

mod tables;

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use tables::Tables;

pub(super) use tables::{ID_BITS, hash};

use crate::error::{Error, ErrorKind, Result};
use crate::tokenizer::TokenId;

/// How many ordinary tokens every Kimi model has; the special tokens' ids begin here.
pub const KIMI_VOCAB_LEN: usize = 163_584;

/// The sha256 of Kimi's `tiktoken.model`, in hexadecimal.
pub const KIMI_VOCAB_SHA256: &str =
    "b6c497a7469b33ced9c38afb1ad6e47f03f5e5dc05f15930799210ec050c5103";

/// Token bytes ↔ ids. The id of a token is its merge rank.
pub struct Vocab {
    tables: Tables,
}

/// A file that was written by `rust/build.rs`, at an address where integers may lie.
macro_rules! embedded {
    ($name:literal) => {{
        #[repr(C, align(64))]
        struct Aligned<T: ?Sized>(T);
        static FILE: &Aligned<[u8]> =
            &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/", $name)));
        &FILE.0
    }};
}

impl Vocab {
    /// Kimi's vocabulary from inside the library: nothing is read or built, and processes share its memory.
    #[must_use]
    pub fn embedded() -> Arc<Self> {
        static EMBEDDED: OnceLock<Arc<Vocab>> = OnceLock::new();
        let new = || {
            let tables = Tables {
                bytes: Cow::Borrowed(embedded!("vocab_bytes")),
                starts: Cow::Borrowed(bytemuck::cast_slice(embedded!("vocab_starts"))),
                slots: Cow::Borrowed(bytemuck::cast_slice(embedded!("vocab_slots"))),
                words: Cow::Borrowed(bytemuck::cast_slice(embedded!("vocab_words"))),
                singles: Cow::Borrowed(bytemuck::cast_slice(embedded!("vocab_singles"))),
                pairs: Cow::Borrowed(bytemuck::cast_slice(embedded!("vocab_pairs"))),
                filter: Cow::Borrowed(bytemuck::cast_slice(embedded!("vocab_filter"))),
            };
            Arc::new(Self { tables })
        };
        EMBEDDED.get_or_init(new).clone()
    }

    /// The vocabulary of these tokens and ranks, in any order.
    ///
    /// # Errors
    /// [`ErrorKind::Vocab`] if the ranks are not 0, 1, 2, … or one of the 256 single bytes is no token.
    pub fn from_ranks<'t>(ranks: impl IntoIterator<Item = (&'t [u8], TokenId)>) -> Result<Self> {
        let mut ranks: Vec<(&[u8], TokenId)> = ranks.into_iter().collect();
        ranks.sort_unstable_by_key(|&(_, rank)| rank);
        if ranks.len() >= 1 << ID_BITS {
            return Err(fault(format!(
                "expected fewer than {} tokens, found {}",
                1 << ID_BITS,
                ranks.len()
            )));
        }
        let wrong = (0..)
            .zip(&ranks)
            .find(|&(expected, &(_, rank))| rank != expected);
        if let Some((expected, _)) = wrong {
            return Err(fault(format!(
                "expected a token of rank {expected}, found none or two"
            )));
        }
        let tokens: Vec<&[u8]> = ranks.into_iter().map(|(token, _)| token).collect();
        let tables = Tables::new(&tokens).map_err(|rank| {
            fault(format!(
                "expected another token at rank {rank}, found an empty or known one"
            ))
        })?;
        let vocab = Self { tables };
        if let Some(byte) = (0..=u8::MAX).find(|&byte| vocab.get(&[byte]).is_none()) {
            return Err(fault(format!(
                "expected a token for each single byte, found none for 0x{byte:02X}"
            )));
        }
        Ok(vocab)
    }

    /// Confirms that this is Kimi's vocabulary, rank for rank.
    ///
    /// # Errors
    /// [`ErrorKind::Vocab`], saying what was expected and what was found.
    pub fn require_kimi(self) -> Result<Self> {
        if self.len() != KIMI_VOCAB_LEN {
            return Err(fault(format!(
                "expected Kimi's {KIMI_VOCAB_LEN} tokens, found {}",
                self.len()
            )));
        }
        let sha256 = self.sha256();
        if sha256 != KIMI_VOCAB_SHA256 {
            return Err(fault(format!(
                "expected Kimi's vocabulary (sha256 {KIMI_VOCAB_SHA256} as a tiktoken.model), found another of the same \
                 length (sha256 {sha256})"
            )));
        }
        Ok(self)
    }

    /// The sha256 of the vocabulary written as a `tiktoken.model`: a line `base64 rank` a token.
    #[must_use]
    pub fn sha256(&self) -> String {
        let mut hash = Sha256::new();
        let mut line = String::new();
        for rank in 0..self.len() as TokenId {
            line.clear();
            STANDARD.encode_string(self.token(rank).unwrap_or_default(), &mut line);
            hash.update(format!("{line} {rank}\n"));
        }
        let mut hex = String::with_capacity(64);
        for byte in hash.finalize() {
            // Writing to a `String` cannot fail.
            let _ = write!(hex, "{byte:02x}");
        }
        hex
    }

    /// How many tokens there are.
    #[must_use]
    #[allow(
        clippy::len_without_is_empty,
        reason = "a vocabulary has at least the 256 single bytes"
    )]
    pub fn len(&self) -> usize {
        self.tables.starts.len() - 1
    }

    /// The id of a token, by its bytes.
    #[must_use]
    #[inline]
    pub fn get(&self, token: &[u8]) -> Option<TokenId> {
        self.tables.get(token)
    }

    /// The bytes of a token.
    #[must_use]
    #[inline]
    pub fn token(&self, id: TokenId) -> Option<&[u8]> {
        self.tables.token(id)
    }
}

pub(super) fn fault(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::Vocab, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_vocabulary_is_kimis_own_file() {
        let vocab = Vocab::embedded();
        assert_eq!(vocab.len(), KIMI_VOCAB_LEN);
        assert_eq!(vocab.sha256(), KIMI_VOCAB_SHA256);
    }

    #[test]
    fn every_token_leads_to_itself() {
        let vocab = Vocab::embedded();
        for id in 0..vocab.len() as TokenId {
            assert_eq!(vocab.get(vocab.token(id).unwrap()), Some(id));
        }
        assert_eq!(vocab.token(KIMI_VOCAB_LEN as TokenId), None);
        assert_eq!(vocab.get(b"not a token of any vocabulary"), None);
    }

    #[test]
    fn a_vocabulary_with_a_hole_is_refused() {
        let bytes: Vec<[u8; 1]> = (0..=255).map(|byte| [byte]).collect();
        let ranks = |n: usize| {
            bytes[..n]
                .iter()
                .enumerate()
                .map(|(rank, byte)| (byte.as_slice(), rank as TokenId))
        };
        assert!(Vocab::from_ranks(ranks(256)).is_ok());
        let error = Vocab::from_ranks(ranks(255)).err().unwrap();
        assert_eq!(
            error.message(),
            "expected a token for each single byte, found none for 0xFF"
        );
        let hole = ranks(256).map(|(token, rank)| (token, if rank > 7 { rank + 1 } else { rank }));
        assert_eq!(
            Vocab::from_ranks(hole).err().unwrap().message(),
            "expected a token of rank 8, found none or two"
        );
        let error = Vocab::from_ranks(ranks(256))
            .unwrap()
            .require_kimi()
            .err()
            .unwrap();
        assert_eq!(error.message(), "expected Kimi's 163584 tokens, found 256");
    }
}
