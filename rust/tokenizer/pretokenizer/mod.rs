//! Kimi's split pattern: text into the pieces that are merged into tokens one by one.
//!
//! The pattern is the definition; it is kept as text for the tests and never compiled here. A scanner written for this
//! one pattern does the work, in two forms: `scalar.rs`, which is plain, and `block.rs`, which finds all cuts in 64
//! bytes of ASCII at once. On the real trajectories the second is three times as fast as the first: 0.044 s for 44.7
//! MB.

#[doc(hidden)]
pub mod char_class;
#[rustfmt::skip]
mod char_class_table;
mod block;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod simd;

use std::iter::FusedIterator;

use scalar::first_piece_len;

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
        scan: Scan::of(text),
        rest: text,
        ends: 0,
        told: 0,
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
    scan: Scan<'a>,
    /// The text after the pieces told.
    rest: &'a str,
    /// The ends in the block at hand that are not told yet, as bits.
    ends: u64,
    /// The end in the block that was told last.
    told: usize,
}

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a str;

    #[inline]
    fn next(&mut self) -> Option<&'a str> {
        let mut len = 0;
        if self.ends == 0 {
            match self.scan.next()? {
                Scanned::Block { ends, .. } => (self.ends, self.told) = (ends, 0),
                Scanned::Piece(piece) => len = piece.len(),
            }
        }
        if self.ends != 0 {
            let end = self.ends.trailing_zeros() as usize;
            self.ends &= self.ends - 1;
            len = end - self.told;
            self.told = end;
        }
        let (piece, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(piece)
    }
}

impl FusedIterator for Pieces<'_> {}

/// The bytes that the fast scanner looks at.
pub(super) const BLOCK_LEN: usize = block::LEN;

/// A block, and as many bytes after it as whoever takes 16 from the start of a piece may read.
pub(super) const WINDOW_LEN: usize = BLOCK_LEN + 16;

/// A text on its way through the scanner, many pieces at a time. Encoding reads it, and so does [`pretokenize`], which
/// thereby shows where encoding cuts.
#[derive(Clone, Debug)]
pub(super) struct Scan<'a> {
    scanner: Scanner,
    rest: &'a str,
    /// The last bytes of the text and zeros after them, once there are too few for a window.
    last: [u8; WINDOW_LEN],
}

/// What comes next in a text.
pub(super) enum Scanned<'s> {
    /// Pieces that all end in one block: bit i of `ends` says that one ends before byte i. `window` begins where the
    /// first one does. What it has after the text is zeros; none of the pieces ends in one.
    Block {
        window: &'s [u8; WINDOW_LEN],
        ends: u64,
    },
    /// A piece that is too long for a block, or ends in a zero.
    Piece(&'s str),
}

impl<'a> Scan<'a> {
    #[inline]
    pub(super) fn of(text: &'a str) -> Self {
        Self {
            scanner: Scanner::fastest(),
            rest: text,
            last: [0; WINDOW_LEN],
        }
    }

    /// What comes next; None at the end of the text.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Scanned<'_>> {
        let bytes = self.rest.as_bytes();
        if bytes.is_empty() {
            return None;
        }
        let window = bytes.first_chunk().unwrap_or_else(|| {
            self.last.fill(0);
            self.last[..bytes.len()].copy_from_slice(bytes);
            &self.last
        });
        let mut ends = self.scanner.ends(window, bytes.len());
        if ends == 0 {
            let len = first_piece_len(self.rest);
            if len >= BLOCK_LEN || window[len - 1] == 0 {
                let (piece, rest) = self.rest.split_at(len);
                self.rest = rest;
                return Some(Scanned::Piece(piece));
            }
            ends = 1 << len;
        }
        self.rest = &self.rest[ends.ilog2() as usize..];
        Some(Scanned::Block { window, ends })
    }
}

/// What scans the text: many bytes at once, where the processor can.
#[derive(Clone, Copy, Debug)]
struct Scanner {
    #[cfg(target_arch = "x86_64")]
    simd: Option<simd::Simd>,
}

impl Scanner {
    /// The fastest that this processor runs.
    #[inline]
    fn fastest() -> Self {
        Self {
            #[cfg(target_arch = "x86_64")]
            simd: simd::Simd::detect(),
        }
    }

    /// The ends of the first pieces of a text that begins with `bytes` and has `len` of them in all, as bits; 0 if the
    /// first piece is to be found alone. What `bytes` has after the text plays no part.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    fn ends(self, bytes: &[u8; WINDOW_LEN], len: usize) -> u64 {
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
    fn ends(self, _bytes: &[u8; WINDOW_LEN], _len: usize) -> u64 {
        0
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
