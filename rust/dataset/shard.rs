//! One shard of the output while it is written.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::dataset::columns::{Columns, Row};
use crate::dataset::megatron::MegatronWriter;
use crate::dataset::output_file::{NamedFile, OutputFile};
use crate::dataset::record::{Record, Rows};
#[cfg(feature = "parquet")]
use crate::dataset::table::writer::TableWriter;
use crate::dataset::target::{Form, Format};
use crate::error::{Error, ErrorKind, Result};

/// What a shard holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Records written, each whole.
    pub records: u64,
    /// Their rows.
    pub rows: u64,
    /// Their tokens.
    pub tokens: u64,
    /// Those of them that train.
    pub trained_tokens: u64,
    /// The bytes of the rows before they are packed, which decide when the next shard begins.
    pub size: u64,
}

/// A shard that is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// The files that it is in.
    pub files: Vec<NamedFile>,
    /// What it holds.
    #[serde(flatten)]
    pub counts: Counts,
}

/// A shard that is being written.
pub(super) struct OpenShard {
    writer: Writer,
    pub counts: Counts,
}

enum Writer {
    Lines(OutputFile),
    #[cfg(feature = "parquet")]
    Table(Box<TableWriter<OutputFile>>),
    Megatron(Box<Megatron>),
}

/// Two indexed datasets, of the ids and of the mask.
struct Megatron {
    writer: MegatronWriter<OutputFile>,
    ids_idx: OutputFile,
    mask_idx: OutputFile,
}

impl OpenShard {
    /// An empty shard in the files that it is to have.
    pub(super) fn create(
        folder: &Path,
        index: usize,
        form: &Form,
        columns: &Columns,
    ) -> Result<Self> {
        let mut names = form.shard_names(index).into_iter();
        let mut next = || OutputFile::create(folder, &names.next().unwrap_or_default());
        let writer = match form.format {
            Format::Jsonl => Writer::Lines(next()?),
            Format::Megatron => {
                let (ids, ids_idx, mask, mask_idx) = (next()?, next()?, next()?, next()?);
                Writer::Megatron(Box::new(Megatron {
                    writer: MegatronWriter::new(ids, mask),
                    ids_idx,
                    mask_idx,
                }))
            }
            #[cfg(feature = "parquet")]
            Format::Parquet => Writer::Table(Box::new(TableWriter::parquet(next()?, columns)?)),
            #[cfg(feature = "parquet")]
            Format::Arrow => Writer::Table(Box::new(TableWriter::arrow(next()?, columns)?)),
            #[cfg(not(feature = "parquet"))]
            Format::Parquet | Format::Arrow => {
                let _ = columns;
                let message = "this build of fasttok has no tables";
                return Err(Error::new(ErrorKind::Option, message).at("format"));
            }
        };
        Ok(Self {
            writer,
            counts: Counts::default(),
        })
    }

    /// The shard that another run left, as it was saved.
    pub(super) fn reopen(folder: &Path, saved: &Shard) -> Result<Self> {
        match &saved.files[..] {
            [file] => Ok(Self {
                writer: Writer::Lines(OutputFile::reopen(folder, file)?),
                counts: saved.counts,
            }),
            files => {
                let message = format!("expected one file of lines to go on with, found {files:?}");
                Err(Error::new(ErrorKind::Io, message))
            }
        }
    }

    /// Writes the rows of a record, all or, if one does not fit the columns, none.
    ///
    /// # Errors
    /// [`ErrorKind::Conversation`] for a row that does not fit; any other if the file cannot be written.
    pub(super) fn push(&mut self, columns: &Columns, record: &Record) -> Result<()> {
        let size = match (&mut self.writer, &record.rows) {
            (Writer::Lines(file), Rows::Lines(lines)) => {
                file.append(lines)?;
                lines.len() as u64
            }
            #[cfg(feature = "parquet")]
            (Writer::Table(writer), Rows::Rows(rows)) => {
                push_rows(columns, rows, |row| writer.push(row))?
            }
            (Writer::Megatron(megatron), Rows::Rows(rows)) => {
                push_rows(columns, rows, |row| megatron.writer.push(row))?
            }
            _ => {
                let message = "expected rows in the form of their shard, found another";
                return Err(Error::new(ErrorKind::Io, message));
            }
        };
        self.counts.records += 1;
        self.counts.rows += record.tokens.len() as u64;
        for tokens in &record.tokens {
            self.counts.tokens += tokens.all;
            self.counts.trained_tokens += tokens.trained;
        }
        self.counts.size += size;
        Ok(())
    }

    /// The shard so far, if a run can go on with it from here: a table has an end that is written last.
    pub(super) fn saved(&mut self) -> Result<Option<Shard>> {
        let Writer::Lines(file) = &mut self.writer else {
            return Ok(None);
        };
        Ok(Some(Shard {
            files: vec![file.saved()?],
            counts: self.counts,
        }))
    }

    /// Whether [`Self::saved`] has something to say.
    pub(super) fn can_be_saved(&self) -> bool {
        matches!(self.writer, Writer::Lines(_))
    }

    /// Gives the files their names.
    pub(super) fn persist(self) -> Result<Shard> {
        let files = match self.writer {
            Writer::Lines(file) => vec![file.persist()?],
            #[cfg(feature = "parquet")]
            Writer::Table(writer) => vec![writer.finish()?.persist()?],
            Writer::Megatron(megatron) => {
                let Megatron {
                    writer,
                    mut ids_idx,
                    mut mask_idx,
                } = *megatron;
                let (ids, mask) = writer.finish(&mut ids_idx, &mut mask_idx)?;
                let files = [ids, ids_idx, mask, mask_idx];
                let files = files.into_iter().map(OutputFile::persist);
                files.collect::<Result<_>>()?
            }
        };
        Ok(Shard {
            files,
            counts: self.counts,
        })
    }
}

/// Writes rows if all of them fit, and says how large they are.
fn push_rows(
    columns: &Columns,
    rows: &[Row],
    mut push: impl FnMut(&Row) -> Result<()>,
) -> Result<u64> {
    for row in rows {
        columns.check(row)?;
    }
    for row in rows {
        push(row)?;
    }
    Ok(rows.iter().map(Row::bytes).sum())
}
