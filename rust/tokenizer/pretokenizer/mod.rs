//! Kimi's split pattern: text into the pieces that are merged into tokens one by one.
//!
//! The pattern is the definition; it is kept as text for the tests and never compiled here. A scanner written for this one
//! pattern does the work, in two forms: `scalar.rs`, which is plain, and `block.rs`, which finds all cuts in 64 bytes of ASCII
//! at once. On the real trajectories the second is three times as fast as the first: 0.044 s for 44.7 MB.

#[doc(hidden)]
pub mod char_class;
#[rustfmt::skip]
mod char_class_table;
mod block;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod simd;

use std::iter::FusedIterator;

pub(super) use scalar::first_piece_len;

/// The split pattern of every Kimi model, in the syntax of `fancy-regex` (and of `tiktoken`, which uses it).
///
/// The first alternative that matches wins, as always with backtracking. What the scanner makes of that is written down
/// in `scalar.rs`.
pub const PATTERN: &str = concat!(
    r"[\p{Han}]+",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|\p{N}{1,3}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*",
    r"|\s*[\r\n]+",
    r"|\s+(?!\S)",
    r"|\s+",
);

/// The pieces of `text` in order. They are never empty, and joined they give `text` again.
#[inline]
#[must_use]
pub fn pretokenize(text: &str) -> Pieces<'_> {
    Pieces {
        ends: piece_ends(text),
        start: 0,
    }
}

/// Where the pieces of `text` end, in order.
#[inline]
#[must_use]
pub fn piece_ends(text: &str) -> PieceEnds<'_> {
    PieceEnds {
        text,
        scanner: Scanner::fastest(),
        base: 0,
        known: 0,
        last: 0,
    }
}

/// The same pieces, each found by the scanner that is the specification of the fast one.
pub fn pretokenize_plainly(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (piece, after) = rest.split_at(first_piece_len(rest));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

/// The iterator that [`pretokenize`] returns.
#[derive(Clone, Debug)]
pub struct Pieces<'a> {
    ends: PieceEnds<'a>,
    start: usize,
}

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a str;

    #[inline]
    fn next(&mut self) -> Option<&'a str> {
        let end = self.ends.next()?;
        let piece = self.ends.text.get(self.start..end);
        self.start = end;
        piece
    }
}

impl FusedIterator for Pieces<'_> {}

/// The iterator that [`piece_ends`] returns.
#[derive(Clone, Debug)]
pub struct PieceEnds<'a> {
    text: &'a str,
    scanner: Scanner,
    /// Where the block begins that `known` speaks of.
    base: usize,
    /// The ends that are found and not yet told, as bits: bit i is the end at `base` + i.
    known: u64,
    /// The end told last, where the next piece begins.
    last: usize,
}

impl PieceEnds<'_> {
    /// The end of the piece at `last`, and those after it that come with it.
    #[inline]
    fn find_more(&mut self) -> Option<usize> {
        let rest = self.text.get(self.last..)?;
        if rest.is_empty() {
            return None;
        }
        let ends = self.scanner.ends_of(rest.as_bytes());
        if ends != 0 {
            self.base = self.last;
            self.known = ends & (ends - 1);
            return Some(self.base + ends.trailing_zeros() as usize);
        }
        Some(self.last + first_piece_len(rest))
    }
}

impl Iterator for PieceEnds<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        self.last = if self.known != 0 {
            let end = self.base + self.known.trailing_zeros() as usize;
            self.known &= self.known - 1;
            end
        } else {
            self.find_more()?
        };
        Some(self.last)
    }
}

impl FusedIterator for PieceEnds<'_> {}

/// The bytes that [`Scanner::ends`] looks at.
pub(super) const BLOCK_LEN: usize = block::LEN;

/// What scans the text: many bytes at once, where the processor can.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scanner {
    #[cfg(target_arch = "x86_64")]
    simd: Option<simd::Simd>,
}

impl Scanner {
    /// The fastest that this processor runs.
    #[inline]
    pub(super) fn fastest() -> Self {
        Self {
            #[cfg(target_arch = "x86_64")]
            simd: simd::Simd::detect(),
        }
    }

    /// The ends of the first pieces of a text that begins with `bytes` and has `len` of them in all, as bits; 0 if the
    /// first piece is to be found alone. What `bytes` has after the text plays no part.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub(super) fn ends<const N: usize>(self, bytes: &[u8; N], len: usize) -> u64 {
        let (Some(simd), Some(block)) = (self.simd, bytes.first_chunk()) else {
            return 0;
        };
        // Beyond ASCII the block would yield nothing.
        let first = bytes
            .first_chunk()
            .map_or(0, |&bytes| u64::from_le_bytes(bytes));
        if first & WIDE != 0 {
            return 0;
        }
        simd.ends(block, len.min(BLOCK_LEN), len < BLOCK_LEN)
    }

    #[cfg(not(target_arch = "x86_64"))]
    #[inline]
    #[expect(clippy::unused_self, reason = "as where there is a fast scanner")]
    pub(super) fn ends<const N: usize>(self, _bytes: &[u8; N], _len: usize) -> u64 {
        0
    }

    /// The same of a text of any length.
    #[inline]
    fn ends_of(self, text: &[u8]) -> u64 {
        if let Some(block) = text.first_chunk::<BLOCK_LEN>() {
            return self.ends(block, text.len());
        }
        let mut block = [0; BLOCK_LEN];
        block[..text.len()].copy_from_slice(text);
        self.ends(&block, text.len())
    }
}

/// The top bits of eight bytes.
#[cfg(target_arch = "x86_64")]
const WIDE: u64 = 0x8080_8080_8080_8080;

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &str) -> Vec<&str> {
        pretokenize(text).collect()
    }

    #[test]
    fn words_keep_one_character_before_them_and_a_contraction_after_them() {
        assert_eq!(
            pieces("It's what WE'LL say"),
            ["It's", " what", " WE'LL", " say"]
        );
        assert_eq!(pieces("x=foo(bar)"), ["x", "=foo", "(bar", ")"]);
        assert_eq!(pieces("parseHTTPRequest"), ["parse", "HTTPRequest"]);
    }

    #[test]
    fn han_is_a_script_and_stands_alone() {
        assert_eq!(pieces("你好world"), ["你好", "world"]);
        assert_eq!(pieces(" 你好"), [" ", "你好"]);
        assert_eq!(pieces("1〇〇〇"), ["1〇〇", "〇"]);
    }

    #[test]
    fn capitals_after_the_last_caseless_letter_are_left_for_the_next_piece() {
        assert_eq!(pieces("AªBC"), ["Aª", "BC"]);
        assert_eq!(pieces("AªBCd"), ["AªBCd"]);
    }

    #[test]
    fn white_space_ends_at_a_newline_or_leaves_its_last_character() {
        assert_eq!(pieces("a  \n   b"), ["a", "  \n", "  ", " b"]);
        assert_eq!(pieces("a   "), ["a", "   "]);
        assert_eq!(
            pieces("end.\r\n\r\n  1"),
            ["end", ".\r\n\r\n", " ", " ", "1"]
        );
    }
}
