//! Kimi's split pattern: text into the pieces that are merged into tokens one by one.
//!
//! The pattern is the definition; it is kept as text for the tests and never compiled here. A scanner written for this one
//! pattern does the work: in `benches/pretokenize.rs` it is 7 to 17 times as fast as the regex engine.

#[doc(hidden)]
pub mod char_class;
#[rustfmt::skip]
mod char_class_table;
mod scalar;

use std::iter::FusedIterator;

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
    Pieces { rest: text }
}

/// The iterator that [`pretokenize`] returns.
#[derive(Clone, Debug)]
pub struct Pieces<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a str;

    #[inline]
    fn next(&mut self) -> Option<&'a str> {
        if self.rest.is_empty() {
            return None;
        }
        let (piece, rest) = self.rest.split_at(scalar::first_piece_len(self.rest));
        self.rest = rest;
        Some(piece)
    }
}

impl FusedIterator for Pieces<'_> {}

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
