//! One run from its first chunk to its last: read, encode, write, each ahead of the next.

use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::chat::json::Value;
use crate::dataset::columns::{Columns, KeptColumn, KeptKind};
use crate::dataset::folder::Folder;
use crate::dataset::manifest::Manifest;
use crate::dataset::reader::{Chunk, Chunks, Line};
use crate::dataset::record::{Outcome, Recording};
use crate::dataset::shape::Layout;
use crate::dataset::sink::{Destination, Sink};
use crate::dataset::target::Form;
use crate::dataset::{PrepareOptions, Progress};
use crate::encoder::crew::Crew;
use crate::encoder::long_text::{Helpers, LongText};
use crate::encoder::{Encoder, batch};
use crate::error::{Error, ErrorKind, Result};

/// How long `report` may have to wait for its next call when an input has nothing to give, as a pipe or a network disk.
const LONGEST_SILENCE: Duration = Duration::from_millis(200);

/// One run, with all that was decided before it.
pub(super) struct Run<'a> {
    pub encoder: &'a Encoder,
    pub options: &'a PrepareOptions<'a>,
    pub inputs: &'a [PathBuf],
    pub columns: &'a Columns,
    pub form: &'a Form,
}

/// What the first records of files have told.
#[derive(Clone, Default)]
pub(super) struct Seen {
    /// How each file up to now holds its conversations.
    pub layouts: Vec<Layout>,
    /// The types of the columns that are kept, by the first file with records; empty before it.
    pub kept: Vec<KeptColumn>,
}

/// A chunk on its way to whoever takes it.
pub(super) struct Encoded {
    pub chunk: Chunk,
    pub outcomes: Vec<Outcome>,
    pub seen: Seen,
}

/// How far the writer has come.
#[derive(Default)]
struct Written {
    records: AtomicU64,
    failed: AtomicU64,
    tokens: AtomicU64,
}

impl Run<'_> {
    /// Runs from where the manifest says to the end, and gives back the manifest of all.
    pub(super) fn all(
        &self,
        folder: &Folder,
        manifest: Manifest,
        mut report: impl FnMut(&Progress) -> Result<()>,
    ) -> Result<Manifest> {
        let from = manifest.progress.clone().unwrap_or_default();
        let sizes: Vec<u64> = manifest
            .inputs
            .iter()
            .map(|input| input.digest.bytes)
            .collect();
        let taken = Arc::new(AtomicU64::new(sizes.iter().take(from.position.file).sum()));
        let mut seen = Seen {
            layouts: from.layouts,
            kept: manifest.kept.clone(),
        };
        let paths = self.inputs.to_vec();
        let chunks = Chunks::new(paths, from.position, from.read, Arc::clone(&taken));
        let destination = Destination {
            inputs: self.inputs,
            folder: folder.path(),
            form: self.form,
            columns: self.columns,
            on_error: self.options.on_error,
        };
        let mut sink = Sink::open(destination, manifest)?;
        let written = Written::default();
        written.tell(&sink);
        let mut tell = || {
            report(&Progress {
                records: written.records.load(Ordering::Relaxed),
                failed: written.failed.load(Ordering::Relaxed),
                tokens: written.tokens.load(Ordering::Relaxed),
                bytes: taken.load(Ordering::Relaxed),
                total_bytes: sizes.iter().sum(),
            })
        };
        let outcome = thread::scope(|scope| {
            let (hand_over, encoded) = mpsc::sync_channel(1);
            let writer = scope.spawn(|| write_all(&mut sink, encoded, &written));
            let encoded = self.encode_all(chunks, &mut seen, &mut tell, |encoded| {
                hand_over.send(encoded).is_ok()
            });
            drop(hand_over);
            let wrote = writer
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            wrote.and(encoded)
        });
        match outcome.and_then(|()| tell()) {
            Ok(()) => sink.finish(),
            Err(error) => {
                sink.stop(folder);
                Err(error)
            }
        }
    }

    /// Encodes chunk after chunk, until there is none or nobody takes them.
    pub(super) fn encode_all(
        &self,
        mut chunks: Chunks,
        seen: &mut Seen,
        mut tell: impl FnMut() -> Result<()>,
        mut hand_over: impl FnMut(Encoded) -> bool,
    ) -> Result<()> {
        let (send, receive) = mpsc::sync_channel(1);
        // It ends when the channel closes, which is also how an error below stops it.
        let reader = thread::spawn(move || {
            while let Some(chunk) = chunks.next_chunk().transpose() {
                let is_last = chunk.is_err();
                if send.send(chunk).is_err() || is_last {
                    return;
                }
            }
        });
        let threads = batch::thread_count(self.options.num_threads, usize::MAX, || 0);
        let threads = NonZero::new(threads).unwrap_or(NonZero::<usize>::MIN);
        tell()?;
        loop {
            match receive.recv_timeout(LONGEST_SILENCE) {
                Ok(chunk) => {
                    let chunk = chunk?;
                    self.look_at(&chunk, seen)?;
                    let outcomes = self.encode(&chunk, &seen.layouts, threads);
                    let seen = seen.clone();
                    if !hand_over(Encoded {
                        chunk,
                        outcomes,
                        seen,
                    }) {
                        // The writer has failed, and says how.
                        return Ok(());
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            tell()?;
        }
        reader.join().map_err(|_| {
            let message = "the thread that reads the inputs ended early";
            Error::new(ErrorKind::Io, message)
        })
    }

    /// Looks at the first records of files that begin in this chunk.
    fn look_at(&self, chunk: &Chunk, seen: &mut Seen) -> Result<()> {
        for lines in chunk.lines.chunk_by(|a, b| a.file == b.file) {
            let file = lines[0].file;
            // An empty file has no line in any chunk.
            while seen.layouts.len() <= file {
                let first = if seen.layouts.len() == file {
                    lines
                } else {
                    &[]
                };
                let in_file = |error: Error| error.in_file(self.inputs[file].display().to_string());
                let records = first_records(first).map_err(in_file)?;
                let objects = records.iter().filter_map(Value::as_object);
                let (shape, fields) = (self.options.shape, &self.options.fields);
                let layout = Layout::of(objects, shape, fields).map_err(in_file)?;
                seen.layouts.push(layout);
                if seen.kept.is_empty() && !records.is_empty() {
                    let objects = records.iter().filter_map(Value::as_object);
                    let kept = self.columns.kept.iter().map(|column| KeptColumn {
                        name: column.name.clone(),
                        kind: KeptKind::of(
                            objects
                                .clone()
                                .filter_map(|record| record.get(&column.name)),
                        ),
                    });
                    seen.kept = kept.collect();
                }
            }
        }
        Ok(())
    }

    /// What becomes of each line of a chunk.
    fn encode(&self, chunk: &Chunk, layouts: &[Layout], threads: NonZero<usize>) -> Vec<Outcome> {
        let lines = &chunk.lines;
        let recording = Recording {
            encoder: self.encoder,
            options: self.options.encode,
            format: self.form.format,
            columns: self.columns,
        };
        let text_len = || lines.iter().map(Line::len).sum();
        let threads = batch::thread_count(Some(threads), lines.len(), text_len);
        batch::ordered_map(
            lines.len(),
            threads,
            || self.encoder.checkout(),
            |scratch, crew: &Crew<(), LongText<'_>>, index| {
                let helpers = (threads > 1).then_some(crew as &dyn Helpers<'_>);
                let line = &lines[index];
                recording.encode_line(&layouts[line.file], line, scratch, helpers)
            },
            |scratch| scratch.tokenizer(),
        )
    }
}

impl Written {
    fn tell(&self, sink: &Sink<'_>) {
        let summary = sink.summary();
        self.records.store(summary.records, Ordering::Relaxed);
        self.failed.store(summary.all_failed(), Ordering::Relaxed);
        self.tokens.store(summary.tokens, Ordering::Relaxed);
    }
}

/// Writes what became of chunks, until no more come.
fn write_all(sink: &mut Sink<'_>, encoded: Receiver<Encoded>, written: &Written) -> Result<()> {
    for Encoded {
        chunk,
        outcomes,
        seen,
    } in encoded
    {
        sink.take_chunk(&chunk, outcomes, seen)?;
        written.tell(sink);
    }
    Ok(())
}

/// The first records of a file, which say what all of them are. Lines that cannot be read have no say in it.
fn first_records(lines: &[Line]) -> Result<Vec<Value<'_>>> {
    let mut texts = lines
        .iter()
        .take_while(|line| line.is_looked_at())
        .filter_map(|line| line.text.as_deref().ok())
        .skip_while(|text| text.trim_ascii().is_empty())
        .peekable();
    if texts
        .peek()
        .is_some_and(|text| text.trim_ascii_start().starts_with(b"["))
    {
        let message =
            "expected one record a line, found a list of all (`jq -c '.[]'` makes lines of it)";
        return Err(Error::new(ErrorKind::Json, message));
    }
    Ok(texts
        .filter_map(|text| Value::from_json(text).ok())
        .collect())
}
