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

fn options<'v>(case: &'v Object<'_>) -> Result<RenderOptions<'v>, Error> {
    match case.get("options").and_then(Value::as_object) {
        Some(options) => RenderOptions::from_object(options),
        None => Ok(RenderOptions::default()),
    }
}

struct Outcome {
    text: String,
    input_ids: Vec<TokenId>,
    assistant_mask: Vec<u8>,
}

fn encode(
    encoder: &Encoder,
    case: &Object<'_>,
    options: RenderOptions<'_>,
) -> Result<Outcome, Error> {
    let conversation = Conversation::from_value(case.get("messages").unwrap(), case.get("tools"))?;
    let one = encoder.encode_conversation(&conversation, options.into())?;
    assert_eq!(one.loss_mask.len(), one.input_ids.len());
    assert_eq!(
        one.spans.last().map_or(0, |span| span.end as usize),
        one.input_ids.len()
    );
    Ok(Outcome {
        text: encoder.render(&conversation, options)?,
        assistant_mask: one.mask_where(mask::in_assistant_body),
        input_ids: one.input_ids,
    })
}

/// What differs from what the reference yields.
fn difference(encoder: &Encoder, case: &Object<'_>) -> Option<String> {
    let differs = |what: &str, expected: &str, found: &str| {
        (expected != found).then(|| format!("{what}: expected {expected}, found {found}"))
    };
    let outcome = options(case).and_then(|options| encode(encoder, case, options));
    if let Some(expected) = case.get("fasttok_error").and_then(Value::as_str) {
        let found = outcome.err().map(|error| error.to_string());
        return differs("error", expected, found.as_deref().unwrap_or("none"));
    }
    if let Some(error) = case.get("error").and_then(Value::as_str) {
        let found = outcome.err().map(|error| error.to_string());
        return Some(format!(
            "add fasttok_error: the reference raises {error}, fasttok {found:?}"
        ));
    }
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => return Some(error.to_string()),
    };
    let expected_text = case.get("fasttok_text").or(case.get("text"));
    let expected_text = expected_text.and_then(Value::as_str).unwrap();
    if let Some(difference) = differs("text", expected_text, &outcome.text) {
        return Some(difference);
    }
    if case.get("fasttok_text").is_some() {
        return None;
    }
    let list = |ids: &[TokenId]| format!("{ids:?}");
    let expected = ids(case.get("input_ids").unwrap());
    let difference = differs("ids", &list(&expected), &list(&outcome.input_ids));
    difference.or_else(|| {
        let expected = ids(case.get("assistant_mask")?);
        let mask: Vec<TokenId> = outcome
            .assistant_mask
            .into_iter()
            .map(TokenId::from)
            .collect();
        differs("mask", &list(&expected), &list(&mask))
    })
}

fn assert_none(differences: &[String]) {
    assert!(
        differences.is_empty(),
        "{} cases differ:\n{}",
        differences.len(),
        differences.join("\n")
    );
}

/// The folders of `tests/golden/`, each named after a template.
fn folders() -> Vec<String> {
    let entries = fs::read_dir(golden("")).unwrap().map(Result::unwrap);
    let folders = entries.filter(|entry| entry.path().is_dir());
    folders
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect()
}

#[test]
fn grammar() {
    let mut differences = Vec::new();
    let mut count = 0;
    for model in folders() {
        let encoder = Encoder::from_model(&model, None).unwrap();
        for file in fs::read_dir(golden(&model)).unwrap() {
            let file = file.unwrap().path();
            let text = fs::read(&file).unwrap();
            let case = Value::from_json(&text).unwrap();
            let difference = difference(&encoder, case.as_object().unwrap());
            differences.extend(difference.map(|text| format!("{}: {text}", file.display())));
            count += 1;
        }
    }
    assert_none(&differences);
    assert!(count >= 303, "cases are lost: {count}");
}

#[test]
fn fuzz() {
    let encoders = encoders();
    let text = gunzip("fuzz.jsonl.gz");
    let mut differences = Vec::new();
    for line in text.lines() {
        let record = Value::from_json(line.as_bytes()).unwrap();
        let case = record.as_object().unwrap();
        let string = |key| case.get(key).and_then(Value::as_str).unwrap();
        let template = Template::from_name(string("model")).unwrap();
        let difference = difference(&encoders[template.name()], case);
        differences.extend(
            difference.map(|text| format!("{} {}: {text}", template.name(), string("case"))),
        );
    }
    assert_none(&differences);
    assert_eq!(text.lines().count(), 1500);
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
