//! Lines of JSONL files: plain, gzip or zstd, told apart by their first bytes.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::dataset::inputs::is_standard_input;
use crate::error::{Error, ErrorKind, Result};

/// A line of an input file, without its line end.
pub(super) struct Line {
    /// The index of the file among the inputs.
    pub file: usize,
    /// From 1.
    pub number: u64,
    /// What the line holds; the reason if the file could not be read on from here.
    pub text: Result<Vec<u8>>,
}

impl Line {
    /// The bytes of the line.
    pub(super) fn len(&self) -> usize {
        self.text.as_ref().map_or(0, Vec::len)
    }
}

/// The lines of several files, one after the other.
pub(super) struct Lines {
    paths: Vec<PathBuf>,
    next_file: usize,
    open: Option<Box<dyn BufRead + Send>>,
    number: u64,
    /// Bytes taken from the files so far, as they lie on disk.
    taken: Arc<AtomicU64>,
}

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

impl Lines {
    /// The lines of `paths`; `taken` counts the bytes read.
    pub(super) fn new(paths: Vec<PathBuf>, taken: Arc<AtomicU64>) -> Self {
        Self {
            paths,
            next_file: 0,
            open: None,
            number: 0,
            taken,
        }
    }

    fn read_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let reader = match &mut self.open {
            Some(reader) => reader,
            None => self
                .open
                .insert(decompressed(&self.paths[self.next_file], &self.taken)?),
        };
        let mut text = Vec::new();
        reader.read_until(b'\n', &mut text)?;
        if text.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        while text
            .last()
            .is_some_and(|byte| matches!(byte, b'\n' | b'\r'))
        {
            text.pop();
        }
        if self.number == 1 && text.starts_with(BYTE_ORDER_MARK) {
            text.drain(..BYTE_ORDER_MARK.len());
        }
        Ok(Some(text))
    }

    fn close(&mut self) {
        self.open = None;
        self.number = 0;
        self.next_file += 1;
    }
}

impl Iterator for Lines {
    type Item = Line;

    fn next(&mut self) -> Option<Line> {
        while self.next_file < self.paths.len() {
            let file = self.next_file;
            match self.read_line() {
                Ok(Some(text)) => {
                    return Some(Line {
                        file,
                        number: self.number,
                        text: Ok(text),
                    });
                }
                Ok(None) => self.close(),
                Err(error) => {
                    let number = self.number + 1;
                    self.close();
                    let message = format!("cannot read on: {error}");
                    return Some(Line {
                        file,
                        number,
                        text: Err(Error::new(ErrorKind::Io, message)),
                    });
                }
            }
        }
        None
    }
}

fn decompressed(path: &Path, taken: &Arc<AtomicU64>) -> io::Result<Box<dyn BufRead + Send>> {
    const GZIP: &[u8] = b"\x1F\x8B";
    const ZSTD: &[u8] = b"\x28\xB5\x2F\xFD";
    let inner: Box<dyn Read + Send> = if is_standard_input(path) {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(path)?)
    };
    let counted = Counted {
        inner,
        taken: Arc::clone(taken),
    };
    let mut raw = BufReader::with_capacity(1 << 18, counted);
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

struct Counted {
    inner: Box<dyn Read + Send>,
    taken: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.taken.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}
