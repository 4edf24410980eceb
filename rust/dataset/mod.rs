//! Files to files: conversations to training records, in constant memory.
//!
//! One thread reads the next chunk of lines and one writes the last, while the others encode the present one. Chunks
//! are written in order, so the output does not depend on the number of threads. Every line is accounted for: written,
//! skipped with a reason, or failed with file, line and path. A run that is stopped, however that may be, goes on where
//! it was, and makes the bytes that it would have made.

mod columns;
pub mod compare;
pub mod digest;
mod folder;
mod framing;
mod inputs;
mod jsonl;
pub mod manifest;
mod megatron;
pub mod output_file;
mod prepared;
mod reader;
mod record;
mod run;
pub mod shape;
pub mod shard;
mod sink;
mod source;
pub mod summary;
#[cfg(feature = "parquet")]
mod table;
pub mod target;
pub mod verify;

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use columns::{Columns, KeptColumn, KeptKind};
use folder::{Beginning, Folder};
use manifest::Manifest;
use run::Run;
use shape::{Field, Shape};
pub use summary::Summary;
use target::{Form, Format, Target};

use crate::encoder::{EncodeOptions, Encoder};
use crate::error::{Error, ErrorKind, Result};

/// The records, in the output folder, where they are one file of JSON lines.
pub const RECORDS_FILE: &str = "tokenized_data.jsonl";

/// The lines that failed and why, in the output folder; not there if none failed.
pub const REJECTED_FILE: &str = "rejected.jsonl";

/// What is odd in records that were written, in the output folder; not there if nothing is.
pub const FINDINGS_FILE: &str = "findings.jsonl";

/// What became of the records, in numbers.
pub const REPORT_FILE: &str = "report.json";

/// What becomes of a line that cannot be encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// It is left out, and reported.
    #[default]
    Skip,
    /// It ends the run.
    Raise,
}

impl OnError {
    /// The choice of this name: `skip` or `raise`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "skip" => Some(Self::Skip),
            "raise" => Some(Self::Raise),
            _ => None,
        }
    }
}

/// What to prepare, and how.
#[derive(Clone, Debug, Default)]
pub struct PrepareOptions<'v> {
    /// JSONL files, plain or compressed; folders of such and patterns for them; `-` for standard input.
    pub inputs: Vec<PathBuf>,
    /// The folder for the records.
    pub output: PathBuf,
    /// The shape of the records; found by looking at the first ones if None.
    pub shape: Option<Shape>,
    /// The names that fields have in the records, for those that are not found under their usual ones.
    pub fields: BTreeMap<Field, String>,
    /// What the records are written to; what the trainer reads best if None, and JSON lines without one.
    pub format: Option<Format>,
    /// The trainer whose columns to write.
    pub target: Option<Target>,
    /// The bytes of rows after which the next file begins; None for what is usual in the format.
    pub shard_size: Option<NonZero<u64>>,
    /// The fields that pass through, beside `id`, which does so without a target.
    pub keep: Vec<String>,
    /// What becomes of a line that cannot be encoded.
    pub on_error: OnError,
    /// Whether what is in the folder is replaced.
    pub overwrite: bool,
    /// What to render and what to train.
    pub encode: EncodeOptions<'v>,
    /// Threads that encode; all that the machine offers if None.
    pub num_threads: Option<NonZero<usize>>,
}

impl PrepareOptions<'_> {
    /// All that the output depends on, as Python names it.
    fn to_json(&self, form: &Form) -> Map<String, Json> {
        let mut options = self.encode.to_json();
        for (name, value) in [
            ("shape", json!(self.shape.map(Shape::as_str))),
            ("fields", json!(self.fields)),
            ("format", json!(form.format.as_str())),
            ("target", json!(form.target.map(Target::as_str))),
            ("shard_size", json!(form.shard_size)),
            ("keep", json!(self.keep)),
            ("on_error", json!(self.on_error)),
        ] {
            options.insert(name.to_owned(), value);
        }
        options
    }

    /// The columns of the output; what kind the kept ones are, the first records tell.
    fn columns(&self, form: &Form) -> Result<Columns> {
        let mut kept: Vec<KeptColumn> = Vec::new();
        let by_default = form.target.is_none().then(|| "id".to_owned());
        for name in by_default.iter().chain(&self.keep) {
            if form.parts.iter().any(|part| part.name() == name) {
                let message =
                    format!("expected a field that the output has no column for, found {name:?}");
                return Err(Error::new(ErrorKind::Option, message).at("keep"));
            }
            if !kept.iter().any(|column| column.name == *name) {
                kept.push(KeptColumn {
                    name: name.clone(),
                    kind: KeptKind::Json,
                });
            }
        }
        Ok(Columns {
            kept,
            parts: form.parts.clone(),
        })
    }
}

/// How far a job has come.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Lines done.
    pub records: u64,
    /// Those of them that failed.
    pub failed: u64,
    /// Tokens written.
    pub tokens: u64,
    /// Bytes of the inputs read, as they lie on disk.
    pub bytes: u64,
    /// Bytes of all inputs.
    pub total_bytes: u64,
}

/// Where a run came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// At the first record.
    New,
    /// Where another was stopped, after so many records.
    Resumed(u64),
    /// Nowhere: all was done.
    Done,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// What became of all records, in the runs before too.
    pub summary: Summary,
    /// Where it came in.
    pub begun: Begun,
    /// The files with the records, from the output folder.
    pub files: Vec<String>,
}

impl Prepared {
    fn of(manifest: Manifest, begun: Begun) -> Self {
        let shards = manifest.shards.into_iter();
        let files = shards.flat_map(|shard| shard.files);
        Self {
            files: files.map(|file| file.name).collect(),
            summary: manifest.summary,
            begun,
        }
    }
}

/// Encodes every conversation of the inputs. Files in the output folder get their names only when they are whole, the
/// manifest last. `report` is called after each chunk, and while there is none; an error from it stops the run, which
/// goes on from there when it is called again. A folder that is finished is left as it is.
///
/// # Errors
/// [`ErrorKind::Io`] if an input is missing or the output cannot be written; [`ErrorKind::Option`] if the folder holds
/// what was prepared otherwise; whatever `report` returns. A line that cannot be encoded is counted, not raised, but for
/// [`OnError::Raise`].
pub fn prepare(
    encoder: &Encoder,
    options: &PrepareOptions<'_>,
    report: impl FnMut(&Progress) -> Result<()>,
) -> Result<Prepared> {
    let inputs = inputs::expand(&options.inputs)?;
    encoder.check(options.encode)?;
    let shard_size = options.shard_size.map(NonZero::get);
    let form = Form::new(options.format, options.target, shard_size)?;
    let columns = options.columns(&form)?;
    let planned = Manifest::new(encoder, options.to_json(&form), &inputs)?;
    refuse_clashes(&inputs, &options.output, &form)?;
    let folder = Folder::take(&options.output)?;
    let manifest = match folder.begin(planned, &form, options.overwrite) {
        Ok(Beginning::At(manifest)) => *manifest,
        Ok(Beginning::Done(manifest)) => return Ok(Prepared::of(*manifest, Begun::Done)),
        Err(error) => return Err(error),
    };
    let begun = match manifest.summary.records {
        0 => Begun::New,
        records => Begun::Resumed(records),
    };
    let run = Run {
        encoder,
        options,
        inputs: &inputs,
        columns: &columns,
        form: &form,
    };
    let manifest = run.all(&folder, manifest, report)?;
    Ok(Prepared::of(manifest, begun))
}

/// An input that is also an output would be lost.
fn refuse_clashes(inputs: &[PathBuf], output: &Path, form: &Form) -> Result<()> {
    let mut names = form.shard_names(0);
    names.extend([REJECTED_FILE, FINDINGS_FILE, REPORT_FILE].map(str::to_owned));
    let outputs: Vec<_> = names
        .iter()
        .filter_map(|name| output.join(name).canonicalize().ok())
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
