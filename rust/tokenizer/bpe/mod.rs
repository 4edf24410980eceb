//! One piece to ids by ranked merges.
//!
//! The pair of neighbours whose joined bytes have the lowest rank is merged, the leftmost of equals first, until no
//! pair is a token. `short.rs` looks at all pairs for each merge: nothing beats that while they fit a cache line or
//! two. `long.rs` keeps them in a queue, so that a piece of n bytes (base64, minified code, a rule of dashes) costs n,
//! as long as no merge makes a pair of lower rank, which none does in Kimi's vocabulary.

mod long;
mod rank_queue;
mod short;

use long::LongMerger;
use short::ShortMerger;

use crate::tokenizer::TokenId;
use crate::tokenizer::vocab::Vocab;

/// Up to this many bytes the quadratic scan is the faster of the two.
const SHORT: usize = 128;

/// No pair, or a pair that is no token.
const NO_RANK: TokenId = TokenId::MAX;

/// What merging keeps between pieces. It never changes a result, as long as it is used with one vocabulary.
#[derive(Default)]
pub struct Merger {
    short: ShortMerger,
    long: LongMerger,
}

impl Merger {
    /// Gives back the memory of an unusually long piece.
    pub fn forget_large(&mut self) {
        self.long.forget_large();
    }

    /// Appends the ids of `piece`, which may be any bytes of any length.
    pub fn merge_into(&mut self, vocab: &Vocab, piece: &[u8], out: &mut Vec<TokenId>) {
        if let Some(id) = vocab.get(piece) {
            out.push(id);
        } else if piece.len() <= SHORT {
            self.short.merge_into(vocab, piece, out);
        } else {
            self.long.merge_into(vocab, piece, out);
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

    fn short(vocab: &Vocab, piece: &[u8]) -> Vec<TokenId> {
        let mut out = Vec::new();
        ShortMerger::default().merge_into(vocab, piece, &mut out);
        out
    }

    /// Every text of two to six of `a` and `b`, the longer ones first, so that a merge makes a pair of lower rank. In
    /// Kimi's vocabulary none does.
    fn longer_tokens_first() -> Vocab {
        let bytes = (0..=u8::MAX).map(|byte| vec![byte]);
        let texts = (2..=6).rev().flat_map(|len| {
            (0..1_u8 << len).map(move |bits| (0..len).map(|i| b'a' + (bits >> i & 1)).collect())
        });
        let tokens: Vec<Vec<u8>> = bytes.chain(texts).collect();
        Vocab::from_ranks(tokens.iter().map(Vec::as_slice).zip(0..)).unwrap()
    }

    #[test]
    fn the_queue_and_the_scan_agree() {
        for vocab in [Vocab::embedded().as_ref(), &longer_tokens_first()] {
            check_agreement(vocab);
        }
    }

    fn check_agreement(vocab: &Vocab) {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let alphabets: [&[u8]; 4] = [
            b"a",
            b"ab ",
            b"etaoinshrdlu ",
            &[0, 9, 10, 32, 101, 116, 195, 169, 228, 189, 160],
        ];
        let mut long_merger = LongMerger::default();
        let mut long = Vec::new();
        for alphabet in alphabets {
            for length in (1..SHORT).chain([1000]) {
                let piece: Vec<u8> = (0..length)
                    .map(|_| {
                        state ^= state << 13;
                        state ^= state >> 7;
                        state ^= state << 17;
                        alphabet[(state % alphabet.len() as u64) as usize]
                    })
                    .collect();
                let short = short(vocab, &piece);
                long.clear();
                long_merger.merge_into(vocab, &piece, &mut long);
                assert_eq!(short, long, "{piece:?}");
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
        let vocab = Vocab::embedded();
        let piece = vec![b'a'; 1_000_000];
        let mut ids = Vec::new();
        Merger::default().merge_into(&vocab, &piece, &mut ids);
        assert_eq!(
            ids.iter()
                .map(|&id| vocab.token(id).unwrap().len())
                .sum::<usize>(),
            piece.len()
        );
    }
}
