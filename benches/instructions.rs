//! Runs one stage, once, on the example conversations: what `instructions.py` counts the instructions of.
//!
//! Without a name it runs every stage and prints the names. The other benches check what these stages yield.

mod corpora;

use std::env;
use std::hint::black_box;
use std::io::{self, Write as _};
use std::num::NonZero;

use fasttok::chat::conversation::Conversation;
use fasttok::chat::json::Value;
use fasttok::chat::segment::Segments;
use fasttok::encoder::Input;
use fasttok::tokenizer::bpe::Merger;
use fasttok::tokenizer::pretokenizer::pretokenize;
use fasttok::{Encoder, RenderOptions};

type Stage = fn(&Encoder);

const STAGES: &[(&str, Stage)] = &[
    ("scan", scan),
    ("merge", merge),
    ("render", render),
    ("encode from values", encode_from_values),
    ("encode from JSON", encode_from_json),
];

/// Only what happens in here is counted: callgrind is told its name.
#[inline(never)]
fn counted(stage: &mut dyn FnMut()) {
    stage();
}

fn conversation<'v>(value: &'v Value<'v>) -> Conversation<'v> {
    Conversation::from_value(value, None).expect("the conversation is sound")
}

fn rendered(encoder: &Encoder) -> String {
    let mut text = String::new();
    for line in corpora::trajectories() {
        let value = corpora::value(&line);
        let one = encoder.render(&conversation(&value), RenderOptions::default());
        text.push_str(&one.expect("the conversation renders"));
    }
    text
}

fn scan(encoder: &Encoder) {
    let text = rendered(encoder);
    counted(&mut || {
        black_box(pretokenize(black_box(&text)).fold(0, |sum: usize, piece| sum ^ piece.len()));
    });
}

/// Every piece that is no token, as often as it occurs.
fn merge(encoder: &Encoder) {
    let vocab = encoder.tokenizer().vocab();
    let text = rendered(encoder);
    let pieces: Vec<&[u8]> = pretokenize(&text)
        .map(str::as_bytes)
        .filter(|piece| vocab.get(piece).is_none())
        .collect();
    let (mut merger, mut ids) = (Merger::default(), Vec::new());
    counted(&mut || {
        for piece in &pieces {
            merger.merge_into(vocab, black_box(piece), &mut ids);
        }
    });
}

fn render(encoder: &Encoder) {
    let lines = corpora::trajectories();
    let values: Vec<Value<'_>> = lines.iter().map(|line| corpora::value(line)).collect();
    let mut segments = Segments::default();
    counted(&mut || {
        for value in &values {
            segments.clear();
            encoder
                .template()
                .render_into(
                    &conversation(black_box(value)),
                    RenderOptions::default(),
                    &mut segments,
                )
                .expect("the conversation renders");
        }
    });
}

fn encode_from_values(encoder: &Encoder) {
    let lines = corpora::trajectories();
    let values: Vec<Input<'_>> = lines
        .iter()
        .map(|line| Input::Value(corpora::value(line)))
        .collect();
    encode(encoder, &values);
}

fn encode_from_json(encoder: &Encoder) {
    let lines = corpora::trajectories();
    let texts: Vec<Input<'_>> = lines.iter().map(|line| Input::Json(line)).collect();
    encode(encoder, &texts);
}

/// In this thread, with caches that are empty at first.
fn encode(encoder: &Encoder, inputs: &[Input<'_>]) {
    counted(&mut || {
        let batch = encoder.encode_batch(
            black_box(inputs),
            RenderOptions::default().into(),
            NonZero::new(1),
        );
        black_box(batch.expect("the conversations encode"));
    });
}

fn main() -> io::Result<()> {
    let encoder = || Encoder::from_model("kimi-k2.5", None).expect("the model is known");
    // Cargo adds options of its own.
    if let Some(wanted) = env::args()
        .skip(1)
        .find(|argument| !argument.starts_with("--"))
    {
        let stage = STAGES.iter().find(|(name, _)| *name == wanted);
        let (_, run) =
            stage.unwrap_or_else(|| panic!("expected the name of a stage, found {wanted:?}"));
        run(&encoder());
    } else {
        for (name, run) in STAGES {
            run(&encoder());
            writeln!(io::stdout(), "{name}")?;
        }
    }
    Ok(())
}
