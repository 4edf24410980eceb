//! How fast is text split into pieces?
//!
//! Nothing is timed before its pieces are those of the pattern. The regex engine is timed beside the scanner, on the same
//! texts.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fancy_regex::Regex;
use fasttok::tokenizer::pretokenizer::{PATTERN, pretokenize};

const TEXT_LEN: usize = 1 << 20;

const ENGLISH: &str = "\
    the of and to in a is that it was for on with as be at by this from which would there their because \
    between through another government understanding language model training conversation doesn't it's \
    we'll I've However London NASA well-known 1999 3.14 (see below) \"quoted\"";

const CODE: &[&str] = &[
    "fn next(&mut self) -> Option<usize> {\n",
    "    let mut total = 0;\n",
    "    for (index, value) in values.iter().enumerate() {\n",
    "        if value.is_empty() && index > 0x1F {\n            continue;\n        }\n",
    "        total += parseHTTPHeader(value)?.len();\n",
    "    }\n\n",
    "    // Every request is answered once, in order.\n",
    "    assert_eq!(total, 1024, \"{}\", path.display());\n",
    "}\n\n",
    "def __init__(self, *args, **kwargs):\n\tsuper().__init__()\n\tself._cache: dict[str, int] = {}\n",
    "{\"name\": \"read_file\", \"arguments\": {\"path\": \"/etc/hosts\", \"limit\": 200}}\n",
];

const CHINESE: &str = "\
    人工智能 正在 改变 我们 的 生活 ， 研究 人员 发现 这个 模型 在 很多 任务 上 都 有 \
    提高 。 \n “ 你好 ” 、 2024 年 第 3 季度 ： 可以";

const MIXED: &[&str] = &[
    "The model ",
    "模型",
    "训练。",
    " naïve café ",
    "Привет, ",
    "мир! ",
    "こんにちは",
    "カタカナー",
    "한국어 ",
    "नमस्ते ",
    "مرحبا ",
    "🙂",
    "👩‍💻 ",
    "$3.50 ",
    "\r\n",
    "    ",
    "x² + y³",
    " → ",
    "`code`",
    "2024-11-30T23:59:59Z ",
    "# Title\n\n",
    "—",
];

/// About `TEXT_LEN` bytes of `parts` in a random but fixed order, with `between` after each.
fn generate(parts: &[&str], between: &str) -> String {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut text = String::new();
    while text.len() < TEXT_LEN {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        text.push_str(parts[(state >> 11) as usize % parts.len()]);
        text.push_str(if state.is_multiple_of(15) {
            ". "
        } else {
            between
        });
    }
    text
}

fn words(list: &str) -> Vec<&str> {
    list.split(' ').collect()
}

fn inputs() -> [(&'static str, String); 4] {
    [
        ("english", generate(&words(ENGLISH), " ")),
        ("code", generate(CODE, "")),
        ("chinese", generate(&words(CHINESE), "")),
        ("mixed", generate(MIXED, "")),
    ]
}

fn bench_pretokenize(criterion: &mut Criterion) {
    let regex = Regex::new(PATTERN).expect("the pattern is valid");
    let mut group = criterion.benchmark_group("pretokenize");
    for (name, text) in inputs() {
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
