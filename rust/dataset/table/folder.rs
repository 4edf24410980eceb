//! What Hugging Face's `datasets` keeps beside the Arrow files of a folder that `save_to_disk` makes and
//! `load_from_disk` opens: which files in which order, and what the columns are.

use std::borrow::Cow;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::chat::json::{Object, Spacing, Value};
use crate::dataset::columns::{Columns, KeptKind, Part, Width};
use crate::dataset::digest::Hasher;
use crate::dataset::shard::Shard;
use crate::dataset::target::{Form, Target};
use crate::error::{Error, ErrorKind, Result};

/// The file that names the Arrow files of a dataset.
pub(in crate::dataset) const STATE_FILE: &str = "state.json";

/// The file that says what the columns of a dataset are.
pub(in crate::dataset) const INFO_FILE: &str = "dataset_info.json";

/// The file that names the splits, each of which is a folder beside it.
pub(in crate::dataset) const SPLITS_FILE: &str = "dataset_dict.json";

/// The Arrow files of a folder saved by `Dataset.save_to_disk`, in order; None for a folder of another kind.
///
/// # Errors
/// [`ErrorKind::Option`] for a folder saved by `DatasetDict.save_to_disk`, which names the splits to choose from;
/// [`ErrorKind::Io`] if the file that names the others cannot be read or is not as it should be.
pub(in crate::dataset) fn hf_folder(folder: &Path) -> Result<Option<Vec<PathBuf>>> {
    let state = folder.join(STATE_FILE);
    if let Some(text) = read(&state)? {
        let names = file_names(&text).map_err(|error| in_file(&state, error))?;
        return Ok(names.map(|names| names.into_iter().map(|name| folder.join(name)).collect()));
    }
    let splits = folder.join(SPLITS_FILE);
    if let Some(text) = read(&splits)? {
        let names = split_names(&text).map_err(|error| in_file(&splits, error))?;
        let example = names.first().map_or("train", String::as_str);
        let example = folder.join(example);
        let message = format!(
            "expected one dataset, found the splits {}: name one, such as {}",
            names.join(", "),
            example.display()
        );
        return Err(in_file(folder, Error::new(ErrorKind::Option, message)));
    }
    Ok(None)
}

/// What is in a file; None if there is no such file.
fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(text) => Ok(Some(text)),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(None)
        }
        Err(error) => {
            let message = format!("cannot read this file: {error}");
            Err(in_file(path, Error::new(ErrorKind::Io, message)))
        }
    }
}

/// None for a state that is not one of `datasets`: others call a file so, too.
fn file_names(text: &[u8]) -> Result<Option<Vec<String>>> {
    const KEY: &str = "_data_files";
    let Ok(state) = Value::from_json(text) else {
        return Ok(None);
    };
    let Some(files) = state.as_object().and_then(|state| state.get(KEY)) else {
        return Ok(None);
    };
    let files = files
        .as_array()
        .ok_or_else(|| unexpected("a list", files).at(KEY))?;
    let name = |(index, file): (usize, &Value<'_>)| {
        let name = file
            .as_object()
            .and_then(|file| file.get("filename"))
            .and_then(Value::as_str);
        match name {
            Some(name) if is_plain(name) => Ok(name.to_owned()),
            Some(_) => Err(fault(
                "expected the name of a file in the same folder, found a path",
            )),
            None => Err(unexpected("an object with a filename", file)),
        }
        .map_err(|error| error.at_index(index).at(KEY))
    };
    files
        .iter()
        .enumerate()
        .map(name)
        .collect::<Result<_>>()
        .map(Some)
}

fn split_names(text: &[u8]) -> Result<Vec<String>> {
    const KEY: &str = "splits";
    let value = Value::from_json(text)?;
    let splits = value
        .as_object()
        .and_then(|dict| dict.get(KEY))
        .and_then(Value::as_array);
    let splits = splits.ok_or_else(|| fault("expected a list of names").at(KEY))?;
    let name = |(index, name): (usize, &Value<'_>)| {
        let text = name.as_str().map(str::to_owned);
        text.ok_or_else(|| unexpected("a string", name).at_index(index).at(KEY))
    };
    splits.iter().enumerate().map(name).collect()
}

/// Whether a name leads to no other folder.
fn is_plain(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!(
        (parts.next(), parts.next()),
        (Some(Component::Normal(_)), None)
    )
}

fn unexpected(expected: &str, found: &Value<'_>) -> Error {
    fault(format!("expected {expected}, found {}", found.kind()))
}

fn fault(message: impl Into<Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::Io, message)
}

fn in_file(path: &Path, error: Error) -> Error {
    error.in_file(path.display().to_string())
}

/// As many digits as the fingerprints have that `datasets` makes itself.
const FINGERPRINT_DIGITS: usize = 16;

/// As what `datasets` gives out the rows of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::dataset) enum RowFormat {
    /// Python's numbers and lists.
    Python,
    /// Tensors of PyTorch.
    Torch,
}

/// The text of [`INFO_FILE`].
pub(in crate::dataset) fn dataset_info(columns: &Columns) -> String {
    let kept = columns.kept.iter().map(|column| {
        let dtype = match column.kind {
            KeptKind::Text | KeptKind::Json => "string",
            KeptKind::Integer => "int64",
            KeptKind::Float => "float64",
            KeptKind::Boolean => "bool",
        };
        (Cow::Borrowed(column.name.as_str()), scalar(dtype))
    });
    let parts = columns
        .parts
        .iter()
        .map(|&part| (Cow::Borrowed(part.name()), feature(part)));
    let features = Value::Object(Object::from_entries(kept.chain(parts).collect()));
    printed([
        ("citation", string("")),
        ("description", string("")),
        ("features", features),
        ("homepage", string("")),
        ("license", string("")),
    ])
}

/// The files beside the shards of a folder that is written, by their names in it. LLaMA-Factory reads splits, of which
/// there is one.
pub(in crate::dataset) fn side_files(
    form: &Form,
    columns: &Columns,
    shards: &[Shard],
) -> Vec<(String, String)> {
    let is_split = form.target == Some(Target::LlamaFactory);
    let split = if is_split { "train/" } else { "" };
    let mut hasher = Hasher::default();
    let mut names = Vec::new();
    for file in shards.iter().flat_map(|shard| &shard.files) {
        hasher.update(file.digest.sha256.as_bytes());
        names.push(file.name.trim_start_matches(split).to_owned());
    }
    let fingerprint = &hasher.digest().sha256[..FINGERPRINT_DIGITS];
    let format = match form.target {
        Some(Target::Speculators) => RowFormat::Torch,
        _ => RowFormat::Python,
    };
    let mut files = vec![
        (format!("{split}{INFO_FILE}"), dataset_info(columns)),
        (
            format!("{split}{STATE_FILE}"),
            state(&names, fingerprint, format),
        ),
    ];
    if is_split {
        let splits = dataset_dict(&[split.trim_end_matches('/').to_owned()]);
        files.push((SPLITS_FILE.to_owned(), splits));
    }
    files
}

fn feature(part: Part) -> Value<'static> {
    match part {
        Part::InputIds(Width::Narrow) | Part::Labels(Width::Narrow) => list("int32"),
        Part::InputIds(Width::Wide) | Part::Labels(Width::Wide) | Part::LossMask(Width::Wide) => {
            list("int64")
        }
        Part::LossMask(Width::Narrow) => list("uint8"),
        Part::LossWeight => list("float32"),
        Part::AttentionMask => list("int8"),
        Part::SeqLen => scalar("int64"),
        Part::CutTokens => scalar("int32"),
    }
}

fn scalar(dtype: &'static str) -> Value<'static> {
    object([("dtype", string(dtype)), ("_type", string("Value"))])
}

/// Version 4 of `datasets` renamed this type to `List`, which older ones do not know; it still reads the old name.
fn list(dtype: &'static str) -> Value<'static> {
    object([("feature", scalar(dtype)), ("_type", string("Sequence"))])
}

/// The text of [`STATE_FILE`]: the Arrow files in order, and a `fingerprint` by which `datasets` knows the rows again
/// in its cache, up to 64 letters and digits that depend on them.
pub(in crate::dataset) fn state(files: &[String], fingerprint: &str, format: RowFormat) -> String {
    let file = |name: &String| object([("filename", string(name.clone()))]);
    let format = match format {
        RowFormat::Python => Value::Null,
        RowFormat::Torch => string("torch"),
    };
    printed([
        (
            "_data_files",
            Value::Array(files.iter().map(file).collect()),
        ),
        ("_fingerprint", string(fingerprint.to_owned())),
        ("_format_columns", Value::Null),
        ("_format_kwargs", object([])),
        ("_format_type", format),
        ("_output_all_columns", Value::Bool(false)),
        ("_split", Value::Null),
    ])
}

/// The text of [`SPLITS_FILE`].
pub(in crate::dataset) fn dataset_dict(splits: &[String]) -> String {
    let splits = splits.iter().map(|split| string(split.clone()));
    printed([("splits", Value::Array(splits.collect()))])
}

fn string(text: impl Into<Cow<'static, str>>) -> Value<'static> {
    Value::String(text.into())
}

fn object<'v, const N: usize>(entries: [(&'static str, Value<'v>); N]) -> Value<'v> {
    let entries = entries.map(|(key, value)| (Cow::Borrowed(key), value));
    Value::Object(Object::from_entries(entries.into()))
}

fn printed<const N: usize>(entries: [(&'static str, Value<'_>); N]) -> String {
    let mut text = String::new();
    object(entries).write_json(Spacing::Spaced, &mut text);
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::columns::KeptColumn;

    #[test]
    fn a_saved_folder_names_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        assert_eq!(hf_folder(folder).unwrap(), None);
        assert_eq!(hf_folder(&folder.join("none")).unwrap(), None);

        fs::write(
            folder.join(SPLITS_FILE),
            dataset_dict(&["train".to_owned(), "test".to_owned()]),
        )
        .unwrap();
        let error = hf_folder(folder).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Option);
        let expected = format!(
            "expected one dataset, found the splits train, test: name one, such as {}",
            folder.join("train").display()
        );
        assert_eq!(error.message(), expected);

        let names = ["data-00000-of-00002.arrow", "data-00001-of-00002.arrow"];
        let text = state(
            &names.map(str::to_owned),
            "0123456789abcdef",
            RowFormat::Torch,
        );
        fs::write(folder.join(STATE_FILE), text).unwrap();
        let expected = names.map(|name| folder.join(name)).to_vec();
        assert_eq!(hf_folder(folder).unwrap(), Some(expected));
    }

    #[test]
    fn a_state_of_something_else_is_none_of_ours() {
        for text in ["", "{}", "[]", "{\"step\": 7}", "\u{0}"] {
            assert_eq!(file_names(text.as_bytes()).unwrap(), None, "{text}");
        }
        for (text, message) in [
            (
                r#"{"_data_files": "a"}"#,
                "_data_files: expected a list, found a string",
            ),
            (
                r#"{"_data_files": [{"filename": "a"}, {}]}"#,
                "_data_files[1]: expected an object with a filename, found an object",
            ),
            (
                r#"{"_data_files": [{"filename": "../a"}]}"#,
                "_data_files[0]: expected the name of a file in the same folder, found a path",
            ),
        ] {
            assert_eq!(
                file_names(text.as_bytes()).unwrap_err().to_string(),
                message
            );
        }
    }

    #[test]
    fn the_columns_are_said_as_all_versions_read_it() {
        let columns = Columns {
            kept: vec![KeptColumn {
                name: "id".to_owned(),
                kind: KeptKind::Text,
            }],
            parts: vec![Part::InputIds(Width::Narrow), Part::SeqLen],
        };
        let text = dataset_info(&columns);
        let info = Value::from_json(text.as_bytes()).unwrap();
        let features = info.as_object().unwrap().get("features").unwrap();
        let mut printed = String::new();
        features.write_json(Spacing::Compact, &mut printed);
        let expected = concat!(
            r#"{"id":{"dtype":"string","_type":"Value"},"#,
            r#""input_ids":{"feature":{"dtype":"int32","_type":"Value"},"_type":"Sequence"},"#,
            r#""seq_len":{"dtype":"int64","_type":"Value"}}"#
        );
        assert_eq!(printed, expected);
    }
}
