//! How fast is text split into pieces?
//!
//! Nothing is timed before its pieces are those of the pattern. The regex engine is timed beside the scanner, on the same
//! texts.

mod corpora;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fancy_regex::Regex;
use fasttok::tokenizer::pretokenizer::{PATTERN, pretokenize};

fn bench_pretokenize(criterion: &mut Criterion) {
    let regex = Regex::new(PATTERN).expect("the pattern is valid");
    let mut group = criterion.benchmark_group("pretokenize");
    for (name, text) in corpora::texts() {
        let expected = regex
            .find_iter(&text)
            .map(|found| found.expect("no limit is reached").as_str());
        assert!(
            pretokenize(&text).eq(expected),
            "{name}: the pieces differ from the pattern's"
        );

        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(BenchmarkId::new("scanner", name), |bencher| {
            bencher.iter(|| {
                pretokenize(black_box(&text))
                    .fold(0, |sum: usize, piece| sum ^ black_box(piece).len())
            });
        });
        group.sample_size(10);
        group.bench_function(BenchmarkId::new("regex", name), |bencher| {
            bencher.iter(|| regex.find_iter(black_box(&text)).count());
        });
        group.sample_size(100);
    }
    group.finish();
}

criterion_group!(benches, bench_pretokenize);
criterion_main!(benches);
