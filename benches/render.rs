//! How fast does a template turn conversations into segments, without ids?
//!
//! Nothing is timed before every golden conversation of the template renders to the reference's text.

mod corpora;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fasttok::chat::conversation::Conversation;
use fasttok::chat::json::Value;
use fasttok::chat::segment::Segments;
use fasttok::{RenderOptions, Template};

fn conversation<'v>(value: &'v Value<'v>) -> Conversation<'v> {
    Conversation::from_value(value, None).expect("the conversation is sound")
}

fn rendered(template: Template, value: &Value<'_>, options: RenderOptions<'_>) -> String {
    let mut segments = Segments::default();
    template
        .render_into(&conversation(value), options, &mut segments)
        .expect("the conversation renders");
    let mut text = String::new();
    segments.write_rendered(&mut text);
    text
}

fn check_golden(template: Template) {
    let lines = corpora::golden(template.name());
    assert!(!lines.is_empty(), "no golden case for {}", template.name());
    for line in &lines {
        let value = corpora::value(line);
        let case = value.as_object().expect("a case is an object");
        let text = rendered(template, &value, corpora::options(case));
        assert_eq!(Some(&*text), case.get("text").and_then(Value::as_str));
    }
}

fn bench_render(criterion: &mut Criterion) {
    let lines = corpora::trajectories();
    let values: Vec<Value<'_>> = lines.iter().map(|line| corpora::value(line)).collect();
    let mut group = criterion.benchmark_group("render");
    // Each a grammar of its own.
    for name in ["kimi-k2", "kimi-k2.5", "kimi-k2.6", "kimi-k3"] {
        let template = Template::from_name(name).expect("the template is known");
        check_golden(template);
        let options = RenderOptions::default();
        let bytes: usize = values
            .iter()
            .map(|value| rendered(template, value, options).len())
            .sum();
        group.throughput(Throughput::Bytes(bytes as u64));
        let mut segments = Segments::default();
        group.bench_function(
            BenchmarkId::new("trajectories", template.name()),
            |bencher| {
                bencher.iter(|| {
                    for value in &values {
                        segments.clear();
                        let conversation = conversation(black_box(value));
                        template
                            .render_into(&conversation, options, &mut segments)
                            .expect("the conversation renders");
                        black_box(segments.as_slice());
                    }
                });
            },
        );
    }
    group.finish();
}

criterion_group!(benches, bench_render);
criterion_main!(benches);
