//! What the split pattern can see of a character: one byte of flags, looked up by code point.
//!
//! The table comes from the Unicode data of the `regex-syntax` crate, since that is what defines `\p{…}` for
//! `tiktoken`; the tables of `char` in std follow another Unicode version. `tests/char_class.rs` checks every code
//! point and is also the generator.

use super::char_class_table::{BLOCK_BITS, BLOCK_COUNT, BLOCKS, INDEX};

const BLOCK_LEN: usize = 1 << BLOCK_BITS;

/// A set of flags: the classes of the pattern that a character belongs to, or a choice of such classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CharClass(u8);

impl CharClass {
    /// In no class. No character is; it stands for the end of the text, and in [`CharClass::of_byte`] for "look
    /// further".
    pub const NONE: Self = Self(0);
    /// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]`: what a word may begin with.
    pub const UPPER: Self = Self(1);
    /// `[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]`: what a word may go on with.
    pub const LOWER: Self = Self(2);
    /// Either of the two.
    pub const WORD: Self = Self(Self::UPPER.0 | Self::LOWER.0);
    /// `\p{N}`.
    pub const NUMBER: Self = Self(4);
    /// `\p{Han}`.
    pub const HAN: Self = Self(8);
    /// `[^\s\p{L}\p{N}]`: punctuation, symbols, marks, controls and everything unassigned.
    pub const PUNCTUATION: Self = Self(16);
    /// `\s`.
    pub const SPACE: Self = Self(32);
    /// `[\r\n]`.
    pub const NEWLINE: Self = Self(64);

    /// The letters that the table is written in; all the combinations of flags that occur.
    #[must_use]
    pub const fn from_letter(letter: u8) -> Option<Self> {
        let flags = match letter {
            b'U' => Self::UPPER.0,
            b'l' => Self::LOWER.0,
            b'o' => Self::WORD.0,
            b'm' => Self::WORD.0 | Self::PUNCTUATION.0,
            b'H' => Self::HAN.0,
            b'9' => Self::HAN.0 | Self::NUMBER.0,
            b'#' => Self::HAN.0 | Self::PUNCTUATION.0,
            b'1' => Self::NUMBER.0,
            b'.' => Self::PUNCTUATION.0,
            b'_' => Self::SPACE.0,
            b'n' => Self::SPACE.0 | Self::NEWLINE.0,
            _ => return None,
        };
        Some(Self(flags))
    }

    /// The class of `c`.
    #[inline]
    #[must_use]
    pub fn of(c: char) -> Self {
        let code = c as usize;
        DECODED[usize::from(INDEX[code >> BLOCK_BITS])][code % BLOCK_LEN]
    }

    /// The class of the ASCII character `byte`; [`CharClass::NONE`] for a byte of a longer character.
    ///
    /// 256 entries rather than 128 so that a run of ASCII is followed with a single test a byte.
    #[inline]
    #[must_use]
    pub fn of_byte(byte: u8) -> Self {
        BYTES[usize::from(byte)]
    }

    /// Whether a flag is in both.
    #[inline]
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

static DECODED: [[CharClass; BLOCK_LEN]; BLOCK_COUNT] = decode();

static BYTES: [CharClass; 256] = bytes();

#[expect(
    clippy::large_stack_arrays,
    reason = "evaluated by the compiler, never on a stack"
)]
const fn decode() -> [[CharClass; BLOCK_LEN]; BLOCK_COUNT] {
    let mut decoded = [[CharClass::NONE; BLOCK_LEN]; BLOCK_COUNT];
    let mut block = 0;
    while block < BLOCK_COUNT {
        let mut at = 0;
        while at < BLOCK_LEN {
            match CharClass::from_letter(BLOCKS[block][at]) {
                Some(class) => decoded[block][at] = class,
                None => panic!("the table holds a letter that is no class"),
            }
            at += 1;
        }
        block += 1;
    }
    decoded
}

const fn bytes() -> [CharClass; 256] {
    let mut bytes = [CharClass::NONE; 256];
    let mut code = 0;
    while code < 128 {
        bytes[code] = DECODED[INDEX[code >> BLOCK_BITS] as usize][code % BLOCK_LEN];
        code += 1;
    }
    bytes
}
