//! A Parquet or Arrow file as record batches, one at a time.
//!
//! Files come from strangers. What the crates make of a damaged one is an error here too: lengths are held against the
//! file before memory is taken for them, and a panic in a decoder goes no further than [`guarded`].

use std::any::Any;
use std::collections::HashMap;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{read_dictionary, read_record_batch};
use arrow_ipc::{Message, root_as_message};
use arrow_schema::{Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};

use crate::error::{Error, ErrorKind, Result};

const PARQUET: &[u8] = b"PAR1";
const ARROW_FILE: &[u8] = b"ARROW1";

/// The record batches of a file.
pub(super) struct Batches(Source);

enum Source {
    Parquet(ParquetSource),
    Arrow(ArrowSource),
}

impl Batches {
    /// Opens a file, whose kind its first bytes tell. Of Parquet `rows` rows are decoded at a time; an Arrow file has
    /// the batches that its writer has made.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] for a file that is neither, or that is damaged where it says what it holds.
    pub(super) fn open(file: File, path: &Path, rows: usize) -> Result<Self> {
        let open = || Self::open_any(file, rows);
        guarded(open).map_err(|error| error.in_file(path.display().to_string()))
    }

    fn open_any(mut file: File, rows: usize) -> Result<Self> {
        let len = file.seek(SeekFrom::End(0)).map_err(unreadable)?;
        file.rewind().map_err(unreadable)?;
        let mut magic = Vec::new();
        (&file)
            .take(8)
            .read_to_end(&mut magic)
            .map_err(unreadable)?;
        let source = if magic.starts_with(PARQUET) {
            Source::Parquet(ParquetSource::open(file, rows)?)
        } else if magic.starts_with(ARROW_FILE) {
            let frames = frames_of_file(file, len)?;
            Source::Arrow(ArrowSource::open(frames, EndMark::InFooter)?)
        } else {
            let mut frames = Frames {
                file,
                at: 0,
                end: len,
            };
            frames.go_to(0)?;
            Source::Arrow(ArrowSource::open(frames, EndMark::InStream)?)
        };
        Ok(Self(source))
    }

    /// The columns of all batches.
    pub(super) fn schema(&self) -> &Schema {
        match &self.0 {
            Source::Parquet(source) => source.metadata.schema(),
            Source::Arrow(source) => &source.schema,
        }
    }

    /// How many bytes of the file lie before the next batch, more or less.
    pub(super) fn taken_bytes(&self) -> u64 {
        match &self.0 {
            Source::Parquet(source) => source.taken_bytes(),
            Source::Arrow(source) => source.frames.at,
        }
    }

    /// Leaves all columns undecoded but those named. Parquet leaves them on disk, too.
    pub(super) fn only(&mut self, names: &[&str]) {
        let columns = self.schema().fields().iter().enumerate();
        let wanted = columns.filter(|(_, field)| names.contains(&field.name().as_str()));
        let wanted: Vec<usize> = wanted.map(|(index, _)| index).collect();
        match &mut self.0 {
            Source::Parquet(source) => {
                let columns = source.metadata.parquet_schema();
                source.projection = ProjectionMask::roots(columns, wanted);
            }
            Source::Arrow(source) => source.projection = Some(wanted),
        }
    }

    /// Leaves out the next `rows` rows. Those of whole row groups and of whole batches are not even read.
    pub(super) fn skip_rows(&mut self, rows: u64) {
        match &mut self.0 {
            Source::Parquet(source) => source.skip_rows(rows),
            Source::Arrow(source) => source.to_skip = source.to_skip.saturating_add(rows),
        }
    }
}

impl Iterator for Batches {
    /// After an error nothing follows.
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = guarded(|| match &mut self.0 {
            Source::Parquet(source) => source.next(),
            Source::Arrow(source) => source.next(),
        });
        if batch.is_err() {
            match &mut self.0 {
                Source::Parquet(source) => source.end(),
                Source::Arrow(source) => source.ended = true,
            }
        }
        batch.transpose()
    }
}

struct ParquetSource {
    file: File,
    metadata: ArrowReaderMetadata,
    projection: ProjectionMask,
    batch_rows: usize,
    /// Of the whole file.
    rows: u64,
    next_row: u64,
    /// Made when the first row is asked for, so that skipping costs nothing before.
    reader: Option<ParquetRecordBatchReader>,
}

impl ParquetSource {
    fn open(file: File, batch_rows: usize) -> Result<Self> {
        let options = ArrowReaderOptions::new();
        let metadata = ArrowReaderMetadata::load(&file, options).map_err(unreadable)?;
        let mut rows = 0_u64;
        for group in metadata.metadata().row_groups() {
            let sum = u64::try_from(group.num_rows()).ok();
            let sum = sum.and_then(|group| rows.checked_add(group));
            rows =
                sum.ok_or_else(|| unreadable("a row group has a number of rows that cannot be"))?;
        }
        if i64::try_from(rows) != Ok(metadata.metadata().file_metadata().num_rows()) {
            return Err(unreadable(
                "the row groups have other rows than the file says",
            ));
        }
        Ok(Self {
            file,
            metadata,
            projection: ProjectionMask::all(),
            batch_rows,
            rows,
            next_row: 0,
            reader: None,
        })
    }

    fn skip_rows(&mut self, rows: u64) {
        self.next_row = self.next_row.saturating_add(rows).min(self.rows);
        self.reader = None;
    }

    fn end(&mut self) {
        self.next_row = self.rows;
        self.reader = None;
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        if self.next_row == self.rows {
            return Ok(None);
        }
        if self.reader.is_none() {
            self.reader = Some(self.opened()?);
        }
        let Some(batch) = self.reader.as_mut().and_then(Iterator::next) else {
            let message = format!("expected {} rows, found {}", self.rows, self.next_row);
            return Err(unreadable(message));
        };
        let batch = batch.map_err(unreadable)?;
        self.next_row += batch.num_rows() as u64;
        Ok(Some(batch))
    }

    /// A reader from the next row on.
    fn opened(&self) -> Result<ParquetRecordBatchReader> {
        let mut before = self.next_row;
        let groups = self.metadata.metadata().row_groups();
        let mut first = 0;
        while let Some(rows) = groups
            .get(first)
            .map(|group| group.num_rows().unsigned_abs())
            && rows <= before
        {
            before -= rows;
            first += 1;
        }
        let file = self.file.try_clone().map_err(unreadable)?;
        let builder =
            ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone());
        let builder = builder
            .with_batch_size(self.batch_rows)
            .with_projection(self.projection.clone())
            .with_row_groups((first..groups.len()).collect())
            .with_offset(usize::try_from(before).unwrap_or(usize::MAX));
        builder.build().map_err(unreadable)
    }

    fn taken_bytes(&self) -> u64 {
        let mut before = self.next_row;
        let mut bytes = 0;
        for group in self.metadata.metadata().row_groups() {
            let size = group.compressed_size().unsigned_abs();
            let rows = group.num_rows().unsigned_abs();
            if before < rows {
                let part = u128::from(size) * u128::from(before) / u128::from(rows);
                return bytes + part as u64;
            }
            before -= rows;
            bytes += size;
        }
        bytes
    }
}

/// What says that a stream of messages is whole.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EndMark {
    /// A mark after the last message. Without it the file may end at any message, cut there.
    InStream,
    /// What follows on the stream in an Arrow file, and was found.
    InFooter,
}

struct ArrowSource {
    frames: Frames,
    end_mark: EndMark,
    schema: SchemaRef,
    /// The columns to decode; all if None.
    projection: Option<Vec<usize>>,
    /// What the columns of dictionaries refer to.
    dictionaries: HashMap<i64, ArrayRef>,
    to_skip: u64,
    ended: bool,
}

impl ArrowSource {
    fn open(mut frames: Frames, end_mark: EndMark) -> Result<Self> {
        let head = frames.head()?.ok_or_else(foreign)?;
        let schema = head.message()?.header_as_schema().ok_or_else(foreign)?;
        let schema = try_fb_to_schema(schema).map_err(unreadable)?;
        frames.pass(&head)?;
        Ok(Self {
            frames,
            end_mark,
            schema: Arc::new(schema),
            projection: None,
            dictionaries: HashMap::new(),
            to_skip: 0,
            ended: false,
        })
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        while !self.ended {
            if self.frames.at == self.frames.end && self.end_mark == EndMark::InFooter {
                break;
            }
            let Some(head) = self.frames.head()? else {
                self.frames.expect_end()?;
                break;
            };
            let message = head.message()?;
            if let Some(batch) = message.header_as_record_batch() {
                let rows = u64::try_from(batch.length()).map_err(unreadable)?;
                if rows <= self.to_skip {
                    self.to_skip -= rows;
                    self.frames.pass(&head)?;
                    continue;
                }
                let body = self.frames.body(&head)?;
                let batch = read_record_batch(
                    &body,
                    batch,
                    Arc::clone(&self.schema),
                    &self.dictionaries,
                    self.projection.as_deref(),
                    &message.version(),
                );
                let batch = batch.map_err(unreadable)?;
                let skipped = usize::try_from(self.to_skip).map_err(unreadable)?;
                self.to_skip = 0;
                return Ok(Some(batch.slice(skipped, batch.num_rows() - skipped)));
            }
            let Some(dictionary) = message.header_as_dictionary_batch() else {
                return Err(unreadable("expected a batch of rows, found something else"));
            };
            let body = self.frames.body(&head)?;
            let version = message.version();
            read_dictionary(
                &body,
                dictionary,
                &self.schema,
                &mut self.dictionaries,
                &version,
            )
            .map_err(unreadable)?;
        }
        self.ended = true;
        Ok(None)
    }
}

/// The messages of an Arrow stream on disk. Each says how long it is, so that one can be passed unread.
struct Frames {
    file: File,
    at: u64,
    end: u64,
}

/// What stands before the body of a message.
struct Head {
    message: Vec<u8>,
    body_len: u64,
}

/// Messages have been preceded by this since version 0.15 of Arrow.
const CONTINUATION: [u8; 4] = [0xFF; 4];

impl Frames {
    /// The head of the next message; None at the mark of the end.
    fn head(&mut self) -> Result<Option<Head>> {
        let mut len = self.read(4)?;
        if len == CONTINUATION {
            len = self.read(4)?;
        }
        let len = len.first_chunk().map_or(0, |&len| u32::from_le_bytes(len));
        if len == 0 {
            return Ok(None);
        }
        let mut head = Head {
            message: self.read(u64::from(len))?,
            body_len: 0,
        };
        let body_len = head.message()?.bodyLength();
        head.body_len = u64::try_from(body_len).map_err(unreadable)?;
        if head.body_len > self.end - self.at {
            return Err(cut());
        }
        Ok(Some(head))
    }

    /// After the mark of the end nothing may follow. A second stream, or the rest of a damaged one, would be lost.
    fn expect_end(&self) -> Result<()> {
        /// What may be there to fill up; no message is so short.
        const PADDING: u64 = 64;
        if self.end - self.at > PADDING {
            return Err(unreadable(
                "expected the end after the last batch, found more bytes",
            ));
        }
        Ok(())
    }

    /// Goes on to the next message.
    fn pass(&mut self, head: &Head) -> Result<()> {
        self.go_to(self.at + head.body_len)
    }

    fn go_to(&mut self, at: u64) -> Result<()> {
        self.file.seek(SeekFrom::Start(at)).map_err(unreadable)?;
        self.at = at;
        Ok(())
    }

    /// The body of a message.
    fn body(&mut self, head: &Head) -> Result<Buffer> {
        let body = self.read(head.body_len)?;
        check_buffers(&head.message()?, &body)?;
        Ok(Buffer::from_vec(body))
    }

    fn read(&mut self, len: u64) -> Result<Vec<u8>> {
        if len > self.end - self.at {
            return Err(cut());
        }
        let mut bytes = Vec::with_capacity(usize::try_from(len).map_err(unreadable)?);
        (&self.file)
            .take(len)
            .read_to_end(&mut bytes)
            .map_err(unreadable)?;
        if bytes.len() as u64 != len {
            return Err(cut());
        }
        self.at += len;
        Ok(bytes)
    }
}

impl Head {
    fn message(&self) -> Result<Message<'_>> {
        root_as_message(&self.message).map_err(|_| foreign())
    }
}

/// The crate slices a body by what its message says, and of a compressed buffer takes as much memory at once as that
/// says it needs. So both are held against what is there, and against what the compression can do at all.
fn check_buffers(message: &Message<'_>, body: &[u8]) -> Result<()> {
    /// More than zstd makes of blocks of one byte repeated, which is its best.
    const BEST_RATIO: u64 = 1 << 16;
    /// More than a buffer of any batch holds.
    const LONGEST: u64 = 1 << 32;
    let batch = message.header_as_record_batch();
    let batch = batch.or_else(|| message.header_as_dictionary_batch()?.data());
    let Some(batch) = batch else {
        return Ok(());
    };
    let is_compressed = batch.compression().is_some();
    for buffer in batch.buffers().into_iter().flatten() {
        let start = usize::try_from(buffer.offset()).ok();
        let len = usize::try_from(buffer.length()).ok();
        let bytes = start.and_then(|start| body.get(start..)?.get(..len?));
        let bytes = bytes.ok_or_else(|| unreadable("a batch reaches beyond its end"))?;
        if is_compressed && let Some(&claimed) = bytes.first_chunk() {
            // -1 stands for a buffer that is not compressed.
            let claimed = u64::try_from(i64::from_le_bytes(claimed)).unwrap_or(0);
            if claimed > LONGEST.min(BEST_RATIO * bytes.len() as u64) {
                return Err(unreadable("a compressed part of a batch is damaged"));
            }
        }
    }
    Ok(())
}

/// The messages of an Arrow file, which lie between its magic bytes and its footer. How long that is stands before the
/// magic bytes at the end.
fn frames_of_file(mut file: File, len: u64) -> Result<Frames> {
    /// The magic bytes, and two that fill them up to eight.
    const HEAD: u64 = 8;
    let mut tail = [0; 10];
    let footer_end = len
        .checked_sub(tail.len() as u64)
        .filter(|&end| end >= HEAD)
        .ok_or_else(cut)?;
    file.seek(SeekFrom::Start(footer_end)).map_err(unreadable)?;
    file.read_exact(&mut tail).map_err(unreadable)?;
    let (footer_len, magic) = tail.split_at(4);
    let footer_len = footer_len
        .first_chunk()
        .map_or(0, |&len| u32::from_le_bytes(len));
    if magic != ARROW_FILE {
        return Err(cut());
    }
    let end = footer_end
        .checked_sub(u64::from(footer_len))
        .filter(|&end| end >= HEAD)
        .ok_or_else(cut)?;
    let mut frames = Frames { file, at: 0, end };
    // Some writers fill up to 64 bytes, or to any other number of eights.
    frames.go_to(HEAD)?;
    while frames.at < end && frames.read(8)? == [0; 8] {}
    frames.go_to(frames.at - 8)?;
    Ok(frames)
}

/// What `read` yields, be it a panic. The last resort, and needed: of a damaged file the decoders of Parquet believe that
/// a dictionary is there, or that bytes are left, and panic where that is not so.
fn guarded<T>(read: impl FnOnce() -> Result<T>) -> Result<T> {
    let outcome = catch_unwind(AssertUnwindSafe(read));
    outcome.unwrap_or_else(|panic| Err(unreadable(reason(&*panic))))
}

fn reason(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("the file is damaged")
}

fn foreign() -> Error {
    unreadable("expected a Parquet or Arrow file, found something else")
}

fn cut() -> Error {
    unreadable(io::Error::from(io::ErrorKind::UnexpectedEof))
}

fn unreadable(reason: impl Display) -> Error {
    Error::new(ErrorKind::Io, format!("cannot read on: {reason}"))
}
