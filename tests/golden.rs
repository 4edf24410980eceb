//! Every file of `tests/golden/`: what the models' own code yields must be what fasttok yields.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use fasttok::chat::conversation::Conversation;
use fasttok::chat::json::{Object, Value};
use fasttok::chat::mask;
use fasttok::{Encoder, Error, RenderOptions, Template, TokenId};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name)
}

fn gunzip(name: &str) -> String {
    let mut text = String::new();
    let file = fs::File::open(golden(name)).unwrap();
    flate2::read::GzDecoder::new(file)
        .read_to_string(&mut text)
        .unwrap();
    text
}

fn encoders() -> BTreeMap<&'static str, Encoder> {
    let encoder = |template: &Template| {
        (
            template.name(),
            Encoder::from_model(template.name(), None).unwrap(),
        )
    };
    Template::ALL.iter().map(encoder).collect()
}

fn ids(value: &Value<'_>) -> Vec<TokenId> {
    let int = |value: &Value<'_>| {
        if let Value::Int(id) = value {
            TokenId::try_from(*id).unwrap()
        } else {
            panic!("{value:?}")
        }
    };
    value.as_array().unwrap().iter().map(int).collect()
}

/// None if a switch holds something else than a boolean, which the Rust types cannot express.
fn options(case: &Object<'_>) -> Option<RenderOptions> {
    let mut options = RenderOptions::default();
    for (key, value) in case
        .get("options")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Object::iter)
    {
        let Value::Bool(value) = value else {
            return None;
        };
        match key {
            "add_generation_prompt" => options.add_generation_prompt = *value,
            "thinking" => options.thinking = *value,
            "preserve_thinking" => options.preserve_thinking = *value,
            _ => panic!("unknown option {key}"),
        }
    }
    Some(options)
}

struct Outcome {
    text: String,
    input_ids: Vec<TokenId>,
    assistant_mask: Vec<u8>,
}

fn encode(encoder: &Encoder, case: &Object<'_>, options: RenderOptions) -> Result<Outcome, Error> {
    let conversation = Conversation::from_value(case.get("messages").unwrap(), case.get("tools"))?;
    let one = encoder.encode_conversation(&conversation, options)?;
    assert_eq!(one.loss_mask.len(), one.input_ids.len());
    assert_eq!(
        one.spans.last().map_or(0, |span| span.end as usize),
        one.input_ids.len()
    );
    Ok(Outcome {
        text: encoder.render(&conversation, options)?,
        assistant_mask: one.mask(mask::in_assistant_body),
        input_ids: one.input_ids,
    })
}

/// Panics with the name of the case if anything differs from what the reference yields.
fn check(encoder: &Encoder, name: &str, case: &Object<'_>) {
    let Some(options) = options(case) else {
        assert!(name.contains("kw-thinking"), "{name}");
        return;
    };
    let outcome = encode(encoder, case, options);
    if let Some(expected) = case.get("fasttok_error").and_then(Value::as_str) {
        assert_eq!(
            outcome.err().map(|error| error.to_string()).as_deref(),
            Some(expected),
            "{name}"
        );
        return;
    }
    assert!(
        case.get("error").is_none(),
        "{name}: the reference raises, and the file does not say what fasttok does"
    );
    let outcome = outcome.unwrap_or_else(|error| panic!("{name}: {error}"));
    let expected_text = case
        .get("fasttok_text")
        .or(case.get("text"))
        .and_then(Value::as_str)
        .unwrap();
    assert_eq!(outcome.text, expected_text, "{name}");
    if case.get("fasttok_text").is_some() {
        return;
    }
    assert_eq!(
        outcome.input_ids,
        ids(case.get("input_ids").unwrap()),
        "{name}"
    );
    if let Some(expected) = case.get("assistant_mask") {
        let mask: Vec<TokenId> = outcome
            .assistant_mask
            .into_iter()
            .map(TokenId::from)
            .collect();
        assert_eq!(mask, ids(expected), "{name}");
    }
}

#[test]
fn grammar() {
    for (model, encoder) in encoders() {
        let mut files: Vec<PathBuf> = fs::read_dir(golden(model))
            .unwrap()
            .map(|file| file.unwrap().path())
            .collect();
        files.sort();
        assert!(files.len() > 40, "{model}");
        for file in &files {
            let text = fs::read(file).unwrap();
            let case = Value::from_json(&text).unwrap();
            check(
                &encoder,
                &file.display().to_string(),
                case.as_object().unwrap(),
            );
        }
    }
}

#[test]
fn fuzz() {
    let encoders = encoders();
    let text = gunzip("fuzz.jsonl.gz");
    let mut count = 0;
    for line in text.lines() {
        let record = Value::from_json(line.as_bytes()).unwrap();
        let case = record.as_object().unwrap();
        let string = |key| case.get(key).and_then(Value::as_str).unwrap().to_owned();
        let model = string("model").to_lowercase();
        check(
            &encoders[model.as_str()],
            &format!("{model} {}", string("case")),
            case,
        );
        count += 1;
    }
    assert_eq!(count, 500);
}

#[test]
fn short_texts_on_all_three_ways_to_ids() {
    let encoder = Encoder::from_model("kimi-k2.5", None).unwrap();
    let tokenizer = encoder.tokenizer();
    let text = gunzip("tokenizer.jsonl.gz");
    let mut count = 0;
    for line in text.lines() {
        let record = Value::from_json(line.as_bytes()).unwrap();
        let record = record.as_object().unwrap();
        let text = record.get("text").and_then(Value::as_str).unwrap();
        let ordinary = ids(record.get("ordinary").unwrap());
        let served = record.get("serving").map_or_else(|| ordinary.clone(), ids);
        let direct = record.get("direct").map_or_else(|| served.clone(), ids);
        assert_eq!(
            tokenizer.encode_ordinary(text),
            ordinary,
            "ordinary {text:?}"
        );
        assert_eq!(tokenizer.encode_as_served(text), served, "served {text:?}");
        assert_eq!(
            tokenizer.encode_with_special_tokens(text),
            direct,
            "direct {text:?}"
        );
        for encoded in [ordinary, served, direct] {
            assert_eq!(tokenizer.decode(&encoded).unwrap(), text);
        }
        count += 1;
    }
    assert_eq!(count, 2323);
}
