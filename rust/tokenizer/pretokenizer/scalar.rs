//! The split pattern as a scanner: plain code over character classes, and the specification of any faster one.
//!
//! What backtracking makes of the pattern's alternatives, in their order:
//!
//! 1. *Han.* A Han character always begins a run of Han, whatever else it is. Han numerals and symbols also turn up
//!    inside the runs of 4 and 5, but never begin one.
//! 2. *Word.* A run of UPPER, then one of LOWER that must not be empty. Caseless letters and marks are in both classes,
//!    so if no lower-case letter follows the run of UPPER, the word ends with the last of its characters that is in both;
//!    capitals after that one are left for the next piece.
//! 3. *Capitals.* Reached only if the run of UPPER is capitals throughout and no lower-case letter follows it: the run.
//! 4. *Number.* One to three.
//! 5. *Punctuation*, with a space before it and newlines after it.
//! 6. *White space* up to the last newline of the run.
//! 7. *White space* without newlines, to the end of the text, or all but the last character of the run.
//! 8. *White space*: the one character that 7 leaves, if nothing above wants it.
//!
//! In 2 and 3 one character that is no letter, number or newline may precede the word, and a contraction may follow it.
//!
//! An alternative that gives characters back after reading them gives back a run (of capitals, of white space) that the
//! next piece takes but for its last character at most, so each is read a bounded number of times: linear on any input.

use super::char_class::CharClass;

/// The length in bytes of the first piece of `text`; 0 only if `text` is empty.
#[inline]
pub(in crate::tokenizer) fn first_piece_len(text: &str) -> usize {
    let (class, first) = class_at(text, 0);
    if class.intersects(CharClass::WORD) {
        return word_len(text, class, first);
    }
    if class.intersects(CharClass::HAN) {
        return run_end(text, first, CharClass::HAN);
    }
    if class.intersects(CharClass::NUMBER) {
        return number_len(text, first);
    }
    if !class.intersects(CharClass::NEWLINE)
        && let Some(word) = word_at(text, first)
    {
        return word.end;
    }
    if class.intersects(CharClass::PUNCTUATION) {
        return punctuation_end(text, first);
    }
    if text.starts_with(' ') && class_at(text, 1).0.intersects(CharClass::PUNCTUATION) {
        return punctuation_end(text, 1);
    }
    white_space_len(text)
}

/// The class and the length in bytes of the character at `at`; `(NONE, 0)` at the end of the text.
#[inline]
fn class_at(text: &str, at: usize) -> (CharClass, usize) {
    match text.as_bytes().get(at) {
        Some(&byte) if byte.is_ascii() => (CharClass::of_byte(byte), 1),
        Some(_) => wide_class_at(text, at),
        None => (CharClass::NONE, 0),
    }
}

#[inline]
fn wide_class_at(text: &str, at: usize) -> (CharClass, usize) {
    let c = text.get(at..).and_then(|rest| rest.chars().next());
    c.map_or((CharClass::NONE, 0), |c| (CharClass::of(c), c.len_utf8()))
}

/// Where the run of characters in `classes` that begins at `at` ends.
#[inline]
fn run_end(text: &str, mut at: usize, classes: CharClass) -> usize {
    while let Some(&byte) = text.as_bytes().get(at) {
        if CharClass::of_byte(byte).intersects(classes) {
            at += 1;
            continue;
        }
        if byte.is_ascii() {
            break;
        }
        let (class, len) = wide_class_at(text, at);
        if !class.intersects(classes) {
            break;
        }
        at += len;
    }
    at
}

/// How many of the next 8 bytes are a to z, up to the first that is not; 0 near the end of the text.
///
/// Words end at every length, so a loop over their letters is mispredicted once a word. This has no branch on the
/// length.
#[inline]
fn small_letters(text: &str, at: usize) -> usize {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const TOP: u64 = 0x80 * EACH;
    let Some(bytes) = text.as_bytes().get(at..at + 8) else {
        return 0;
    };
    let bytes = bytes.try_into().map_or(0, u64::from_le_bytes);
    // The sums cannot carry into the next byte: at most 0x7F is added to 0x7F at most.
    let low = bytes & !TOP;
    let from_a = low + u64::from(0x80 - b'a') * EACH;
    let after_z = low + u64::from(0x7F - b'z') * EACH;
    let others = !(from_a & !after_z & !bytes) & TOP;
    // 64 zeros where all are letters.
    (others.trailing_zeros() / 8) as usize
}

/// A match of alternative 2 or 3, from the first character after the optional one before it.
struct Word {
    end: usize,
    /// Alternative 3, not 2.
    capitals_only: bool,
}

/// The word at `start`, by alternative 2 or else by 3.
#[inline]
fn word_at(text: &str, start: usize) -> Option<Word> {
    let mut upper_end = start;
    let mut caseless_end = None;
    loop {
        let (class, len) = class_at(text, upper_end);
        if !class.intersects(CharClass::UPPER) {
            break;
        }
        upper_end += len;
        if class.intersects(CharClass::LOWER) {
            caseless_end = Some(upper_end);
        }
    }
    let ascii_end = upper_end + small_letters(text, upper_end);
    let lower_end = run_end(text, ascii_end, CharClass::LOWER);
    let (end, capitals_only) = if lower_end > upper_end {
        (lower_end, false)
    } else if let Some(caseless_end) = caseless_end {
        (caseless_end, false)
    } else if upper_end > start {
        (upper_end, true)
    } else {
        return None;
    };
    Some(Word {
        end: contraction_end(text, end),
        capitals_only,
    })
}

/// The length of the piece that begins with a letter or a mark, of class `class` and length `first`.
#[inline]
fn word_len(text: &str, class: CharClass, first: usize) -> usize {
    // A mark may also be the character before the word, which the pattern tries first; and alternative 2 without it
    // comes before alternative 3 with it.
    let after_mark = if class.intersects(CharClass::PUNCTUATION) {
        word_at(text, first).filter(|word| !word.capitals_only)
    } else {
        None
    };
    after_mark
        .or_else(|| word_at(text, 0))
        .map_or(first, |word| word.end)
}

/// Where the contraction at `at` ends; `at` if there is none.
#[inline]
fn contraction_end(text: &str, at: usize) -> usize {
    let Some([b'\'', rest @ ..]) = text.as_bytes().get(at..) else {
        return at;
    };
    match rest {
        [b's' | b'S' | b't' | b'T' | b'm' | b'M' | b'd' | b'D', ..] => at + 2,
        // The last is U+017F, the long s: an s when case is ignored.
        [b'r' | b'R' | b'v' | b'V', b'e' | b'E', ..]
        | [b'l' | b'L', b'l' | b'L', ..]
        | [0xC5, 0xBF, ..] => at + 3,
        _ => at,
    }
}

/// The length of the number that begins with a digit of length `first`.
#[inline]
fn number_len(text: &str, first: usize) -> usize {
    let mut end = first;
    for _ in 1..3 {
        let (class, len) = class_at(text, end);
        if !class.intersects(CharClass::NUMBER) {
            break;
        }
        end += len;
    }
    end
}

/// Where the punctuation that goes on at `at` ends, newlines after it included.
#[inline]
fn punctuation_end(text: &str, at: usize) -> usize {
    let end = run_end(text, at, CharClass::PUNCTUATION);
    run_end(text, end, CharClass::NEWLINE)
}

/// The length of the piece that begins with white space and holds nothing else.
#[inline]
fn white_space_len(text: &str) -> usize {
    let mut end = 0;
    let mut last_start = 0;
    let mut newline_end = 0;
    loop {
        let (class, len) = class_at(text, end);
        if !class.intersects(CharClass::SPACE) {
            break;
        }
        last_start = end;
        end += len;
        if class.intersects(CharClass::NEWLINE) {
            newline_end = end;
        }
    }
    if newline_end > 0 {
        newline_end
    } else if end == text.len() || last_start == 0 {
        end
    } else {
        last_start
    }
}
