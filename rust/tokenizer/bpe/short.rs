//! Merges of a short piece: all pairs are looked at for each.

use super::{NO_RANK, rank};
use crate::tokenizer::TokenId;
use crate::tokenizer::vocab::Vocab;

/// The memory of one piece.
#[derive(Default)]
pub(super) struct ShortMerger {
    parts: Vec<Part>,
}

/// A token so far.
#[derive(Clone, Copy)]
struct Part {
    start: u32,
    id: TokenId,
    /// The rank of its pair with the next one, which is the id of what the two become.
    rank: TokenId,
}

impl ShortMerger {
    /// Appends the ids of `piece`.
    pub(super) fn merge_into(&mut self, vocab: &Vocab, piece: &[u8], out: &mut Vec<TokenId>) {
        let parts = &mut self.parts;
        parts.clear();
        let n = piece.len();
        for start in 0..n {
            parts.push(Part {
                start: start as u32,
                id: rank(vocab, piece, start, start + 1),
                rank: rank(vocab, piece, start, (start + 2).min(n + 1)),
            });
        }
        let end_of = |parts: &[Part], i: usize| parts.get(i).map_or(n, |part| part.start as usize);
        loop {
            let mut best = 0;
            for i in 1..parts.len() {
                if parts[i].rank < parts[best].rank {
                    best = i;
                }
            }
            if parts.get(best).is_none_or(|part| part.rank == NO_RANK) {
                break;
            }
            parts.remove(best + 1);
            parts[best].id = parts[best].rank;
            let pair_rank = |parts: &[Part], i: usize| {
                if i + 1 < parts.len() {
                    rank(vocab, piece, parts[i].start as usize, end_of(parts, i + 2))
                } else {
                    NO_RANK
                }
            };
            parts[best].rank = pair_rank(parts, best);
            if best > 0 {
                parts[best - 1].rank = pair_rank(parts, best - 1);
            }
        }
        out.extend(parts.iter().map(|part| part.id));
    }
}
