//! One piece to ids by ranked merges.
//!
//! The pair of neighbours whose joined bytes have the lowest rank is merged, the leftmost of equals first, until no
//! pair is a token. Short pieces scan all pairs for each merge: nothing beats that while they fit a cache line or
//! two. Long ones (base64, minified code) keep the pairs in a heap, so a piece of n bytes costs n·log n.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::tokenizer::TokenId;
use crate::tokenizer::vocab::Vocab;

/// Up to this many bytes the quadratic scan is the faster of the two.
const SHORT: usize = 128;

/// No pair, or a pair that is no token.
const NO_RANK: TokenId = TokenId::MAX;

/// What merging keeps between pieces: memory only, no state.
#[derive(Default)]
pub struct Merger {
    parts: Vec<Part>,
    nodes: Vec<Node>,
    heap: BinaryHeap<Reverse<(TokenId, u32)>>,
}

/// A token so far, of a short piece: where it starts, and the rank of its pair with the next one.
#[derive(Clone, Copy)]
struct Part {
    start: u32,
    rank: TokenId,
}

/// A token so far, of a long piece, indexed by its first byte. `end` is its neighbour's index.
#[derive(Clone, Copy)]
struct Node {
    previous: u32,
    end: u32,
    /// The rank of the pair with the next token. An entry of the heap with another rank is out of date.
    rank: TokenId,
}

/// The entries that are kept for the next piece.
const LARGE: usize = 1 << 16;

impl Merger {
    /// Gives back the memory of an unusually long piece.
    pub fn forget_large(&mut self) {
        self.nodes.clear();
        self.nodes.shrink_to(LARGE);
        self.heap.clear();
        self.heap.shrink_to(LARGE);
    }

    /// Appends the ids of `piece`, which may be any bytes of any length.
    pub fn merge_into(&mut self, vocab: &Vocab, piece: &[u8], out: &mut Vec<TokenId>) {
        if let Some(id) = vocab.get(piece) {
            out.push(id);
        } else if piece.len() <= SHORT {
            self.merge_short(vocab, piece, out);
        } else {
            self.merge_long(vocab, piece, out);
        }
    }

    fn merge_short(&mut self, vocab: &Vocab, piece: &[u8], out: &mut Vec<TokenId>) {
        let parts = &mut self.parts;
        parts.clear();
        let n = piece.len();
        for start in 0..n {
            parts.push(Part {
                start: start as u32,
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
        for i in 0..parts.len() {
            out.extend(vocab.get(&piece[parts[i].start as usize..end_of(parts, i + 1)]));
        }
    }

    fn merge_long(&mut self, vocab: &Vocab, piece: &[u8], out: &mut Vec<TokenId>) {
        let n = piece.len();
        self.nodes.clear();
        self.heap.clear();
        for start in 0..n {
            let rank = rank(vocab, piece, start, start + 2);
            self.nodes.push(Node {
                previous: (start as u32).wrapping_sub(1),
                end: start as u32 + 1,
                rank,
            });
            if rank != NO_RANK {
                self.heap.push(Reverse((rank, start as u32)));
            }
        }
        while let Some(Reverse((best_rank, start))) = self.heap.pop() {
            let left = self.nodes[start as usize];
            if left.rank != best_rank {
                continue;
            }
            let right = self.nodes[left.end as usize];
            self.nodes[left.end as usize].rank = NO_RANK;
            self.nodes[start as usize].end = right.end;
            if let Some(next) = self.nodes.get_mut(right.end as usize) {
                next.previous = start;
            }
            self.update(vocab, piece, start);
            if start > 0 {
                self.update(vocab, piece, left.previous);
            }
        }
        let mut start = 0;
        while start < n {
            let end = self.nodes[start].end as usize;
            out.extend(vocab.get(&piece[start..end]));
            start = end;
        }
    }

    /// Ranks the pair that begins at `start` again, after one of its two tokens has grown.
    fn update(&mut self, vocab: &Vocab, piece: &[u8], start: u32) {
        let end = self.nodes[start as usize].end as usize;
        let rank = match self.nodes.get(end) {
            Some(next) => rank(vocab, piece, start as usize, next.end as usize),
            None => NO_RANK,
        };
        self.nodes[start as usize].rank = rank;
        if rank != NO_RANK {
            self.heap.push(Reverse((rank, start)));
        }
    }
}

/// The rank of `piece[start..end]`, if that is inside the piece and a token.
#[inline]
fn rank(vocab: &Vocab, piece: &[u8], start: usize, end: usize) -> TokenId {
    piece
        .get(start..end)
        .and_then(|pair| vocab.get(pair))
        .unwrap_or(NO_RANK)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(
        vocab: &Vocab,
        piece: &[u8],
        merge: fn(&mut Merger, &Vocab, &[u8], &mut Vec<TokenId>),
    ) -> Vec<TokenId> {
        let mut out = Vec::new();
        merge(&mut Merger::default(), vocab, piece, &mut out);
        out
    }

    #[test]
    fn the_heap_and_the_scan_agree() {
        let vocab = Vocab::embedded().unwrap();
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let alphabets: [&[u8]; 4] = [
            b"a",
            b"ab ",
            b"etaoinshrdlu ",
            &[0, 9, 10, 32, 101, 116, 195, 169, 228, 189, 160],
        ];
        for alphabet in alphabets {
            for length in 1..SHORT {
                let piece: Vec<u8> = (0..length)
                    .map(|_| {
                        state ^= state << 13;
                        state ^= state >> 7;
                        state ^= state << 17;
                        alphabet[(state % alphabet.len() as u64) as usize]
                    })
                    .collect();
                let short = merged(&vocab, &piece, Merger::merge_short);
                assert_eq!(
                    short,
                    merged(&vocab, &piece, Merger::merge_long),
                    "{piece:?}"
                );
                let bytes: Vec<u8> = short
                    .iter()
                    .flat_map(|&id| vocab.token(id).unwrap())
                    .copied()
                    .collect();
                assert_eq!(bytes, piece);
            }
        }
    }

    #[test]
    fn a_megabyte_of_one_letter_is_no_trouble() {
        let vocab = Vocab::embedded().unwrap();
        let piece = vec![b'a'; 1_000_000];
        let ids = merged(&vocab, &piece, Merger::merge_into);
        assert_eq!(
            ids.iter()
                .map(|&id| vocab.token(id).unwrap().len())
                .sum::<usize>(),
            piece.len()
        );
    }
}
