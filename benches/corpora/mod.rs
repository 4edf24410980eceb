//! What the benches run on: made-up texts of four kinds, the example conversations, and the golden ones.

#![allow(dead_code, reason = "each bench takes what it needs")]

use std::fs;
use std::io::Read as _;
use std::path::Path;

use fasttok::chat::json::{Object, Value};
use fasttok::{RenderOptions, Template};

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

/// Texts of four kinds, 1 MiB each.
pub(crate) fn texts() -> [(&'static str, String); 4] {
    [
        ("english", generate(&words(ENGLISH), " ")),
        ("code", generate(CODE, "")),
        ("chinese", generate(&words(CHINESE), "")),
        ("mixed", generate(MIXED, "")),
    ]
}

fn read(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The lines of `examples/trajectories.jsonl`.
pub(crate) fn trajectories() -> Vec<Vec<u8>> {
    read("examples/trajectories.jsonl")
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(<[u8]>::to_vec)
        .collect()
}

/// The lines of `tests/golden/fuzz.jsonl.gz` that belong to `model` and that the reference and fasttok both encode.
pub(crate) fn golden(model: &str) -> Vec<Vec<u8>> {
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(&*read("tests/golden/fuzz.jsonl.gz"))
        .read_to_end(&mut text)
        .expect("the file is gzip");
    text.split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
        .filter(|line| {
            let value = value(line);
            let case = value.as_object().expect("a case is an object");
            let name = case.get("model").and_then(Value::as_str);
            let template = Template::from_name(name.expect("a case names its model"));
            let is_model = template.is_ok_and(|template| template.name() == model);
            let differs = ["error", "fasttok_error", "fasttok_text"];
            is_model && differs.iter().all(|key| case.get(key).is_none())
        })
        .map(<[u8]>::to_vec)
        .collect()
}

/// A line as a value.
pub(crate) fn value(line: &[u8]) -> Value<'_> {
    Value::from_json(line).expect("the line is JSON")
}

/// The template switches of a golden case.
pub(crate) fn options<'v>(case: &'v Object<'_>) -> RenderOptions<'v> {
    let options = case.get("options").and_then(Value::as_object);
    options.map_or_else(RenderOptions::default, |options| {
        RenderOptions::from_object(options).expect("the options are known")
    })
}
