//! The text of a very long conversation, encoded by several threads.
//!
//! Runs are encoded apart from each other in any case, and so are the parts of a run between the reference's cuts and
//! named special tokens. Such parts, in groups, are the tasks. What comes out is what one thread would have written.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::chat::segment::{Body, Segment, Segments};
use crate::encoder::crew::{Crew, Job};
use crate::tokenizer::{Scratch, Spelled, TokenId, Tokenizer};

/// Bytes of text from which a conversation is shared. Sharing costs some ten microseconds, encoding this some
/// milliseconds.
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
    encoded: Vec<Mutex<EncodedTask>>,
}

/// Threads that help with a long text.
pub(crate) trait Helpers<'e> {
    /// Encodes it, with the help of whoever is idle.
    fn share(&self, text: LongText<'e>, scratch: &mut Scratch) -> LongText<'e>;
}

impl<'e, T> Helpers<'e> for Crew<T, LongText<'e>> {
    fn share(&self, text: LongText<'e>, scratch: &mut Scratch) -> LongText<'e> {
        Crew::share(self, text, scratch)
    }
}

/// A part of a run that is encoded on its own, as a place in the text of the segments.
struct Part {
    run: u32,
    text: Range<usize>,
}

/// What became of a task: the ids of its parts end to end, so that a conversation of many short messages does not cost
/// memory of its own for each.
#[derive(Default)]
struct EncodedTask {
    ids: Vec<TokenId>,
    parts: Vec<EncodedPart>,
}

impl EncodedTask {
    /// Room for what will become of a task. The thread that posts the task makes it, which also frees it and uses it
    /// again; memory of a thread that helps would be new in every call.
    fn of(task: &[Part]) -> Self {
        let text_len: usize = task.iter().map(|part| part.text.len()).sum();
        Self {
            ids: Vec::with_capacity(text_len / 3),
            parts: Vec::with_capacity(task.len()),
        }
    }
}

struct EncodedPart {
    run: u32,
    /// Where its ids end in those of the task.
    end: usize,
    /// Special tokens that its text spelled out.
    control_strings: usize,
}

/// The ids of a long text, taken run by run.
pub(super) struct EncodedText {
    tasks: std::vec::IntoIter<Mutex<EncodedTask>>,
    task: EncodedTask,
    /// The next part of `task`, and where its ids start.
    part: usize,
    start: usize,
}

impl EncodedText {
    /// Appends the ids of a run, which must be the next one with text. Returns how many special tokens the text spelled
    /// out.
    pub(super) fn append_run_to(&mut self, run: u32, ids: &mut Vec<TokenId>) -> usize {
        let mut control_strings = 0;
        loop {
            if let Some(part) = self.task.parts.get(self.part) {
                if part.run != run {
                    return control_strings;
                }
                ids.extend_from_slice(&self.task.ids[self.start..part.end]);
                control_strings += part.control_strings;
                self.start = part.end;
                self.part += 1;
            } else if let Some(task) = self.tasks.next() {
                self.task = task.into_inner().unwrap_or_else(PoisonError::into_inner);
                (self.part, self.start) = (0, 0);
            } else {
                return control_strings;
            }
        }
    }
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
            let run = run[0].run;
            tokenizer.for_each_part(segments.text(text.clone()), spelled, |part| {
                let part = text.start + part.start..text.start + part.end;
                if room == 0 {
                    tasks.push(Vec::new());
                    room = TASK_LEN;
                }
                room = room.saturating_sub(part.len());
                if let Some(task) = tasks.last_mut() {
                    task.push(Part { run, text: part });
                }
            });
        }
        Self {
            tokenizer,
            segments,
            spelled,
            next: AtomicUsize::new(0),
            finished: AtomicUsize::new(0),
            encoded: tasks
                .iter()
                .map(|task| Mutex::new(EncodedTask::of(task)))
                .collect(),
            tasks,
        }
    }

    /// The segments again, and the ids.
    pub(super) fn into_encoded(self) -> (Segments, EncodedText) {
        let encoded = EncodedText {
            tasks: self.encoded.into_iter(),
            task: EncodedTask::default(),
            part: 0,
            start: 0,
        };
        (self.segments, encoded)
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
    type Scratch = Scratch;

    fn do_one(&self, scratch: &mut Scratch) -> bool {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        let Some(task) = self.tasks.get(index) else {
            return false;
        };
        let _finished = Finished(&self.finished);
        let mut encoded = self.encoded[index]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for part in task {
            let text = self.segments.text(part.text.clone());
            let control_strings =
                self.tokenizer
                    .encode_part_into(text, self.spelled, scratch, &mut encoded.ids);
            let end = encoded.ids.len();
            encoded.parts.push(EncodedPart {
                run: part.run,
                end,
                control_strings,
            });
        }
        true
    }

    fn is_done(&self) -> bool {
        self.finished.load(Ordering::Acquire) >= self.tasks.len()
    }
}
