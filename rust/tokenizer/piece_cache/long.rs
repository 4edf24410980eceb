//! Pieces that are long, or many tokens: long identifiers, rules of dashes, indentation, base64.
//!
//! There are few, and each costs a merge of many steps: in the real trajectories the 9,000 of more than 30 bytes took
//! an eighth of the time of encoding before they were kept.

use crate::tokenizer::TokenId;
use crate::tokenizer::vocab::hash;

const SLOTS: usize = 1 << 14;
const MAX_LEN: usize = 128;

/// A bounded map from pieces of up to 128 bytes to ids. A piece has two slots; a third one in them drives out the
/// older.
#[derive(Default)]
pub struct LongPieces {
    /// The hash of the piece in each slot, apart from the rest: most pieces that are looked up are not here, and this
    /// is all that they touch.
    hashes: Vec<u64>,
    slots: Vec<Slot>,
}

/// A piece and its ids, in one stretch of memory.
#[derive(Clone, Default)]
struct Slot {
    /// How many bytes at the front of `content` are the piece.
    piece_len: usize,
    /// The piece, and then the ids, each of four bytes.
    content: Vec<u8>,
}

impl LongPieces {
    /// Appends the ids of `piece` to `ids`, if it is here. Returns whether it is.
    pub fn append_to(&self, piece: &[u8], ids: &mut Vec<TokenId>) -> bool {
        if self.slots.is_empty() || piece.len() > MAX_LEN {
            return false;
        }
        let hash = hash(piece);
        let mut places = places(hash)
            .into_iter()
            .filter(|&place| self.hashes[place] == hash);
        let found = places.find_map(|place| {
            let Slot { piece_len, content } = &self.slots[place];
            let (known, rest) = content.split_at(*piece_len);
            (known == piece).then_some(rest)
        });
        if let Some(found) = found {
            let all = found.as_chunks().0.iter();
            ids.extend(all.map(|&bytes| TokenId::from_le_bytes(bytes)));
        }
        found.is_some()
    }

    /// Keeps the ids of `piece`, which is not empty, if it is short enough.
    pub fn insert(&mut self, piece: &[u8], ids: &[TokenId]) {
        if piece.len() > MAX_LEN {
            return;
        }
        if self.slots.is_empty() {
            self.slots = vec![Slot::default(); SLOTS];
            self.hashes = vec![0; SLOTS];
        }
        let hash = hash(piece);
        let [newer, older] = places(hash);
        self.hashes.swap(newer, older);
        self.slots.swap(newer, older);
        self.hashes[newer] = hash;
        let Slot { piece_len, content } = &mut self.slots[newer];
        *piece_len = piece.len();
        content.clear();
        content.extend_from_slice(piece);
        content.extend(ids.iter().flat_map(|id| id.to_le_bytes()));
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
        let get = |pieces: &LongPieces, piece: &[u8]| {
            let mut ids = Vec::new();
            pieces.append_to(piece, &mut ids).then_some(ids)
        };
        for (id, piece) in (0..).zip(&same) {
            assert_eq!(get(&pieces, piece.as_bytes()), None);
            pieces.insert(piece.as_bytes(), &[id, 2]);
        }
        assert_eq!(get(&pieces, same[0].as_bytes()), None);
        assert_eq!(get(&pieces, same[1].as_bytes()), Some(vec![1, 2]));
        assert_eq!(get(&pieces, same[2].as_bytes()), Some(vec![2, 2]));
        pieces.insert(&[b'x'; MAX_LEN + 1], &[4]);
        assert_eq!(get(&pieces, &[b'x'; MAX_LEN + 1]), None);
    }
}
