//! The inputs, a chunk of lines at a time, one file after the other.
//!
//! Every input is hashed as it is read, so that a manifest can say what its records came from, and a run that goes on
//! knows that the part before is the part that the run before it read.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use serde::{Deserialize, Serialize};

use crate::dataset::digest::Digest;
use crate::dataset::inputs::is_standard_input;
use crate::dataset::source::Source;
use crate::error::{Error, ErrorKind, Result};

/// How much text a chunk holds before it is handed on: enough to keep the threads busy, little enough to hold a few:
/// one read, one encoded, one written, and one waiting at either end.
const CHUNK_BYTES: usize = 8 << 20;

/// How many of the first lines of a file say what all of them are, and in how many bytes. They come in one chunk, so that
/// it does not matter where a run goes on.
const LINES_LOOKED_AT: u64 = 100;
const BYTES_LOOKED_AT: u64 = 1 << 20;

/// A place between two lines of the inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Position {
    /// The index of the file among the inputs.
    pub file: usize,
    /// The lines of the file before it.
    pub line: u64,
    /// The bytes of the file before it, unpacked.
    pub offset: u64,
}

/// A line of an input file, without its line end.
pub(super) struct Line {
    /// The index of the file among the inputs.
    pub file: usize,
    /// From 1.
    pub number: u64,
    /// The bytes of the unpacked file before it.
    pub offset: u64,
    /// What the line holds; the reason if it could not be read.
    pub text: Result<Vec<u8>>,
    /// Where the next line begins.
    pub next: Position,
}

impl Line {
    /// The bytes of the line.
    pub(super) fn len(&self) -> usize {
        self.text.as_ref().map_or(0, Vec::len)
    }

    /// Whether it is one of the first lines, which say what all lines of a file are.
    pub(super) fn is_looked_at(&self) -> bool {
        self.number <= LINES_LOOKED_AT && self.offset < BYTES_LOOKED_AT
    }
}

/// The first bytes of an input, as they lie on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Beginning {
    /// The index of the file among the inputs.
    pub file: usize,
    /// What they are.
    #[serde(flatten)]
    pub digest: Digest,
}

/// Some lines, and what is known of the inputs once they are read.
#[derive(Default)]
pub(super) struct Chunk {
    pub lines: Vec<Line>,
    /// The files that ended in it, and what they hold.
    pub ended: Vec<(usize, Digest)>,
    /// How much was read of the file that goes on after it.
    pub read: Option<Beginning>,
}

/// The lines of several files, one file after the other.
pub(super) struct Chunks {
    paths: Vec<PathBuf>,
    position: Position,
    /// What the first file must begin with.
    expected: Option<Beginning>,
    open: Option<Source>,
    /// Bytes taken from the files so far, as they lie on disk.
    taken: Arc<AtomicU64>,
}

impl Chunks {
    /// The lines of `paths` from `position` on; `taken` counts the bytes read. If it says what the file there begins
    /// with, that is confirmed.
    pub(super) fn new(
        paths: Vec<PathBuf>,
        position: Position,
        expected: Option<Beginning>,
        taken: Arc<AtomicU64>,
    ) -> Self {
        Self {
            paths,
            position,
            expected: expected
                .filter(|expected| expected.file == position.file && expected.digest.bytes > 0),
            open: None,
            taken,
        }
    }

    /// The next lines; None if there are no more.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the file that a run goes on with is not the one that it began with.
    pub(super) fn next_chunk(&mut self) -> Result<Option<Chunk>> {
        let mut chunk = Chunk::default();
        let mut bytes = 0;
        while self.position.file < self.paths.len()
            && (bytes < CHUNK_BYTES || self.is_among_first_lines())
        {
            match self.next_line() {
                Ok(Some(line)) => {
                    // An empty line takes memory too.
                    bytes += line.len() + 64;
                    chunk.lines.push(line);
                }
                Ok(None) => chunk.ended.push(self.close(true)),
                Err(error) => {
                    self.confirm_beginning()?;
                    let Position { file, line, offset } = self.position;
                    chunk.ended.push(self.close(false));
                    chunk.lines.push(Line {
                        file,
                        number: line + 1,
                        offset,
                        text: Err(error),
                        next: self.position,
                    });
                }
            }
        }
        let file = self.position.file;
        let digest = self.open.as_ref().and_then(Source::read);
        chunk.read = digest.map(|digest| Beginning { file, digest });
        let is_end = chunk.lines.is_empty() && chunk.ended.is_empty();
        Ok((!is_end).then_some(chunk))
    }

    fn is_among_first_lines(&self) -> bool {
        let Position { line, offset, .. } = self.position;
        (1..LINES_LOOKED_AT).contains(&line) && offset < BYTES_LOOKED_AT
    }

    /// The next line of the present file; None at its end.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the file cannot be read on.
    fn next_line(&mut self) -> Result<Option<Line>> {
        let source = if let Some(source) = &mut self.open {
            source
        } else {
            let path = &self.paths[self.position.file];
            let expected = self.expected.take().map(|expected| expected.digest);
            let source = self.open.insert(Source::new(path, expected, &self.taken));
            source.open(self.position)?;
            source
        };
        let Some((text, len)) = source.next_text(self.position.line == 0)? else {
            return Ok(None);
        };
        let Position { file, line, offset } = self.position;
        self.position.line += 1;
        self.position.offset += len;
        Ok(Some(Line {
            file,
            number: line + 1,
            offset,
            text,
            next: self.position,
        }))
    }

    /// Goes on to the next file, and says what this one held. `is_whole` if it was read to its end.
    fn close(&mut self, is_whole: bool) -> (usize, Digest) {
        let file = self.position.file;
        let read = self.open.take().map(|mut source| source.close());
        self.position = Position {
            file: file + 1,
            ..Position::default()
        };
        let path = &self.paths[file];
        let digest = if is_whole || is_standard_input(path) {
            read
        } else {
            // Where it breaks off there may be more.
            Digest::of_file(path).ok()
        };
        (file, digest.unwrap_or_default())
    }

    fn confirm_beginning(&self) -> Result<()> {
        if self.open.as_ref().is_none_or(Source::is_as_expected) {
            return Ok(());
        }
        let message = "this input is not the one that the run began with: choose another folder, or overwrite this one";
        let path = &self.paths[self.position.file];
        Err(Error::new(ErrorKind::Io, message).in_file(path.display().to_string()))
    }
}

/// What the input at `path` holds, read for that alone.
pub(super) fn digest(path: &Path) -> Result<Digest> {
    let digest = || {
        if is_standard_input(path) {
            Digest::of(&mut io::stdin())
        } else {
            Digest::of_file(path)
        }
    };
    digest().map_err(|error| {
        Error::new(ErrorKind::Io, format!("cannot read this input: {error}"))
            .in_file(path.display().to_string())
    })
}
