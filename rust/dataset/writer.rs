//! Output that appears whole or not at all: written under a temporary name beside its place, then renamed.

use std::fs;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::error::{Error, ErrorKind, Result};
use crate::tokenizer::TokenId;

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

/// Appends one record as a line of JSON. `id` is JSON already.
pub(super) fn write_record(
    id: Option<&str>,
    input_ids: &[TokenId],
    loss_mask: &[u8],
    line: &mut Vec<u8>,
) {
    line.push(b'{');
    if let Some(id) = id {
        line.extend_from_slice(b"\"id\":");
        line.extend_from_slice(id.as_bytes());
        line.push(b',');
    }
    line.extend_from_slice(b"\"input_ids\":[");
    for (index, &token) in input_ids.iter().enumerate() {
        if index > 0 {
            line.push(b',');
        }
        line.extend_from_slice(itoa::Buffer::new().format(token).as_bytes());
    }
    line.extend_from_slice(b"],\"loss_mask\":[");
    for (index, &trains) in loss_mask.iter().enumerate() {
        if index > 0 {
            line.push(b',');
        }
        line.push(b'0' + trains);
    }
    line.extend_from_slice(b"]}\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_one_line_of_json() {
        let mut line = Vec::new();
        write_record(Some("\"a\""), &[163_586, 7], &[1, 0], &mut line);
        write_record(None, &[], &[], &mut line);
        let expected = "{\"id\":\"a\",\"input_ids\":[163586,7],\"loss_mask\":[1,0]}\n{\"input_ids\":[],\"loss_mask\":[]}\n";
        assert_eq!(String::from_utf8(line).unwrap(), expected);
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
