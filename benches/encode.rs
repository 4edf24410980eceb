//! How fast do conversations become ids, spans and a loss mask, from JSON and from values, in one thread and in two?
//!
//! Nothing is timed before every golden conversation yields the reference's ids, and every example conversation the ids
//! of its rendered text.

mod corpora;

use std::hint::black_box;
use std::num::NonZero;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fasttok::chat::conversation::Conversation;
use fasttok::chat::json::Value;
use fasttok::encoder::Input;
use fasttok::{Encoder, RenderOptions, TokenId};

const MODEL: &str = "kimi-k2.5";

fn ids(encoder: &Encoder, value: &Value<'_>, options: RenderOptions<'_>) -> Vec<TokenId> {
    let conversation = Conversation::from_value(value, None).expect("the conversation is sound");
    encoder
        .encode_conversation(&conversation, options.into())
        .expect("the conversation renders")
        .input_ids
}

fn check_golden(encoder: &Encoder) {
    let lines = corpora::golden(MODEL);
    assert!(!lines.is_empty());
    for line in &lines {
        let value = corpora::value(line);
        let case = value.as_object().expect("a case is an object");
        let expected = case.get("input_ids").and_then(Value::as_array);
        let found: Vec<Value<'_>> = ids(encoder, &value, corpora::options(case))
            .into_iter()
            .map(|id| Value::Int(id.into()))
            .collect();
        assert_eq!(Some(&*found), expected);
    }
}

fn bench_encode(criterion: &mut Criterion) {
    let encoder = Encoder::from_model(MODEL, None).expect("the model is known");
    check_golden(&encoder);

    let options = RenderOptions::default();
    let lines = corpora::trajectories();
    let mut bytes = 0;
    for line in &lines {
        let value = corpora::value(line);
        let conversation =
            Conversation::from_value(&value, None).expect("the conversation is sound");
        let text = encoder
            .render(&conversation, options)
            .expect("the conversation renders");
        bytes += text.len();
        let expected = encoder.tokenizer().encode_as_served(&text);
        assert_eq!(ids(&encoder, &value, options), expected);
    }

    let from_json: Vec<Input<'_>> = lines.iter().map(|line| Input::Json(line)).collect();
    let from_values: Vec<Input<'_>> = lines
        .iter()
        .map(|line| Input::Value(corpora::value(line)))
        .collect();
    let mut group = criterion.benchmark_group("encode");
    group.sample_size(20);
    group.throughput(Throughput::Bytes(bytes as u64));
    for (name, inputs) in [("json", &from_json), ("values", &from_values)] {
        for threads in [1, 2] {
            group.bench_function(BenchmarkId::new(name, threads), |bencher| {
                bencher.iter(|| {
                    encoder
                        .encode_batch(black_box(inputs), options.into(), NonZero::new(threads))
                        .expect("the conversations encode")
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, bench_encode);
criterion_main!(benches);
