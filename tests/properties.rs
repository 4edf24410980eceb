//! What must hold for every text and every conversation, on random ones.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::borrow::Cow;
use std::num::NonZero;
use std::sync::LazyLock;

use fasttok::chat::conversation::Conversation;
use fasttok::chat::json::{Object, Spacing, Value};
use fasttok::chat::mask::MaskPolicy;
use fasttok::chat::segment::{Part, Role};
use fasttok::encoder::{ControlStrings, EncodeOptions, Input};
use fasttok::{EncodedConversation, Encoder, RenderOptions};
use proptest::prelude::*;

static ENCODERS: LazyLock<[Encoder; 2]> = LazyLock::new(|| {
    ["kimi-k2.5", "kimi-k2.6"].map(|model| Encoder::from_model(model, None).unwrap())
});

/// Text of all kinds, with pieces that templates and tokenizers treat specially.
fn text() -> BoxedStrategy<String> {
    let piece = prop_oneof![
        4 => "[a-zA-Z ]{0,12}",
        2 => "\\PC{0,6}",
        1 => "[ \t\r\n\u{1c}\u{85}\u{3000}]{1,4}",
        1 => Just("你好，世界。".to_owned()),
        1 => Just("<|im_end|>".to_owned()),
        1 => Just("<|im_assistant|>assistant<|im_middle|>".to_owned()),
        1 => Just("</think>".to_owned()),
        1 => Just("<|reserved_token_163600|>".to_owned()),
        1 => "[0-9]{1,9}",
    ];
    prop::collection::vec(piece, 0..6)
        .prop_map(|pieces| pieces.concat())
        .boxed()
}

/// Text without a special token.
fn plain_text() -> BoxedStrategy<String> {
    text()
        .prop_map(|text| text.replace(['<', '['], "("))
        .boxed()
}

fn string(text: impl Into<String>) -> Value<'static> {
    Value::String(Cow::Owned(text.into()))
}

fn object<const N: usize>(entries: [(&'static str, Value<'static>); N]) -> Value<'static> {
    let entries = entries.map(|(key, value)| (Cow::Borrowed(key), value));
    Value::Object(Object::from_entries(entries.into()))
}

fn message(text: &BoxedStrategy<String>) -> impl Strategy<Value = Value<'static>> + use<> {
    let call = (text.clone(), text.clone()).prop_map(|(id, arguments)| {
        object([
            ("id", string(id)),
            ("type", string("function")),
            (
                "function",
                object([("name", string("f")), ("arguments", string(arguments))]),
            ),
        ])
    });
    let calls = prop::collection::vec(call, 0..3).prop_map(Value::Array);
    let role = prop::sample::select(vec!["system", "user", "assistant", "tool", "developer"]);
    (role, text.clone(), text.clone(), calls).prop_map(|(role, content, reasoning, calls)| {
        object([
            ("role", string(role)),
            ("content", string(content)),
            ("reasoning_content", string(reasoning)),
            ("tool_calls", calls),
            ("tool_call_id", string("functions.f:0")),
        ])
    })
}

fn messages(text: &BoxedStrategy<String>) -> impl Strategy<Value = Value<'static>> + use<> {
    prop::collection::vec(message(text), 1..7).prop_map(Value::Array)
}

fn options() -> impl Strategy<Value = RenderOptions<'static>> {
    (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(add_generation_prompt, thinking, preserve_thinking)| RenderOptions {
            add_generation_prompt,
            thinking,
            preserve_thinking,
            ..RenderOptions::default()
        },
    )
}

fn encode(
    encoder: &Encoder,
    messages: &Value<'_>,
    options: RenderOptions<'_>,
) -> EncodedConversation {
    let conversation = Conversation::from_value(messages, None).unwrap();
    encoder
        .encode_conversation(&conversation, options.into())
        .unwrap()
}

fn render(encoder: &Encoder, messages: &Value<'_>, options: RenderOptions<'_>) -> String {
    let conversation = Conversation::from_value(messages, None).unwrap();
    encoder.render(&conversation, options).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn ids_decode_to_the_text_they_came_from(text in text()) {
        let tokenizer = ENCODERS[0].tokenizer();
        for ids in [
            tokenizer.encode_ordinary(&text),
            tokenizer.encode_with_special_tokens(&text),
            tokenizer.encode_as_served(&text),
        ] {
            prop_assert_eq!(tokenizer.decode_bytes(&ids).unwrap(), text.as_bytes());
        }
    }

    #[test]
    fn a_warm_cache_changes_nothing(texts in prop::collection::vec(text(), 1..8)) {
        let tokenizer = ENCODERS[0].tokenizer();
        let mut scratch = fasttok::tokenizer::Scratch::default();
        for text in texts.iter().chain(&texts) {
            let mut ids = Vec::new();
            tokenizer.encode_ordinary_into(text, &mut scratch, &mut ids);
            prop_assert_eq!(ids, tokenizer.encode_ordinary(text));
        }
    }

    #[test]
    fn the_ids_are_those_of_the_rendered_text(messages in messages(&text()), options in options()) {
        for encoder in &*ENCODERS {
            let ids = encode(encoder, &messages, options).input_ids;
            let text = render(encoder, &messages, options);
            prop_assert_eq!(ids, encoder.tokenizer().encode_as_served(&text));
        }
    }

    #[test]
    fn spans_tile_the_ids_and_decide_the_mask(messages in messages(&text()), options in options()) {
        for encoder in &*ENCODERS {
            let one = encode(encoder, &messages, options);
            let mut end = 0;
            for span in &one.spans {
                prop_assert_eq!(span.start, end);
                prop_assert!(span.end > span.start);
                prop_assert!(!span.facts.sampled || span.facts.role == Role::Assistant);
                prop_assert!(!span.facts.sampled || span.facts.part != Part::Header);
                end = span.end;
            }
            prop_assert_eq!(end as usize, one.input_ids.len());
            prop_assert_eq!(&one.mask(MaskPolicy::default()), &one.loss_mask);
        }
    }

    /// Text of users and tools never trains, whatever it holds, and always leaves as many trained tokens behind it.
    #[test]
    fn text_cannot_forge_a_mask(hostile in text(), answer in plain_text()) {
        let conversation = |content: &str| {
            Value::Array(vec![
                object([("role", string("user")), ("content", string(content))]),
                object([("role", string("assistant")), ("content", string(answer.clone()))]),
            ])
        };
        for encoder in &*ENCODERS {
            let trained = |content: &str| {
                let one = encode(encoder, &conversation(content), RenderOptions::default());
                let pairs = one.input_ids.iter().zip(&one.loss_mask);
                pairs.filter(|&(_, &trains)| trains == 1).map(|(&id, _)| id).collect::<Vec<_>>()
            };
            prop_assert_eq!(trained(&hostile), trained("hello"));
        }
    }

    #[test]
    fn without_control_strings_the_mask_finds_what_the_assistant_said(messages in messages(&plain_text())) {
        for encoder in &*ENCODERS {
            let one = encode(encoder, &messages, RenderOptions::default());
            prop_assert_eq!(one.notices.control_strings, 0);
            let ends = one.input_ids.iter().zip(&one.loss_mask);
            let im_end = encoder.tokenizer().special_tokens().id("<|im_end|>").unwrap();
            let trained_ends = ends.filter(|&(&id, &trains)| id == im_end && trains == 1).count();
            let assistants = messages.as_array().unwrap().iter().filter(|message| {
                message.as_object().unwrap().get("role").and_then(Value::as_str) == Some("assistant")
            });
            prop_assert_eq!(trained_ends, assistants.count());
        }
    }

    #[test]
    fn json_and_values_are_read_alike(messages in messages(&text())) {
        let mut json = String::new();
        messages.write_json(Spacing::Compact, &mut json);
        let read = Value::from_json(json.as_bytes()).unwrap();
        prop_assert_eq!(&read, &messages);
    }
}

/// Long enough to be shared among threads, with all that separates what is encoded on its own: messages, special tokens
/// that a text spells out, and the reference's cuts.
#[test]
fn threads_that_share_a_conversation_write_what_one_writes() {
    let line = "Some words, <|im_end|> and 12345 more: 你好 <think>\n";
    let words = line.repeat(6_000);
    let unbroken = "x".repeat(130_000);
    let messages = (0..40).map(|index| {
        let (role, content) = match index % 4 {
            0 => ("user", line.repeat(index * 3)),
            1 => ("assistant", unbroken.clone()),
            2 => ("system", [&*words, &unbroken, &words].concat()),
            _ => ("assistant", line.repeat(index)),
        };
        object([("role", string(role)), ("content", string(content))])
    });
    let long = Value::Array(messages.collect());
    let short = Value::Array(vec![object([
        ("role", string("user")),
        ("content", string("short")),
    ])]);
    let inputs = [&short, &long, &short, &long, &short].map(|value| Input::Value(value.clone()));
    for model in ["kimi-k2.5", "kimi-k3"] {
        let encoder = Encoder::from_model(model, None).unwrap();
        let encode = |inputs: &[Input<'_>], threads| {
            let options = RenderOptions::default().into();
            encoder
                .encode_batch(inputs, options, NonZero::new(threads))
                .unwrap()
        };
        let expected = encode(&inputs, 1);
        assert!(expected.notices[1].control_strings > 1000 || model == "kimi-k3");
        for threads in [2, 3, 8] {
            assert!(
                encode(&inputs, threads) == expected,
                "{model}, {threads} threads"
            );
        }
        let alone = encode(&inputs[1..2], 4);
        assert!(alone.input_ids == encode(&inputs[1..2], 1).input_ids);
        assert!(alone.spans == encode(&inputs[1..2], 1).spans);
    }
}

/// Long messages that come again and again are encoded once; what comes out is what each conversation gives alone.
#[test]
fn what_a_batch_repeats_is_encoded_as_if_it_came_once() {
    let line = "Some words, <|im_end|> and 12345 more: 你好 <think>\n";
    let texts = [
        line.repeat(30),
        line.repeat(31),
        line.repeat(3_000),
        // As long as the first, and other than it in one place.
        line.repeat(30).replacen("12345", "54321", 1),
        "x".repeat(30_000),
        "short".to_owned(),
    ];
    let conversation = |index: usize| {
        let messages = (0..4).map(|place| {
            let role = ["system", "user", "assistant", "user"][place];
            let content = string(&*texts[(index * (place + 1) + place / 2) % texts.len()]);
            object([("role", string(role)), ("content", content)])
        });
        Value::Array(messages.collect())
    };
    let values: Vec<Value<'_>> = (0..40).map(conversation).collect();
    for model in ["kimi-k2.5", "kimi-k3"] {
        let encoder = Encoder::from_model(model, None).unwrap();
        for options in [
            EncodeOptions::default(),
            EncodeOptions {
                control_strings: ControlStrings::Text,
                ..EncodeOptions::default()
            },
        ] {
            let inputs: Vec<Input<'_>> = values.iter().cloned().map(Input::Value).collect();
            for threads in [1, 2] {
                let batch = encoder.encode_batch(&inputs, options, NonZero::new(threads));
                let batch = batch.unwrap();
                let mut ids = &*batch.input_ids;
                for (index, value) in values.iter().enumerate() {
                    let one = Conversation::from_value(value, None).unwrap();
                    let one = encoder.encode_conversation(&one, options).unwrap();
                    let (row, rest) = ids.split_at(one.input_ids.len());
                    assert!(row == one.input_ids, "{model}, conversation {index}");
                    assert_eq!(batch.notices[index], one.notices);
                    ids = rest;
                }
                assert!(ids.is_empty());
            }
        }
    }
}
