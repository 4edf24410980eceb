//! Rows as the datasets publish them, cut to what tells their shape: each is read without being told how, or refused.

use super::testing::{became, error_of};
use super::{Field, Shape};

/// `(role, text)` of each message as it is written.
fn messages(said: &[(&str, &str)]) -> String {
    let message = |(role, text): &(&str, &str)| format!("{{'role':'{role}','content':'{text}'}}");
    let messages: Vec<_> = said.iter().map(message).collect();
    format!("{{'messages':[{}]}}", messages.join(","))
}

const ASKED: [(&str, &str); 2] = [("user", "q"), ("assistant", "a")];

#[track_caller]
fn assert_read(record: &str, shape: Shape, said: &[(&str, &str)]) {
    assert_eq!(became(record, &[]), Ok((shape, messages(said))));
}

#[test]
fn glaive_function_calling_v2() {
    let record = r#"{"conversations": [
        {"from": "system", "value": "s"},
        {"from": "human", "value": "q"},
        {"from": "function_call", "value": "{\"name\": \"f\", \"arguments\": {\"x\": 1}}"},
        {"from": "function_response", "value": "{\"y\": 2}"},
        {"from": "gpt", "value": "a"}],
        "tools": "[{\"name\": \"f\", \"parameters\": {}}]"}"#;
    let expected = "{'messages':[{'role':'system','content':'s'},{'role':'user','content':'q'},\
        {'role':'assistant','tool_calls':[{'id':'functions.f:0','type':'function',\
        'function':{'name':'f','arguments':{'x':1}}}]},\
        {'role':'tool','content':'{\\'y\\': 2}','tool_call_id':'functions.f:0'},\
        {'role':'assistant','content':'a'}],\
        'tools':[{'type':'function','function':{'name':'f','parameters':{}}}]}";
    let found = became(record, &[]).unwrap();
    assert_eq!(found, (Shape::ShareGpt, expected.to_owned()));
    // The spelling of another conversion.
    let hyphened = record
        .replace("function_call", "function-call")
        .replace("function_response", "function-response");
    assert_eq!(became(&hyphened, &[]).unwrap(), found);
}

#[test]
fn open_code_instruct() {
    let record = r#"{"id": "1", "input": "q", "output": "a", "domain": "generic",
        "generation_algorithm": "self-instruct", "llm_judgement": "{}", "unit_tests": "[]",
        "tests_execution_status": "[]", "average_test_score": "1"}"#;
    assert_read(record, Shape::PromptResponse, &ASKED);
}

/// The `output` ends with the `solution`: nothing but its card says which of them answers the `input`.
#[test]
fn open_code_reasoning_has_to_be_told() {
    let record =
        r#"{"id": "1", "input": "q", "output": "a", "license": "mit", "solution": "code"}"#;
    let expected = "messages: missing; the record has id, input, output, license, solution: \
        `shape` and `fields` say how to read it";
    assert_eq!(error_of(record), expected);
    let names = [
        (Field::Prompt, "input".to_owned()),
        (Field::Response, "output".to_owned()),
    ];
    let found = became(record, &names);
    assert_eq!(found, Ok((Shape::PromptResponse, messages(&ASKED))));
}

/// The worked solution, or the bare answer?
#[test]
fn math_has_to_be_told() {
    let record = r#"{"problem": "q", "solution": "a", "answer": "4", "level": 1}"#;
    assert!(error_of(record).contains("`fields`"));
    let names = [(Field::Response, "solution".to_owned())];
    let found = became(record, &names);
    assert_eq!(found, Ok((Shape::PromptResponse, messages(&ASKED))));
}

#[test]
fn magicoder_oss_instruct() {
    let record = r#"{"lang": "python", "raw_index": 1, "index": 2, "seed": "x",
        "openai_fingerprint": "fp", "problem": "q", "solution": "a"}"#;
    assert_read(record, Shape::PromptResponse, &ASKED);
}

#[test]
fn magicoder_evol_instruct() {
    let record = r#"{"instruction": "q", "response": "a"}"#;
    assert_read(record, Shape::Instruction, &ASKED);
}

/// `prompt` is the whole text that Alpaca's own models read.
#[test]
fn python_code_instructions() {
    let record = r#"{"instruction": "q", "input": "", "output": "a", "prompt": "Below is q a"}"#;
    assert_read(record, Shape::Instruction, &ASKED);
}

#[test]
fn mixture_of_thoughts() {
    let record = r#"{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}],
        "num_tokens": 2, "source": "x"}"#;
    assert_read(record, Shape::Messages, &ASKED);
}

#[test]
fn open_thoughts() {
    let record = r#"{"system": "s", "conversations": [{"from": "user", "value": "q"},
        {"from": "assistant", "value": "a"}]}"#;
    let said = [("system", "s"), ASKED[0], ASKED[1]];
    assert_read(record, Shape::ShareGpt, &said);
}

#[test]
fn ultra_chat_is_read_by_its_messages() {
    let record = r#"{"prompt": "q", "prompt_id": "1", "messages": [{"content": "q", "role": "user"},
        {"content": "a", "role": "assistant"}]}"#;
    let (shape, out) = became(record, &[]).unwrap();
    assert_eq!(shape, Shape::Messages);
    let expected =
        "{'messages':[{'content':'q','role':'user'},{'content':'a','role':'assistant'}]}";
    assert_eq!(out, expected);
}

#[test]
fn share_gpt() {
    let record = r#"{"id": "1", "conversations": [{"from": "human", "value": "q"},
        {"from": "gpt", "value": "a"}]}"#;
    assert_read(record, Shape::ShareGpt, &ASKED);
}

#[test]
fn swe_agent_says_it_in_text() {
    for said in ["null", r#""""#] {
        let record = format!(
            r#"{{"instance_id": "1", "model_name": "m", "target": true, "exit_status": "submitted", "trajectory": [
            {{"role": "system", "text": {said}, "system_prompt": "s"}},
            {{"role": "user", "text": "q", "system_prompt": null}},
            {{"role": "ai", "text": "a", "system_prompt": null}}]}}"#
        );
        let expected = "{'messages':[{'role':'system','content':'s'},\
            {'role':'user','content':'q','system_prompt':null},\
            {'role':'assistant','content':'a','system_prompt':null}]}";
        assert_eq!(
            became(&record, &[]),
            Ok((Shape::ShareGpt, expected.to_owned()))
        );
    }
}

#[test]
fn swe_smith_has_its_messages_in_a_string() {
    let record = r#"{"messages": "[{\"role\": \"user\", \"content\": \"q\"}, {\"role\": \"assistant\", \"content\": \"a\"}]",
        "instance_id": "1", "resolved": true, "model": "m", "traj_id": "2", "patch": "p"}"#;
    assert_read(record, Shape::Messages, &ASKED);
}

#[test]
fn open_hands_trajectories() {
    let record = r#"{"trajectory_id": "1", "trajectory": [{"role": "user", "content": "q"},
        {"role": "assistant", "content": "a"}], "model_patch": "p"}"#;
    assert_read(record, Shape::Messages, &ASKED);
}
