//! A `tokenizer.json` in the form that transformers' converter writes, read back to the embedded vocabulary.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

use fasttok::tokenizer::special_tokens::SpecialTokens;
use fasttok::tokenizer::vocab::Vocab;
use fasttok::{Encoder, ErrorKind, TokenId};
use serde_json::{Map, Value, json};

/// The printable stand-in of each byte in byte-level vocabularies (GPT-2's table).
fn stand_ins() -> Vec<char> {
    let mut others = '\u{100}'..;
    (0..=u8::MAX)
        .map(|byte| match byte {
            b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF => char::from(byte),
            _ => others.next().unwrap(),
        })
        .collect()
}

/// The file of the embedded vocabulary, without merges: ranks are the vocabulary's, merges follow from them.
fn tokenizer_json() -> Value {
    let stand_ins = stand_ins();
    let vocab = Vocab::embedded();
    let special_tokens = SpecialTokens::of_models("kimi-k2.5").unwrap();
    let first_special = vocab.len() as TokenId;
    let tokens: Map<String, Value> = (0..first_special)
        .map(|id| {
            let bytes = vocab.token(id).unwrap();
            let token = bytes.iter().map(|&byte| stand_ins[usize::from(byte)]);
            (token.collect(), json!(id))
        })
        .collect();
    let added: Vec<Value> = (first_special..first_special + 256)
        .map(|id| {
            json!({
                "id": id, "content": special_tokens.name(id).unwrap(), "special": true, "single_word": false,
                "lstrip": false, "rstrip": false, "normalized": false,
            })
        })
        .collect();
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added, "normalizer": null,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false},
        "post_processor": null, "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
                  "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
                  "vocab": tokens, "merges": []},
    })
}

fn folder_with(file: &Value) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tokenizer.json"), file.to_string()).unwrap();
    folder
}

fn load(folder: &Path) -> Result<Encoder, fasttok::Error> {
    Encoder::from_model(
        folder.to_str().unwrap(),
        Some(fasttok::Template::from_name("kimi-k2.5")?),
    )
}

#[test]
fn the_ids_are_those_of_the_embedded_vocabulary() {
    let folder = folder_with(&tokenizer_json());
    let read = load(folder.path()).unwrap();
    let embedded = Encoder::from_model("kimi-k2.5", None).unwrap();
    let text =
        "def f(x):\n\treturn x²  # 你好 <|im_end|> <think> <|reserved_token_163600|> naïve 😀";
    assert_eq!(
        read.tokenizer().encode_with_special_tokens(text),
        embedded.tokenizer().encode_with_special_tokens(text)
    );
    let names = |encoder: &Encoder| -> Vec<(String, TokenId)> {
        let named = encoder.tokenizer().special_tokens().named();
        named.map(|(name, id)| (name.to_owned(), id)).collect()
    };
    assert_eq!(names(&read), names(&embedded));
}

#[test]
fn a_changed_or_cut_file_is_refused() {
    let mut changed = tokenizer_json();
    let tokens = changed["model"]["vocab"].as_object_mut().unwrap();
    let (first, second) = (tokens["Ġthe"].clone(), tokens["Ġand"].clone());
    tokens["Ġthe"] = second;
    tokens["Ġand"] = first;
    let error = load(folder_with(&changed).path()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Vocab);
    assert!(
        error.message().starts_with("expected Kimi's vocabulary"),
        "{error}"
    );

    let mut short = tokenizer_json();
    short["model"]["vocab"]
        .as_object_mut()
        .unwrap()
        .remove("Ġthe");
    let error = load(folder_with(&short).path()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Vocab);

    let cut = tempfile::tempdir().unwrap();
    let whole = tokenizer_json().to_string();
    fs::write(cut.path().join("tokenizer.json"), &whole[..whole.len() / 2]).unwrap();
    let error = load(cut.path()).err().unwrap();
    assert!(
        error.message().starts_with("not a tokenizer.json"),
        "{error}"
    );
    assert!(error.place().file().unwrap().ends_with("tokenizer.json"));
}
