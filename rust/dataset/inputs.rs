//! From what was asked for to what is read: patterns, folders and standard input.

use std::fs;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashSet;
use walkdir::{DirEntry, WalkDir};

#[cfg(feature = "parquet")]
use crate::dataset::table::folder::hf_folder;
use crate::error::{Error, ErrorKind, Result};

/// Stands for standard input, as in most tools. A file of that name is `./-`.
pub(super) const STANDARD_INPUT: &str = "-";

/// The endings of the files that are taken from a folder. A file that is named itself may have any.
const ENDINGS: [&str; 10] = [
    ".jsonl",
    ".jsonl.gz",
    ".jsonl.zst",
    ".ndjson",
    ".ndjson.gz",
    ".ndjson.zst",
    ".json.gz",
    ".json.zst",
    ".parquet",
    ".arrow",
];

/// The files to read, in order: those that are named, those that match a pattern, and those of a folder and the folders
/// in it, sorted by name.
///
/// # Errors
/// [`ErrorKind::Io`] for what is not there, [`ErrorKind::Option`] for a pattern or a folder without a file, for a file
/// that comes twice, since it would count twice in training, and if nothing was asked for.
pub(super) fn expand(asked: &[PathBuf]) -> Result<Vec<PathBuf>> {
    if asked.is_empty() {
        let message = "expected at least one file, found none";
        return Err(Error::new(ErrorKind::Option, message).at("inputs"));
    }
    let mut files = Vec::new();
    for path in asked {
        if is_standard_input(path) {
            files.push(path.clone());
            continue;
        }
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => files.extend(files_of(path)?),
            Ok(_) => files.push(path.clone()),
            Err(_) if is_pattern(path) => files.extend(matches_of(path)?),
            Err(error) => return Err(unreadable(path, &error)),
        }
    }
    refuse_twice(&files)?;
    Ok(files)
}

/// Whether this is standard input and not a file.
pub(super) fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == STANDARD_INPUT
}

fn is_pattern(path: &Path) -> bool {
    path.to_str()
        .is_some_and(|path| path.contains(['*', '?', '[']))
}

fn matches_of(pattern: &Path) -> Result<Vec<PathBuf>> {
    let text = pattern.to_string_lossy();
    let matches = glob::glob(&text).map_err(|error| refused(pattern, error.to_string()))?;
    let mut files = Vec::new();
    for path in matches {
        let path = path.map_err(|error| unreadable(error.path(), error.error()))?;
        if path.is_file() {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(refused(pattern, "no file matches this pattern"));
    }
    Ok(files)
}

fn files_of(folder: &Path) -> Result<Vec<PathBuf>> {
    #[cfg(feature = "parquet")]
    if let Some(files) = hf_folder(folder)? {
        return Ok(files);
    }
    // Hidden folders hold what tools keep for themselves, such as caches and half-written files.
    let is_seen = |entry: &DirEntry| {
        let name = entry.file_name().as_encoded_bytes();
        entry.depth() == 0 || !name.starts_with(b".")
    };
    let walk = WalkDir::new(folder).follow_links(true).sort_by_file_name();
    let mut files = Vec::new();
    for entry in walk.into_iter().filter_entry(is_seen) {
        let entry = entry.map_err(|error| {
            let path = error.path().unwrap_or(folder).to_owned();
            unreadable(&path, &error.into())
        })?;
        let name = entry.file_name().as_encoded_bytes();
        let is_wanted = ENDINGS
            .iter()
            .any(|ending| name.ends_with(ending.as_bytes()));
        if is_wanted && entry.file_type().is_file() {
            files.push(entry.into_path());
        }
    }
    if files.is_empty() {
        let endings = ENDINGS.join(", ");
        let message = format!("no file in this folder ends in {endings}");
        return Err(refused(folder, message));
    }
    Ok(files)
}

fn refuse_twice(files: &[PathBuf]) -> Result<()> {
    let mut seen = FxHashSet::default();
    for path in files {
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        if !seen.insert(real) {
            return Err(refused(path, "this input is given twice"));
        }
    }
    Ok(())
}

fn refused(path: &Path, message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::Option, message).in_file(path.display().to_string())
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot read this input: {error}"))
        .in_file(path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path, asked: &[&str]) -> Result<Vec<String>> {
        let asked: Vec<_> = asked.iter().map(|name| folder.join(name)).collect();
        let files = expand(&asked)?;
        let relative = |file: &PathBuf| file.strip_prefix(folder).unwrap().display().to_string();
        Ok(files.iter().map(relative).collect())
    }

    #[test]
    fn folders_and_patterns_give_their_files_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        for path in [
            "b.jsonl",
            "a/2.jsonl.zst",
            "a/10.ndjson",
            "a/note.txt",
            ".cache/c.jsonl",
            "a/.d.jsonl",
        ] {
            fs::create_dir_all(folder.join(path).parent().unwrap()).unwrap();
            fs::write(folder.join(path), "").unwrap();
        }
        let all = ["a/10.ndjson", "a/2.jsonl.zst", "b.jsonl"];
        assert_eq!(names(folder, &[""]).unwrap(), all);
        assert_eq!(
            names(folder, &["b.jsonl", "a"]).unwrap(),
            ["b.jsonl", all[0], all[1]]
        );
        assert_eq!(names(folder, &["*.jsonl"]).unwrap(), ["b.jsonl"]);
        assert_eq!(names(folder, &["*/*.txt"]).unwrap(), ["a/note.txt"]);
        let error = |asked: &[&str]| names(folder, asked).unwrap_err();
        assert_eq!(
            error(&["b.jsonl", "*.jsonl"]).message(),
            "this input is given twice"
        );
        assert_eq!(error(&["x*"]).message(), "no file matches this pattern");
        assert_eq!(error(&["x"]).kind(), ErrorKind::Io);
        assert_eq!(error(&[]).kind(), ErrorKind::Option);
        fs::create_dir(folder.join("empty")).unwrap();
        assert!(
            error(&["empty"])
                .message()
                .starts_with("no file in this folder ends in .jsonl")
        );
    }
}
