//! Files to files: conversations in JSONL to training records, in constant memory.
//!
//! One thread reads the next chunk of lines and one writes the last, while the others encode the present one. Chunks
//! are written in order, so the output does not depend on the number of threads. Every line is accounted for: written,
//! skipped with a reason, or failed with file, line and path.

mod inputs;
mod reader;
mod record;
pub mod shape;
mod summary;
mod writer;

use std::borrow::Cow;
use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use reader::{Line, Lines};
use record::{Outcome, encode_line};
use shape::{Field, Layout, Shape};
pub use summary::Summary;
use writer::PendingFile;

use crate::chat::json::{Object, Spacing, Value};
use crate::chat::validation::Finding;
use crate::encoder::batch;
use crate::encoder::crew::Crew;
use crate::encoder::long_text::{Helpers, LongText};
use crate::encoder::{EncodeOptions, Encoder};
use crate::error::{Error, ErrorKind, Place, Result};

/// The records, in the output folder.
pub const RECORDS_FILE: &str = "tokenized_data.jsonl";

/// The lines that failed and why, in the output folder; not there if none failed.
pub const REJECTED_FILE: &str = "rejected.jsonl";

/// What is odd in records that were written, in the output folder; not there if nothing is.
pub const FINDINGS_FILE: &str = "findings.jsonl";

/// How much text a chunk holds before it is handed on: enough to keep the threads busy, little enough to hold a few:
/// one read, one encoded, one written, and one waiting at either end.
const CHUNK_BYTES: usize = 8 << 20;

/// How many of the first records say which shape all of them have.
const LOOKED_AT: usize = 100;

/// How long `report` may have to wait for its next call when an input has nothing to give, as a pipe or a network disk.
const LONGEST_SILENCE: Duration = Duration::from_millis(200);

/// What to prepare, and how.
#[derive(Clone, Debug)]
pub struct PrepareOptions<'v> {
    /// JSONL files, plain or compressed; folders of such and patterns for them; `-` for standard input.
    pub inputs: Vec<PathBuf>,
    /// The folder for the records.
    pub output: PathBuf,
    /// The shape of the records; found by looking at the first ones if None.
    pub shape: Option<Shape>,
    /// The names that fields have in the records, for those that are not found under their usual ones.
    pub fields: Vec<(Field, String)>,
    /// What to render and what to train.
    pub encode: EncodeOptions<'v>,
    /// Threads that encode; all that the machine offers if None.
    pub num_threads: Option<NonZero<usize>>,
}

/// How far a job has come.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Lines done.
    pub records: u64,
    /// Tokens written.
    pub tokens: u64,
    /// Bytes of the inputs read, as they lie on disk.
    pub bytes: u64,
    /// Bytes of all inputs.
    pub total_bytes: u64,
}

/// Encodes every conversation of the inputs. The files in the output folder get their names only when all is written.
/// `report` is called after each chunk, and while there is none; an error from it ends the job and leaves nothing behind.
///
/// # Errors
/// [`ErrorKind::Io`] if an input is missing or the output cannot be written; whatever `report` returns. A line that
/// cannot be encoded is counted, not raised.
pub fn prepare(
    encoder: &Encoder,
    options: &PrepareOptions<'_>,
    mut report: impl FnMut(&Progress) -> Result<()>,
) -> Result<Summary> {
    let inputs = inputs::expand(&options.inputs)?;
    let mut progress = Progress {
        total_bytes: inputs::total_bytes(&inputs)?,
        ..Progress::default()
    };
    encoder.check(options.encode)?;
    refuse_clashes(&inputs, &options.output)?;
    let sink = Sink::create(&inputs, &options.output)?;
    let threads = batch::thread_count(options.num_threads, usize::MAX, || 0);
    let threads = NonZero::new(threads).unwrap_or(NonZero::<usize>::MIN);

    let taken = Arc::new(AtomicU64::new(0));
    let lines = Lines::new(inputs.clone(), Arc::clone(&taken));
    let (send, chunks) = mpsc::sync_channel::<Vec<Line>>(1);
    // The reader ends when the channel closes, which is also how an error below stops it.
    let reader = thread::spawn(move || {
        for chunk in chunked(lines) {
            if send.send(chunk).is_err() {
                return;
            }
        }
    });
    let written = Written::default();
    let mut tell = || {
        progress.records = written.records.load(Ordering::Relaxed);
        progress.tokens = written.tokens.load(Ordering::Relaxed);
        progress.bytes = taken.load(Ordering::Relaxed);
        report(&progress)
    };
    tell()?;
    let sink = thread::scope(|scope| {
        let (hand_over, outcomes) = mpsc::sync_channel(1);
        let writer = scope.spawn(|| write_all(sink, outcomes, &written));
        let mut layouts = Vec::new();
        loop {
            match chunks.recv_timeout(LONGEST_SILENCE) {
                Ok(chunk) => {
                    add_layouts(&mut layouts, &chunk, &inputs, options)?;
                    let outcomes = encode_chunk(encoder, options, &layouts, &chunk, threads);
                    if hand_over.send((chunk, outcomes)).is_err() {
                        // The writer has failed, and says how.
                        break;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            tell()?;
        }
        drop(hand_over);
        let sink = writer
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        sink.map(|sink| sink.with_layouts(layouts))
    })?;
    if reader.join().is_err() {
        return Err(Error::new(
            ErrorKind::Io,
            "the thread that reads the inputs ended early",
        ));
    }
    tell()?;
    sink.finish()
}

/// How far the writer has come.
#[derive(Default)]
struct Written {
    records: AtomicU64,
    tokens: AtomicU64,
}

/// Adds the layouts of the files of which this chunk has the first lines.
fn add_layouts(
    layouts: &mut Vec<Layout>,
    chunk: &[Line],
    inputs: &[PathBuf],
    options: &PrepareOptions<'_>,
) -> Result<()> {
    for lines in chunk.chunk_by(|a, b| a.file == b.file) {
        let file = lines[0].file;
        // An empty file has no line in any chunk.
        while layouts.len() <= file {
            let first = if layouts.len() == file { lines } else { &[] };
            let layout = layout_of(first, options)
                .map_err(|error| error.in_file(inputs[file].display().to_string()))?;
            layouts.push(layout);
        }
    }
    Ok(())
}

/// The layout of a file, by its first records. Lines that cannot be read have no say in it.
fn layout_of(lines: &[Line], options: &PrepareOptions<'_>) -> Result<Layout> {
    let mut texts = lines
        .iter()
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
    let records: Vec<Value<'_>> = texts
        .filter_map(|text| Value::from_json(text).ok())
        .take(LOOKED_AT)
        .collect();
    let records = records.iter().filter_map(Value::as_object);
    Layout::of(records, options.shape, &options.fields)
}

/// What becomes of each line of a chunk.
fn encode_chunk(
    encoder: &Encoder,
    options: &PrepareOptions<'_>,
    layouts: &[Layout],
    chunk: &[Line],
    threads: NonZero<usize>,
) -> Vec<Outcome> {
    let text_len = || chunk.iter().map(Line::len).sum();
    let threads = batch::thread_count(Some(threads), chunk.len(), text_len);
    batch::ordered_map(
        chunk.len(),
        threads,
        || encoder.checkout(),
        |scratch, crew: &Crew<(), LongText<'_>>, index| {
            let helpers = (threads > 1).then_some(crew as &dyn Helpers<'_>);
            let line = &chunk[index];
            let layout = &layouts[line.file];
            encode_line(encoder, options.encode, layout, line, scratch, helpers)
        },
        |scratch| scratch.tokenizer(),
    )
}

/// Writes what became of chunks, until no more come.
fn write_all<'o>(
    mut sink: Sink<'o>,
    outcomes: Receiver<(Vec<Line>, Vec<Outcome>)>,
    written: &Written,
) -> Result<Sink<'o>> {
    for (chunk, outcomes) in outcomes {
        for (line, outcome) in chunk.iter().zip(outcomes) {
            sink.take(line, outcome)?;
        }
        let Summary {
            records, tokens, ..
        } = sink.summary;
        written.records.store(records, Ordering::Relaxed);
        written.tokens.store(tokens, Ordering::Relaxed);
    }
    Ok(sink)
}

/// Where outcomes go: the two files, and the count.
struct Sink<'o> {
    inputs: &'o [PathBuf],
    output: &'o Path,
    records: PendingFile,
    rejected: Option<PendingFile>,
    findings: Option<PendingFile>,
    summary: Summary,
}

impl<'o> Sink<'o> {
    fn create(inputs: &'o [PathBuf], output: &'o Path) -> Result<Self> {
        Ok(Self {
            inputs,
            output,
            records: PendingFile::create(output.join(RECORDS_FILE))?,
            rejected: None,
            findings: None,
            summary: Summary::default(),
        })
    }

    fn with_layouts(mut self, layouts: Vec<Layout>) -> Self {
        for layout in layouts {
            let same = self.summary.layouts.iter_mut();
            match same.into_iter().find(|(known, _)| *known == layout) {
                Some((_, files)) => *files += 1,
                None => self.summary.layouts.push((layout, 1)),
            }
        }
        self
    }

    fn take(&mut self, line: &Line, outcome: Outcome) -> Result<()> {
        self.summary.records += 1;
        match outcome {
            Outcome::Written(record) => {
                self.records.write(&record.lines)?;
                self.summary.count_written(&record);
                self.take_findings(line, &record.findings)?;
            }
            Outcome::Skipped(reason) => *self.summary.skipped.entry(reason).or_default() += 1,
            Outcome::Failed(error) => {
                let error = error
                    .in_file(self.inputs[line.file].display().to_string())
                    .on_line(line.number);
                let kind = ("kind", error.kind().as_str());
                let text = report_line(error.place(), kind, error.message());
                let path = self.output.join(REJECTED_FILE);
                opened(&mut self.rejected, path)?.write(text.as_bytes())?;
                self.summary.count_failed(error);
            }
        }
        Ok(())
    }

    fn take_findings(&mut self, line: &Line, findings: &[Finding]) -> Result<()> {
        let mut codes: Vec<&str> = Vec::new();
        for finding in findings {
            let code = finding.code().as_str();
            let place = finding.place().clone();
            let place = place
                .in_file(self.inputs[line.file].display().to_string())
                .on_line(line.number);
            let text = report_line(&place, ("code", code), finding.message());
            let path = self.output.join(FINDINGS_FILE);
            opened(&mut self.findings, path)?.write(text.as_bytes())?;
            if !codes.contains(&code) {
                codes.push(code);
                *self.summary.findings.entry(code).or_default() += 1;
            }
        }
        Ok(())
    }

    /// Gives the files their names when all are on disk, the records last: where they are, the reports on them are too.
    fn finish(self) -> Result<Summary> {
        let records = self.records.synced()?;
        let reports = [
            (self.rejected, REJECTED_FILE),
            (self.findings, FINDINGS_FILE),
        ];
        let synced = |(file, name): (Option<PendingFile>, _)| {
            Ok((file.map(PendingFile::synced).transpose()?, name))
        };
        let reports = reports.map(synced);
        for report in reports {
            match report? {
                (Some(file), _) => file.persist()?,
                (None, name) => remove_stale(&self.output.join(name))?,
            }
        }
        records.persist()?;
        Ok(self.summary)
    }
}

/// A report, made when there is something to write in it.
fn opened(file: &mut Option<PendingFile>, path: PathBuf) -> Result<&mut PendingFile> {
    match file {
        Some(file) => Ok(file),
        None => Ok(file.insert(PendingFile::create(path)?)),
    }
}

/// An input that is also an output would be lost.
fn refuse_clashes(inputs: &[PathBuf], output: &Path) -> Result<()> {
    let outputs = [RECORDS_FILE, REJECTED_FILE, FINDINGS_FILE].map(|name| output.join(name));
    let outputs: Vec<_> = outputs
        .iter()
        .filter_map(|path| path.canonicalize().ok())
        .collect();
    let is_output = |path: &&PathBuf| {
        path.canonicalize()
            .is_ok_and(|path| outputs.contains(&path))
    };
    match inputs.iter().find(is_output) {
        None => Ok(()),
        Some(path) => {
            let message = "this input is also an output: choose another folder";
            Err(Error::new(ErrorKind::Option, message).in_file(path.display().to_string()))
        }
    }
}

/// A failure report of an earlier run would contradict this one's records.
fn remove_stale(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            let message = format!("cannot remove the report of an earlier run: {error}");
            Err(Error::new(ErrorKind::Io, message).in_file(path.display().to_string()))
        }
        _ => Ok(()),
    }
}

fn chunked(mut lines: Lines) -> impl Iterator<Item = Vec<Line>> {
    std::iter::from_fn(move || {
        let mut chunk = Vec::new();
        let mut bytes = 0;
        while bytes < CHUNK_BYTES {
            let Some(line) = lines.next() else { break };
            // An empty line takes memory too.
            bytes += line.len() + 64;
            chunk.push(line);
        }
        (!chunk.is_empty()).then_some(chunk)
    })
}

/// A place, what was found there, and of which kind, as one line of JSON.
fn report_line(place: &Place, (key, kind): (&'static str, &str), message: &str) -> String {
    let string = |text: &str| Value::String(Cow::Owned(text.to_owned()));
    let line = place.line().map(u64::cast_signed);
    let entries = [
        ("file", place.file().map_or(Value::Null, string)),
        ("line", line.map_or(Value::Null, Value::Int)),
        ("path", string(&place.path())),
        (key, string(kind)),
        ("message", string(message)),
    ];
    let entries = entries
        .into_iter()
        .map(|(key, value)| (Cow::Borrowed(key), value))
        .collect();
    let mut line = String::new();
    Value::Object(Object::from_entries(entries)).write_json(Spacing::Spaced, &mut line);
    line.push('\n');
    line
}
