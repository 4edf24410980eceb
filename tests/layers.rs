//! The folders of `rust/` against the picture in `lib.rs`: who may know whom.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

/// Each layer, and the layers that it may name.
const LAYERS: [(&str, &[&str]); 6] = [
    ("error", &[]),
    ("tokenizer", &["error"]),
    ("chat", &["error"]),
    ("encoder", &["chat", "error", "tokenizer"]),
    ("dataset", &["chat", "encoder", "error", "tokenizer"]),
    (
        "python",
        &["chat", "dataset", "encoder", "error", "tokenizer"],
    ),
];

fn rust_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("rust")
}

/// Every source file of a layer, which is a file or a folder.
fn sources(layer: &str) -> Vec<PathBuf> {
    let file = rust_folder().join(layer).with_extension("rs");
    if file.is_file() {
        return vec![file];
    }
    let mut folders = vec![rust_folder().join(layer)];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files
}

/// The layers that a file names by `crate::⟨layer⟩`.
fn named_layers(text: &str) -> Vec<&str> {
    let is_name = |char: char| char.is_ascii_alphanumeric() || char == '_';
    text.split("crate::")
        .skip(1)
        .map(|rest| &rest[..rest.find(|char| !is_name(char)).unwrap_or(rest.len())])
        .collect()
}

#[test]
fn a_layer_names_only_the_layers_below_it() {
    for (layer, below) in LAYERS {
        for path in sources(layer) {
            let text = fs::read_to_string(&path).unwrap();
            for named in named_layers(&text) {
                assert!(
                    named == layer || below.contains(&named),
                    "{}: `{layer}` must not know of `{named}`",
                    path.display()
                );
            }
        }
    }
}

#[test]
fn the_core_does_not_know_python() {
    for (layer, _) in LAYERS.into_iter().filter(|(layer, _)| *layer != "python") {
        for path in sources(layer) {
            let text = fs::read_to_string(&path).unwrap();
            assert!(!text.contains("pyo3"), "{}", path.display());
        }
    }
}

#[test]
fn every_layer_is_in_the_picture() {
    let mut found: Vec<String> = fs::read_dir(rust_folder())
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            path.file_stem().unwrap().to_string_lossy().into_owned()
        })
        // The map itself, and what runs before the library exists.
        .filter(|name| name != "lib" && name != "build")
        .collect();
    found.sort();
    let mut known = LAYERS.map(|(layer, _)| layer);
    known.sort_unstable();
    assert_eq!(found, known);

    let picture = fs::read_to_string(rust_folder().join("lib.rs")).unwrap();
    for layer in known {
        assert!(
            picture.contains(&format!("rust/{layer}")),
            "`{layer}` is missing from the picture in lib.rs"
        );
    }
}
