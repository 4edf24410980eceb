//! Long texts that come again in one call: system prompts, tool declarations, the first messages of few-shot prompts.
//!
//! A text is kept when it comes for the second time, so that the many that come once cost no copy. Nothing is kept from
//! call to call: a text is worth its memory only beside others of the same data set.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};

use crate::tokenizer::{Spelled, TokenId};

/// Bytes of text below which encoding is not dearer than looking here.
const LEAST_LEN: usize = 1 << 10;

/// Bytes of texts and ids in one generation; there are two.
const GENERATION_LEN: usize = 1 << 20;

/// How many texts that came once are remembered, by their marks.
const MARKS: usize = 1 << 10;

/// Long texts, with the ids that they were encoded to. Bounded, and exact: texts are compared byte for byte.
#[derive(Default)]
pub(super) struct KnownTexts {
    /// The marks of texts that came, each in the place that it names; empty before the first one.
    came: Vec<u64>,
    newer: Generation,
    /// What was not asked for since `newer` began goes when that is full.
    older: Generation,
}

#[derive(Default)]
struct Generation {
    texts: FxHashMap<u64, KnownText>,
    len: usize,
}

struct KnownText {
    text: Box<str>,
    spelled: Spelled,
    ids: Box<[TokenId]>,
    special_tokens: usize,
}

/// What to do with a text.
pub(super) enum Known<'c> {
    /// Its ids, and how many special tokens it spells out.
    Ids(&'c [TokenId], usize),
    /// It came before, and is to be kept under this mark.
    Again(u64),
    /// It is short, or comes for the first time.
    New,
}

impl KnownTexts {
    /// What is known of a text.
    pub(super) fn get(&mut self, text: &str, spelled: Spelled) -> Known<'_> {
        if text.len() < LEAST_LEN {
            return Known::New;
        }
        let mark = mark(text);
        let came_before = self.came_before(mark);
        if let Some(known) = self.older.take(mark, text, spelled) {
            self.keep(mark, known);
        }
        match self.newer.get(mark, text, spelled) {
            Some(known) => Known::Ids(&known.ids, known.special_tokens),
            None if came_before => Known::Again(mark),
            None => Known::New,
        }
    }

    /// Keeps what a text was encoded to.
    pub(super) fn insert(
        &mut self,
        mark: u64,
        text: &str,
        spelled: Spelled,
        ids: &[TokenId],
        special_tokens: usize,
    ) {
        if text.len() + size_of_val(ids) > GENERATION_LEN / 2 {
            return;
        }
        let known = KnownText {
            text: text.into(),
            spelled,
            ids: ids.into(),
            special_tokens,
        };
        self.keep(mark, known);
    }

    fn keep(&mut self, mark: u64, known: KnownText) {
        if self.newer.len + known.len() > GENERATION_LEN {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.len += known.len();
        if let Some(replaced) = self.newer.texts.insert(mark, known) {
            self.newer.len -= replaced.len();
        }
    }

    /// Whether a text of this mark came before, as far as is remembered. From now on it did.
    fn came_before(&mut self, mark: u64) -> bool {
        if self.came.is_empty() {
            self.came = vec![0; MARKS];
        }
        let place = &mut self.came[mark as usize % MARKS];
        std::mem::replace(place, mark) == mark
    }
}

impl Generation {
    fn get(&self, mark: u64, text: &str, spelled: Spelled) -> Option<&KnownText> {
        let known = self.texts.get(&mark)?;
        (known.spelled == spelled && *known.text == *text).then_some(known)
    }

    fn take(&mut self, mark: u64, text: &str, spelled: Spelled) -> Option<KnownText> {
        self.get(mark, text, spelled)?;
        self.texts.remove(&mark)
    }
}

impl KnownText {
    fn len(&self) -> usize {
        self.text.len() + size_of_val(&*self.ids)
    }
}

/// A hash of the length and of some bytes, since most texts come once and reading all of each would be for nothing. Two
/// texts may have the same; only the later one is then kept.
fn mark(text: &str) -> u64 {
    const SAMPLES: usize = 8;
    const SAMPLE_LEN: usize = 16;
    let bytes = text.as_bytes();
    let mut hasher = FxHasher::default();
    bytes.len().hash(&mut hasher);
    for sample in 0..SAMPLES {
        let start = (bytes.len() - SAMPLE_LEN) * sample / (SAMPLES - 1);
        hasher.write(&bytes[start..start + SAMPLE_LEN]);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks for a text as the tokenizer does; its ids are its bytes. Returns whether it was known.
    fn ask(known: &mut KnownTexts, text: &str, spelled: Spelled) -> bool {
        let ids: Vec<TokenId> = text.bytes().map(TokenId::from).collect();
        match known.get(text, spelled) {
            Known::Ids(found, special_tokens) => {
                assert_eq!((found, special_tokens), (&*ids, 3));
                return true;
            }
            Known::Again(mark) => known.insert(mark, text, spelled, &ids, 3),
            Known::New => {}
        }
        assert!(known.newer.len <= GENERATION_LEN && known.older.len <= GENERATION_LEN);
        false
    }

    fn text(number: usize) -> String {
        format!("{number:08}").repeat(LEAST_LEN / 8)
    }

    #[test]
    fn a_text_is_known_when_it_comes_for_the_third_time() {
        let mut known = KnownTexts::default();
        for spelled in [Spelled::AsText, Spelled::AsTokens] {
            let times = [false, false, true, true];
            // The mark is that of both, and the later one takes the place.
            let skipped = usize::from(spelled == Spelled::AsTokens);
            for &is_known in &times[skipped..] {
                assert_eq!(ask(&mut known, &text(1), spelled), is_known);
            }
        }
        let short = &text(1)[1..];
        assert!((0..4).all(|_| !ask(&mut known, short, Spelled::AsText)));
    }

    #[test]
    fn texts_of_the_same_mark_are_told_apart() {
        let mut known = KnownTexts::default();
        let a = "x".repeat(2 * LEAST_LEN);
        let mut b = a.clone();
        b.replace_range(50..51, "y");
        assert_eq!(mark(&a), mark(&b));
        for _ in 0..3 {
            ask(&mut known, &a, Spelled::AsText);
        }
        assert!(!ask(&mut known, &b, Spelled::AsText));
        assert!(ask(&mut known, &b, Spelled::AsText));
        assert!(!ask(&mut known, &a, Spelled::AsText));
    }

    #[test]
    fn memory_is_bounded_and_what_is_asked_for_often_stays() {
        let mut known = KnownTexts::default();
        let favourite = text(0);
        ask(&mut known, &favourite, Spelled::AsText);
        ask(&mut known, &favourite, Spelled::AsText);
        for number in 1..2000 {
            for _ in 0..2 {
                ask(&mut known, &text(number), Spelled::AsText);
            }
            assert!(ask(&mut known, &favourite, Spelled::AsText), "{number}");
        }
        assert!(!ask(&mut known, &text(1), Spelled::AsText));
        assert!(ask(&mut known, &text(1999), Spelled::AsText));
        let huge = "x".repeat(GENERATION_LEN / 8);
        assert!((0..4).all(|_| !ask(&mut known, &huge, Spelled::AsText)));
    }
}
