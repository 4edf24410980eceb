//! A queue of positions by rank: the lowest rank first.
//!
//! A rank is an index here, so nothing is compared. What a heap of the same entries does in some fifteen steps, each a
//! wait for memory, takes three looks at sets of 64 bits.

use crate::tokenizer::TokenId;

const NONE: u32 = u32::MAX;

/// Positions, each under a rank.
#[derive(Default)]
pub(super) struct RankQueue {
    /// For each rank its newest entry.
    newest: Vec<u32>,
    entries: Vec<Entry>,
    /// Which ranks have entries, which words of that have bits, and which words of that.
    levels: [Vec<u64>; 3],
}

#[derive(Clone, Copy)]
struct Entry {
    position: u32,
    /// The entry before it under the same rank.
    older: u32,
}

impl RankQueue {
    /// Makes room for ranks below `ranks`, at most 2^18. The queue must be empty.
    pub(super) fn reserve(&mut self, ranks: usize) {
        self.entries.clear();
        if self.newest.len() < ranks {
            self.newest.resize(ranks, NONE);
            let mut len = ranks;
            for level in &mut self.levels {
                len = len.div_ceil(64);
                level.resize(len, 0);
            }
        }
    }

    /// Gives back memory beyond so many entries.
    pub(super) fn shrink_to(&mut self, entries: usize) {
        self.entries.clear();
        self.entries.shrink_to(entries);
    }

    /// Adds a position.
    #[inline]
    pub(super) fn push(&mut self, rank: TokenId, position: u32) {
        let rank = rank as usize;
        let entry = self.entries.len() as u32;
        let older = std::mem::replace(&mut self.newest[rank], entry);
        self.entries.push(Entry { position, older });
        if older == NONE {
            let mut bit = rank;
            for level in &mut self.levels {
                level[bit / 64] |= 1 << (bit % 64);
                bit /= 64;
            }
        }
    }

    /// Moves all positions under the lowest rank to `positions`, the newest first, and returns the rank.
    pub(super) fn pop_lowest(&mut self, positions: &mut Vec<u32>) -> Option<TokenId> {
        let [ranks, words, tops] = &mut self.levels;
        let top = tops.iter().position(|&bits| bits != 0)?;
        let word = top * 64 + tops[top].trailing_zeros() as usize;
        let word = word * 64 + words[word].trailing_zeros() as usize;
        let rank = word * 64 + ranks[word].trailing_zeros() as usize;
        let mut bit = rank;
        for level in [ranks, words, tops] {
            level[bit / 64] &= !(1 << (bit % 64));
            if level[bit / 64] != 0 {
                break;
            }
            bit /= 64;
        }
        let mut entry = std::mem::replace(&mut self.newest[rank], NONE);
        positions.clear();
        while let Some(&Entry { position, older }) = self.entries.get(entry as usize) {
            positions.push(position);
            entry = older;
        }
        Some(rank as TokenId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_rank_comes_first_with_all_its_positions() {
        let mut queue = RankQueue::default();
        queue.reserve(1 << 18);
        let mut expected: Vec<(TokenId, u32)> = Vec::new();
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        for position in 0..5000 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let rank = (state % if position < 2500 { 1 << 18 } else { 100 }) as TokenId;
            queue.push(rank, position);
            expected.push((rank, position));
        }
        expected.sort_unstable();
        let mut found = Vec::new();
        let mut positions = Vec::new();
        while let Some(rank) = queue.pop_lowest(&mut positions) {
            found.extend(positions.iter().rev().map(|&position| (rank, position)));
        }
        assert_eq!(found, expected);
    }
}
