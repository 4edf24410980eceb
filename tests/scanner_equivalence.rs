//! The scanner against the pattern it stands for, run by the engine that `tiktoken` uses.
//!
//! The pattern knows a character only by the classes and literals it tests it for. Two characters that pass the same
//! tests (that lie in the same *cell*) can be exchanged in any text without moving a cut, so texts over one
//! representative a cell stand for all texts. That the representatives reach every cell is a test of its own.
//!
//! The scanner in turn knows a character by its class, which `tests/char_class.rs` checks for every code point, and by
//! the literals of contractions, which are checked for every code point here.

#![expect(
    clippy::print_stdout,
    reason = "the size of the proof is part of its result"
)]

use std::collections::HashSet;

use fancy_regex::{Regex, RegexBuilder};
use fasttok::tokenizer::pretokenizer::{PATTERN, pretokenize, pretokenize_plainly};

/// At least one character of every cell, and of a cell that reaches beyond ASCII also one of two bytes or more, since
/// the scanner reads those by another path.
const REPRESENTATIVES: [char; 38] = [
    's',
    '\u{17F}',
    'r',
    'e',
    'l',
    'a',
    'é',
    '𝒶', // lower case: the roles in contractions, and none
    'S',
    'R',
    'E',
    'L',
    'A',
    'É',
    '\u{1C5}',
    '𝐀', // upper and title case, likewise
    'ª',
    'ʰ',
    'ก', // letters of both word classes
    '\u{301}',
    '\u{903}',
    '\u{E0100}', // marks
    '7',
    '\u{663}', // numbers
    '中',
    '\u{3005}',
    '\u{3007}',
    '\u{2F00}',
    '\u{16FF0}', // Han: letters, a numeral, a symbol, a mark
    ' ',
    '\t',
    '\u{3000}',
    '\r',
    '\n',
    '\'',
    '!',
    '—',
    '\0', // a zero, which the fast scanner leaves to the plain one
];

/// What contractions are made of, with one cell of each kind that can stand before or after.
const CONTRACTIONS: [char; 10] = [
    '\'', 's', '\u{17F}', 'r', 'e', 'L', 'A', '\u{301}', '中', ' ',
];

/// What decides where words begin and end.
const WORD_SHAPES: [char; 7] = ['a', 'A', 'ก', '\u{301}', '!', ' ', '\u{2F00}'];

/// What decides how white space, numbers and punctuation are cut.
const GAPS: [char; 8] = [' ', '\u{3000}', '\r', '\n', '!', 'a', '7', '\u{3007}'];

/// The regexes that tell the cells apart: each class and literal of the pattern.
///
/// Merged, because the pattern never tells them apart: `s t m d` all end a contraction after one letter; `r v` both
/// want an `e` next, and the `e` of `'re` is that of `'ve`; the two letters of `'ll` are one literal.
const PREDICATES: [&str; 14] = [
    r"\p{Han}",
    r"\p{L}",
    r"\p{N}",
    r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]",
    r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]",
    r"\s",
    r"\r",
    r"\n",
    r" ",
    r"'",
    r"(?i:[stmd])",
    r"(?i:[rv])",
    r"(?i:e)",
    r"(?i:l)",
];

struct Reference(Regex);

impl Reference {
    fn new() -> Self {
        let mut builder = RegexBuilder::new(PATTERN);
        Self(
            builder
                .backtrack_limit(usize::MAX)
                .build()
                .expect("the pattern is valid"),
        )
    }

    /// Fails unless both scanners cut `text` where the pattern does.
    fn check(&self, text: &str) {
        assert!(
            pretokenize_plainly(text).eq(pretokenize(text)),
            "in {text:?}"
        );
        let mut expected = self.0.find_iter(text);
        let mut end = 0;
        for piece in pretokenize(text) {
            let found = expected
                .next()
                .map(|found| found.expect("no limit is reached"));
            assert_eq!(
                found.map(|found| (found.start(), found.as_str())),
                Some((end, piece)),
                "in {text:?}"
            );
            end += piece.len();
        }
        assert!(
            expected.next().is_none() && end == text.len(),
            "the pieces of {text:?} end early"
        );
    }

    /// Checks every string of up to `max_len` of `alphabet` and returns how many there are.
    fn check_all(&self, alphabet: &[char], max_len: u32) -> usize {
        let mut tried = 0;
        for len in 0..=max_len {
            for_each_string(alphabet, len, |text| {
                self.check(text);
                tried += 1;
            });
        }
        tried
    }
}

/// Calls `check` with every string of `len` of `alphabet`.
fn for_each_string(alphabet: &[char], len: u32, mut check: impl FnMut(&str)) {
    let mut text = String::new();
    for number in 0..alphabet.len().pow(len) {
        text.clear();
        let mut digits = number;
        for _ in 0..len {
            text.push(alphabet[digits % alphabet.len()]);
            digits /= alphabet.len();
        }
        check(&text);
    }
}

/// For each code point the set of `PREDICATES` that it satisfies, as bits; surrogates have none.
fn cells() -> Vec<u16> {
    let all: String = ('\0'..=char::MAX).collect();
    let mut cells = vec![0; 0x11_0000];
    for (bit, predicate) in PREDICATES.iter().enumerate() {
        let runs = Regex::new(&format!("(?:{predicate})+")).expect("the predicate is valid");
        for run in runs.find_iter(&all) {
            for c in run
                .expect("a single class does not backtrack")
                .as_str()
                .chars()
            {
                cells[c as usize] |= 1 << bit;
            }
        }
    }
    cells
}

/// Marsaglia's xorshift64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }

    fn one_of(&mut self, chars: &[char]) -> char {
        chars[self.below(chars.len())]
    }

    fn code_point(&mut self) -> char {
        // Most code points are unassigned; half of the draws stay where the scripts are.
        let limit = if self.below(2) == 0 {
            0x3100
        } else {
            0x11_0000
        };
        u32::try_from(self.below(limit))
            .ok()
            .and_then(char::from_u32)
            .unwrap_or('\u{FFFD}')
    }
}

#[test]
fn the_representatives_reach_every_cell() {
    let cells = cells();
    let reached: HashSet<u16> = REPRESENTATIVES.iter().map(|&c| cells[c as usize]).collect();
    for c in '\0'..=char::MAX {
        assert!(
            reached.contains(&cells[c as usize]),
            "U+{:04X} lies in a cell without a representative",
            c as u32
        );
    }
    println!(
        "{} cells, {} representatives",
        reached.len(),
        REPRESENTATIVES.len()
    );
}

#[test]
fn all_short_strings() {
    println!(
        "{} strings",
        Reference::new().check_all(&REPRESENTATIVES, 4)
    );
}

#[test]
fn all_strings_of_five_over_one_representative_a_cell() {
    let cells = cells();
    let mut seen = HashSet::new();
    let alphabet: Vec<char> = REPRESENTATIVES
        .into_iter()
        .filter(|&c| seen.insert(cells[c as usize]))
        .collect();
    println!("{} strings", Reference::new().check_all(&alphabet, 5));
}

#[test]
fn longer_strings_around_contractions() {
    println!("{} strings", Reference::new().check_all(&CONTRACTIONS, 6));
}

/// The scanner spells out the letters that the cells merge, so each code point takes each place in a contraction.
#[test]
fn every_code_point_in_a_contraction() {
    let reference = Reference::new();
    let mut text = String::new();
    for c in '\0'..=char::MAX {
        text.clear();
        for before in ["", "r", "R", "v", "V", "l", "L"] {
            text.extend(["a'", before, c.encode_utf8(&mut [0; 4]), " "]);
        }
        for after in ["e", "E", "l", "L"] {
            text.extend(["a'", c.encode_utf8(&mut [0; 4]), after, " "]);
        }
        reference.check(&text);
    }
}

#[test]
fn longer_strings_of_word_shapes() {
    println!("{} strings", Reference::new().check_all(&WORD_SHAPES, 7));
}

#[test]
fn longer_strings_of_gaps() {
    println!("{} strings", Reference::new().check_all(&GAPS, 6));
}

/// The fast scanner looks at 64 bytes, and must know what it cannot know from them: all short strings, at each place
/// where the block ends in or near them. The plain scanner, which knows no blocks, is held to the pattern by the other
/// tests.
#[test]
fn all_short_strings_where_a_block_ends() {
    let before = "A b.C d'e 1 f ".repeat(5);
    let after = [" b c ", "b c ", "\n\n b "].map(|unit| unit.repeat(20));
    let mut tried = 0;
    for len in 1..=3 {
        for_each_string(&REPRESENTATIVES, len, |string| {
            for start in 57..66 {
                for after in &after {
                    let text = [&before[..start], string, after].concat();
                    assert!(
                        pretokenize_plainly(&text).eq(pretokenize(&text)),
                        "in {text:?}"
                    );
                    tried += 1;
                }
            }
        });
    }
    println!("{tried} strings");
}

#[test]
fn random_strings() {
    let reference = Reference::new();
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut text = String::new();
    for _ in 0..400_000 {
        text.clear();
        let len = if random.below(4) == 0 { 200 } else { 41 };
        for _ in 0..random.below(len) {
            text.push(match random.below(8) {
                0 => random.code_point(),
                1 | 2 => random.one_of(&WORD_SHAPES),
                3 => random.one_of(&CONTRACTIONS),
                4 => random.one_of(&GAPS),
                _ => random.one_of(&REPRESENTATIVES),
            });
        }
        reference.check(&text);
    }
}

/// The units of long runs: every representative alone, and every two in turn.
fn long_units() -> Vec<String> {
    let singles = REPRESENTATIVES.iter().map(char::to_string);
    let pairs = REPRESENTATIVES
        .iter()
        .flat_map(|&first| REPRESENTATIVES.map(|second| [first, second]));
    singles
        .chain(
            pairs
                .filter(|[first, second]| first != second)
                .map(String::from_iter),
        )
        .collect()
}

#[test]
fn long_runs() {
    let reference = Reference::new();
    for unit in long_units() {
        let len = if unit.chars().count() == 1 { 5000 } else { 250 };
        let run = unit.repeat(len);
        reference.check(&run);
        // A run that is read to its end and then given back, in part or whole.
        for (before, after) in [("\u{301}", "!"), ("ก", "a"), (" ", "\n"), ("\n", "A's")] {
            reference.check(&format!("{before}{run}{after}"));
        }
    }
}

/// No clock: a scan that reads a run of 4 MB again for each of its pieces would take hours.
#[test]
fn very_long_runs_take_linear_time() {
    let mut bytes = 0;
    for unit in [
        "A", "\u{301}", "ก", " ", "\n", "!", "7", "中", "\u{301}A", "กA", " \n", "!\u{301}", "A'",
        "'s",
    ] {
        let run = unit.repeat((4 << 20) / unit.len());
        for (before, after) in [("", ""), ("\u{301}", "!"), ("ก", "a"), ("\n", " x")] {
            let text = format!("{before}{run}{after}");
            assert_eq!(pretokenize(&text).map(str::len).sum::<usize>(), text.len());
            bytes += text.len();
        }
    }
    println!("{bytes} bytes");
}
