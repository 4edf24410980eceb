//! The vocabulary as arrays that can be read as they lie in a file.
//!
//! Also compiled into `rust/build.rs`, which writes those of Kimi's vocabulary, so that the library has them without
//! building anything when a process starts. Hence the plain integers, and a hash that is the same on every machine.

use std::borrow::Cow;

/// Enough for the id of every ordinary token; a slot has room for 14 bits beside it.
pub(crate) const ID_BITS: u32 = 18;
const ID: u32 = (1 << ID_BITS) - 1;

const EMPTY: u32 = u32::MAX;
const NO_ID: u32 = u32::MAX;

/// Token bytes ↔ ids.
pub(crate) struct Tables {
    /// The bytes of all tokens, one after the other in the order of their ids.
    pub(crate) bytes: Cow<'static, [u8]>,
    /// Where each token starts in `bytes`; one more entry than tokens.
    pub(crate) starts: Cow<'static, [u32]>,
    /// Open addressing with linear probing: a token's id in the low bits and its [`tag`] in the others, or `EMPTY`. A
    /// power of two long, at most two thirds full: half of that would be twice the memory to wait for.
    pub(crate) slots: Cow<'static, [u32]>,
    /// For each slot the [`word`] of its token, which is all of one of up to eight bytes: what merging looks up is
    /// compared here, and not where the bytes are, two waits for memory later.
    pub(crate) words: Cow<'static, [u64]>,
    /// By its byte the id of each token of one byte, else `NO_ID`.
    pub(crate) singles: Cow<'static, [u32]>,
    /// By its two bytes the id of each token of two bytes, else `NO_ID`.
    pub(crate) pairs: Cow<'static, [u32]>,
    /// A bit for each hash of a token, by the highest `FILTER_BITS` bits. Most of what merging looks up is no token,
    /// and five of six times that is seen here, in an eighth of the memory.
    pub(crate) filter: Cow<'static, [u32]>,
}

const FILTER_BITS: u32 = 20;

impl Tables {
    /// Those of these tokens, in the order of their ids.
    ///
    /// # Errors
    /// The id of a token that is empty or was there before.
    pub(crate) fn new(tokens: &[&[u8]]) -> Result<Self, u32> {
        let slots = (tokens.len() * 3 / 2).next_power_of_two();
        let mut tables = Self {
            bytes: Cow::Owned(tokens.concat()),
            starts: Cow::Owned(vec![0]),
            slots: Cow::Owned(vec![EMPTY; slots]),
            words: Cow::Owned(vec![0; slots]),
            singles: Cow::Owned(vec![NO_ID; 1 << 8]),
            pairs: Cow::Owned(vec![NO_ID; 1 << 16]),
            filter: Cow::Owned(vec![0; 1 << (FILTER_BITS - 5)]),
        };
        let mut end = 0;
        for (id, &token) in (0..).zip(tokens) {
            end += token.len();
            tables.starts.to_mut().push(end as u32);
            if token.is_empty() {
                return Err(id);
            }
            let hash = hash(token);
            let slot = tables.slot_of(token, hash);
            if tables.slots[slot] != EMPTY {
                return Err(id);
            }
            tables.slots.to_mut()[slot] = tag(token.len(), hash) | id;
            tables.words.to_mut()[slot] = word(token);
            let (word, bit) = filter_place(hash);
            tables.filter.to_mut()[word] |= 1 << bit;
            match *token {
                [only] => tables.singles.to_mut()[usize::from(only)] = id,
                [first, second] => tables.pairs.to_mut()[pair(first, second)] = id,
                _ => {}
            }
        }
        Ok(tables)
    }

    /// The id of a token, by its bytes.
    #[inline]
    pub(crate) fn get(&self, token: &[u8]) -> Option<u32> {
        // Merging begins with all pairs of bytes, so these are half of what is looked up.
        let known = match *token {
            [only] => Some(self.singles[usize::from(only)]),
            [first, second] => Some(self.pairs[pair(first, second)]),
            _ => None,
        };
        if let Some(id) = known {
            return (id != NO_ID).then_some(id);
        }
        let hash = hash(token);
        let (word, bit) = filter_place(hash);
        if self.filter[word] >> bit & 1 == 0 {
            return None;
        }
        let slot = self.slots[self.slot_of(token, hash)];
        (slot != EMPTY).then_some(slot & ID)
    }

    /// The bytes of a token.
    #[inline]
    pub(crate) fn token(&self, id: u32) -> Option<&[u8]> {
        let id = id as usize;
        let start = *self.starts.get(id)? as usize;
        self.bytes.get(start..*self.starts.get(id + 1)? as usize)
    }

    /// The slot that holds `token`, of this hash, or the empty one where it would go.
    #[inline]
    fn slot_of(&self, token: &[u8], hash: u64) -> usize {
        let slots = &*self.slots;
        let mask = slots.len() - 1;
        let tag = tag(token.len(), hash);
        let word = word(token);
        let mut slot = hash as usize & mask;
        loop {
            let found = slots[slot];
            let is_it = found & !ID == tag
                && self.words[slot] == word
                && (token.len() <= WORD_LEN || self.token(found & ID) == Some(token));
            if found == EMPTY || is_it {
                return slot;
            }
            slot = (slot + 1) & mask;
        }
    }
}

/// What a slot holds beside an id: the length of the token, up to one more than a word shows, and ten bits of its hash.
#[inline]
fn tag(len: usize, hash: u64) -> u32 {
    const LEN_SHIFT: u32 = u32::BITS - 4;
    let len = len.min(WORD_LEN + 1) as u32;
    len << LEN_SHIFT | (hash >> 32) as u32 & !ID & ((1 << LEN_SHIFT) - 1)
}

/// The word and the bit of a hash in the filter.
#[inline]
fn filter_place(hash: u64) -> (usize, u32) {
    let place = (hash >> (64 - FILTER_BITS)) as u32;
    (place as usize / 32, place % 32)
}

/// Where the token of two bytes stands among the pairs.
#[inline]
fn pair(first: u8, second: u8) -> usize {
    usize::from(first) << 8 | usize::from(second)
}

/// The most bytes that a word shows whole.
const WORD_LEN: usize = 8;

/// The last eight bytes; fewer, if there are no more, so that no other bytes of the same length have the same word.
#[inline]
fn word(bytes: &[u8]) -> u64 {
    if let Some(last) = bytes.last_chunk::<WORD_LEN>() {
        return u64::from_le_bytes(*last);
    }
    match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>(), bytes) {
        (Some(first), Some(last), _) => {
            u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32
        }
        (_, _, &[first, .., last]) => {
            u64::from(first) | u64::from(bytes[bytes.len() / 2]) << 8 | u64::from(last) << 16
        }
        (_, _, &[only]) => only.into(),
        _ => 0,
    }
}

/// A hash of bytes: eight at a time, each folded in with a product; the last eight may overlap those before.
#[inline]
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let mut hash = bytes.len() as u64;
    for word in bytes.as_chunks::<8>().0 {
        hash = fold(hash ^ u64::from_le_bytes(*word));
    }
    fold(hash ^ word(bytes))
}

#[inline]
fn fold(bits: u64) -> u64 {
    let product = u128::from(bits ^ 0x9E37_79B9_7F4A_7C15) * 0xD1B5_4A32_D192_ED03;
    product as u64 ^ (product >> 64) as u64
}
