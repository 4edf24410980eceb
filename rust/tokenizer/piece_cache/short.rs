//! Pieces of up to 15 bytes: a two-way table whose sets are cache lines.

use crate::tokenizer::TokenId;

const SET_BITS: u32 = 16;
const SETS: usize = 1 << SET_BITS;
const MAX_LEN: usize = 15;

/// The most ids that a slot holds. Of the pieces of up to 15 bytes that need a merge, nearly all become two or three tokens.
const MAX_IDS: usize = 4;

/// Stands after the ids of a slot. No token has it.
const NO_ID: TokenId = TokenId::MAX;

/// A piece in an integer: its bytes, the first one lowest, zeros, and its length in the highest byte. No piece is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(u128);

impl Key {
    /// The key of the `len` bytes of `text` from `start` on; None if they are too many.
    #[must_use]
    #[inline]
    pub fn of(text: &[u8], start: usize, len: usize) -> Option<Self> {
        if len > MAX_LEN {
            return None;
        }
        let bytes = match text.get(start..start + 16) {
            // What follows the piece is read too, and cleared: no loop, and no branch on the length.
            Some(bytes) => bytes.try_into().unwrap_or([0; 16]),
            None => near_the_end(text, start, len),
        };
        Some(Self(
            u128::from_le_bytes(bytes) & BYTES[len] | (len as u128) << 120,
        ))
    }

    #[inline]
    fn index(self) -> usize {
        let (low, high) = (self.0 as u64, (self.0 >> 64) as u64);
        // Two odd constants without a pattern; the product folded once mixes every bit of the key into the top ones.
        let product =
            u128::from(low ^ 0x9E37_79B9_7F4A_7C15) * u128::from(high ^ 0xD1B5_4A32_D192_ED03);
        let hash = product as u64 ^ (product >> 64) as u64;
        (hash >> (64 - SET_BITS)) as usize
    }
}

/// Masks of the lowest 0 to 15 bytes.
const BYTES: [u128; MAX_LEN + 1] = {
    let mut masks = [0; MAX_LEN + 1];
    let mut len = 1;
    while len <= MAX_LEN {
        masks[len] = masks[len - 1] << 8 | 0xFF;
        len += 1;
    }
    masks
};

#[cold]
fn near_the_end(text: &[u8], start: usize, len: usize) -> [u8; 16] {
    let mut bytes = [0; 16];
    if let Some(piece) = text.get(start..start + len) {
        bytes[..len].copy_from_slice(piece);
    }
    bytes
}

/// Exactly 64 bytes: one access fetches both keys and their ids.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Set {
    keys: [Key; 2],
    ids: [Ids; 2],
}

/// The ids of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ids([TokenId; MAX_IDS]);

impl Ids {
    /// None if they are too many.
    fn new(ids: &[TokenId]) -> Option<Self> {
        let mut held = [NO_ID; MAX_IDS];
        held.get_mut(..ids.len())?.copy_from_slice(ids);
        Some(Self(held))
    }

    /// Appends them to `out`.
    #[inline]
    pub fn push_to(self, out: &mut Vec<TokenId>) {
        let [first, second, third, fourth] = self.0;
        // Nine of ten pieces are a token.
        out.push(first);
        if second != NO_ID {
            out.push(second);
            if third != NO_ID {
                out.push(third);
                if fourth != NO_ID {
                    out.push(fourth);
                }
            }
        }
    }
}

/// A bounded map from short pieces to ids: 4 MiB, allocated on first use.
#[derive(Default)]
pub struct ShortPieces {
    sets: Vec<Set>,
}

impl ShortPieces {
    /// The ids of a piece, if it is here.
    #[must_use]
    #[inline]
    pub fn get(&self, key: Key) -> Option<Ids> {
        let set = self.sets.get(key.index())?;
        if set.keys[0] == key {
            Some(set.ids[0])
        } else if set.keys[1] == key {
            Some(set.ids[1])
        } else {
            None
        }
    }

    /// Keeps the ids of a piece if they are few enough. The newer of the two pieces in its set stays.
    pub fn insert(&mut self, key: Key, ids: &[TokenId]) {
        let Some(ids) = Ids::new(ids) else {
            return;
        };
        if self.sets.is_empty() {
            let empty = Set {
                keys: [Key(0); 2],
                ids: [Ids([NO_ID; MAX_IDS]); 2],
            };
            self.sets = vec![empty; SETS];
        }
        let set = &mut self.sets[key.index()];
        set.keys = [key, set.keys[0]];
        set.ids = [ids, set.ids[0]];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(piece: &[u8]) -> Key {
        Key::of(piece, 0, piece.len()).unwrap()
    }

    fn pushed(ids: Ids) -> Vec<TokenId> {
        let mut out = Vec::new();
        ids.push_to(&mut out);
        out
    }

    #[test]
    fn a_set_is_one_cache_line() {
        assert_eq!(size_of::<Set>(), 64);
    }

    #[test]
    fn a_key_depends_on_the_piece_alone() {
        let text = b"0123456789abcdef0123456789";
        for len in 0..=MAX_LEN {
            assert_eq!(Key::of(text, 1, len), Some(key(&text[1..=len])));
            assert_eq!(
                Key::of(text, text.len() - len, len),
                Some(key(&text[text.len() - len..]))
            );
        }
        assert_eq!(Key::of(text, 0, MAX_LEN + 1), None);
        assert_ne!(key(b"a"), key(b"a\0"));
        assert_ne!(key(b"\0"), Key(0));
    }

    #[test]
    fn what_is_put_in_is_found_until_two_others_came_to_its_set() {
        let mut pieces = ShortPieces::default();
        let first = key(b"first");
        assert_eq!(pieces.get(first), None);
        for count in 1..=MAX_IDS {
            let ids: Vec<TokenId> = (1..=count as TokenId).collect();
            pieces.insert(first, &ids);
            assert_eq!(pieces.get(first).map(pushed), Some(ids));
        }
        pieces.insert(key(b"many"), &[0; MAX_IDS + 1]);
        assert_eq!(pieces.get(key(b"many")), None);
        let others = (0..).map(|number: u32| key(format!("{number}").as_bytes()));
        let mut others = others.filter(|other| other.index() == first.index());
        pieces.insert(others.next().unwrap(), &[7]);
        assert!(pieces.get(first).is_some());
        pieces.insert(others.next().unwrap(), &[8]);
        assert_eq!(pieces.get(first), None);
    }
}
