//! `dataset::prepare`: every line accounted for, the same bytes whatever the threads, and nothing half-written.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::Write as _;
use std::num::NonZero;
use std::path::{Path, PathBuf};

use fasttok::chat::json::Value;
use fasttok::dataset::manifest::MANIFEST_FILE;
use fasttok::dataset::{
    Begun, PrepareOptions, Prepared, RECORDS_FILE, REJECTED_FILE, Summary, prepare,
};
use fasttok::{Encoder, Error, ErrorKind};

fn encoder() -> Encoder {
    Encoder::from_model("kimi-k2.5", None).unwrap()
}

fn options(inputs: &[PathBuf], output: &Path) -> PrepareOptions<'static> {
    PrepareOptions {
        inputs: inputs.to_vec(),
        output: output.to_owned(),
        ..PrepareOptions::default()
    }
}

fn run(inputs: &[PathBuf], output: &Path, threads: usize) -> Result<Summary, Error> {
    let options = PrepareOptions {
        num_threads: NonZero::new(threads),
        ..options(inputs, output)
    };
    let Prepared { summary, .. } = prepare(&encoder(), &options, |_| Ok(()))?;
    Ok(summary)
}

/// Runs until so many records are written, and stops.
fn run_until(records: u64, options: &PrepareOptions<'_>) -> Error {
    let stopped = prepare(&encoder(), options, |progress| {
        if progress.records >= records {
            Err(Error::new(ErrorKind::Interrupted, "enough"))
        } else {
            Ok(())
        }
    });
    stopped.unwrap_err()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn records(folder: &Path) -> String {
    fs::read_to_string(folder.join(RECORDS_FILE)).unwrap()
}

fn good_line(id: usize) -> String {
    format!(
        r#"{{"id": {id}, "messages": [{{"role": "user", "content": "question {id}"}}, {{"role": "assistant", "content": "answer {}"}}]}}"#,
        "long ".repeat(id % 50)
    )
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn every_line_is_written_skipped_or_failed_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("mixed.jsonl");
    let lines = [
        "\u{feff}".to_owned() + &good_line(0),
        String::new(),
        "{\"messages\": [".to_owned(),
        r#"{"messages": [{"role": "user", "content": 5}]}"#.to_owned(),
        good_line(1) + "\r",
        "   ".to_owned(),
        r#"{"messages": []}"#.to_owned(),
        good_line(2),
        // Blank to Rust, but not to JSON.
        "\u{c}".to_owned() + &good_line(3),
    ];
    fs::write(&input, lines.join("\n")).unwrap();
    let output = folder.path().join("out");
    let summary = run(std::slice::from_ref(&input), &output, 2).unwrap();

    assert_eq!((summary.records, summary.written), (9, 3));
    assert_eq!(
        summary.skipped.into_iter().collect::<Vec<_>>(),
        [("blank line".to_owned(), 2)]
    );
    assert_eq!(
        summary.failed.into_iter().collect::<Vec<_>>(),
        [("conversation".to_owned(), 2), ("json".to_owned(), 2)]
    );
    let places: Vec<(u64, String)> = summary
        .failures
        .iter()
        .map(|error| (error.place().line().unwrap(), error.place().path()))
        .collect();
    assert_eq!(
        places,
        [
            (3, String::new()),
            (4, "messages[0].content".to_owned()),
            (7, "messages".to_owned()),
            (9, String::new()),
        ]
    );
    let written = records(&output);
    let starts: Vec<&str> = written.lines().map(|line| &line[..8]).collect();
    assert_eq!(starts, [r#"{"id":0,"#, r#"{"id":1,"#, r#"{"id":2,"#]);
    let rejected = fs::read_to_string(output.join(REJECTED_FILE)).unwrap();
    assert_eq!(rejected.lines().count(), 4);
    for line in rejected.lines() {
        let entry = Value::from_json(line.as_bytes()).unwrap();
        let entry = entry.as_object().unwrap();
        assert_eq!(
            entry.get("file").and_then(Value::as_str),
            Some(input.to_str().unwrap())
        );
    }
}

#[test]
fn threads_and_compression_change_no_byte() {
    let folder = tempfile::tempdir().unwrap();
    let text: String = (0..2000).map(|id| good_line(id) + "\n").collect();
    let plain = folder.path().join("plain.jsonl");
    let zipped = folder.path().join("zipped.jsonl.gz");
    let packed = folder.path().join("packed.jsonl.zst");
    fs::write(&plain, &text).unwrap();
    // Two members, as `cat a.gz b.gz` makes them.
    let (first, second) = text.split_at(text.len() / 3);
    let members = [gzip(first.as_bytes()), gzip(second.as_bytes())].concat();
    fs::write(&zipped, members).unwrap();
    fs::write(&packed, zstd::encode_all(text.as_bytes(), 1).unwrap()).unwrap();

    let outputs: Vec<String> = [(&plain, 1), (&plain, 3), (&zipped, 2), (&packed, 2)]
        .iter()
        .enumerate()
        .map(|(index, (input, threads))| {
            let output = folder.path().join(format!("out{index}"));
            let summary = run(&[(*input).clone()], &output, *threads).unwrap();
            assert_eq!(summary.written, 2000);
            assert!(!output.join(REJECTED_FILE).exists());
            records(&output)
        })
        .collect();
    assert!(outputs.iter().all(|output| *output == outputs[0]));
}

#[test]
fn a_file_that_breaks_off_is_reported_and_the_next_one_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken.jsonl.gz");
    let whole = folder.path().join("whole.jsonl");
    let text: String = (0..100).map(|id| good_line(id) + "\n").collect();
    let zipped = gzip(text.as_bytes());
    fs::write(&broken, &zipped[..zipped.len() / 2]).unwrap();
    fs::write(&whole, &text).unwrap();
    let output = folder.path().join("out");
    let summary = run(&[broken, whole], &output, 1).unwrap();
    assert_eq!(summary.failed.get("io"), Some(&1));
    assert!(summary.written >= 100 && summary.written < 200);
    let failed: u64 = summary.failed.values().sum();
    assert_eq!(summary.records, summary.written + failed);
}

#[test]
fn a_run_that_is_stopped_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("input.jsonl");
    // Several chunks, with lines that fail among them.
    let lines: Vec<_> = (0..60_000)
        .map(|id| match id % 1000 {
            7 => "{\"messages\": 7}".to_owned(),
            _ => good_line(id),
        })
        .collect();
    fs::write(&input, lines.join("\n")).unwrap();
    let undisturbed = folder.path().join("undisturbed");
    run(std::slice::from_ref(&input), &undisturbed, 2).unwrap();

    let output = folder.path().join("out");
    let options = options(&[input], &output);
    for records in [0, 1] {
        let error = run_until(records, &options);
        assert_eq!(error.kind(), ErrorKind::Interrupted);
        assert!(!output.join(RECORDS_FILE).exists());
        assert_eq!(output.exists(), records > 0);
    }
    let done = prepare(&encoder(), &options, |_| Ok(())).unwrap();
    assert!(matches!(done.begun, Begun::Resumed(records) if 0 < records && records < 60_000));
    assert_eq!(names(&output), names(&undisturbed));
    for name in names(&output) {
        let (one, other) = (output.join(&name), undisturbed.join(&name));
        assert!(fs::read(one).unwrap() == fs::read(other).unwrap(), "{name}");
    }
    let again = prepare(&encoder(), &options, |_| Ok(())).unwrap();
    assert_eq!(again.begun, Begun::Done);
    assert_eq!(again.summary.records, 60_000);
}

#[test]
fn a_folder_that_was_prepared_otherwise_is_refused_or_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("input.jsonl");
    fs::write(&input, good_line(0)).unwrap();
    let output = folder.path().join("out");
    let mut options = options(std::slice::from_ref(&input), &output);
    prepare(&encoder(), &options, |_| Ok(())).unwrap();
    let before = records(&output);

    let refusal = |options: &PrepareOptions<'_>| {
        let error = prepare(&encoder(), options, |_| Ok(())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Option);
        error.message().to_owned()
    };
    options.keep = vec!["source".to_owned()];
    let message = refusal(&options);
    assert!(
        message.contains("keep was [], now [\"source\"]"),
        "{message}"
    );
    options.keep = Vec::new();
    // Of the same length, so that only what it holds tells.
    fs::write(&input, good_line(0).replace("question", "Question")).unwrap();
    let message = refusal(&options);
    assert!(message.contains("holds something else"), "{message}");
    fs::write(&input, good_line(1)).unwrap();
    let message = refusal(&options);
    assert!(message.contains(" bytes, now "), "{message}");
    assert_eq!(records(&output), before);

    options.overwrite = true;
    prepare(&encoder(), &options, |_| Ok(())).unwrap();
    assert!(records(&output).starts_with("{\"id\":1,"));

    // What no manifest tells of is not ours to replace.
    fs::remove_file(output.join(MANIFEST_FILE)).unwrap();
    options.overwrite = false;
    assert!(refusal(&options).starts_with("this file is there already"));
}

#[test]
fn a_missing_input_is_an_error_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out");
    let missing = folder.path().join("missing.jsonl");
    let error = run(std::slice::from_ref(&missing), &output, 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert_eq!(error.place().file(), missing.to_str());
    assert!(!output.exists());
}
