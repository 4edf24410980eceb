//! Where Kimi's own tokenizer cuts a long text before encoding it.
//!
//! The reference takes windows of 400,000 code points, and cuts each further so that no piece holds more than 25,000
//! code points of one kind in a row, white space or not. A cut changes the ids around it, so the cuts belong to the
//! format. Counting starts anew at every cut. Fact: the model repositories' `tokenization_kimi.py`.

/// Code points in a window.
const WINDOW: usize = 400_000;

/// Code points of one kind, white space or not, that may follow each other.
const LONGEST_RUN: usize = 25_000;

/// The pieces of `text` between the reference's cuts; one piece, the text itself, where nothing is that long.
#[must_use]
pub fn pieces(text: &str) -> Pieces<'_> {
    Pieces {
        rest: text,
        window_left: WINDOW,
    }
}

/// Whether `text` is too short to be cut, whatever it holds.
#[must_use]
pub fn is_never_cut(text: &str) -> bool {
    text.len() <= LONGEST_RUN
}

/// Iterator over the pieces between cuts.
pub struct Pieces<'t> {
    rest: &'t str,
    window_left: usize,
}

impl<'t> Iterator for Pieces<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        if self.rest.is_empty() {
            return None;
        }
        let window = self.window_end();
        if !may_have_long_run(&self.rest.as_bytes()[..window]) {
            self.window_left = WINDOW;
            return Some(self.cut(window));
        }
        let mut run = 0;
        let mut run_is_space = None;
        for (at, char) in self.rest.char_indices() {
            if self.window_left == 0 {
                self.window_left = WINDOW;
                return Some(self.cut(at));
            }
            let is_space = Some(is_python_space(char));
            if run_is_space == is_space {
                run += 1;
                if run > LONGEST_RUN {
                    return Some(self.cut(at));
                }
            } else {
                run = 1;
                run_is_space = is_space;
            }
            self.window_left -= 1;
        }
        Some(std::mem::take(&mut self.rest))
    }
}

impl<'t> Pieces<'t> {
    /// Where the window ends, or the text.
    fn window_end(&self) -> usize {
        if self.rest.len() <= self.window_left {
            return self.rest.len();
        }
        let mut chars = self.rest.chars();
        // Skips without decoding.
        if let Some(last) = self.window_left.checked_sub(1) {
            chars.nth(last);
        }
        self.rest.len() - chars.as_str().len()
    }

    fn cut(&mut self, at: usize) -> &'t str {
        let (piece, rest) = self.rest.split_at(at);
        self.rest = rest;
        piece
    }
}

/// False only if no more than [`LONGEST_RUN`] code points of one kind follow each other. Looks at a few bytes of
/// ordinary text: a run that long would fill one of these stretches, and one byte of each kind proves that none does.
fn may_have_long_run(text: &[u8]) -> bool {
    text.chunks_exact(LONGEST_RUN / 2).any(|stretch| {
        let is_space = |byte: u8| is_python_space(char::from(byte));
        let mut ascii = stretch.iter().copied().filter(u8::is_ascii);
        let first = ascii.next().map(is_space);
        first.is_none_or(|first| ascii.all(|byte| is_space(byte) == first))
    })
}

/// Python's `str.isspace`: Unicode white space and the four separators U+001C to U+001F.
fn is_python_space(char: char) -> bool {
    char.is_whitespace() || matches!(char, '\u{1c}'..='\u{1f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(text: &str) -> Vec<usize> {
        assert_eq!(pieces(text).collect::<String>(), text);
        pieces(text).map(|piece| piece.chars().count()).collect()
    }

    #[test]
    fn a_run_is_cut_after_25_000_code_points() {
        assert_eq!(lengths(""), [0; 0]);
        assert_eq!(lengths(&"a".repeat(25_000)), [25_000]);
        assert_eq!(lengths(&"a".repeat(25_001)), [25_000, 1]);
        assert_eq!(lengths(&"é".repeat(50_001)), [25_000, 25_000, 1]);
        assert_eq!(
            lengths(&format!("{} {}", "a".repeat(20_000), "a".repeat(20_000))),
            [40_001]
        );
    }

    #[test]
    fn the_separators_below_the_blank_are_white_space_to_python() {
        assert_eq!(lengths(&"a\u{1c}".repeat(20_000)), [40_000]);
        assert_eq!(lengths(&" \u{1c}".repeat(20_000)), [25_000, 15_000]);
        assert_eq!(lengths(&" \u{85}".repeat(20_000)), [25_000, 15_000]);
        assert_eq!(lengths(&"a\u{200b}".repeat(20_000)), [25_000, 15_000]);
    }

    /// Code point by code point, as the reference does it.
    fn plain_lengths(text: &str) -> Vec<usize> {
        let mut lengths = Vec::new();
        let chars: Vec<char> = text.chars().collect();
        for window in chars.chunks(WINDOW) {
            let mut start = 0;
            let mut run = 0;
            for (at, &char) in window.iter().enumerate() {
                let is_same = at > 0 && is_python_space(window[at - 1]) == is_python_space(char);
                run = if is_same { run + 1 } else { 1 };
                if run > LONGEST_RUN {
                    lengths.push(at - start);
                    start = at;
                    run = 1;
                }
            }
            lengths.push(window.len() - start);
        }
        lengths
    }

    #[test]
    fn a_glance_finds_every_run_that_is_cut() {
        let units = ["a", " ", "é", "\u{3000}", "word ", "中文 ", "\u{1c}x"];
        for unit in units {
            for len in [
                12_499, 12_500, 24_999, 25_000, 25_001, 37_500, 130_000, 401_000,
            ] {
                for (before, after) in [("", ""), ("x ", " y"), ("中", "中"), (" ", " ")] {
                    let run = unit.repeat(len / unit.chars().count());
                    let text = format!("{before}{run}{after}{}", "some words\n".repeat(7));
                    assert_eq!(
                        lengths(&text),
                        plain_lengths(&text),
                        "{unit:?} {len} {before:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn counting_starts_anew_in_every_window() {
        let words = "word ".repeat(80_001);
        assert_eq!(lengths(&words), [400_000, 5]);
        let across = format!("{}{}", "ab ".repeat(130_000), "x".repeat(30_000));
        assert_eq!(lengths(&across), [400_000, 20_000]);
    }
}
