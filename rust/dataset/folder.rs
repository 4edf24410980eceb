//! The output folder of one run: nobody else writes to it meanwhile, and what is in it already is kept, or refused.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::dataset::manifest::{self, Manifest, refusal, remove};
use crate::dataset::output_file::{at, partial};
use crate::dataset::target::Form;
use crate::dataset::{FINDINGS_FILE, REJECTED_FILE, REPORT_FILE};
use crate::error::{Error, ErrorKind, Result};

/// Held by the run that writes to the folder.
const LOCK_FILE: &str = ".lock";

/// An output folder that this run alone writes to.
pub(super) struct Folder {
    path: PathBuf,
    /// Whether the run made it.
    is_new: bool,
    /// None where the file system has no locks.
    _lock: Option<File>,
}

/// How a run begins.
pub(super) enum Beginning {
    /// From the start, or where another was stopped.
    At(Box<Manifest>),
    /// It is done already.
    Done(Box<Manifest>),
}

impl Folder {
    /// Makes the folder if it is not there, and keeps others out of it.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if it cannot be written to, or another run does so.
    pub(super) fn take(path: &Path) -> Result<Self> {
        let is_new = !path.exists();
        if path.is_file() {
            return Err(at(path, "write to", &io::ErrorKind::NotADirectory.into()));
        }
        fs::create_dir_all(path).map_err(|error| at(path, "write to", &error))?;
        let lock = lock(path)?;
        Ok(Self {
            path: path.to_owned(),
            is_new,
            _lock: lock,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// How the run that `planned` describes begins here.
    ///
    /// # Errors
    /// [`ErrorKind::Option`] if there is the work of a run that was another one, or files that are of none;
    /// [`ErrorKind::Io`] for what cannot be read.
    pub(super) fn begin(
        &self,
        planned: Manifest,
        form: &Form,
        overwrite: bool,
    ) -> Result<Beginning> {
        let found = Manifest::read(&self.path)?;
        if overwrite {
            if let Some(found) = found {
                self.clear(&found)?;
            }
            return Ok(Beginning::At(Box::new(planned)));
        }
        match found {
            None => {
                self.refuse_strangers(form)?;
                Ok(Beginning::At(Box::new(planned)))
            }
            Some(found) if !found.is_finished() && found.summary.records == 0 => {
                Ok(Beginning::At(Box::new(planned)))
            }
            Some(mut found) => {
                let mut differences = found.differences(&planned)?;
                differences.extend(self.changed_files(&found));
                if !differences.is_empty() {
                    return Err(refusal(&self.path, found.is_finished(), &differences));
                }
                for (input, now) in found.inputs.iter_mut().zip(planned.inputs) {
                    input.modified = now.modified;
                }
                Ok(if found.is_finished() {
                    Beginning::Done(Box::new(found))
                } else {
                    Beginning::At(Box::new(found))
                })
            }
        }
    }

    /// Takes away what a run has made that a manifest names.
    fn clear(&self, found: &Manifest) -> Result<()> {
        manifest::forget(&self.path)?;
        for file in found.files() {
            remove(&self.path.join(&file.name))?;
        }
        Ok(())
    }

    /// Files that this run would write over and that no manifest knows.
    fn refuse_strangers(&self, form: &Form) -> Result<()> {
        let mut names = form.shard_names(0);
        names.extend([REJECTED_FILE, FINDINGS_FILE, REPORT_FILE].map(str::to_owned));
        match names
            .into_iter()
            .map(|name| self.path.join(name))
            .find(|path| path.exists())
        {
            None => Ok(()),
            Some(path) => {
                let message = "this file is there already, and no manifest says what it was made from: choose another \
                               folder, or overwrite this one";
                Err(Error::new(ErrorKind::Option, message).in_file(path.display().to_string()))
            }
        }
    }

    /// Files that are not as the manifest says, by their sizes: `verify` looks into them.
    fn changed_files(&self, found: &Manifest) -> Vec<String> {
        let mut lines = Vec::new();
        for file in found.files() {
            let (name, was) = (&file.name, file.digest.bytes);
            match fs::metadata(self.path.join(name)) {
                Ok(metadata) if metadata.len() == was => {}
                Ok(metadata) => {
                    lines.push(format!("{name} had {was} bytes, now {}", metadata.len()));
                }
                Err(error) => lines.push(format!("{name} cannot be read: {error}")),
            }
        }
        lines
    }

    /// Leaves no trace of a run that has done nothing.
    pub(super) fn abandon(&self, names: impl IntoIterator<Item = String>) {
        // Whoever abandons it has an error already, and the next run writes over what is left.
        for name in names {
            let _ = fs::remove_file(partial(&self.path, &name));
        }
        let _ = manifest::forget(&self.path);
        if self.is_new {
            let _ = fs::remove_file(self.path.join(LOCK_FILE));
            let _ = fs::remove_dir(&self.path);
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.path.join(LOCK_FILE));
    }
}

/// The lock of a folder. The run that had it before may take its file away in between, so whoever has locked a file
/// asks whether it is still there.
fn lock(folder: &Path) -> Result<Option<File>> {
    let path = folder.join(LOCK_FILE);
    loop {
        let open = OpenOptions::new().create(true).append(true).open(&path);
        let file = open.map_err(|error| at(folder, "write to", &error))?;
        match file.try_lock() {
            Ok(()) if is_same(&file, &path) => return Ok(Some(file)),
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let message = "another run is writing to this folder";
                let error = Error::new(ErrorKind::Io, message);
                return Err(error.in_file(folder.display().to_string()));
            }
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                return Ok(None);
            }
            Err(TryLockError::Error(error)) => return Err(at(folder, "lock", &error)),
        }
    }
}

#[cfg(unix)]
fn is_same(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (file.metadata(), fs::metadata(path)) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}

/// Elsewhere a file that somebody has opened cannot be taken away.
#[cfg(not(unix))]
fn is_same(_file: &File, _path: &Path) -> bool {
    true
}
