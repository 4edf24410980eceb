//! The split pattern over 64 bytes at once: where ASCII text is cut, by arithmetic on sets of positions.
//!
//! A set of positions is a `u64`, position *i* its bit *i*. What [`super::scalar`] decides character by character
//! follows from a few such sets, since the pattern looks ahead of a cut only to the end of a run of white space, and
//! past an apostrophe. A block begins where a piece begins, so nothing is carried from one to the next; what depends on
//! bytes that the block does not show, or on a character beyond ASCII, is left to the next block, or to the scalar
//! scanner.
//!
//! With *starts* for the positions where a piece begins:
//!
//! - A letter is a start after a small letter if it is a capital, and after anything else, unless the one character
//!   before it is a start and may open a word: white space other than a newline, or punctuation. White space there is the
//!   last of its run, which is always a start; punctuation is one if it follows neither punctuation nor a space.
//! - A digit is a start after anything else, and after every three.
//! - Punctuation is a start after anything else but a space, which opens its piece. Newlines after it belong to it.
//! - Other white space falls into runs. Starts are the first of a run, the first after the last newline of the run, and
//!   the last if it is no newline and something follows.
//! - A contraction moves the start after a word to its own end.

/// Bytes in a block.
pub(super) const LEN: usize = 64;

/// How many bytes a contraction shows after its apostrophe at most.
const CONTRACTION: u32 = 2;

/// Which of 64 bytes are what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Classes {
    pub(super) upper: u64,
    pub(super) lower: u64,
    pub(super) digit: u64,
    /// All white space, newlines included.
    pub(super) space: u64,
    /// Carriage return and line feed.
    pub(super) newline: u64,
    /// The blank alone.
    pub(super) blank: u64,
    pub(super) apostrophe: u64,
    /// What blocks leave to the scalar scanner: parts of characters beyond ASCII, and zeros, for the sake of those who
    /// look pieces up (`piece_cache`).
    pub(super) other: u64,
}

/// The ends of pieces in `bytes`, which begins where a piece begins, or 0 if none is sure. Only the first `len` bytes
/// are text, and `is_all` says that no text follows them; then `len` is less than 64, so that the end of the text has a
/// bit.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "compiled anew for each instruction set that calls it"
)]
pub(super) fn ends(bytes: &[u8; LEN], classes: &Classes, len: usize, is_all: bool) -> u64 {
    let shown = len.min(classes.other.trailing_zeros() as usize) as u32;
    let is_all = is_all && shown as usize == len;
    let text = below(shown);

    let letter = (classes.upper | classes.lower) & text;
    let digit = classes.digit & text;
    let space = classes.space & text;
    let newline = classes.newline & text;
    let blank = classes.blank & text;
    let punctuation = text & !(letter | digit | space);

    let punctuation_start = punctuation & !after(punctuation) & !after(blank);

    let opens_word = (space & !newline) | punctuation_start;
    let letter_start = (letter & !after(letter) & !after(opens_word))
        | (classes.upper & letter & after(classes.lower));

    // A run of newlines carries the bit added at its start to the position after its end.
    let trailing = newline & !(newline.wrapping_add(newline & after(punctuation)));
    let gap = space & !trailing;
    let last_of_gap = gap & !newline & before(text & !space);
    let space_start = (gap & !after(gap)) | last_of_gap | after_last_newline(gap, newline);

    let mut starts = letter_start | every_third(digit) | punctuation_start | space_start;
    let apostrophes = classes.apostrophe & text & after(letter);
    if apostrophes != 0 {
        starts = join_contractions(&bytes[..shown as usize], starts, apostrophes);
    }
    // The block itself is a start, but the end of nothing.
    starts &= !1;
    if is_all {
        return starts & text | 1 << len;
    }
    // What follows a gap decides how it is cut.
    let sure = match 64 - (text & !gap).leading_zeros() {
        gap_start if gap_start < shown => gap_start + 1,
        _ => shown,
    };
    starts & below(sure.min(shown.saturating_sub(CONTRACTION)))
}

/// Positions 0 to `end` - 1.
#[inline(always)]
#[expect(clippy::inline_always, reason = "as `ends`")]
fn below(end: u32) -> u64 {
    1_u64.checked_shl(end).map_or(u64::MAX, |bit| bit - 1)
}

/// The positions after those.
#[inline(always)]
#[expect(clippy::inline_always, reason = "as `ends`")]
fn after(positions: u64) -> u64 {
    positions << 1
}

/// The positions before those.
#[inline(always)]
#[expect(clippy::inline_always, reason = "as `ends`")]
fn before(positions: u64) -> u64 {
    positions >> 1
}

/// The first of every three digits.
#[inline(always)]
#[expect(clippy::inline_always, reason = "as `ends`")]
fn every_third(digit: u64) -> u64 {
    let mut found = digit & !after(digit);
    let after_three = digit & digit << 1 & digit << 2 & digit << 3;
    let mut starts = found;
    loop {
        found = found << 3 & after_three;
        if found == 0 {
            return starts;
        }
        starts |= found;
    }
}

/// The first position after the last newline of each run of `gap`, if that is still in the run.
#[inline(always)]
#[expect(clippy::inline_always, reason = "as `ends`")]
fn after_last_newline(gap: u64, newline: u64) -> u64 {
    let others = gap & !newline;
    let mut starts = others & after(gap & newline);
    // Where such a stretch ends at another newline, its start is not the last one's.
    let mut ends_at_newline = others.wrapping_add(starts) & gap & newline;
    while ends_at_newline != 0 {
        let earlier = starts & (ends_at_newline & ends_at_newline.wrapping_neg()).wrapping_sub(1);
        starts &= !(1 << earlier.ilog2());
        ends_at_newline &= ends_at_newline - 1;
    }
    starts
}

/// `starts` with each contraction part of the word before it. `apostrophes` are those after a letter.
#[inline(always)]
#[expect(clippy::inline_always, reason = "as `ends`")]
fn join_contractions(bytes: &[u8], mut starts: u64, mut apostrophes: u64) -> u64 {
    while apostrophes != 0 {
        let at = apostrophes.trailing_zeros();
        apostrophes &= apostrophes - 1;
        let letter = |offset| {
            bytes
                .get(at as usize + offset)
                .map_or(0, |byte| byte | 0x20)
        };
        let len = match (letter(1), letter(2)) {
            (b's' | b't' | b'm' | b'd', _) => 2,
            (b'r' | b'v', b'e') | (b'l', b'l') => 3,
            _ => continue,
        };
        let end = at + len;
        starts = starts & !(below(end) & !below(at)) | below(end + 1) & !below(end);
        // An apostrophe right after a contraction begins a piece.
        apostrophes &= !(below(end + 1) & !below(end));
    }
    starts
}
