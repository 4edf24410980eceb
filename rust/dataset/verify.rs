//! A prepared folder, checked: every file against its hash, every row against what a row must be, and, if the inputs are
//! there, every row against what encoding them again yields.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::dataset::digest::Digest;
use crate::dataset::framing::Framing;
use crate::dataset::manifest::Manifest;
use crate::dataset::output_file::at;
use crate::dataset::prepared::{PreparedRow, rows_of};
use crate::dataset::shard::{Counts, Shard};
use crate::dataset::target::Format;
use crate::encoder::{Encoder, batch};
use crate::error::{Error, ErrorKind, Result};

/// How many problems are told with their places.
const QUOTED: usize = 20;

/// What was found in a folder.
#[derive(Clone, Debug, Default)]
pub struct Verified {
    /// Rows that were read.
    pub rows: u64,
    /// Their tokens.
    pub tokens: u64,
    /// Those of them that train.
    pub trained_tokens: u64,
    /// Rows without a token that trains, which options may allow.
    pub untrained_rows: u64,
    /// Rows of which the ids do not tell who speaks, because text of a message became special tokens.
    pub unjudged_rows: u64,
    /// How many problems there are, by what they are.
    pub problems: BTreeMap<&'static str, u64>,
    /// The first of them.
    pub quoted: Vec<Error>,
}

impl Verified {
    pub(super) fn problem(&mut self, what: &'static str, error: Error) {
        *self.problems.entry(what).or_default() += 1;
        if self.quoted.len() < QUOTED {
            self.quoted.push(error);
        }
    }

    fn add(&mut self, other: Self) {
        self.rows += other.rows;
        self.tokens += other.tokens;
        self.trained_tokens += other.trained_tokens;
        self.untrained_rows += other.untrained_rows;
        self.unjudged_rows += other.unjudged_rows;
        for (what, count) in other.problems {
            *self.problems.entry(what).or_default() += count;
        }
        let room = QUOTED - self.quoted.len();
        self.quoted.extend(other.quoted.into_iter().take(room));
    }
}

/// The manifest of a folder that is finished.
///
/// # Errors
/// [`ErrorKind::Io`] if there is none, or it cannot be read.
pub fn finished_manifest(folder: &Path) -> Result<Manifest> {
    let message = match Manifest::read(folder)? {
        Some(manifest) if manifest.is_finished() => return Ok(manifest),
        Some(_) => "this folder is not finished: run the command again that prepares it",
        None => "expected a folder that fasttok has prepared, found no manifest.json in it",
    };
    Err(Error::new(ErrorKind::Io, message).in_file(folder.display().to_string()))
}

/// Checks every file and every row. `report` is told of the rows done, and an error from it ends the check.
///
/// # Errors
/// As [`finished_manifest`]; [`ErrorKind::Option`] for an encoder of another model; whatever `report` returns. What is
/// wrong with files and rows is counted, not raised.
pub fn verify(
    encoder: &Encoder,
    folder: &Path,
    num_threads: Option<NonZero<usize>>,
    mut report: impl FnMut(u64) -> Result<()> + Send,
) -> Result<Verified> {
    let manifest = finished_manifest(folder)?;
    manifest.check_model(encoder)?;
    let format = manifest.format()?;
    let mut all = Verified::default();
    for file in &manifest.reports {
        check_digest(folder, &file.name, &file.digest, &mut all);
    }
    let check = Check {
        framing: Framing::of(encoder, manifest.trains_whole()),
        vocabulary: encoder.tokenizer().len(),
        may_be_untrained: manifest.option("on_empty") == Some("keep"),
        has_control_strings: manifest.summary.control_string_records > 0,
        folder,
        format,
    };
    let threads = batch::thread_count(num_threads, manifest.shards.len(), || usize::MAX);
    let rows = AtomicU64::new(0);
    let stopped = Mutex::new(None);
    let next = AtomicU64::new(0);
    let found = std::thread::scope(|scope| {
        let work = || {
            let mut found = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed) as usize;
                let Some(shard) = manifest.shards.get(index) else {
                    return found;
                };
                found.push((index, check.shard(shard, &rows, &stopped)));
            }
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        while !workers
            .iter()
            .all(std::thread::ScopedJoinHandle::is_finished)
        {
            std::thread::sleep(std::time::Duration::from_millis(20));
            if let Err(error) = report(rows.load(Ordering::Relaxed)) {
                locked(&stopped).get_or_insert(error);
            }
        }
        let found = workers.into_iter().flat_map(|worker| {
            worker
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        let mut found: Vec<_> = found.collect();
        found.sort_by_key(|(index, _)| *index);
        found
    });
    if let Some(error) = locked(&stopped).take() {
        return Err(error);
    }
    for (_, verified) in found {
        all.add(verified);
    }
    Ok(all)
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn check_digest(folder: &Path, name: &str, expected: &Digest, found: &mut Verified) {
    let path = folder.join(name);
    match Digest::of_file(&path) {
        Ok(digest) if digest == *expected => {}
        Ok(digest) => {
            let message = format!(
                "expected {} bytes with the sha256 {} as in the manifest, found {} with {}",
                expected.bytes, expected.sha256, digest.bytes, digest.sha256
            );
            let error = Error::new(ErrorKind::Io, message);
            found.problem(
                "files that have changed",
                error.in_file(path.display().to_string()),
            );
        }
        Err(error) => found.problem("files that cannot be read", at(&path, "read", &error)),
    }
}

/// What every row is held to.
struct Check<'a> {
    framing: Option<Framing<'a>>,
    vocabulary: usize,
    may_be_untrained: bool,
    has_control_strings: bool,
    folder: &'a Path,
    format: Format,
}

impl Check<'_> {
    fn shard(&self, shard: &Shard, rows: &AtomicU64, stopped: &Mutex<Option<Error>>) -> Verified {
        let mut found = Verified::default();
        for file in &shard.files {
            check_digest(self.folder, &file.name, &file.digest, &mut found);
        }
        let Some(file) = shard.files.first() else {
            return found;
        };
        let path = self.folder.join(&file.name).display().to_string();
        let prepared = match rows_of(self.folder, self.format, shard) {
            Ok(prepared) => prepared,
            Err(error) => {
                found.problem("files that cannot be read", error.in_file(path));
                return found;
            }
        };
        for row in prepared {
            if locked(stopped).is_some() {
                return found;
            }
            found.rows += 1;
            rows.fetch_add(1, Ordering::Relaxed);
            let judged = row
                .map_err(|error| ("rows that cannot be read", error))
                .and_then(|row| self.row(&row, &mut found));
            if let Err((what, error)) = judged {
                let error = error.in_file(path.clone()).on_line(found.rows);
                found.problem(what, error);
            }
        }
        let counted = Counts {
            rows: found.rows,
            tokens: found.tokens,
            trained_tokens: found.trained_tokens,
            ..shard.counts
        };
        if counted != shard.counts {
            let message = format!(
                "expected {} rows, {} tokens and {} trained ones as in the manifest, found {}, {} and {}",
                shard.counts.rows,
                shard.counts.tokens,
                shard.counts.trained_tokens,
                counted.rows,
                counted.tokens,
                counted.trained_tokens
            );
            let error = Error::new(ErrorKind::Io, message).in_file(path);
            found.problem("shards with other counts", error);
        }
        found
    }

    fn row(&self, row: &PreparedRow, found: &mut Verified) -> Result<(), (&'static str, Error)> {
        found.tokens += row.input_ids.len() as u64;
        let mask = row
            .mask()
            .map_err(|error| ("rows with a wrong column", error))?;
        let trained = mask.iter().map(|&trains| u64::from(trains)).sum::<u64>();
        found.trained_tokens += trained;
        let fault = |message: String| Error::new(ErrorKind::Validation, message);
        if let Some(token) = row
            .input_ids
            .iter()
            .position(|&id| id as usize >= self.vocabulary)
        {
            let message = format!(
                "expected an id below {}, found {}",
                self.vocabulary, row.input_ids[token]
            );
            let error = fault(message).at_index(token).at("input_ids");
            return Err(("rows with ids that the vocabulary lacks", error));
        }
        if row.input_ids.is_empty() {
            return Err((
                "rows without tokens",
                fault("expected tokens, found none".to_owned()),
            ));
        }
        if trained == 0 {
            found.untrained_rows += 1;
            if !self.may_be_untrained {
                let error = fault("expected a token that trains, found none".to_owned());
                return Err(("rows without a token that trains", error));
            }
        }
        match self
            .framing
            .as_ref()
            .map(|framing| framing.check(&row.input_ids, &mask))
        {
            Some(Err(_)) if self.has_control_strings => found.unjudged_rows += 1,
            Some(Err(error)) => return Err(("rows that train what the model did not say", error)),
            Some(Ok(())) | None => {}
        }
        Ok(())
    }
}

/// The rows of a folder in order, across its shards.
pub(super) struct AllRows {
    folder: PathBuf,
    format: Format,
    shards: std::vec::IntoIter<Shard>,
    open: Option<Box<dyn Iterator<Item = Result<PreparedRow>>>>,
}

impl AllRows {
    pub(super) fn new(folder: &Path, manifest: &Manifest) -> Result<Self> {
        Ok(Self {
            folder: folder.to_owned(),
            format: manifest.format()?,
            shards: manifest.shards.clone().into_iter(),
            open: None,
        })
    }
}

impl Iterator for AllRows {
    type Item = Result<PreparedRow>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(row) = self.open.as_mut().and_then(Iterator::next) {
                return Some(row);
            }
            let shard = self.shards.next()?;
            match rows_of(&self.folder, self.format, &shard) {
                Ok(rows) => self.open = Some(rows),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
