//! `docs/adding-a-template.md`, followed to the letter in a copy of the sources: one new file, one new line.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::process::Command;

/// What the page promises of the template that it adds.
const CHECK: &str = r##"
use fasttok::chat::conversation::Conversation;
use fasttok::chat::json::Value;
use fasttok::{Encoder, RenderOptions};

#[test]
fn the_toy_renders_and_trains() {
    let messages = br#"[{"role": "user", "content": "U"}, {"role": "assistant", "content": "A"}]"#;
    let messages = Value::from_json(messages).unwrap();
    let conversation = Conversation::from_value(&messages, None).unwrap();
    let encoder = Encoder::from_model("Toy-1B-Instruct", None).unwrap();
    let options = RenderOptions::default();
    assert_eq!(
        encoder.render(&conversation, options).unwrap(),
        "<|im_system|>system<|im_middle|>toy<|im_end|><|im_user|>user<|im_middle|>U<|im_end|><|im_assistant|>assistant\
         <|im_middle|>A<|im_end|>"
    );
    let one = encoder.encode_conversation(&conversation, options.into()).unwrap();
    // The assistant's `A` and `<|im_end|>`.
    assert_eq!(one.loss_mask, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
}
"##;

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_folder(&path, &target);
        } else {
            fs::copy(&path, target).unwrap();
        }
    }
}

/// The blocks of Rust code on the page.
fn code_blocks(page: &str) -> Vec<&str> {
    page.split("```rust\n")
        .skip(1)
        .map(|rest| rest.split_once("```").unwrap().0)
        .collect()
}

#[test]
fn one_file_and_one_line_add_a_template() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(project.join("docs/adding-a-template.md")).unwrap();
    let [file, list] = code_blocks(&page)[..] else {
        panic!("the page has another number of code blocks");
    };

    let copy = tempfile::tempdir().unwrap();
    copy_folder(&project.join("rust"), &copy.path().join("rust"));
    fs::copy(project.join("Cargo.lock"), copy.path().join("Cargo.lock")).unwrap();
    // Benches and tests are not copied, so the manifest must not name them.
    let manifest = fs::read_to_string(project.join("Cargo.toml")).unwrap();
    let manifest: Vec<&str> = manifest
        .split("\n\n")
        .filter(|table| !table.starts_with("[[bench]]") && !table.starts_with("[[test]]"))
        .collect();
    fs::write(copy.path().join("Cargo.toml"), manifest.join("\n\n")).unwrap();

    let templates = copy.path().join("rust/chat/templates");
    fs::write(templates.join("toy.rs"), file).unwrap();
    let module = fs::read_to_string(templates.join("mod.rs")).unwrap();
    let first_line = list.lines().next().unwrap();
    assert_eq!(module.matches(&format!("\n{first_line}\n")).count(), 1);
    let with_line = module.replacen(&format!("\n{first_line}\n"), &format!("\n{list}"), 1);
    assert_eq!(with_line.lines().count(), module.lines().count() + 1);
    fs::write(templates.join("mod.rs"), with_line).unwrap();
    fs::create_dir(copy.path().join("tests")).unwrap();
    fs::write(copy.path().join("tests/toy.rs"), CHECK).unwrap();

    // The same target folder, so that the dependencies are not built a second time.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let output = Command::new(env!("CARGO"))
        .args(["test", "--offline", "--test", "toy"])
        .current_dir(copy.path())
        .env("CARGO_TARGET_DIR", target)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
