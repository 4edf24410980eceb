//! Pieces already encoded, with their ids.
//!
//! Text repeats its words: the 4,096 commonest pieces of the real trajectories are 86 % of their text, so most pieces
//! were seen a moment ago. All tables have a fixed size, and what is put in drives out what was there, so nothing is
//! ever searched or moved.
//!
//! What a look-up costs is the wait for one cache line, so nothing may keep the processor from waiting for several at
//! once: pieces are packed into integers and compared in registers, which of a line's pieces it is decides no branch,
//! and lines are packed so that what is common fits the nearest caches. Nine of ten pieces have up to 8 bytes, 996 of
//! 1,000 up to 16.

pub mod long;
pub mod packed;
pub mod sets;

use long::LongPieces;
use packed::PackedIds;
use sets::Sets;

use crate::tokenizer::TokenId;

/// The bytes that a look-up reads, whatever the length of the piece.
pub const KEY_READS: usize = 16;

const SHORT_LEN: usize = KEY_READS / 2;

/// 2 MiB. Half of that makes one in 70 look-ups of the real trajectories a miss, twice that none, and neither is
/// faster.
const SHORT_SETS: usize = 1 << 15;

/// 1 MiB.
const MEDIUM_SETS: usize = 1 << 14;

/// The pieces that one thread has seen.
#[derive(Default)]
pub struct PieceCache {
    /// Of up to 8 bytes and three ids.
    short: Sets<u64, 4, SHORT_SETS>,
    /// Of 9 to 16 bytes and up to three ids.
    medium: Sets<u128, 2, MEDIUM_SETS>,
    /// Of more of either, and those that end in a zero byte.
    long: LongPieces,
}

impl PieceCache {
    /// The ids of the piece that is the first `len` of `bytes`, if it is short and here. Its last byte must not be
    /// zero: the keys of pieces are filled up with zeros.
    #[must_use]
    #[inline]
    pub fn get(&self, bytes: &[u8; KEY_READS], len: usize) -> Option<PackedIds> {
        // What follows the piece is read too, and cleared: no loop, and no branch on the length.
        let [low_mask, high_mask] = *MASKS.get(len)?;
        debug_assert!(has_key(bytes, len), "another piece has the same key");
        let (low, high) = bytes.split_at(SHORT_LEN);
        let word = |half: &[u8]| half.try_into().map_or(0, u64::from_le_bytes);
        let low = word(low) & low_mask;
        if len <= SHORT_LEN {
            return self.short.get(low);
        }
        let high = word(high) & high_mask;
        self.medium.get(u128::from(low) | u128::from(high) << 64)
    }

    /// Appends the ids of any other piece to `ids`, if it is here. Returns whether it is.
    pub fn append_long_to(&self, piece: &[u8], ids: &mut Vec<TokenId>) -> bool {
        self.long.append_to(piece, ids)
    }

    /// Keeps the ids of a piece, unless it is very long.
    pub fn insert(&mut self, piece: &[u8], ids: &[TokenId]) {
        let mut bytes = [0; KEY_READS];
        if let Some(room) = bytes.get_mut(..piece.len()) {
            room.copy_from_slice(piece);
        }
        let key = u128::from_le_bytes(bytes);
        let packed = PackedIds::new(ids).filter(|_| has_key(&bytes, piece.len()));
        match packed {
            Some(ids) if piece.len() <= SHORT_LEN => self.short.insert(key as u64, ids),
            Some(ids) => self.medium.insert(key, ids),
            None => self.long.insert(piece, ids),
        }
    }
}

/// Whether no other piece has the same bytes, filled up with zeros.
fn has_key(bytes: &[u8; KEY_READS], len: usize) -> bool {
    (1..=KEY_READS).contains(&len) && bytes[len - 1] != 0
}

/// Masks of the lowest 0 to 16 bytes, in two halves.
const MASKS: [[u64; 2]; KEY_READS + 1] = {
    let mut masks = [[0; 2]; KEY_READS + 1];
    let mut len = 1;
    while len <= KEY_READS {
        masks[len] = masks[len - 1];
        masks[len][(len - 1) / 8] |= 0xFF << ((len - 1) % 8 * 8);
        len += 1;
    }
    masks
};

#[cfg(test)]
mod tests {
    use super::*;

    fn get(cache: &PieceCache, piece: &[u8]) -> Option<Vec<TokenId>> {
        let mut bytes = [b'?'; KEY_READS];
        let shown = piece.len().min(KEY_READS);
        bytes[..shown].copy_from_slice(&piece[..shown]);
        let short = has_key(&bytes, piece.len()).then(|| cache.get(&bytes, piece.len()));
        if let Some(ids) = short.flatten() {
            return Some(ids.padded()[..ids.len()].to_vec());
        }
        let mut ids = Vec::new();
        cache.append_long_to(piece, &mut ids).then_some(ids)
    }

    #[test]
    fn a_piece_of_any_length_and_number_of_ids_comes_back_as_it_was() {
        let mut cache = PieceCache::default();
        for len in 1..40 {
            for count in 1..6 {
                // Zeros at the end, which the keys of other pieces are filled up with.
                let mut piece = vec![0; len];
                piece[0] = count;
                let ids: Vec<TokenId> = (0..count.into()).map(|id| 163_583 - id).collect();
                assert_eq!(get(&cache, &piece), None);
                cache.insert(&piece, &ids);
                assert_eq!(get(&cache, &piece), Some(ids));
            }
        }
    }
}
