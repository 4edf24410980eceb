//! The text of a very long conversation, encoded by several threads.
//!
//! Runs are encoded apart from each other in any case, and so are the parts of a run between the reference's cuts and named
//! special tokens. Such parts, in groups, are the tasks. What comes out is what one thread would have written.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::chat::segment::{Body, Segment, Segments};
use crate::encoder::crew::Job;
use crate::tokenizer::{Scratch, Spelled, TokenId, Tokenizer};

/// Bytes of text from which a conversation is shared. Sharing costs some ten microseconds, encoding this some milliseconds.
pub(super) const LEAST_SHARED: usize = 1 << 19;

/// About how many bytes of text a task holds: little enough that all threads end at nearly the same time.
const TASK_LEN: usize = 1 << 16;

/// The tasks of one conversation.
pub(crate) struct LongText<'e> {
    tokenizer: &'e Tokenizer,
    segments: Segments,
    spelled: Spelled,
    tasks: Vec<Vec<Part>>,
    next: AtomicUsize,
    finished: AtomicUsize,
    encoded: Vec<Mutex<Vec<EncodedPart>>>,
}

/// A part of a run that is encoded on its own, as a place in the text of the segments.
struct Part {
    run: u32,
    text: Range<usize>,
}

/// What became of a part.
pub(super) struct EncodedPart {
    /// The run that it belongs to.
    pub(super) run: u32,
    pub(super) ids: Vec<TokenId>,
    /// Special tokens that its text spelled out.
    pub(super) control_strings: usize,
}

/// The text of a run, if it is one of text.
pub(super) fn text_of_run(run: &[Segment]) -> Option<Range<usize>> {
    match (&run.first()?.body, &run.last()?.body) {
        (Body::Text(first), Body::Text(last)) => Some(first.start..last.end),
        _ => None,
    }
}

impl<'e> LongText<'e> {
    pub(super) fn new(tokenizer: &'e Tokenizer, segments: Segments, spelled: Spelled) -> Self {
        let mut tasks: Vec<Vec<Part>> = Vec::new();
        let mut room = 0_usize;
        for run in segments.runs() {
            let Some(text) = text_of_run(run) else {
                continue;
            };
            for part in tokenizer.parts(segments.text(text.clone()), spelled) {
                let part = text.start + part.start..text.start + part.end;
                if room == 0 {
                    tasks.push(Vec::new());
                    room = TASK_LEN;
                }
                room = room.saturating_sub(part.len());
                if let Some(task) = tasks.last_mut() {
                    let run = run[0].run;
                    task.push(Part { run, text: part });
                }
            }
        }
        Self {
            tokenizer,
            segments,
            spelled,
            next: AtomicUsize::new(0),
            finished: AtomicUsize::new(0),
            encoded: tasks.iter().map(|_| Mutex::default()).collect(),
            tasks,
        }
    }

    /// The segments again, and the parts in their order.
    pub(super) fn into_parts(self) -> (Segments, impl Iterator<Item = EncodedPart>) {
        let encoded = self.encoded.into_iter();
        let parts =
            encoded.flat_map(|parts| parts.into_inner().unwrap_or_else(PoisonError::into_inner));
        (self.segments, parts)
    }
}

/// Counts a task as finished even if it panics, so that nobody waits for it for ever.
struct Finished<'c>(&'c AtomicUsize);

impl Drop for Finished<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Release);
    }
}

impl Job for LongText<'_> {
    type Tools = Scratch;

    fn do_one(&self, scratch: &mut Scratch) -> bool {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        let Some(task) = self.tasks.get(index) else {
            return false;
        };
        let _finished = Finished(&self.finished);
        let encode = |part: &Part| {
            let text = self.segments.text(part.text.clone());
            let mut ids = Vec::with_capacity(text.len() / 3);
            let control_strings =
                self.tokenizer
                    .encode_part_into(text, self.spelled, scratch, &mut ids);
            EncodedPart {
                run: part.run,
                ids,
                control_strings,
            }
        };
        let encoded = task.iter().map(encode).collect();
        *self.encoded[index]
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = encoded;
        true
    }

    fn is_done(&self) -> bool {
        self.finished.load(Ordering::Acquire) >= self.tasks.len()
    }
}
