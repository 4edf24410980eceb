//! The rows of Parquet and Arrow files, as lines of JSON text.

use std::fs::File;
use std::path::Path;

use crate::dataset::table::batches::Batches;
use crate::dataset::table::cursor::Cursor;
use crate::dataset::table::row_text::{check, write_row};
use crate::error::Result;

/// The rows of Parquet that are decoded at a time. Rows of chats are long, and a batch of them is held whole.
const BATCH_ROWS: usize = 64;

/// The rows of a file.
pub(in crate::dataset) struct Rows(Cursor);

impl Rows {
    /// Opens a file: Parquet, an Arrow stream as `datasets` saves it, or an Arrow file, as its first bytes say.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::error::ErrorKind::Io) for a file that is none of these or is damaged, and under the
    /// name of the column for a type that has no JSON form.
    pub(in crate::dataset) fn open(file: File, path: &Path) -> Result<Self> {
        let batches = Batches::open(file, path, BATCH_ROWS)?;
        check(batches.schema()).map_err(|error| error.in_file(path.display().to_string()))?;
        Ok(Self(Cursor::new(batches)))
    }

    /// Leaves out the next `rows` rows, or all that are left. Whole row groups and whole batches are not read.
    pub(in crate::dataset) fn skip_rows(&mut self, rows: u64) {
        self.0.skip_rows(rows);
    }

    /// How many bytes of the file lie before the next row, more or less.
    pub(in crate::dataset) fn taken_bytes(&self) -> u64 {
        self.0.batches().taken_bytes()
    }
}

impl Iterator for Rows {
    /// A row as a JSON object without line ends. An error of the kind [`ErrorKind::Io`](crate::error::ErrorKind::Io)
    /// means that the file cannot be read on; one of another kind is of one row, after which the next one follows.
    type Item = Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        let text = self.0.next_row().and_then(|next| {
            let Some((batch, row)) = next else {
                return Ok(None);
            };
            let mut text = String::new();
            write_row(batch, row, &mut text)?;
            Ok(Some(text.into_bytes()))
        });
        text.transpose()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::sync::Arc;

    use arrow_array::types::Int32Type;
    use arrow_array::{Int32Array, ListArray, RecordBatch, StringArray};
    use arrow_ipc::CompressionType;
    use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::WriterProperties;

    use super::*;
    use crate::error::ErrorKind;

    const ROWS: i32 = 230;

    fn batch() -> RecordBatch {
        let numbers: Int32Array = (0..ROWS).collect();
        let texts: StringArray = (0..ROWS)
            .map(|n| (n % 7 > 0).then(|| "x".repeat(n.unsigned_abs() as usize)))
            .collect();
        let lists = (0..ROWS).map(|n| Some((0..n % 5).map(Some).collect::<Vec<_>>()));
        let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(lists);
        RecordBatch::try_from_iter([
            ("n", Arc::new(numbers) as _),
            ("text", Arc::new(texts) as _),
            ("list", Arc::new(lists) as _),
        ])
        .unwrap()
    }

    /// The same rows in files of all kinds, in several batches each.
    fn files() -> Vec<(&'static str, Vec<u8>)> {
        let batch = batch();
        let slices = || {
            (0..ROWS as usize)
                .step_by(50)
                .map(|at| batch.slice(at, 50.min(ROWS as usize - at)))
        };
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(90))
            .set_data_page_row_count_limit(20)
            .set_write_batch_size(10);
        let mut parquet =
            ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties.build())).unwrap();
        slices().for_each(|batch| parquet.write(&batch).unwrap());
        let mut files = vec![("parquet", parquet.into_inner().unwrap())];
        for compression in [
            None,
            Some(CompressionType::ZSTD),
            Some(CompressionType::LZ4_FRAME),
        ] {
            let options = IpcWriteOptions::default()
                .try_with_compression(compression)
                .unwrap();
            let mut stream =
                StreamWriter::try_new_with_options(Vec::new(), &batch.schema(), options.clone())
                    .unwrap();
            slices().for_each(|batch| stream.write(&batch).unwrap());
            files.push(("arrow stream", stream.into_inner().unwrap()));
            let mut file =
                FileWriter::try_new_with_options(Vec::new(), &batch.schema(), options).unwrap();
            slices().for_each(|batch| file.write(&batch).unwrap());
            files.push(("arrow file", file.into_inner().unwrap()));
        }
        files
    }

    fn open(bytes: &[u8]) -> Result<Rows> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        Rows::open(file, Path::new("table"))
    }

    fn lines(rows: Rows) -> Result<Vec<String>> {
        rows.map(|line| Ok(String::from_utf8(line?).unwrap()))
            .collect()
    }

    #[test]
    fn any_number_of_rows_can_be_skipped() {
        for (kind, bytes) in files() {
            let all = lines(open(&bytes).unwrap()).unwrap();
            assert_eq!(all.len(), ROWS as usize);
            assert_eq!(all[8], r#"{"n":8,"text":"xxxxxxxx","list":[0,1,2]}"#);
            for skipped in [0, 1, 49, 50, 51, 90, 100, 149, 229, 230, 1000] {
                for read in [0, 3] {
                    let mut rows = open(&bytes).unwrap();
                    for line in &all[..read] {
                        assert_eq!(rows.next().unwrap().unwrap(), line.as_bytes());
                    }
                    rows.skip_rows(skipped as u64);
                    let left = &all[(read + skipped).min(all.len())..];
                    assert_eq!(lines(rows).unwrap(), left, "{kind}: {skipped} after {read}");
                }
            }
        }
    }

    #[test]
    fn a_reader_says_how_far_it_is() {
        for (kind, bytes) in files() {
            let mut rows = open(&bytes).unwrap();
            let mut taken = vec![rows.taken_bytes()];
            while rows.next().is_some() {
                taken.push(rows.taken_bytes());
            }
            assert!(taken.is_sorted(), "{kind}");
            assert!(taken[taken.len() - 1] <= bytes.len() as u64);
        }
    }

    #[test]
    fn a_cut_file_is_an_error() {
        for (kind, bytes) in files() {
            for len in (0..bytes.len()).step_by(7).chain([bytes.len() - 1]) {
                let error = open(&bytes[..len]).and_then(lines).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Io);
                assert!(
                    error.message().starts_with("cannot read on: "),
                    "{kind}: {error}"
                );
            }
        }
    }

    #[test]
    fn a_damaged_file_is_no_panic() {
        for (kind, bytes) in files() {
            for at in (0..bytes.len()).step_by(5) {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << (at % 8);
                let rows = open(&damaged);
                // Only a checksum would find each.
                let _ = rows.map(|rows| rows.take(2 * ROWS as usize).count());
            }
            assert!(open(&bytes).is_ok(), "{kind}");
        }
    }

    #[test]
    fn what_is_no_table_is_an_error() {
        for bytes in [
            &b""[..],
            b"PAR1",
            b"ARROW1\0\0",
            b"{\"messages\": []}\n",
            &[0xFF; 64],
            &[0; 64],
        ] {
            let error = open(bytes).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Io);
            assert_eq!(error.place().file(), Some("table"));
        }
    }
}
