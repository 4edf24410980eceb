//! Output that appears whole or not at all: written under a temporary name beside its place, then renamed.

use std::fs;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::chat::mask::MaskPolicy;
use crate::encoder::encoded::EncodedConversation;
use crate::error::{Error, ErrorKind, Result};
use crate::tokenizer::TokenId;

/// Bytes of short lines that are written together. A longer line is not copied first.
const BUFFERED: usize = 1 << 16;

/// A file that does not exist under its name until it is synced and persisted. Dropped before that, it leaves nothing
/// behind.
pub(super) struct PendingFile {
    file: BufWriter<NamedTempFile>,
    path: PathBuf,
}

impl PendingFile {
    /// A pending file at `path`, whose folder is made if it is missing.
    pub(super) fn create(path: PathBuf) -> Result<Self> {
        let folder = path.parent().unwrap_or(Path::new("."));
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let create = || {
            if path.is_dir() {
                return Err(std::io::ErrorKind::IsADirectory.into());
            }
            if folder.is_file() {
                return Err(std::io::ErrorKind::NotADirectory.into());
            }
            fs::create_dir_all(folder)?;
            let mut builder = tempfile::Builder::new();
            let prefix = format!(".{name}.");
            builder.prefix(&prefix).suffix(".partial");
            // Temporary files are private by default, and this one is to be kept.
            #[cfg(unix)]
            builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
            builder.tempfile_in(folder)
        };
        match create() {
            Ok(file) => Ok(Self {
                file: BufWriter::with_capacity(BUFFERED, file),
                path,
            }),
            Err(error) => Err(at(&path, "cannot write", &error)),
        }
    }

    /// Appends bytes.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file
            .write_all(bytes)
            .map_err(|error| at(&self.path, "cannot write", &error))
    }

    /// The file with all its bytes on disk.
    pub(super) fn synced(self) -> Result<SyncedFile> {
        let Self { file, path } = self;
        let file = file
            .into_inner()
            .map_err(|error| at(&path, "cannot write", error.error()))?;
        file.as_file()
            .sync_all()
            .map_err(|error| at(&path, "cannot write", &error))?;
        Ok(SyncedFile { file, path })
    }
}

/// A file that is complete but for its name.
pub(super) struct SyncedFile {
    file: NamedTempFile,
    path: PathBuf,
}

impl SyncedFile {
    /// Gives the file its name.
    pub(super) fn persist(self) -> Result<()> {
        let Self { file, path } = self;
        file.persist(&path)
            .map_err(|error| at(&path, "cannot rename to", &error.error))?;
        Ok(())
    }
}

fn at(path: &Path, what: &str, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("{what} this file: {error}"))
        .in_file(path.display().to_string())
}

/// Appends one record as a line of JSON. `id` is JSON already. `loss_weight` is there if a message weighs something
/// other than 0 and 1, `cut_tokens` if the row was too long.
pub(super) fn write_record(
    id: Option<&str>,
    row: &EncodedConversation,
    mask: MaskPolicy,
    line: &mut Vec<u8>,
) {
    // Eight bytes an id while they are written, seven at most after it, and two a digit of the mask.
    line.reserve(10 * row.input_ids.len());
    line.push(b'{');
    if let Some(id) = id {
        line.extend_from_slice(b"\"id\":");
        line.extend_from_slice(id.as_bytes());
        line.push(b',');
    }
    write_ids(&row.input_ids, line);
    line.push(b',');
    write_mask(&row.loss_mask, line);
    if row.is_weighted() {
        line.push(b',');
        write_weights(&row.weights(mask), line);
    }
    if row.notices.cut_tokens > 0 {
        let _ = write!(line, ",\"cut_tokens\":{}", row.notices.cut_tokens);
    }
    line.extend_from_slice(b"}\n");
}

/// `"input_ids":[…]`.
fn write_ids(ids: &[TokenId], line: &mut Vec<u8>) {
    line.extend_from_slice(b"\"input_ids\":[");
    if ids.iter().all(|&id| id < ID_LIMIT) {
        // Each id is written as eight bytes, of which the next one overwrites what is too much.
        let mut end = line.len();
        line.resize(end + ids.len() * MOST_OF_ID, 0);
        for &id in ids {
            let (text, len) = digits_and_comma(id);
            line[end..end + MOST_OF_ID].copy_from_slice(&text);
            end += len;
        }
        line.truncate(end);
    } else {
        for id in ids {
            let _ = write!(line, "{id},");
        }
    }
    end_list(line);
}

/// The bytes of the longest id below [`ID_LIMIT`] and a comma.
const MOST_OF_ID: usize = 8;

const ID_LIMIT: TokenId = 10_000_000;

/// The decimal digits of an id below [`ID_LIMIT`] and a comma, and how many bytes that is. All digits come out of the
/// same few multiplications, and no branch depends on how many there are.
fn digits_and_comma(id: TokenId) -> ([u8; MOST_OF_ID], usize) {
    // Two numbers below 10^4, four below 10^2, eight below 10, the first in the lowest bits. The quotients are exact
    // there.
    let numbers = u64::from(id / 10_000) | u64::from(id % 10_000) << 32;
    let hundreds = ((numbers * 10_486) >> 20) & 0x0000_007F_0000_007F;
    let numbers = hundreds | (numbers - hundreds * 100) << 16;
    let tens = ((numbers * 103) >> 10) & 0x000F_000F_000F_000F;
    let digits = tens | (numbers - tens * 10) << 8;
    // The last digit stays, even of zero.
    let leading_zeros = (digits | 1 << 56).trailing_zeros() / 8;
    let len = MOST_OF_ID - leading_zeros as usize;
    let text = (digits | 0x3030_3030_3030_3030) >> (8 * leading_zeros);
    let with_comma = text | u64::from(b',') << (8 * len);
    (with_comma.to_le_bytes(), len + 1)
}

/// `"loss_mask":[…]`, all digits at once: an item is a digit and a comma.
fn write_mask(mask: &[u8], line: &mut Vec<u8>) {
    line.extend_from_slice(b"\"loss_mask\":[");
    let start = line.len();
    line.resize(start + 2 * mask.len(), b',');
    for ([digit, _], trains) in line[start..].as_chunks_mut().0.iter_mut().zip(mask) {
        *digit = b'0' + trains;
    }
    end_list(line);
}

/// `"loss_weight":[…]`.
fn write_weights(weights: &[f32], line: &mut Vec<u8>) {
    line.extend_from_slice(b"\"loss_weight\":[");
    for weight in weights {
        // The shortest digits that read back as the same float32. Writing to a `Vec` cannot fail.
        let _ = write!(line, "{weight},");
    }
    end_list(line);
}

/// Puts the bracket in the place of the comma after the last item, if there is one.
fn end_list(line: &mut Vec<u8>) {
    if line.last() == Some(&b',') {
        line.pop();
    }
    line.push(b']');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::segment::{Facts, Part, Role};
    use crate::encoder::encoded::Span;

    #[test]
    fn a_record_is_one_line_of_json() {
        let mask = MaskPolicy::default();
        let facts = Facts {
            role: Role::Assistant,
            message_index: Some(0),
            part: Part::Text,
            sampled: true,
            prefilled: false,
            calls: false,
        };
        let mut row = EncodedConversation {
            input_ids: vec![163_586, 7],
            loss_mask: vec![1, 1],
            spans: vec![Span {
                facts,
                start: 0,
                end: 2,
            }],
            ..EncodedConversation::default()
        };
        let mut line = Vec::new();
        write_record(Some("\"a\""), &row, mask, &mut line);
        row.message_weights = vec![(0, 0.1)];
        write_record(None, &row, mask, &mut line);
        let mut cut = EncodedConversation::default();
        cut.notices.cut_tokens = 5;
        write_record(None, &cut, mask, &mut line);
        let expected = [
            "{\"id\":\"a\",\"input_ids\":[163586,7],\"loss_mask\":[1,1]}\n",
            "{\"input_ids\":[163586,7],\"loss_mask\":[1,1],\"loss_weight\":[0.1,0.1]}\n",
            "{\"input_ids\":[],\"loss_mask\":[],\"cut_tokens\":5}\n",
        ];
        assert_eq!(String::from_utf8(line).unwrap(), expected.concat());
    }

    #[test]
    fn ids_are_printed_as_rust_prints_them() {
        let short: Vec<u32> = (0..200_000)
            .chain((0..ID_LIMIT).rev().step_by(97))
            .collect();
        let long = vec![7, ID_LIMIT - 1, ID_LIMIT, u32::MAX, 0];
        for ids in [&short[..], &long, &[163_586], &[]] {
            let mut line = Vec::new();
            write_ids(ids, &mut line);
            let printed: Vec<String> = ids.iter().map(u32::to_string).collect();
            let expected = format!("\"input_ids\":[{}]", printed.join(","));
            assert!(line == expected.as_bytes());
        }
    }

    #[test]
    fn a_file_that_is_not_finished_never_existed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/out.jsonl");
        let mut pending = PendingFile::create(path.clone()).unwrap();
        pending.write(b"half").unwrap();
        drop(pending);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 0);

        let mut pending = PendingFile::create(path.clone()).unwrap();
        pending.write(b"whole").unwrap();
        assert!(!path.exists());
        pending.synced().unwrap().persist().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }
}
