//! Pieces that are long, or many tokens: long identifiers, rules of dashes, indentation, base64.
//!
//! There are few, and each costs a merge of many steps: in the real trajectories the 9,000 of more than 30 bytes took a
//! sixth of the time of encoding before they were kept.

use crate::tokenizer::TokenId;
use crate::tokenizer::vocab::hash;

const SLOTS: usize = 1 << 14;
const MAX_LEN: usize = 128;

#[derive(Clone, Default)]
struct Slot {
    hash: u64,
    key: Vec<u8>,
    ids: Vec<TokenId>,
}

/// A bounded map from pieces of up to 128 bytes to ids. A piece has two slots; a third one in them drives out the older.
#[derive(Default)]
pub struct LongPieces {
    slots: Vec<Slot>,
}

impl LongPieces {
    /// The ids of `piece`, if it is here.
    #[must_use]
    pub fn get(&self, piece: &[u8]) -> Option<&[TokenId]> {
        if self.slots.is_empty() || piece.len() > MAX_LEN {
            return None;
        }
        let hash = hash(piece);
        let slots = places(hash).map(|place| &self.slots[place]);
        let is_it = |slot: &&Slot| slot.hash == hash && slot.key == piece;
        slots.into_iter().find(is_it).map(|slot| &*slot.ids)
    }

    /// Keeps the ids of `piece`, which is not empty, if it is short enough.
    pub fn insert(&mut self, piece: &[u8], ids: &[TokenId]) {
        if piece.len() > MAX_LEN {
            return;
        }
        if self.slots.is_empty() {
            self.slots = vec![Slot::default(); SLOTS];
        }
        let hash = hash(piece);
        let [newer, older] = places(hash);
        self.slots.swap(newer, older);
        let slot = &mut self.slots[newer];
        slot.hash = hash;
        slot.key.clear();
        slot.key.extend_from_slice(piece);
        slot.ids.clear();
        slot.ids.extend_from_slice(ids);
    }
}

/// The high bits: the vocabulary's table takes the low ones.
fn places(hash: u64) -> [usize; 2] {
    let first = (hash >> 40) as usize & (SLOTS - 1) & !1;
    [first, first + 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_older_of_two_pieces_goes_and_a_longer_one_is_not_kept() {
        let mut pieces = LongPieces::default();
        let place = |piece: &str| places(hash(piece.as_bytes()));
        let all = (0..).map(|number| format!("piece {number}"));
        let same: Vec<String> = all
            .filter(|piece| place(piece) == place("piece 0"))
            .take(3)
            .collect();
        for piece in &same {
            assert_eq!(pieces.get(piece.as_bytes()), None);
            pieces.insert(piece.as_bytes(), &[1, 2]);
        }
        assert_eq!(pieces.get(same[0].as_bytes()), None);
        assert_eq!(pieces.get(same[1].as_bytes()), Some(&[1, 2][..]));
        assert_eq!(pieces.get(same[2].as_bytes()), Some(&[1, 2][..]));
        pieces.insert(&[b'x'; MAX_LEN + 1], &[4]);
        assert_eq!(pieces.get(&[b'x'; MAX_LEN + 1]), None);
    }
}
