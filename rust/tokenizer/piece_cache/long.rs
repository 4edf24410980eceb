//! Pieces of more than 15 bytes: long identifiers, rules of dashes, indentation, base64.
//!
//! There are few, and each costs a merge of many steps: in the real trajectories the 9,000 of more than 30 bytes took a
//! sixth of the time of encoding before they were kept.

use crate::tokenizer::TokenId;

const SLOTS: usize = 1 << 13;
const MAX_LEN: usize = 256;

#[derive(Clone, Default)]
struct Slot {
    hash: u64,
    key: Vec<u8>,
    ids: Vec<TokenId>,
}

/// A bounded map from long pieces to ids: 4,096 slots, a piece of up to 256 bytes in each. A slot is overwritten by the next
/// piece that hashes to it.
#[derive(Default)]
pub struct LongPieces {
    slots: Vec<Slot>,
}

impl LongPieces {
    /// Whether a piece is short enough to be kept.
    #[must_use]
    pub fn takes(piece: &[u8]) -> bool {
        piece.len() <= MAX_LEN
    }

    /// The ids of `piece`, if it is here. `hash` must be the same function of the piece at every call.
    #[must_use]
    pub fn get(&self, piece: &[u8], hash: u64) -> Option<&[TokenId]> {
        let slot = self.slots.get(index(hash))?;
        (slot.hash == hash && slot.key == piece).then_some(&slot.ids)
    }

    /// Keeps the ids of `piece`, which is not empty, if it is short enough.
    pub fn insert(&mut self, piece: &[u8], hash: u64, ids: &[TokenId]) {
        if !Self::takes(piece) {
            return;
        }
        if self.slots.is_empty() {
            self.slots = vec![Slot::default(); SLOTS];
        }
        let slot = &mut self.slots[index(hash)];
        slot.hash = hash;
        slot.key.clear();
        slot.key.extend_from_slice(piece);
        slot.ids.clear();
        slot.ids.extend_from_slice(ids);
    }
}

/// The high bits: the vocabulary's table takes the low ones.
fn index(hash: u64) -> usize {
    (hash >> 40) as usize & (SLOTS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_piece_in_a_slot_wins_and_a_longer_one_is_not_kept() {
        let mut pieces = LongPieces::default();
        assert_eq!(pieces.get(b"a", 7), None);
        pieces.insert(b"a", 7, &[1, 2]);
        assert_eq!(pieces.get(b"a", 7), Some(&[1, 2][..]));
        assert_eq!(pieces.get(b"b", 7), None);
        pieces.insert(b"b", 7, &[3]);
        assert_eq!(pieces.get(b"a", 7), None);
        assert_eq!(pieces.get(b"b", 7), Some(&[3][..]));
        pieces.insert(&[b'x'; MAX_LEN + 1], 9, &[4]);
        assert_eq!(pieces.get(&[b'x'; MAX_LEN + 1], 9), None);
    }
}
