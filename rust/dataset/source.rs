//! One input: lines of text, plain, gzip or zstd, or the rows of a table, told apart by the first bytes.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::dataset::digest::{Digest, Hasher};
use crate::dataset::inputs::is_standard_input;
use crate::dataset::reader::Position;
#[cfg(feature = "parquet")]
use crate::dataset::table::reader::Rows;
use crate::error::{Error, ErrorKind, Result};

/// The most bytes that a line may have: more than any conversation, and little enough to hold.
const MOST_OF_A_LINE: usize = 1 << 28;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The first bytes of Parquet, of an Arrow file, and of an Arrow stream.
#[cfg(feature = "parquet")]
const TABLES: [&[u8]; 3] = [b"PAR1", b"ARROW1", b"\xFF\xFF\xFF\xFF"];

/// An input that is being read.
pub(super) struct Source {
    path: PathBuf,
    raw: Arc<Mutex<Raw>>,
    taken: Arc<AtomicU64>,
    records: Records,
}

enum Records {
    /// Not opened yet.
    None,
    Lines(Box<dyn BufRead + Send>),
    #[cfg(feature = "parquet")]
    Rows {
        rows: Box<Rows>,
        digest: Digest,
        /// Bytes that are counted as taken.
        told: u64,
    },
}

impl Source {
    /// The input at `path`, which must begin with what is `expected`; `taken` counts the bytes read.
    pub(super) fn new(path: &Path, expected: Option<Digest>, taken: &Arc<AtomicU64>) -> Self {
        let raw = Raw {
            expected,
            ..Raw::default()
        };
        Self {
            path: path.to_owned(),
            raw: Arc::new(Mutex::new(raw)),
            taken: Arc::clone(taken),
            records: Records::None,
        }
    }

    /// Goes to a position in it.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if it cannot be read up to there.
    pub(super) fn open(&mut self, position: Position) -> Result<()> {
        #[cfg(feature = "parquet")]
        if self.is_table().map_err(|error| broken(&error))? {
            return self.open_table(position.line);
        }
        self.open_lines(position.offset)
            .map_err(|error| broken(&error))
    }

    fn open_lines(&mut self, offset: u64) -> io::Result<()> {
        let inner: Box<dyn Read + Send> = if is_standard_input(&self.path) {
            Box::new(io::stdin())
        } else {
            Box::new(File::open(&self.path)?)
        };
        let mut text = unpacked(Hashed {
            inner,
            raw: Arc::clone(&self.raw),
            taken: Arc::clone(&self.taken),
        })?;
        let skipped = io::copy(&mut (&mut text).take(offset), &mut io::sink())?;
        if skipped < offset {
            locked(&self.raw).is_as_expected = false;
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.records = Records::Lines(text);
        Ok(())
    }

    /// Only a file can be a table: what a table holds is not in the order of its bytes.
    #[cfg(feature = "parquet")]
    fn is_table(&self) -> io::Result<bool> {
        if is_standard_input(&self.path) || !self.path.is_file() {
            return Ok(false);
        }
        let mut first = Vec::new();
        File::open(&self.path)?.take(8).read_to_end(&mut first)?;
        Ok(TABLES.iter().any(|magic| first.starts_with(magic)))
    }

    #[cfg(feature = "parquet")]
    fn open_table(&mut self, row: u64) -> Result<()> {
        let digest = Digest::of_file(&self.path).map_err(|error| broken(&error))?;
        let file = File::open(&self.path).map_err(|error| broken(&error))?;
        let mut rows = Rows::open(file, &self.path)?;
        rows.skip_rows(row);
        self.records = Records::Rows {
            rows: Box::new(rows),
            digest,
            told: 0,
        };
        Ok(())
    }

    /// The next line without its end, or the next row as a line of JSON, and how many bytes of text it takes; None at
    /// the end. A line may be one that cannot be held.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if it cannot be read on.
    pub(super) fn next_text(&mut self, is_first: bool) -> Result<Option<(Result<Vec<u8>>, u64)>> {
        match &mut self.records {
            Records::None => Ok(None),
            Records::Lines(lines) => {
                next_line(&mut **lines, is_first).map_err(|error| broken(&error))
            }
            #[cfg(feature = "parquet")]
            Records::Rows { rows, told, .. } => {
                let row = rows.next();
                let taken = rows.taken_bytes();
                self.taken
                    .fetch_add(taken.saturating_sub(*told), Ordering::Relaxed);
                *told = taken.max(*told);
                match row {
                    Some(Err(error)) if error.kind() == ErrorKind::Io => Err(error),
                    row => Ok(row.map(|text| (text, 0))),
                }
            }
        }
    }

    /// What was read of it, as it lies on disk; None for a table, which is not read in order.
    pub(super) fn read(&self) -> Option<Digest> {
        let is_read_in_order = matches!(self.records, Records::Lines(_));
        is_read_in_order.then(|| locked(&self.raw).hasher.digest())
    }

    /// Whether it begins with what was expected, as far as it was read.
    pub(super) fn is_as_expected(&self) -> bool {
        locked(&self.raw).is_as_expected
    }

    /// What it held, at its end.
    pub(super) fn close(&mut self) -> Digest {
        match &mut self.records {
            Records::None => Digest::default(),
            Records::Lines(lines) => {
                // What a decompressor leaves behind belongs to the file too.
                let _ = io::copy(lines, &mut io::sink());
                locked(&self.raw).hasher.digest()
            }
            #[cfg(feature = "parquet")]
            Records::Rows { digest, .. } => digest.clone(),
        }
    }
}

fn broken(error: &io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot read on: {error}"))
}

/// The next line, without its end and without what some editors put before the first one, and how long it is.
fn next_line(
    reader: &mut dyn BufRead,
    is_first: bool,
) -> io::Result<Option<(Result<Vec<u8>>, u64)>> {
    let mut text = Vec::new();
    let (len, is_whole) = read_line(reader, &mut text)?;
    if len == 0 {
        return Ok(None);
    }
    if !is_whole {
        let message = format!("expected at most {MOST_OF_A_LINE} bytes in a line, found {len}");
        return Ok(Some((Err(Error::new(ErrorKind::Json, message)), len)));
    }
    while text
        .last()
        .is_some_and(|byte| matches!(byte, b'\n' | b'\r'))
    {
        text.pop();
    }
    if is_first && text.starts_with(BYTE_ORDER_MARK) {
        text.drain(..BYTE_ORDER_MARK.len());
    }
    Ok(Some((Ok(text), len)))
}

/// Reads a line with its end, and says how long it is, and whether it is all in `text`: a line that is too long is
/// read over.
fn read_line(reader: &mut dyn BufRead, text: &mut Vec<u8>) -> io::Result<(u64, bool)> {
    let most = MOST_OF_A_LINE as u64;
    let mut len = reader.take(most).read_until(b'\n', text)? as u64;
    if len < most || text.ends_with(b"\n") {
        return Ok((len, true));
    }
    *text = Vec::new();
    loop {
        let read = reader.fill_buf()?;
        let (taken, is_end) = match memchr::memchr(b'\n', read) {
            Some(end) => (end + 1, true),
            None => (read.len(), read.is_empty()),
        };
        reader.consume(taken);
        len += taken as u64;
        if is_end {
            return Ok((len, false));
        }
    }
}

fn unpacked(raw: impl Read + Send + 'static) -> io::Result<Box<dyn BufRead + Send>> {
    const GZIP: &[u8] = b"\x1F\x8B";
    const ZSTD: &[u8] = b"\x28\xB5\x2F\xFD";
    let mut raw = BufReader::with_capacity(1 << 18, raw);
    let magic = raw.fill_buf()?;
    if magic.starts_with(GZIP) {
        Ok(Box::new(BufReader::with_capacity(
            1 << 18,
            flate2::bufread::MultiGzDecoder::new(raw),
        )))
    } else if magic.starts_with(ZSTD) {
        Ok(Box::new(BufReader::with_capacity(
            1 << 18,
            zstd::Decoder::with_buffer(raw)?,
        )))
    } else {
        Ok(Box::new(raw))
    }
}

/// What was read of a file, as it lies on disk.
struct Raw {
    hasher: Hasher,
    /// What it must begin with.
    expected: Option<Digest>,
    is_as_expected: bool,
}

impl Default for Raw {
    fn default() -> Self {
        Self {
            hasher: Hasher::default(),
            expected: None,
            is_as_expected: true,
        }
    }
}

impl Raw {
    /// How many bytes may be read before the beginning is to be confirmed.
    fn room(&self) -> usize {
        match &self.expected {
            Some(expected) => {
                usize::try_from(expected.bytes - self.hasher.bytes()).unwrap_or(usize::MAX)
            }
            None => usize::MAX,
        }
    }

    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.update(bytes);
        if self.room() == 0 || bytes.is_empty() {
            self.is_as_expected = match self.expected.take() {
                Some(expected) => expected == self.hasher.digest(),
                None => self.is_as_expected,
            };
        }
        if self.is_as_expected {
            Ok(())
        } else {
            Err(io::Error::other("not the input that the run began with"))
        }
    }
}

/// Counts and hashes what passes.
struct Hashed {
    inner: Box<dyn Read + Send>,
    raw: Arc<Mutex<Raw>>,
    taken: Arc<AtomicU64>,
}

impl Read for Hashed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut raw = locked(&self.raw);
        let room = raw.room().min(buffer.len());
        let read = self.inner.read(&mut buffer[..room])?;
        raw.take(&buffer[..read])?;
        self.taken.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// The reader and the decompressors run on one thread; a panic of theirs ends the job.
fn locked(raw: &Mutex<Raw>) -> MutexGuard<'_, Raw> {
    raw.lock().unwrap_or_else(PoisonError::into_inner)
}
