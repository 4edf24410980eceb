//! Output that appears whole or not at all: written under a temporary name beside its place, then renamed.

use std::fs;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::chat::mask::MaskPolicy;
use crate::encoder::encoded::EncodedConversation;
use crate::error::{Error, ErrorKind, Result};

/// A file that does not exist under its name until it is synced and persisted. Dropped before that, it leaves nothing behind.
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
                file: BufWriter::with_capacity(1 << 20, file),
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

/// Appends one record as a line of JSON. `id` is JSON already. `loss_weight` is there if a message weighs something other
/// than 0 and 1, `cut_tokens` if the row was too long.
pub(super) fn write_record(
    id: Option<&str>,
    row: &EncodedConversation,
    mask: MaskPolicy,
    line: &mut Vec<u8>,
) {
    line.push(b'{');
    if let Some(id) = id {
        line.extend_from_slice(b"\"id\":");
        line.extend_from_slice(id.as_bytes());
        line.push(b',');
    }
    write_list("input_ids", &row.input_ids, line, |token, line| {
        line.extend_from_slice(itoa::Buffer::new().format(*token).as_bytes());
    });
    line.push(b',');
    write_mask(&row.loss_mask, line);
    if row.is_weighted() {
        line.push(b',');
        write_list("loss_weight", &row.weights(mask), line, |weight, line| {
            // The shortest digits that read back as the same float32. Writing to a `Vec` cannot fail.
            let _ = write!(line, "{weight}");
        });
    }
    if row.notices.cut_tokens > 0 {
        let _ = write!(line, ",\"cut_tokens\":{}", row.notices.cut_tokens);
    }
    line.extend_from_slice(b"}\n");
}

/// `"loss_mask":[…]`, all digits at once: an item is a digit and a comma, but for the last.
fn write_mask(mask: &[u8], line: &mut Vec<u8>) {
    line.extend_from_slice(b"\"loss_mask\":[");
    let start = line.len();
    line.resize(start + 2 * mask.len(), b',');
    for ([digit, _], trains) in line[start..].as_chunks_mut().0.iter_mut().zip(mask) {
        *digit = b'0' + trains;
    }
    if !mask.is_empty() {
        line.pop();
    }
    line.push(b']');
}

/// `"key":[…]`, with `item` for each of `items`.
fn write_list<T>(key: &str, items: &[T], line: &mut Vec<u8>, item: impl Fn(&T, &mut Vec<u8>)) {
    line.push(b'"');
    line.extend_from_slice(key.as_bytes());
    line.extend_from_slice(b"\":[");
    for (index, value) in items.iter().enumerate() {
        if index > 0 {
            line.push(b',');
        }
        item(value, line);
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
