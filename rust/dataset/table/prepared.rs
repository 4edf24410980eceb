//! The rows of tables that [`TableWriter`](super::TableWriter) has made, as numbers.

use std::fs::File;
use std::path::Path;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Int8Type, Int32Type, Int64Type, UInt8Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;

use crate::dataset::columns::{Part, Width};
use crate::dataset::prepared::PreparedRow;
use crate::dataset::table::batches::Batches;
use crate::dataset::table::cursor::Cursor;
use crate::error::{Error, ErrorKind, Result};

/// The rows of Parquet that are decoded at a time.
const BATCH_ROWS: usize = 256;

/// The rows of a table.
pub(in crate::dataset) struct PreparedRows {
    cursor: Cursor,
    /// The rows read before the next one.
    read: usize,
    ended: bool,
}

impl PreparedRows {
    /// Opens a Parquet file or an Arrow stream. Columns that are kept from records are not looked at.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] for a file that is neither or is damaged.
    pub(in crate::dataset) fn open(file: File, path: &Path) -> Result<Self> {
        let mut batches = Batches::open(file, path, BATCH_ROWS)?;
        batches.only(&PARTS.map(Part::name));
        Ok(Self {
            cursor: Cursor::new(batches),
            read: 0,
            ended: false,
        })
    }

    fn next_row(&mut self) -> Result<Option<PreparedRow>> {
        let Some((batch, row)) = self.cursor.next_row()? else {
            return Ok(None);
        };
        let row = prepared(batch, row).map_err(|error| error.at_index(self.read))?;
        self.read += 1;
        Ok(Some(row))
    }
}

impl Iterator for PreparedRows {
    /// A row, or [`ErrorKind::Io`] with its index and the column if it is not as it was written: of another type, or
    /// of another length than the ids. After an error nothing follows.
    type Item = Result<PreparedRow>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let row = self.next_row();
        self.ended = row.is_err();
        row.transpose()
    }
}

const INPUT_IDS: Part = Part::InputIds(Width::Narrow);
const LOSS_MASK: Part = Part::LossMask(Width::Narrow);
const LABELS: Part = Part::Labels(Width::Narrow);

/// All of them, in either width.
const PARTS: [Part; 7] = [
    INPUT_IDS,
    LOSS_MASK,
    Part::LossWeight,
    LABELS,
    Part::AttentionMask,
    Part::SeqLen,
    Part::CutTokens,
];

fn prepared(batch: &RecordBatch, row: usize) -> Result<PreparedRow> {
    let Some(input_ids) = list(batch, INPUT_IDS, row, integers)? else {
        return Err(fault("expected a list of ids, found none").at(INPUT_IDS.name()));
    };
    let row = PreparedRow {
        loss_mask: list(batch, LOSS_MASK, row, integers)?,
        loss_weight: list(batch, Part::LossWeight, row, floats)?,
        labels: list(batch, LABELS, row, integers)?,
        attention_mask: list(batch, Part::AttentionMask, row, integers)?,
        seq_len: number(batch, Part::SeqLen, row)?,
        cut_tokens: number(batch, Part::CutTokens, row)?,
        input_ids,
    };
    row.check_lengths()?;
    Ok(row)
}

/// The list of a row; None if there is no such column, or null in its place.
fn list<N>(
    batch: &RecordBatch,
    part: Part,
    row: usize,
    read: impl FnOnce(&ArrayRef) -> Result<Vec<N>>,
) -> Result<Option<Vec<N>>> {
    let Some(column) = batch.column_by_name(part.name()) else {
        return Ok(None);
    };
    let Some(lists) = column.as_list_opt::<i32>() else {
        return Err(unexpected("lists", column).at(part.name()));
    };
    if lists.is_null(row) {
        return Ok(None);
    }
    read(&lists.value(row))
        .map(Some)
        .map_err(|error| error.at(part.name()))
}

fn number<N: TryFrom<i64>>(batch: &RecordBatch, part: Part, row: usize) -> Result<Option<N>> {
    let Some(column) = batch.column_by_name(part.name()) else {
        return Ok(None);
    };
    let numbers = integers(&column.slice(row, 1)).map_err(|error| error.at(part.name()))?;
    Ok(numbers.into_iter().next())
}

fn integers<N: TryFrom<i64>>(array: &ArrayRef) -> Result<Vec<N>> {
    match array.data_type() {
        DataType::Int8 => narrowed::<Int8Type, N>(array),
        DataType::UInt8 => narrowed::<UInt8Type, N>(array),
        DataType::Int32 => narrowed::<Int32Type, N>(array),
        DataType::Int64 => narrowed::<Int64Type, N>(array),
        _ => Err(unexpected("integers", array)),
    }
}

fn narrowed<T, N>(array: &ArrayRef) -> Result<Vec<N>>
where
    T: ArrowPrimitiveType<Native: Into<i64>>,
    N: TryFrom<i64>,
{
    refuse_nulls(array)?;
    let narrow = |&number: &T::Native| {
        let number: i64 = number.into();
        N::try_from(number)
            .map_err(|_| fault(format!("expected a number that fits, found {number}")))
    };
    array
        .as_primitive::<T>()
        .values()
        .iter()
        .map(narrow)
        .collect()
}

fn floats(array: &ArrayRef) -> Result<Vec<f32>> {
    refuse_nulls(array)?;
    let Some(floats) = array.as_primitive_opt::<Float32Type>() else {
        return Err(unexpected("floats", array));
    };
    Ok(floats.values().to_vec())
}

fn refuse_nulls(array: &ArrayRef) -> Result<()> {
    if array.null_count() > 0 {
        return Err(fault("expected numbers, found null"));
    }
    Ok(())
}

fn unexpected(expected: &str, found: &ArrayRef) -> Error {
    fault(format!("expected {expected}, found {}", found.data_type()))
}

fn fault(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::Io, message)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::sync::Arc;

    use arrow_array::{Int64Array, ListArray};
    use arrow_ipc::writer::StreamWriter;

    use super::*;

    fn read(columns: Vec<(&str, ArrayRef)>) -> Result<Vec<PreparedRow>> {
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut stream = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
        stream.write(&batch).unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&stream.into_inner().unwrap()).unwrap();
        PreparedRows::open(file, Path::new("table"))
            .unwrap()
            .collect()
    }

    fn lists<T: ArrowPrimitiveType>(rows: &[&[Option<T::Native>]]) -> ArrayRef {
        let rows = rows.iter().map(|row| Some(row.iter().copied()));
        Arc::new(ListArray::from_iter_primitive::<T, _, _>(rows))
    }

    #[test]
    fn columns_are_read_in_either_width() {
        let rows = read(vec![
            (
                "input_ids",
                lists::<Int64Type>(&[&[Some(1), Some(163_586)], &[]]),
            ),
            ("loss_mask", lists::<Int32Type>(&[&[Some(0), Some(1)], &[]])),
            ("text", Arc::new(Int64Array::from(vec![1, 2]))),
        ]);
        let expected = PreparedRow {
            input_ids: vec![1, 163_586],
            loss_mask: Some(vec![0, 1]),
            ..PreparedRow::default()
        };
        let empty = PreparedRow {
            loss_mask: Some(Vec::new()),
            ..PreparedRow::default()
        };
        assert_eq!(rows.unwrap(), [expected, empty]);
    }

    #[test]
    fn what_is_not_as_written_is_an_error_with_its_place() {
        let ids = || lists::<Int32Type>(&[&[Some(1)], &[Some(2), Some(3)]]);
        for (columns, message) in [
            (
                vec![("ids", ids())],
                "[0].input_ids: expected a list of ids, found none",
            ),
            (
                vec![(
                    "input_ids",
                    Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef,
                )],
                "[0].input_ids: expected lists, found Int64",
            ),
            (
                vec![("input_ids", lists::<Float32Type>(&[&[Some(1.0)]]))],
                "[0].input_ids: expected integers, found Float32",
            ),
            (
                vec![("input_ids", lists::<Int32Type>(&[&[Some(1)], &[Some(-1)]]))],
                "[1].input_ids: expected a number that fits, found -1",
            ),
            (
                vec![("input_ids", lists::<Int32Type>(&[&[None]]))],
                "[0].input_ids: expected numbers, found null",
            ),
            (
                vec![
                    ("input_ids", ids()),
                    ("labels", lists::<Int32Type>(&[&[Some(1)], &[Some(2)]])),
                ],
                "[1].labels: expected 2 tokens as in input_ids, found 1",
            ),
            (
                vec![
                    ("input_ids", ids()),
                    ("seq_len", Arc::new(Int64Array::from(vec![1, 3]))),
                ],
                "[1].seq_len: expected 2 tokens as in input_ids, found 3",
            ),
        ] {
            let error = read(columns).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Io);
            assert_eq!(error.to_string(), message);
        }
    }
}
