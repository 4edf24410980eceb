//! What is odd in a conversation and renders all the same.
//!
//! A template prints a result that answers no call as willingly as one that does. Each oddity is a [`Finding`]: a
//! stable code, a message and a place. What cannot be rendered at all is an error of reading or of the template, and
//! not here.

use std::borrow::Cow;

use memchr::memmem;
use rustc_hash::FxHashMap;

use crate::chat::conversation::{
    Arguments, Content, Conversation, Ignored, Message, PartKind, ToolCall,
};
use crate::chat::json::{self, Value};
use crate::chat::pairing::{Answer, Call, Pairing};
use crate::chat::segment::Role;
use crate::chat::templates::{CallsNamedBy, ToolNulls};
use crate::chat::tool_declaration::{Step, first_padding};
use crate::error::{Error, ErrorKind, Place};

/// The kinds of oddity. The names are stable: programs may rely on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FindingCode {
    /// A result that answers no call before it.
    OrphanToolResult,
    /// A second result of one call.
    DuplicateToolResult,
    /// A call without a result, in a conversation that goes on.
    MissingToolResult,
    /// A result that does not say which call it answers.
    ToolResultWithoutId,
    /// A call without an id, where the template shows nothing else of what is called.
    ToolCallWithoutId,
    /// Two calls of one message with the same id.
    DuplicateToolCallId,
    /// Calls on a message that is not the assistant's, which no template shows.
    ToolCallsOutsideAssistant,
    /// A role that is none of system, user, assistant and tool.
    UnknownRole,
    /// A message of the user or the assistant that says nothing and calls nothing.
    EmptyTurn,
    /// Arguments that are a JSON string with the JSON of an object in it.
    DoubleEncodedArguments,
    /// Arguments as a string that is not the JSON of an object.
    MalformedArguments,
    /// What looks like reasoning, under a key that no template reads.
    UnknownReasoningKey,
    /// `<think>` or `</think>` in what an assistant message says, which no template takes for reasoning.
    InlineThink,
    /// A training flag or weight on a message that never trains.
    IgnoredFlag,
    /// A null that counts as absent here, and that some template of a model prints or takes for an image. One a
    /// conversation.
    NullPadding,
}

impl FindingCode {
    /// Every code with its name.
    pub const ALL: [(Self, &'static str); 15] = [
        (Self::OrphanToolResult, "orphan_tool_result"),
        (Self::DuplicateToolResult, "duplicate_tool_result"),
        (Self::MissingToolResult, "missing_tool_result"),
        (Self::ToolResultWithoutId, "tool_result_without_id"),
        (Self::ToolCallWithoutId, "tool_call_without_id"),
        (Self::DuplicateToolCallId, "duplicate_tool_call_id"),
        (
            Self::ToolCallsOutsideAssistant,
            "tool_calls_outside_assistant",
        ),
        (Self::UnknownRole, "unknown_role"),
        (Self::EmptyTurn, "empty_turn"),
        (Self::DoubleEncodedArguments, "double_encoded_arguments"),
        (Self::MalformedArguments, "malformed_arguments"),
        (Self::UnknownReasoningKey, "unknown_reasoning_key"),
        (Self::InlineThink, "inline_think"),
        (Self::IgnoredFlag, "ignored_flag"),
        (Self::NullPadding, "null_padding"),
    ];

    /// The name that Python and the reports use.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        let found = Self::ALL.iter().find(|(code, _)| *code == self);
        found.map_or("", |(_, name)| name)
    }

    /// The code of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(_, known)| *known == name);
        found.map(|(code, _)| *code)
    }
}

/// One oddity, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    code: FindingCode,
    fault: Error,
}

impl Finding {
    fn new(code: FindingCode, message: impl Into<Cow<'static, str>>) -> Self {
        let fault = Error::new(ErrorKind::Validation, message);
        Self { code, fault }
    }

    fn at(self, key: impl Into<Cow<'static, str>>) -> Self {
        let fault = self.fault.at(key);
        Self { fault, ..self }
    }

    fn at_index(self, index: usize) -> Self {
        let fault = self.fault.at_index(index);
        Self { fault, ..self }
    }

    /// What kind of oddity it is.
    #[must_use]
    pub fn code(&self) -> FindingCode {
        self.code
    }

    /// The same oddity, in another place.
    #[must_use]
    pub fn in_place(self, place: Place) -> Self {
        let fault = self.fault.in_place(place);
        Self { fault, ..self }
    }

    /// Where it is.
    #[must_use]
    pub fn place(&self) -> &Place {
        self.fault.place()
    }

    /// What was found, and what becomes of it.
    #[must_use]
    pub fn message(&self) -> &str {
        self.fault.message()
    }

    /// The oddity as an error, for those who want none.
    #[must_use]
    pub fn to_error(&self) -> Error {
        let message = format!("{} ({})", self.message(), self.code.as_str());
        self.fault.with_message(message)
    }
}

/// How a conversation is looked at: some things are odd for one template, and another's own form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// How the template names the function of a call.
    pub calls_named_by: CallsNamedBy,
    /// What becomes of nulls in tool declarations.
    pub tool_nulls: ToolNulls,
}

/// All that is odd in a conversation: first what single messages hold, in their order, then what calls and results make
/// of each other, then the tools.
#[must_use]
pub fn findings(conversation: &Conversation<'_>, view: View) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut is_padded = false;
    for (index, message) in conversation.messages.iter().enumerate() {
        check_message(message, view, &mut |finding: Finding| {
            let is_padding = finding.code == FindingCode::NullPadding;
            if !(is_padding && std::mem::replace(&mut is_padded, true)) {
                found.push(finding.at_index(index).at("messages"));
            }
        });
    }
    check_pairing(
        &conversation.messages,
        view.calls_named_by,
        &mut |index, finding| {
            found.push(finding.at_index(index).at("messages"));
        },
    );
    if view.tool_nulls == ToolNulls::Absent
        && !is_padded
        && let Some(way) = first_padding(conversation.tools)
    {
        found.push(padding_in_tools(way));
    }
    found
}

fn padding_in_tools(way: Vec<Step<'_>>) -> Finding {
    let message = "null counts as absent here, and the model's own code may print it";
    let finding = Finding::new(FindingCode::NullPadding, message);
    let step = |finding: Finding, step: Step<'_>| match step {
        Step::Key(key) => finding.at(key.to_owned()),
        Step::Index(index) => finding.at_index(index),
    };
    way.into_iter().fold(finding, step).at("tools")
}

fn check_message(message: &Message<'_>, view: View, add: &mut impl FnMut(Finding)) {
    let role = Role::from_name(message.role);
    if role == Role::Other {
        let message = format!(
            "`{}` is none of system, user, assistant and tool: Kimi-K3 leaves such a message out, the others show it in \
             their own ways",
            message.role
        );
        add(Finding::new(FindingCode::UnknownRole, message).at("role"));
    }
    if view.tool_nulls == ToolNulls::Absent
        && let Some(way) = first_padding(message.tools)
    {
        add(padding_in_tools(way));
    }
    for ignored in &message.ignored {
        let is_beside_the_point = match ignored {
            // Servers repeat it there, in other forms.
            Ignored::Reasoning(_) => role != Role::Assistant || !message.reasoning.is_absent(),
            Ignored::ToolCalls | Ignored::Flag(_) | Ignored::NullMedia { .. } => false,
        };
        if is_beside_the_point {
            continue;
        }
        add(match ignored {
            Ignored::ToolCalls => Finding::new(
                FindingCode::ToolCallsOutsideAssistant,
                "only an assistant message has calls: these are not shown",
            )
            .at("tool_calls"),
            Ignored::Flag(key) => Finding::new(
                FindingCode::IgnoredFlag,
                "only an assistant message can train: this says nothing",
            )
            .at((*key).to_owned()),
            Ignored::Reasoning(key) => Finding::new(
                FindingCode::UnknownReasoningKey,
                "no template reads this key: reasoning goes under `reasoning_content`",
            )
            .at((*key).to_owned()),
            Ignored::NullMedia { part, key } => Finding::new(
                FindingCode::NullPadding,
                "null counts as absent here, and Kimi-K2's own template prints an image",
            )
            .at((*key).to_owned())
            .at_index(*part)
            .at("content"),
        });
    }
    if matches!(role, Role::User | Role::Assistant)
        && message.tool_calls.is_empty()
        && message.reasoning.is_absent()
        && is_blank(&message.content)
    {
        let finding = Finding::new(FindingCode::EmptyTurn, "nothing is said in this message");
        add(finding);
    }
    if role == Role::Assistant {
        if let Some(tag) = inline_think(&message.content) {
            let message = format!(
                "`{tag}` in content is not taken for reasoning, which goes under `reasoning_content`"
            );
            add(Finding::new(FindingCode::InlineThink, message).at("content"));
        }
        check_calls(&message.tool_calls, view, add);
    }
}

fn check_calls(calls: &[ToolCall<'_>], view: View, add: &mut impl FnMut(Finding)) {
    let mut ids: FxHashMap<&str, usize> = FxHashMap::default();
    for (index, call) in calls.iter().enumerate() {
        // Most messages make one call, and need no map.
        if let Some(id) = call.id.filter(|id| !id.is_empty() && calls.len() > 1)
            && let Some(first) = ids.insert(id, index)
        {
            let message = format!("call {first} of this message has the same id");
            let finding = Finding::new(FindingCode::DuplicateToolCallId, message).at("id");
            add(finding.at_index(index).at("tool_calls"));
        }
        if view.calls_named_by == CallsNamedBy::Id && call.id.is_none_or(str::is_empty) {
            let message = "templates from K2 to K2.7 print an empty id, and show nothing else of what is called";
            let finding = Finding::new(FindingCode::ToolCallWithoutId, message);
            add(finding.at_index(index).at("tool_calls"));
        }
        if let Arguments::Text(text) = call.arguments
            && let Some(finding) = check_arguments(text, view)
        {
            let finding = finding.at("arguments").at("function");
            add(finding.at_index(index).at("tool_calls"));
        }
    }
}

fn check_arguments(text: &str, view: View) -> Option<Finding> {
    let is_none = view.calls_named_by == CallsNamedBy::Function && text.trim().is_empty();
    if is_none || json::is_object(text) {
        return None;
    }
    match Value::from_possible_json(text) {
        Ok(Some(Value::String(inner))) if json::is_object(&inner) => Some(Finding::new(
            FindingCode::DoubleEncodedArguments,
            "expected the JSON of an object, found that JSON as a JSON string",
        )),
        Ok(_) => Some(Finding::new(
            FindingCode::MalformedArguments,
            "expected the JSON of an object, found other text",
        )),
        // It is JSON that Python reads, and a template that shows it as it is can show it.
        Err(_) => None,
    }
}

/// What calls and results make of each other.
fn check_pairing(
    messages: &[Message<'_>],
    calls_named_by: CallsNamedBy,
    add: &mut impl FnMut(usize, Finding),
) {
    let pairing = Pairing::of(messages, calls_named_by);
    for &(index, answer) in &pairing.answers {
        let finding = match answer {
            Answer::Named(_) => continue,
            // A result without an id is K3's own form.
            Answer::Placed(_) if calls_named_by == CallsNamedBy::Function => continue,
            Answer::Placed(_) => Finding::new(
                FindingCode::ToolResultWithoutId,
                "the call that this answers is not named: templates from K2 to K2.7 print an empty id",
            ),
            Answer::Again => Finding::new(
                FindingCode::DuplicateToolResult,
                "the call that this answers has a result already",
            )
            .at("tool_call_id"),
            Answer::Unknown => Finding::new(
                FindingCode::OrphanToolResult,
                "no call before this has this id",
            )
            .at("tool_call_id"),
            Answer::Nothing => Finding::new(
                FindingCode::OrphanToolResult,
                "no call is named, and none before this is without a result",
            ),
        };
        add(index, finding);
    }
    // The last message may well be a call that nobody has answered yet.
    let is_missing = |call: &&Call| !call.is_answered && call.message + 1 < messages.len();
    for call in pairing.calls.iter().filter(is_missing) {
        let message = "no result after this answers this call";
        let finding = Finding::new(FindingCode::MissingToolResult, message);
        let finding = finding.at_index(call.position).at("tool_calls");
        add(call.message, finding);
    }
}

/// Whether there is white space at most.
fn is_blank(content: &Content<'_>) -> bool {
    match content {
        Content::Text(text) => text.trim().is_empty(),
        Content::Parts(parts) => parts.iter().all(|part| {
            let is_text = part.kind == PartKind::Other && !part.has_image_key;
            is_text && part.text.is_none_or(|text| text.trim().is_empty())
        }),
    }
}

/// The first tag of reasoning in what is said.
fn inline_think(content: &Content<'_>) -> Option<&'static str> {
    let find = |text: &str| {
        // Ten times as fast as the standard library, which shows: this reads all that the model says.
        let mut ends = memmem::find_iter(text.as_bytes(), "think>");
        ends.find_map(|end| {
            ["</think>", "<think>"]
                .into_iter()
                .find(|tag| text[..end + "think>".len()].ends_with(tag))
        })
    };
    match content {
        Content::Text(text) => find(text),
        Content::Parts(parts) => parts.iter().filter_map(|part| part.text).find_map(find),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The findings in a conversation: place and code of each.
    fn found(json: &str) -> Vec<String> {
        found_by(json, K2)
    }

    const K2: View = View {
        calls_named_by: CallsNamedBy::Id,
        tool_nulls: ToolNulls::Absent,
    };
    const K3: View = View {
        calls_named_by: CallsNamedBy::Function,
        tool_nulls: ToolNulls::Absent,
    };

    fn found_by(json: &str, view: View) -> Vec<String> {
        let value = Value::from_json(json.as_bytes()).unwrap();
        let conversation = Conversation::from_value(&value, None).unwrap();
        findings(&conversation, view)
            .iter()
            .map(|finding| format!("{} {}", finding.place().path(), finding.code().as_str()))
            .collect()
    }

    /// u user, A answer, t:ID result, c:ID,ID calls.
    fn chat(letters: &str) -> Vec<String> {
        let message = |word: &str| match word.split_once(':') {
            Some(("t", id)) => {
                format!(r#"{{"role": "tool", "content": "", "tool_call_id": "{id}"}}"#)
            }
            Some((_, ids)) => {
                let call = |id: &str| {
                    format!(r#"{{"id": "{id}", "function": {{"name": "f", "arguments": "{{}}"}}}}"#)
                };
                let calls: Vec<String> = ids.split(',').map(call).collect();
                format!(
                    r#"{{"role": "assistant", "tool_calls": [{}]}}"#,
                    calls.join(",")
                )
            }
            None => {
                let role = if word == "u" { "user" } else { "assistant" };
                format!(r#"{{"role": "{role}", "content": "x"}}"#)
            }
        };
        let messages: Vec<String> = letters.split(' ').map(message).collect();
        found(&format!("[{}]", messages.join(",")))
    }

    #[test]
    fn every_code_has_a_name_of_its_own() {
        for (code, name) in FindingCode::ALL {
            assert_eq!(code.as_str(), name);
            assert_eq!(FindingCode::from_name(name), Some(code));
        }
    }

    #[test]
    fn results_that_answer_their_calls_are_fine() {
        for fine in [
            "u A u A",
            "u c:a,b t:a t:b A",
            "u c:a,b t:b t:a A",
            "u c:a t:a c:a t:a A",
            "u c:a,b t:a u t:b A",
            "u c:a",
            "u c:a t:a",
        ] {
            assert!(chat(fine).is_empty(), "{fine}: {:?}", chat(fine));
        }
    }

    #[test]
    fn results_and_calls_that_miss_each_other_are_found() {
        for (messages, expected) in [
            ("u t:a A", "messages[1].tool_call_id orphan_tool_result"),
            ("u t: A", "messages[1] orphan_tool_result"),
            (
                "u c:a t:a t:a A",
                "messages[3].tool_call_id duplicate_tool_result",
            ),
            ("u c:a t:a t: A", "messages[3] orphan_tool_result"),
            ("u c:a A", "messages[1].tool_calls[0] missing_tool_result"),
            (
                "u c:a,b t:a",
                "messages[1].tool_calls[1] missing_tool_result",
            ),
            ("u c:a t: A", "messages[2] tool_result_without_id"),
            (
                "u c:a c:a t:a",
                "messages[1].tool_calls[0] missing_tool_result",
            ),
            (
                "u c:a,a t:a t:a A",
                "messages[1].tool_calls[1].id duplicate_tool_call_id",
            ),
            (
                "u c:a t:A t:a A",
                "messages[2].tool_call_id orphan_tool_result",
            ),
        ] {
            assert_eq!(chat(messages), [expected], "{messages}");
        }
    }

    #[test]
    fn what_messages_hold_is_found() {
        let call = |arguments: &str| {
            format!(
                r#"{{"role": "assistant", "tool_calls": [{{"id": "a", "function": {{"arguments": {arguments}}}}}]}}"#
            )
        };
        let arguments = "messages[0].tool_calls[0].function.arguments";
        for (message, expected) in [
            (r#"{"role": "developer"}"#, "messages[0].role unknown_role"),
            (
                r#"{"role": "user", "content": " \n"}"#,
                "messages[0] empty_turn",
            ),
            (
                r#"{"role": "user", "content": []}"#,
                "messages[0] empty_turn",
            ),
            (r#"{"role": "assistant"}"#, "messages[0] empty_turn"),
            (r#"{"role": "system", "content": ""}"#, ""),
            (r#"{"role": "user", "content": [{"type": "image"}]}"#, ""),
            (r#"{"role": "assistant", "reasoning": "r"}"#, ""),
            (
                r#"{"role": "user", "content": "x", "tool_calls": [{}]}"#,
                "messages[0].tool_calls tool_calls_outside_assistant",
            ),
            (r#"{"role": "user", "content": "x", "tool_calls": []}"#, ""),
            (
                r#"{"role": "user", "content": "x", "train": 0}"#,
                "messages[0].train ignored_flag",
            ),
            (r#"{"role": "user", "content": "x", "train": null}"#, ""),
            (
                r#"{"role": "assistant", "content": "x", "thinking_content": "r"}"#,
                "messages[0].thinking_content unknown_reasoning_key",
            ),
            (
                r#"{"role": "assistant", "content": "<think>r</think>x"}"#,
                "messages[0].content inline_think",
            ),
            (
                r#"{"role": "assistant", "content": [{"type": "text", "text": "r</think>"}]}"#,
                "messages[0].content inline_think",
            ),
            (r#"{"role": "user", "content": "<think>"}"#, ""),
            (
                r#"{"role": "user", "content": [{"type": "text", "text": "x", "image": null}, {"text": "", "image_url": null}]}"#,
                "messages[0].content[0].image null_padding",
            ),
            (&call(r#""{\"a\": NaN}""#), ""),
            (&call(r#"{"a": 1}"#), ""),
            (&call(r#""{\"a\": \"\\ud83d\"}""#), ""),
            (&call(r#""""#), &format!("{arguments} malformed_arguments")),
            (&call(r#""{""#), &format!("{arguments} malformed_arguments")),
            (
                &call(r#""[1]""#),
                &format!("{arguments} malformed_arguments"),
            ),
            (
                &call(r#""\"{}\"""#),
                &format!("{arguments} double_encoded_arguments"),
            ),
            (
                &call(r#""\"x\"""#),
                &format!("{arguments} malformed_arguments"),
            ),
        ] {
            let expected: Vec<&str> = [expected]
                .into_iter()
                .filter(|text| !text.is_empty())
                .collect();
            assert_eq!(found(&format!("[{message}]")), expected, "{message}");
        }
    }

    #[test]
    fn what_is_one_templates_own_form_is_odd_for_another() {
        let unnamed = r#"[
            {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": " "}}]},
            {"role": "tool", "id": "a", "tool": "f"}, {"role": "user", "content": "x"}]"#;
        assert_eq!(
            found_by(unnamed, K2),
            [
                "messages[0].tool_calls[0] tool_call_without_id",
                "messages[0].tool_calls[0].function.arguments malformed_arguments",
                "messages[1] tool_result_without_id",
            ]
        );
        assert_eq!(
            found_by(&unnamed.replace(r#""id": "a", "#, ""), K3),
            [] as [&str; 0]
        );
        let named = unnamed.replace(r#"{"function""#, r#"{"id": "a", "function""#);
        assert_eq!(found_by(&named, K3), [] as [&str; 0]);
    }

    #[test]
    fn reasoning_that_servers_repeat_under_another_key_is_fine() {
        for message in [
            r#"{"role": "assistant", "content": "x", "reasoning": "r", "reasoning_details": [{}]}"#,
            r#"{"role": "assistant", "content": "x", "reasoning_content": "r", "thinking_blocks": [{}]}"#,
            r#"{"role": "user", "content": "x", "think": true}"#,
        ] {
            assert_eq!(found(&format!("[{message}]")), [] as [&str; 0], "{message}");
        }
    }

    #[test]
    fn padding_of_tools_that_are_printed_or_added_later() {
        let tool = r#"[{"function": {"strict": null}}]"#;
        let added = format!(r#"[{{"role": "system", "tools": {tool}}}]"#);
        assert_eq!(
            found_by(&added, K3),
            ["messages[0].tools[0].function.strict null_padding"]
        );
        let declared = format!(r#"{{"messages": [], "tools": {tool}}}"#);
        for json in [added, declared] {
            let tool_nulls = ToolNulls::AsReference;
            assert_eq!(found_by(&json, View { tool_nulls, ..K3 }), [] as [&str; 0]);
        }
    }

    #[test]
    fn padding_is_found_once() {
        let padded = r#"{"messages": [], "tools": [{"type": "function"}, {"function": {"parameters": {"anyOf": [true, {"title": null}]}, "strict": null}}]}"#;
        assert_eq!(
            found(padded),
            ["tools[1].function.parameters.anyOf[1].title null_padding"]
        );
    }

    #[test]
    fn a_finding_as_an_error_has_code_and_place() {
        let value = Value::from_json(br#"[{"role": "tool", "tool_call_id": "a"}]"#).unwrap();
        let conversation = Conversation::from_value(&value, None).unwrap();
        let error = findings(&conversation, K2)[0].to_error();
        assert_eq!(error.kind(), ErrorKind::Validation);
        assert_eq!(
            error.to_string(),
            "messages[0].tool_call_id: no call before this has this id (orphan_tool_result)"
        );
    }
}
