//! Text without cuts and special tokens to ids: the loop in which nearly all time is spent.
//!
//! For each piece of the real trajectories it reads 16 bytes of text and one cache line of what is known, and writes 16
//! bytes; no branch but the end of a block and what is not known depends on the text, so that the processor runs ahead
//! and waits for several look-ups at once. What a piece costs is mostly those look-ups.

use crate::tokenizer::bpe::Merger;
use crate::tokenizer::piece_cache::packed::{MAX_IDS, PackedIds};
use crate::tokenizer::piece_cache::{KEY_READS, PieceCache};
use crate::tokenizer::pretokenizer::{BLOCK_LEN, Scan, Scanned, WINDOW_LEN};
use crate::tokenizer::vocab::Vocab;
use crate::tokenizer::{Scratch, TokenId};

const _: () = assert!(
    WINDOW_LEN >= BLOCK_LEN + KEY_READS,
    "a key of a piece that begins in the last byte of a block"
);

/// Appends the ids of `text`.
pub(super) fn encode_into(
    vocab: &Vocab,
    text: &str,
    scratch: &mut Scratch,
    ids: &mut Vec<TokenId>,
) {
    let Scratch {
        cache,
        merger,
        recent,
        ..
    } = scratch;
    let mut scan = Scan::of(text);
    while let Some(scanned) = scan.next() {
        match scanned {
            Scanned::Block { window, mut ends } => {
                let mut start = 0;
                while ends != 0 {
                    let end = ends.trailing_zeros() as usize;
                    ends &= ends - 1;
                    // A position in the block, which the compiler does not see.
                    let bytes = window[start % BLOCK_LEN..].first_chunk();
                    if let Some(known) = bytes.and_then(|bytes| cache.get(bytes, end - start)) {
                        recent.push(known);
                    } else {
                        recent.move_to(ids);
                        encode_piece(vocab, &window[start..end], cache, merger, ids);
                    }
                    start = end;
                }
                recent.make_room(ids);
            }
            Scanned::Piece(piece) => {
                recent.move_to(ids);
                encode_piece(vocab, piece.as_bytes(), cache, merger, ids);
            }
        }
    }
    recent.move_to(ids);
}

/// Appends the ids of a piece that is not among the short ones that are known.
#[cold]
fn encode_piece(
    vocab: &Vocab,
    piece: &[u8],
    cache: &mut PieceCache,
    merger: &mut Merger,
    ids: &mut Vec<TokenId>,
) {
    if cache.append_long_to(piece, ids) {
        return;
    }
    let first = ids.len();
    merger.merge_into(vocab, piece, ids);
    cache.insert(piece, &ids[first..]);
}

/// Ids on their way to the output. A piece writes as many as any may have, and the next one begins after those that
/// count: no branch on how many. The output itself has no room for that without a check for each piece. Empty between
/// texts.
pub(super) struct Recent {
    ids: [TokenId; 2 * RECENT_LEN],
    len: usize,
}

/// More than the pieces of two blocks need. A power of two, and twice as much room, so that no place in it is checked.
const RECENT_LEN: usize = 512;

/// More than any block needs: its bytes each a piece.
const MOST_OF_BLOCK: usize = BLOCK_LEN * MAX_IDS;

const _: () = assert!(RECENT_LEN.is_power_of_two() && RECENT_LEN > 2 * MOST_OF_BLOCK);

impl Default for Recent {
    fn default() -> Self {
        Self {
            ids: [0; 2 * RECENT_LEN],
            len: 0,
        }
    }
}

impl Recent {
    /// Appends the ids of a piece, for which there must be room.
    #[inline]
    fn push(&mut self, known: PackedIds) {
        debug_assert!(self.len < RECENT_LEN);
        let at = self.len % RECENT_LEN;
        self.ids[at..at + MAX_IDS].copy_from_slice(&known.padded());
        self.len += known.len();
    }

    /// Sees to it that there is room for the pieces of another block.
    #[inline]
    fn make_room(&mut self, out: &mut Vec<TokenId>) {
        if self.len > RECENT_LEN - MOST_OF_BLOCK {
            self.move_to(out);
        }
    }

    /// Appends all to `out`, and is empty.
    #[inline]
    fn move_to(&mut self, out: &mut Vec<TokenId>) {
        out.extend_from_slice(&self.ids[..self.len]);
        self.len = 0;
    }
}
