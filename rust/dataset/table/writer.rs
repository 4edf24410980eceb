//! Rows as a Parquet file or an Arrow stream.
//!
//! Rows are gathered in columns until they are as large as a batch. The sizes that cut batches and row groups are those
//! of [`Row::bytes`], and no part of a file tells of the time, so the same rows make the same bytes.

use std::fmt::Display;
use std::io::Write;
use std::sync::Arc;

use crate::dataset::columns::Part;
use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use crate::dataset::columns::{Columns, Row};
use crate::dataset::table::column::Column;
use crate::error::{Error, ErrorKind, Result};

/// Rows are gathered up to this size. It is the memory of a batch, and how finely an Arrow stream is read.
const BATCH_BYTES: u64 = 8 << 20;

/// The size of a row group of Parquet in memory; its pages are held compressed until it is written.
const ROW_GROUP_BYTES: u64 = 64 << 20;

/// The fastest of the levels whose names are positive.
const ZSTD_LEVEL: i32 = 1;

/// Who made the file. With the version of a crate the same rows would make other bytes after an update of it.
const CREATED_BY: &str = "fasttok";

/// Writes rows as a table.
pub(in crate::dataset) struct TableWriter<W: Write + Send> {
    columns: Columns,
    schema: SchemaRef,
    kept: Vec<Column>,
    parts: Vec<Column>,
    /// The rows gathered, and [`Row::bytes`] of them.
    rows: usize,
    bytes: u64,
    out: Out<W>,
}

enum Out<W: Write + Send> {
    Arrow(Box<StreamWriter<W>>),
    Parquet {
        writer: Box<ArrowWriter<W>>,
        /// [`Row::bytes`] of the row group begun.
        bytes: u64,
    },
}

impl<W: Write + Send> TableWriter<W> {
    /// A writer of a Parquet file.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the beginning cannot be written.
    pub(in crate::dataset) fn parquet(out: W, columns: &Columns) -> Result<Self> {
        Self::new(columns, |schema| {
            let writer = ArrowWriter::try_new(out, schema, Some(properties(columns)?));
            Ok(Out::Parquet {
                writer: Box::new(writer.map_err(unwritable)?),
                bytes: 0,
            })
        })
    }

    /// A writer of an Arrow stream, as `datasets` reads it.
    ///
    /// # Errors
    /// As [`TableWriter::parquet`].
    pub(in crate::dataset) fn arrow(out: W, columns: &Columns) -> Result<Self> {
        Self::new(columns, |schema| {
            let writer = StreamWriter::try_new(out, &schema);
            Ok(Out::Arrow(Box::new(writer.map_err(unwritable)?)))
        })
    }

    fn new(columns: &Columns, open: impl FnOnce(SchemaRef) -> Result<Out<W>>) -> Result<Self> {
        let kept: Vec<_> = columns
            .kept
            .iter()
            .map(|column| Column::kept(column.kind))
            .collect();
        let parts: Vec<_> = columns
            .parts
            .iter()
            .map(|&part| Column::part(part))
            .collect();
        let kept_names = columns.kept.iter().map(|column| column.name.as_str());
        let names = kept_names.chain(columns.parts.iter().map(|part| part.name()));
        let fields = names.zip(kept.iter().chain(&parts));
        let fields = fields.map(|(name, column)| Field::new(name, column.data_type(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Ok(Self {
            columns: columns.clone(),
            out: open(Arc::clone(&schema))?,
            schema,
            kept,
            parts,
            rows: 0,
            bytes: 0,
        })
    }

    /// Appends a row.
    ///
    /// # Errors
    /// [`ErrorKind::Conversation`] for a kept value that does not fit its column and for a row of 2^31 bytes or more: no
    /// part of that row is written, and others may follow. [`ErrorKind::Io`] if the file cannot be written.
    pub(in crate::dataset) fn push(&mut self, row: &Row) -> Result<()> {
        let cells = self.columns.cells(row)?;
        let bytes = row.bytes();
        if i32::try_from(bytes).is_err() {
            let message = format!("expected a row below 2^31 bytes, found {bytes}");
            return Err(Error::new(ErrorKind::Conversation, message));
        }
        if self.bytes + bytes > BATCH_BYTES {
            self.write_batch()?;
        }
        for (column, cell) in self.kept.iter_mut().zip(cells) {
            column.push_cell(cell);
        }
        for column in &mut self.parts {
            column.push_row(row);
        }
        self.rows += 1;
        self.bytes += bytes;
        Ok(())
    }

    /// Writes what is left, and hands back what was written to.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the file cannot be written.
    pub(in crate::dataset) fn finish(mut self) -> Result<W> {
        self.write_batch()?;
        match self.out {
            Out::Arrow(writer) => writer.into_inner().map_err(unwritable),
            Out::Parquet { writer, .. } => writer.into_inner().map_err(unwritable),
        }
    }

    fn write_batch(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let arrays = self
            .kept
            .iter_mut()
            .chain(&mut self.parts)
            .map(Column::take);
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays.collect());
        let batch = batch.map_err(unwritable)?;
        self.rows = 0;
        let written = std::mem::take(&mut self.bytes);
        match &mut self.out {
            Out::Arrow(writer) => writer.write(&batch).map_err(unwritable),
            Out::Parquet { writer, bytes } => {
                writer.write(&batch).map_err(unwritable)?;
                *bytes += written;
                if *bytes >= ROW_GROUP_BYTES {
                    *bytes = 0;
                    writer.flush().map_err(unwritable)?;
                }
                Ok(())
            }
        }
    }
}

fn properties(columns: &Columns) -> Result<WriterProperties> {
    let level = ZstdLevel::try_new(ZSTD_LEVEL).map_err(unwritable)?;
    let mut properties = WriterProperties::builder()
        .set_created_by(CREATED_BY.to_owned())
        .set_compression(Compression::ZSTD(level))
        .set_max_row_group_row_count(None)
        .set_statistics_enabled(EnabledStatistics::None);
    for part in &columns.parts {
        // Ids are of too many kinds for a dictionary to be worth its time; a mask is two.
        if matches!(part, Part::InputIds(_) | Part::Labels(_)) {
            let items = [part.name(), "list", "item"].map(str::to_owned);
            let items = ColumnPath::new(items.into());
            properties = properties.set_column_dictionary_enabled(items, false);
        }
    }
    Ok(properties.build())
}

fn unwritable(error: impl Display) -> Error {
    Error::new(ErrorKind::Io, format!("cannot write: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::columns::{KeptColumn, KeptKind, Part, Width};
    use crate::dataset::table::prepared::PreparedRows;
    use crate::dataset::table::reader::Rows;
    use std::fs::File;
    use std::path::Path;

    const KINDS: [&str; 2] = ["parquet", "arrow"];

    fn columns(width: Width) -> Columns {
        let kept = [
            ("id", KeptKind::Text),
            ("n", KeptKind::Integer),
            ("score", KeptKind::Float),
            ("good", KeptKind::Boolean),
            ("meta", KeptKind::Json),
        ];
        let column = |(name, kind): (&str, KeptKind)| KeptColumn {
            name: name.to_owned(),
            kind,
        };
        Columns {
            kept: kept.map(column).into(),
            parts: vec![
                Part::InputIds(width),
                Part::LossMask(width),
                Part::LossWeight,
                Part::Labels(width),
                Part::AttentionMask,
                Part::SeqLen,
                Part::CutTokens,
            ],
        }
    }

    fn rows() -> Vec<Row> {
        let text = |text: &str| Some(text.to_owned());
        vec![
            Row {
                kept: vec![
                    text("\"a\\n\""),
                    text("7"),
                    text("1"),
                    text("true"),
                    text("{\"b\":[]}"),
                ],
                input_ids: vec![163_586, 1, 2],
                loss_mask: vec![0, 1, 1],
                loss_weight: Some(vec![0.0, 0.5, 1.0]),
                cut_tokens: 3,
            },
            Row {
                kept: vec![None, text("null"), text("NaN"), None, None],
                ..Row::default()
            },
        ]
    }

    fn writer(kind: &str, columns: &Columns) -> TableWriter<Vec<u8>> {
        match kind {
            "parquet" => TableWriter::parquet(Vec::new(), columns).unwrap(),
            _ => TableWriter::arrow(Vec::new(), columns).unwrap(),
        }
    }

    fn written(kind: &str, columns: &Columns, rows: &[Row]) -> Vec<u8> {
        let mut writer = writer(kind, columns);
        for row in rows {
            writer.push(row).unwrap();
        }
        writer.finish().unwrap()
    }

    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    #[test]
    fn rows_come_back_from_either_kind_of_file() {
        for kind in KINDS {
            for width in [Width::Narrow, Width::Wide] {
                let bytes = written(kind, &columns(width), &rows());
                let lines: Vec<_> = Rows::open(file(&bytes), Path::new("x"))
                    .unwrap()
                    .map(|line| String::from_utf8(line.unwrap()).unwrap())
                    .collect();
                assert_eq!(
                    lines,
                    [
                        concat!(
                            r#"{"id":"a\n","n":7,"score":1.0,"good":true,"meta":"{\"b\":[]}","#,
                            r#""input_ids":[163586,1,2],"loss_mask":[0,1,1],"loss_weight":[0.0,0.5,1.0],"#,
                            r#""labels":[-100,1,2],"attention_mask":[1,1,1],"seq_len":3,"cut_tokens":3}"#
                        ),
                        concat!(
                            r#"{"id":null,"n":null,"score":NaN,"good":null,"meta":null,"#,
                            r#""input_ids":[],"loss_mask":[],"loss_weight":null,"#,
                            r#""labels":[],"attention_mask":[],"seq_len":0,"cut_tokens":0}"#
                        ),
                    ]
                );
                let back: Vec<_> = PreparedRows::open(file(&bytes), Path::new("x"))
                    .unwrap()
                    .map(Result::unwrap)
                    .collect();
                for (back, row) in back.iter().zip(rows()) {
                    assert_eq!(back.input_ids, row.input_ids);
                    assert_eq!(back.loss_mask, Some(row.loss_mask.clone()));
                    assert_eq!(back.loss_weight, row.loss_weight);
                    assert_eq!(back.labels, Some(row.labels().collect()));
                    assert_eq!(back.seq_len, Some(row.input_ids.len() as u64));
                    assert_eq!(back.cut_tokens, Some(row.cut_tokens));
                }
                assert_eq!(back.len(), 2);
            }
        }
    }

    #[test]
    fn the_same_rows_make_the_same_bytes() {
        for kind in KINDS {
            let bytes = || written(kind, &columns(Width::Narrow), &vec![rows(); 100].concat());
            assert!(bytes() == bytes());
        }
    }

    #[test]
    fn a_row_that_does_not_fit_leaves_no_trace() {
        let columns = columns(Width::Narrow);
        let mut bad = rows()[0].clone();
        bad.kept[3] = Some("\"yes\"".to_owned());
        for kind in KINDS {
            let mut writer = writer(kind, &columns);
            for row in rows() {
                writer.push(&row).unwrap();
                let error = writer.push(&bad).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Conversation);
                assert_eq!(
                    error.to_string(),
                    "good: expected a boolean, as in the first records, found a string"
                );
            }
            assert!(writer.finish().unwrap() == written(kind, &columns, &rows()));
        }
    }

    #[test]
    fn large_rows_are_written_in_several_batches() {
        let row = Row {
            input_ids: vec![7; 600_000],
            loss_mask: vec![1; 600_000],
            ..Row::default()
        };
        let columns = Columns {
            kept: Vec::new(),
            parts: vec![Part::InputIds(Width::Narrow)],
        };
        let bytes = written("arrow", &columns, &vec![row; 5]);
        let batches = arrow_ipc::reader::StreamReader::try_new(&bytes[..], None).unwrap();
        let rows: Vec<_> = batches.map(|batch| batch.unwrap().num_rows()).collect();
        assert_eq!(rows, [2, 2, 1]);
    }

    #[test]
    fn no_rows_are_a_table_too() {
        for kind in KINDS {
            let bytes = written(kind, &columns(Width::Narrow), &[]);
            let mut rows = Rows::open(file(&bytes), Path::new("x")).unwrap();
            assert!(rows.next().is_none());
        }
    }
}
