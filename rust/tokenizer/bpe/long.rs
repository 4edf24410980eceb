//! Merges of a long piece: pairs wait in a queue.
//!
//! All pairs of one rank are merged in one go, from left to right, which is their order, unless a merge makes a pair of
//! lower rank; then the others wait.

use super::rank_queue::RankQueue;
use super::{NO_RANK, rank};
use crate::tokenizer::TokenId;
use crate::tokenizer::vocab::{ID_BITS, Vocab};

/// The memory of one piece, and ranks of pairs.
#[derive(Default)]
pub(super) struct LongMerger {
    nodes: Vec<Node>,
    queue: RankQueue,
    positions: Vec<u32>,
    pair_ranks: PairRanks,
}

/// A token so far, indexed by its first byte.
#[derive(Clone, Copy)]
struct Node {
    /// The index of the token before it; for the first one beyond all.
    previous: u32,
    /// The index of the next one.
    end: u32,
    id: TokenId,
    /// The rank of the pair with the next token. A position in the queue under another rank is out of date.
    rank: TokenId,
}

/// The entries that are kept for the next piece.
const LARGE: usize = 1 << 16;

impl LongMerger {
    /// Gives back the memory of an unusually long piece.
    pub(super) fn forget_large(&mut self) {
        self.nodes.clear();
        self.nodes.shrink_to(LARGE);
        self.positions.clear();
        self.positions.shrink_to(LARGE);
        self.queue.shrink_to(LARGE);
    }

    /// Appends the ids of `piece`.
    pub(super) fn merge_into(&mut self, vocab: &Vocab, piece: &[u8], out: &mut Vec<TokenId>) {
        self.nodes.clear();
        self.queue.reserve(vocab.len());
        for (start, &byte) in (0_u32..).zip(piece) {
            let rank = rank(vocab, piece, start as usize, start as usize + 2);
            self.nodes.push(Node {
                previous: start.wrapping_sub(1),
                end: start + 1,
                id: vocab.get(&[byte]).unwrap_or(NO_RANK),
                rank,
            });
            if rank != NO_RANK {
                self.queue.push(rank, start);
            }
        }
        let mut positions = std::mem::take(&mut self.positions);
        while let Some(rank) = self.queue.pop_lowest(&mut positions) {
            positions.sort_unstable();
            let mut rest = positions.iter();
            for &start in &mut rest {
                if self.nodes[start as usize].rank == rank
                    && self.merge(vocab, piece, start) <= rank
                {
                    break;
                }
            }
            for &start in rest {
                self.queue.push(rank, start);
            }
        }
        self.positions = positions;
        let mut start = 0;
        while let Some(node) = self.nodes.get(start) {
            out.push(node.id);
            start = node.end as usize;
        }
    }

    /// Merges the token at `start` with the next one. Returns the lowest rank of a pair that came of it.
    fn merge(&mut self, vocab: &Vocab, piece: &[u8], start: u32) -> TokenId {
        let left = self.nodes[start as usize];
        let right = self.nodes[left.end as usize];
        self.nodes[left.end as usize].rank = NO_RANK;
        let merged = &mut self.nodes[start as usize];
        merged.end = right.end;
        // The rank of a pair is the id of what it becomes.
        merged.id = left.rank;
        if let Some(next) = self.nodes.get_mut(right.end as usize) {
            next.previous = start;
        }
        let with_next = self.update(vocab, piece, start);
        let with_previous = if start > 0 {
            self.update(vocab, piece, left.previous)
        } else {
            NO_RANK
        };
        with_next.min(with_previous)
    }

    /// Ranks the pair that begins at `start` again, after one of its two tokens has grown.
    fn update(&mut self, vocab: &Vocab, piece: &[u8], start: u32) -> TokenId {
        let node = self.nodes[start as usize];
        let rank = self.nodes.get(node.end as usize).map_or(NO_RANK, |next| {
            self.pair_ranks.get_or(node.id, next.id, || {
                rank(vocab, piece, start as usize, next.end as usize)
            })
        });
        self.nodes[start as usize].rank = rank;
        if rank != NO_RANK {
            self.queue.push(rank, start);
        }
        rank
    }
}

const PAIR_SLOTS: usize = 1 << 14;
const RANK: u64 = (1 << ID_BITS) - 1;

/// The ranks of pairs of tokens seen of late, none of them included. A long piece repeats its pairs, and the vocabulary
/// compares the bytes of long tokens.
struct PairRanks {
    /// In each slot a pair and, in the lowest bits, its rank.
    slots: Vec<u64>,
}

impl Default for PairRanks {
    fn default() -> Self {
        Self {
            slots: vec![u64::MAX; PAIR_SLOTS],
        }
    }
}

impl PairRanks {
    /// The rank of two tokens, which `find` finds if it is not here.
    #[inline]
    fn get_or(&mut self, left: TokenId, right: TokenId, find: impl FnOnce() -> TokenId) -> TokenId {
        let pair = u64::from(left) << ID_BITS | u64::from(right);
        let hash = pair.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let slot = &mut self.slots[(hash >> 40) as usize % PAIR_SLOTS];
        if *slot >> ID_BITS != pair {
            // No token has the highest id that fits, so it stands for none.
            *slot = pair << ID_BITS | u64::from(find()) & RANK;
        }
        match *slot & RANK {
            RANK => NO_RANK,
            rank => rank as TokenId,
        }
    }
}
