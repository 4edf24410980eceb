//! All ordinary tokens: bytes to id and back.
//!
//! Every Kimi model has the same 163,584 byte-level ranks, and the rank of a token is its id. Three sources lead here
//! (the embedded copy, `tiktoken.rs`, `huggingface.rs`), and each must yield exactly this vocabulary: a file with one
//! rank changed would tokenize a million rows wrongly without a sign.

use std::fmt::Write as _;
use std::hash::Hasher;
use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustc_hash::FxHasher;
use sha2::{Digest, Sha256};
use splintr::core::pretrained::KIMI_VOCAB_PACKED;

use crate::error::{Error, ErrorKind, Result};
use crate::tokenizer::TokenId;

/// How many ordinary tokens every Kimi model has; the special tokens' ids begin here.
pub const KIMI_VOCAB_LEN: usize = 163_584;

/// The sha256 of Kimi's `tiktoken.model`, in hexadecimal.
pub const KIMI_VOCAB_SHA256: &str =
    "b6c497a7469b33ced9c38afb1ad6e47f03f5e5dc05f15930799210ec050c5103";

/// Token bytes ↔ ids. The id of a token is its merge rank.
pub struct Vocab {
    /// The bytes of all tokens, one after the other in the order of their ids.
    bytes: Vec<u8>,
    /// Where each token starts in `bytes`; one more entry than tokens.
    starts: Vec<u32>,
    /// Open addressing with linear probing: a token's id in the low bits and some of its hash in the others, or `EMPTY`. A
    /// power of two long, at most half full.
    slots: Vec<u32>,
    /// By its two bytes the id of each token of two bytes, else `NO_ID`.
    pairs: Vec<TokenId>,
}

const EMPTY: u32 = u32::MAX;
const NO_ID: TokenId = TokenId::MAX;

/// Enough for the id of every ordinary token; a slot has room for 14 bits of a hash beside it.
pub const ID_BITS: u32 = 18;
const ID: u32 = (1 << ID_BITS) - 1;

impl Vocab {
    /// Kimi's vocabulary from inside the library, read once a process.
    ///
    /// # Errors
    /// [`ErrorKind::Vocab`] if the embedded copy cannot be read; the build carries a checked one.
    pub fn embedded() -> Result<Arc<Self>> {
        static EMBEDDED: OnceLock<Result<Arc<Vocab>>> = OnceLock::new();
        EMBEDDED
            .get_or_init(|| Self::read_embedded().map(Arc::new))
            .clone()
    }

    fn read_embedded() -> Result<Self> {
        let packed = splintr::core::load_packed_bpe_borrowed(KIMI_VOCAB_PACKED);
        Self::from_ranks(packed.map_err(|error| fault(error.to_string()))?.iter())
    }

    /// The vocabulary of these tokens and ranks, in any order.
    ///
    /// # Errors
    /// [`ErrorKind::Vocab`] if the ranks are not 0, 1, 2, … or one of the 256 single bytes is no token.
    pub fn from_ranks<'t>(ranks: impl IntoIterator<Item = (&'t [u8], TokenId)>) -> Result<Self> {
        let mut ranks: Vec<(&[u8], TokenId)> = ranks.into_iter().collect();
        ranks.sort_unstable_by_key(|&(_, rank)| rank);
        let mut vocab = Self {
            bytes: Vec::with_capacity(ranks.iter().map(|(token, _)| token.len()).sum()),
            starts: vec![0],
            slots: vec![EMPTY; (ranks.len() * 2).next_power_of_two()],
            pairs: vec![NO_ID; 1 << 16],
        };
        if ranks.len() >= 1 << ID_BITS {
            return Err(fault(format!(
                "expected fewer than {} tokens, found {}",
                1 << ID_BITS,
                ranks.len()
            )));
        }
        for (expected, (token, rank)) in ranks.into_iter().enumerate() {
            if rank as usize != expected {
                return Err(fault(format!(
                    "expected a token of rank {expected}, found none or two"
                )));
            }
            if token.is_empty() || vocab.get(token).is_some() {
                return Err(fault(format!(
                    "expected another token at rank {rank}, found an empty or known one"
                )));
            }
            vocab.bytes.extend_from_slice(token);
            vocab.starts.push(vocab.bytes.len() as u32);
            let hash = hash(token);
            let slot = vocab.slot_of(token, hash);
            vocab.slots[slot] = tag(hash) | rank;
            if let &[first, second] = token {
                vocab.pairs[pair(first, second)] = rank;
            }
        }
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
        self.starts.len() - 1
    }

    /// The id of a token, by its bytes.
    #[must_use]
    #[inline]
    pub fn get(&self, token: &[u8]) -> Option<TokenId> {
        // Merging begins with all pairs of bytes, so these are half of what is looked up.
        if let &[first, second] = token {
            let id = self.pairs[pair(first, second)];
            return (id != NO_ID).then_some(id);
        }
        let slot = self.slots[self.slot_of(token, hash(token))];
        (slot != EMPTY).then_some(slot & ID)
    }

    /// The bytes of a token.
    #[must_use]
    #[inline]
    pub fn token(&self, id: TokenId) -> Option<&[u8]> {
        let id = id as usize;
        Some(&self.bytes[*self.starts.get(id)? as usize..*self.starts.get(id + 1)? as usize])
    }

    /// The slot that holds `token`, of this hash, or the empty one where it would go.
    #[inline]
    fn slot_of(&self, token: &[u8], hash: u64) -> usize {
        let mask = self.slots.len() - 1;
        let tag = tag(hash);
        let mut slot = hash as usize & mask;
        loop {
            let found = self.slots[slot];
            // The tag first: most pairs of tokens are no token, and comparing bytes costs two accesses to memory.
            let is_it = found & !ID == tag && self.token(found & ID) == Some(token);
            if found == EMPTY || is_it {
                return slot;
            }
            slot = (slot + 1) & mask;
        }
    }
}

/// The bits of a hash that a slot holds beside an id.
#[inline]
fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32 & !ID
}

/// Where the token of two bytes stands among the pairs.
#[inline]
fn pair(first: u8, second: u8) -> usize {
    usize::from(first) << 8 | usize::from(second)
}

/// The hash that the vocabulary and the piece cache share.
#[inline]
pub(super) fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(bytes);
    hasher.finish()
}

pub(super) fn fault(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::Vocab, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_vocabulary_is_kimis_own_file() {
        let vocab = Vocab::embedded().unwrap();
        assert_eq!(vocab.len(), KIMI_VOCAB_LEN);
        assert_eq!(vocab.sha256(), KIMI_VOCAB_SHA256);
    }

    #[test]
    fn every_token_leads_to_itself() {
        let vocab = Vocab::embedded().unwrap();
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
