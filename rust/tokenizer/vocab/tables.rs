//! The vocabulary as arrays that can be read as they lie in a file.
//!
//! Also compiled into `rust/build.rs`, which writes those of Kimi's vocabulary, so that the library has them without
//! building anything when a process starts. Hence the plain integers, and a hash that is the same on every machine.

use std::borrow::Cow;

/// Enough for the id of every ordinary token; a slot has room for 14 bits of a hash beside it.
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
    /// Open addressing with linear probing: a token's id in the low bits and some of its hash in the others, or `EMPTY`. A
    /// power of two long, at most two thirds full: half of that would be twice the memory to wait for.
    pub(crate) slots: Cow<'static, [u32]>,
    /// By its two bytes the id of each token of two bytes, else `NO_ID`.
    pub(crate) pairs: Cow<'static, [u32]>,
    /// A bit for each hash of a token, by the highest `FILTER_BITS` bits. Most of what merging looks up is no token, and five
    /// of six times that is seen here, in an eighth of the memory.
    pub(crate) filter: Cow<'static, [u32]>,
}

const FILTER_BITS: u32 = 20;

impl Tables {
    /// Those of these tokens, in the order of their ids.
    ///
    /// # Errors
    /// The id of a token that is empty or was there before.
    pub(crate) fn new(tokens: &[&[u8]]) -> Result<Self, u32> {
        let mut tables = Self {
            bytes: Cow::Owned(tokens.concat()),
            starts: Cow::Owned(vec![0]),
            slots: Cow::Owned(vec![EMPTY; (tokens.len() * 3 / 2).next_power_of_two()]),
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
            tables.slots.to_mut()[slot] = tag(hash) | id;
            let (word, bit) = filter_place(hash);
            tables.filter.to_mut()[word] |= 1 << bit;
            if let &[first, second] = token {
                tables.pairs.to_mut()[pair(first, second)] = id;
            }
        }
        Ok(tables)
    }

    /// The id of a token, by its bytes.
    #[inline]
    pub(crate) fn get(&self, token: &[u8]) -> Option<u32> {
        // Merging begins with all pairs of bytes, so these are half of what is looked up.
        if let &[first, second] = token {
            let id = self.pairs[pair(first, second)];
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
        let tag = tag(hash);
        let mut slot = hash as usize & mask;
        loop {
            let found = slots[slot];
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

/// A hash of bytes: eight at a time, each folded in with a product; the last eight may overlap those before.
#[inline]
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let mut hash = bytes.len() as u64;
    for word in bytes.as_chunks::<8>().0 {
        hash = fold(hash ^ u64::from_le_bytes(*word));
    }
    if let Some(last) = bytes.last_chunk::<8>() {
        return fold(hash ^ u64::from_le_bytes(*last));
    }
    let last = match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>(), bytes) {
        (Some(first), Some(last), _) => {
            u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32
        }
        (_, _, &[first, .., last]) => {
            u64::from(first) | u64::from(bytes[bytes.len() / 2]) << 8 | u64::from(last) << 16
        }
        (_, _, &[only]) => only.into(),
        _ => 0,
    };
    fold(hash ^ last)
}

#[inline]
fn fold(bits: u64) -> u64 {
    let product = u128::from(bits ^ 0x9E37_79B9_7F4A_7C15) * 0xD1B5_4A32_D192_ED03;
    product as u64 ^ (product >> 64) as u64
}
