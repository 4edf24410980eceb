//! Where outcomes go: shards, the lines that failed, what is odd, and the count of all. What is written so far is saved
//! now and then, so that a run that is killed goes on from there.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::chat::json::{Object, Spacing, Value};
use crate::chat::validation::Finding;
use crate::dataset::columns::{Columns, KeptColumn};
use crate::dataset::folder::Folder;
use crate::dataset::manifest::{Manifest, Progress, remove};
use crate::dataset::output_file::{NamedFile, OutputFile, write_whole};
use crate::dataset::reader::{Beginning, Chunk, Line, Position};
use crate::dataset::record::Outcome;
use crate::dataset::run::Seen;
use crate::dataset::shape::Layout;
use crate::dataset::shard::OpenShard;
use crate::dataset::summary::Summary;
#[cfg(feature = "parquet")]
use crate::dataset::table::folder;
use crate::dataset::target::Form;
#[cfg(feature = "parquet")]
use crate::dataset::target::Format;
use crate::dataset::{FINDINGS_FILE, OnError, REJECTED_FILE, REPORT_FILE};
use crate::error::{Error, ErrorKind, Place, Result};

/// The least time between two saves, and the share of the time that they may take.
const BETWEEN_SAVES: Duration = Duration::from_secs(1);
const SHARE_OF_SAVES: u32 = 20;

/// The bytes of a line that failed which its report holds.
const MOST_OF_A_REJECTED_LINE: usize = 1 << 16;

/// Where outcomes go.
pub(super) struct Sink<'o> {
    inputs: &'o [PathBuf],
    folder: &'o Path,
    form: &'o Form,
    columns: Columns,
    on_error: OnError,
    shard: Option<OpenShard>,
    rejected: Option<OutputFile>,
    findings: Option<OutputFile>,
    manifest: Manifest,
    position: Position,
    read: Option<Beginning>,
    layouts: Vec<Layout>,
    saved: Instant,
    pause: Duration,
}

/// What does not change while a sink takes outcomes.
#[derive(Clone, Copy)]
pub(super) struct Destination<'o> {
    pub inputs: &'o [PathBuf],
    pub folder: &'o Path,
    pub form: &'o Form,
    pub columns: &'o Columns,
    pub on_error: OnError,
}

impl<'o> Sink<'o> {
    /// A sink that goes on where the manifest says that the run is.
    pub(super) fn open(destination: Destination<'o>, mut manifest: Manifest) -> Result<Self> {
        let Destination {
            inputs,
            folder,
            form,
            columns,
            on_error,
        } = destination;
        let progress = manifest.progress.take().unwrap_or_default();
        let mut columns = columns.clone();
        if !manifest.kept.is_empty() {
            columns.kept.clone_from(&manifest.kept);
        }
        let reopen = |saved: &NamedFile| OutputFile::reopen(folder, saved);
        let shard = progress.shard.as_ref();
        Ok(Self {
            inputs,
            folder,
            form,
            columns,
            on_error,
            shard: shard
                .map(|saved| OpenShard::reopen(folder, saved))
                .transpose()?,
            rejected: progress.rejected.as_ref().map(reopen).transpose()?,
            findings: progress.findings.as_ref().map(reopen).transpose()?,
            manifest,
            position: progress.position,
            read: progress.read,
            layouts: progress.layouts,
            saved: Instant::now(),
            pause: BETWEEN_SAVES,
        })
    }

    /// What became of the lines so far.
    pub(super) fn summary(&self) -> &Summary {
        &self.manifest.summary
    }

    /// Takes what became of the lines of a chunk, with what was seen of the inputs up to its end.
    pub(super) fn take_chunk(
        &mut self,
        chunk: &Chunk,
        outcomes: Vec<Outcome>,
        seen: Seen,
    ) -> Result<()> {
        for layout in seen.layouts.iter().skip(self.layouts.len()) {
            self.manifest.summary.count_layout(layout);
        }
        self.layouts = seen.layouts;
        self.set_kept(seen.kept);
        for (file, digest) in &chunk.ended {
            self.manifest.inputs[*file].digest = digest.clone();
        }
        self.read.clone_from(&chunk.read);
        for (line, outcome) in chunk.lines.iter().zip(outcomes) {
            self.take(line, outcome)?;
            self.position = line.next;
            if self.is_full() {
                self.close_shard()?;
                self.save()?;
            }
        }
        if self.saved.elapsed() >= self.pause {
            self.save()?;
        }
        Ok(())
    }

    /// What the first records say of the columns that are kept.
    fn set_kept(&mut self, kept: Vec<KeptColumn>) {
        if !kept.is_empty() {
            self.columns.kept.clone_from(&kept);
            self.manifest.kept = kept;
        }
    }

    fn take(&mut self, line: &Line, outcome: Outcome) -> Result<()> {
        let outcome = match outcome {
            Outcome::Written(record) => {
                let shard = match &mut self.shard {
                    Some(shard) => shard,
                    None => self.shard.insert(OpenShard::create(
                        self.folder,
                        self.manifest.shards.len(),
                        self.form,
                        &self.columns,
                    )?),
                };
                match shard.push(&self.columns, &record) {
                    Ok(()) => Outcome::Written(record),
                    // Only whoever writes a table knows the types of its columns.
                    Err(error) if error.kind() == ErrorKind::Conversation => Outcome::Failed(error),
                    Err(error) => return Err(error),
                }
            }
            outcome => outcome,
        };
        match outcome {
            Outcome::Written(record) => {
                self.take_findings(line, &record.findings)?;
                self.manifest.summary.count_written(&record);
            }
            Outcome::Skipped(reason) => self.manifest.summary.count_skipped(reason),
            Outcome::Failed(error) => self.take_failed(line, error)?,
        }
        self.manifest.summary.records += 1;
        Ok(())
    }

    fn take_failed(&mut self, line: &Line, error: Error) -> Result<()> {
        let error = error.in_file(self.file_of(line)).on_line(line.number);
        if self.on_error == OnError::Raise {
            return Err(error);
        }
        let raw = line.text.as_deref().unwrap_or_default();
        let held = &raw[..raw.len().min(MOST_OF_A_REJECTED_LINE)];
        let text = report_line(
            error.place(),
            &[("offset", Value::Int(line.offset.cast_signed()))],
            &[
                ("code", string(error.kind().as_str())),
                ("message", string(error.message())),
                ("bytes", Value::Int((raw.len() as u64).cast_signed())),
                ("text", string(&String::from_utf8_lossy(held))),
            ],
        );
        opened(&mut self.rejected, self.folder, REJECTED_FILE)?.append(text.as_bytes())?;
        self.manifest.summary.count_failed(error);
        Ok(())
    }

    fn take_findings(&mut self, line: &Line, findings: &[Finding]) -> Result<()> {
        let mut codes: Vec<&str> = Vec::new();
        for finding in findings {
            let code = finding.code().as_str();
            let place = finding.place().clone();
            let place = place.in_file(self.file_of(line)).on_line(line.number);
            let entries = [
                ("code", string(code)),
                ("message", string(finding.message())),
            ];
            let text = report_line(&place, &[], &entries);
            opened(&mut self.findings, self.folder, FINDINGS_FILE)?.append(text.as_bytes())?;
            if !codes.contains(&code) {
                codes.push(code);
                self.manifest.summary.count_finding(code);
            }
        }
        Ok(())
    }

    fn file_of(&self, line: &Line) -> String {
        self.inputs[line.file].display().to_string()
    }

    fn is_full(&self) -> bool {
        let size = self.shard.as_ref().map(|shard| shard.counts.size);
        let limit = self.form.shard_size;
        size.zip(limit).is_some_and(|(size, limit)| size >= limit)
    }

    fn close_shard(&mut self) -> Result<()> {
        if let Some(shard) = self.shard.take() {
            self.manifest.shards.push(shard.persist()?);
        }
        Ok(())
    }

    /// Puts on disk what is written so far, and says where it ends. A table cannot be gone on with: what is saved of it
    /// is the shards before.
    pub(super) fn save(&mut self) -> Result<()> {
        let started = Instant::now();
        if self.shard.as_ref().is_none_or(OpenShard::can_be_saved) {
            let saved =
                |file: &mut Option<OutputFile>| file.as_mut().map(OutputFile::saved).transpose();
            let shard = self.shard.as_mut();
            self.manifest.progress = Some(Progress {
                position: self.position,
                read: self.read.clone(),
                layouts: self.layouts.clone(),
                shard: shard.map(OpenShard::saved).transpose()?.flatten(),
                rejected: saved(&mut self.rejected)?,
                findings: saved(&mut self.findings)?,
            });
            self.manifest.save(self.folder)?;
        }
        self.saved = Instant::now();
        self.pause = BETWEEN_SAVES.max(SHARE_OF_SAVES * (self.saved - started));
        Ok(())
    }

    /// Ends a run that is not at its end: the next one goes on from here, or, if nothing was done, finds no trace of it.
    pub(super) fn stop(mut self, folder: &Folder) {
        if self.manifest.summary.records > 0 {
            // There is an error to tell already, and what was saved before still holds.
            let _ = self.save();
            return;
        }
        let mut names = self.form.shard_names(0);
        names.extend([REJECTED_FILE, FINDINGS_FILE].map(str::to_owned));
        folder.abandon(names);
    }

    /// Gives the files their names when all is on disk, the manifest last.
    pub(super) fn finish(mut self) -> Result<Manifest> {
        // Nothing in, nothing out: but a file that a trainer can open.
        if self.shard.is_none() && self.manifest.shards.is_empty() {
            self.shard = Some(OpenShard::create(self.folder, 0, self.form, &self.columns)?);
        }
        self.close_shard()?;
        for (file, name) in [
            (self.rejected.take(), REJECTED_FILE),
            (self.findings.take(), FINDINGS_FILE),
        ] {
            match file {
                Some(file) => self.manifest.reports.push(file.persist()?),
                None => remove(&self.folder.join(name))?,
            }
        }
        #[cfg(feature = "parquet")]
        if self.form.format == Format::Arrow {
            let files = folder::side_files(self.form, &self.columns, &self.manifest.shards);
            for (name, text) in files {
                let file = write_whole(self.folder, &name, text.as_bytes())?;
                self.manifest.reports.push(file);
            }
        }
        let summary = &self.manifest.summary;
        if !summary.adds_up() {
            let message = format!(
                "internal error: written, skipped and failed are not all the records: {summary:?}"
            );
            return Err(Error::new(ErrorKind::Io, message));
        }
        let mut report = format!("{:#}", summary.report());
        report.push('\n');
        let report = write_whole(self.folder, REPORT_FILE, report.as_bytes())?;
        self.manifest.reports.push(report);
        self.manifest.progress = None;
        self.manifest.save(self.folder)?;
        Ok(self.manifest)
    }
}

/// A report, made when there is something to write in it.
fn opened<'f>(
    file: &'f mut Option<OutputFile>,
    folder: &Path,
    name: &str,
) -> Result<&'f mut OutputFile> {
    match file {
        Some(file) => Ok(file),
        None => Ok(file.insert(OutputFile::create(folder, name)?)),
    }
}

fn string(text: &str) -> Value<'static> {
    Value::String(Cow::Owned(text.to_owned()))
}

/// A place, and what was found there, as one line of JSON.
fn report_line(
    place: &Place,
    more_of_place: &[(&'static str, Value<'static>)],
    found: &[(&'static str, Value<'static>)],
) -> String {
    let line = place.line().map(u64::cast_signed);
    let entries = [
        ("file", place.file().map_or(Value::Null, string)),
        ("line", line.map_or(Value::Null, Value::Int)),
    ];
    let path = [("path", string(&place.path()))];
    let entries = entries
        .iter()
        .chain(more_of_place)
        .chain(&path)
        .chain(found)
        .map(|(key, value)| (Cow::Borrowed(*key), value.clone()))
        .collect();
    let mut line = String::new();
    Value::Object(Object::from_entries(entries)).write_json(Spacing::Spaced, &mut line);
    line.push('\n');
    line
}
