//! Pieces already encoded, with their ids.
//!
//! Text repeats its words, so most pieces were seen a moment ago. One slot is one cache line, which holds key and ids:
//! a hit costs one memory access where the vocabulary's own table costs three. A slot is overwritten by the next piece
//! that hashes to it, so the size is fixed and nothing is ever searched.

use crate::tokenizer::TokenId;

const SLOTS: usize = 1 << 15;
const MAX_KEY: usize = 30;
const MAX_IDS: usize = 6;

/// Exactly 64 bytes.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Slot {
    hash: u64,
    ids: [TokenId; MAX_IDS],
    key: [u8; MAX_KEY],
    key_len: u8,
    ids_len: u8,
}

/// A bounded map from pieces to ids: 2 MiB, allocated on first use.
#[derive(Default)]
pub struct PieceCache {
    slots: Vec<Slot>,
}

impl PieceCache {
    /// Whether a piece is short enough to be kept.
    #[must_use]
    #[inline]
    pub fn takes(piece: &[u8]) -> bool {
        piece.len() <= MAX_KEY
    }

    /// The ids of `piece`, if it is here. `hash` must be the same function of the piece at every call.
    #[must_use]
    #[inline]
    pub fn get(&self, piece: &[u8], hash: u64) -> Option<&[TokenId]> {
        let slot = self.slots.get(index(hash))?;
        let is_it = slot.hash == hash
            && slot.ids_len > 0
            && slot.key.get(..slot.key_len as usize) == Some(piece);
        if is_it {
            slot.ids.get(..slot.ids_len as usize)
        } else {
            None
        }
    }

    /// Keeps the ids of `piece` if both are short enough.
    #[inline]
    pub fn insert(&mut self, piece: &[u8], hash: u64, ids: &[TokenId]) {
        if piece.len() > MAX_KEY || ids.len() > MAX_IDS {
            return;
        }
        if self.slots.is_empty() {
            let empty = Slot {
                hash: 0,
                ids: [0; MAX_IDS],
                key: [0; MAX_KEY],
                key_len: 0,
                ids_len: 0,
            };
            self.slots = vec![empty; SLOTS];
        }
        let slot = &mut self.slots[index(hash)];
        slot.hash = hash;
        slot.ids[..ids.len()].copy_from_slice(ids);
        slot.key[..piece.len()].copy_from_slice(piece);
        slot.key_len = piece.len() as u8;
        slot.ids_len = ids.len() as u8;
    }
}

/// The high bits: the vocabulary's table takes the low ones.
#[inline]
fn index(hash: u64) -> usize {
    (hash >> 40) as usize & (SLOTS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_one_cache_line() {
        assert_eq!(size_of::<Slot>(), 64);
    }

    #[test]
    fn the_last_piece_in_a_slot_wins_and_a_longer_one_is_not_kept() {
        let mut cache = PieceCache::default();
        assert_eq!(cache.get(b"a", 7), None);
        cache.insert(b"a", 7, &[1, 2]);
        assert_eq!(cache.get(b"a", 7), Some(&[1, 2][..]));
        assert_eq!(cache.get(b"b", 7), None);
        cache.insert(b"b", 7, &[3]);
        assert_eq!(cache.get(b"a", 7), None);
        assert_eq!(cache.get(b"b", 7), Some(&[3][..]));
        cache.insert(&[b'x'; MAX_KEY + 1], 9, &[4]);
        assert_eq!(cache.get(&[b'x'; MAX_KEY + 1], 9), None);
        cache.insert(b"c", 7, &[0; MAX_IDS + 1]);
        assert_eq!(cache.get(b"b", 7), Some(&[3][..]));
    }
}
