//! A file of the output: hashed while it is written under a hidden name, named when it is whole.
//!
//! The hidden name follows from the other, so that a run that goes on where another was killed finds what that one
//! wrote, and a run that starts anew writes over it. Rename is the last step: whatever bears a name is complete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::dataset::digest::{Digest, Hasher};
use crate::error::{Error, ErrorKind, Result};

/// Bytes of short lines that are written together. A longer line is not copied first.
const BUFFERED: usize = 1 << 16;

/// A file of the output, by its name in the folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedFile {
    /// The path from the output folder, with `/` between its parts.
    pub name: String,
    /// What it holds.
    #[serde(flatten)]
    pub digest: Digest,
}

/// A file that does not exist under its name until it is whole.
pub(super) struct OutputFile {
    file: BufWriter<Hashing>,
    folder: PathBuf,
    name: String,
}

impl OutputFile {
    /// An empty file that is to be called `name` in `folder`.
    pub(super) fn create(folder: &Path, name: &str) -> Result<Self> {
        let partial = partial(folder, name);
        let open = || {
            if let Some(parent) = partial.parent() {
                fs::create_dir_all(parent)?;
            }
            File::create(&partial)
        };
        let file = open().map_err(|error| at(&folder.join(name), "write", &error))?;
        Ok(Self::of(file, folder, name, Hasher::default()))
    }

    /// The file that another run left, back to the `saved` bytes of it.
    pub(super) fn reopen(folder: &Path, saved: &NamedFile) -> Result<Self> {
        let NamedFile { name, digest } = saved;
        let partial = partial(folder, name);
        let whole = folder.join(name);
        // That run may have been stopped right after it named the file.
        if !partial.exists() && whole.exists() {
            fs::rename(&whole, &partial).map_err(|error| at(&whole, "write", &error))?;
        }
        let read = || {
            let mut file = OpenOptions::new().read(true).write(true).open(&partial)?;
            let mut hasher = Hasher::default();
            let bytes = io::copy(&mut (&mut file).take(digest.bytes), &mut hasher)?;
            file.set_len(bytes)?;
            Ok((file, hasher))
        };
        let (file, hasher) = read().map_err(|error| at(&partial, "go on with", &error))?;
        if hasher.digest() != *digest {
            let message = "this file is not what was written to it when the run was stopped: choose another folder, or \
                           overwrite this one";
            return Err(Error::new(ErrorKind::Io, message).in_file(partial.display().to_string()));
        }
        Ok(Self::of(file, folder, name, hasher))
    }

    fn of(file: File, folder: &Path, name: &str, hasher: Hasher) -> Self {
        Self {
            file: BufWriter::with_capacity(BUFFERED, Hashing { file, hasher }),
            folder: folder.to_owned(),
            name: name.to_owned(),
        }
    }

    /// All that was written so far, on disk.
    pub(super) fn saved(&mut self) -> Result<NamedFile> {
        let flushed = self.file.flush();
        let synced = flushed.and_then(|()| self.file.get_ref().file.sync_data());
        synced.map_err(|error| self.fault("write", &error))?;
        Ok(NamedFile {
            name: self.name.clone(),
            digest: self.file.get_ref().hasher.digest(),
        })
    }

    /// Gives the file its name, with all its bytes on disk.
    pub(super) fn persist(mut self) -> Result<NamedFile> {
        let saved = self.saved()?;
        let whole = self.folder.join(&self.name);
        let renamed = fs::rename(partial(&self.folder, &self.name), &whole);
        renamed
            .and_then(|()| sync_folder(whole.parent().unwrap_or(&self.folder)))
            .map_err(|error| self.fault("rename", &error))?;
        Ok(saved)
    }

    /// Takes the file away.
    pub(super) fn discard(self) {
        // Whoever discards it has failed already, or writes over it next time.
        let _ = fs::remove_file(partial(&self.folder, &self.name));
    }

    fn fault(&self, verb: &str, error: &io::Error) -> Error {
        at(&self.folder.join(&self.name), verb, error)
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl OutputFile {
    /// Appends bytes.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file
            .write_all(bytes)
            .map_err(|error| self.fault("write", &error))
    }
}

/// Writes a small file whole, or not at all.
pub(super) fn write_whole(folder: &Path, name: &str, bytes: &[u8]) -> Result<NamedFile> {
    let mut file = OutputFile::create(folder, name)?;
    match file.append(bytes) {
        Ok(()) => file.persist(),
        Err(error) => {
            file.discard();
            Err(error)
        }
    }
}

/// The name of a file while it is written: hidden, beside its place.
pub(super) fn partial(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.partial"))
}

/// A rename is on disk when the folder is.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// The error of a file that cannot be read or written.
pub(super) fn at(path: &Path, verb: &str, error: &io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot {verb} this file: {error}"))
        .in_file(path.display().to_string())
}

struct Hashing {
    file: File,
    hasher: Hasher,
}

impl Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_has_its_name_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let mut file = OutputFile::create(folder, "new/out.jsonl").unwrap();
        file.append(b"whole").unwrap();
        assert_eq!(names(&folder.join("new")), [".out.jsonl.partial"]);
        let named = file.persist().unwrap();
        assert_eq!(names(&folder.join("new")), ["out.jsonl"]);
        assert_eq!(fs::read(folder.join("new/out.jsonl")).unwrap(), b"whole");
        assert_eq!(
            named.digest,
            Digest::of_file(&folder.join("new/out.jsonl")).unwrap()
        );
    }

    #[test]
    fn a_file_goes_on_from_what_was_saved() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let mut file = OutputFile::create(folder, "out").unwrap();
        file.append(b"saved").unwrap();
        let saved = file.saved().unwrap();
        file.append(b" and lost").unwrap();
        drop(file);
        for _ in 0..2 {
            let mut file = OutputFile::reopen(folder, &saved).unwrap();
            file.append(b" and more").unwrap();
            // Killed between the rename and the next save, the second time it is there under its name.
            file.persist().unwrap();
            assert_eq!(fs::read(folder.join("out")).unwrap(), b"saved and more");
        }
    }

    #[test]
    fn a_file_that_another_has_changed_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let mut file = OutputFile::create(folder, "out").unwrap();
        file.append(b"saved").unwrap();
        let saved = file.saved().unwrap();
        drop(file);
        for changed in ["Saved", "save"] {
            fs::write(partial(folder, "out"), changed).unwrap();
            let error = OutputFile::reopen(folder, &saved).err().unwrap();
            assert!(error.message().starts_with("this file is not what was"));
        }
    }
}
