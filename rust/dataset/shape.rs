//! The shapes in which datasets hold conversations, and how a record of each becomes messages.
//!
//! A record in OpenAI's spelling is read as it is. All others become such a record first, with their strings borrowed.
//! Whatever is said of a record names the fields that it has, not those that it became.

use std::borrow::Cow;
use std::collections::VecDeque;

use crate::chat::json::{Object, Value};
use crate::error::{Error, ErrorKind, Place, Result};

/// How many fields of a record an error names.
const QUOTED_FIELDS: usize = 10;

/// How a record holds a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// `messages` (`role`, `content`, …) and `tools`, as `OpenAI` spells them.
    Messages,
    /// `conversations` (`from`, `value`), `system` and `tools`, as `ShareGPT` and `LLaMA-Factory` spell them.
    ShareGpt,
    /// `prompt` and `response`: two texts, or two lists of messages.
    PromptResponse,
    /// `instruction`, `input` and `output`, as Alpaca spells them; `system` and `history` as `LLaMA-Factory` adds them.
    Instruction,
}

impl Shape {
    /// All of them, in the order in which a record is tried.
    pub const ALL: [Self; 4] = [
        Self::Messages,
        Self::ShareGpt,
        Self::PromptResponse,
        Self::Instruction,
    ];

    /// Its name among options and in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::ShareGpt => "sharegpt",
            Self::PromptResponse => "prompt_response",
            Self::Instruction => "instruction",
        }
    }

    /// The shape of this name.
    ///
    /// # Errors
    /// [`ErrorKind::Option`] if there is none.
    pub fn from_name(name: &str) -> Result<Self> {
        let known = Self::ALL.into_iter().find(|shape| shape.as_str() == name);
        known.ok_or_else(|| {
            let names = Self::ALL.map(Self::as_str).join(", ");
            let message = format!("expected one of {names}, found {name:?}");
            Error::new(ErrorKind::Option, message).at("shape")
        })
    }

    /// The fields that it reads.
    #[must_use]
    pub fn fields(self) -> &'static [Field] {
        match self {
            Self::Messages => &[Field::Messages, Field::Tools],
            Self::ShareGpt => &[
                Field::Conversations,
                Field::From,
                Field::Value,
                Field::System,
                Field::Tools,
            ],
            Self::PromptResponse => &[Field::Prompt, Field::Response, Field::System, Field::Tools],
            Self::Instruction => &[
                Field::Instruction,
                Field::Output,
                Field::Input,
                Field::System,
                Field::History,
                Field::Tools,
            ],
        }
    }
}

/// A field of a record, or of one turn of it, that a shape reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// A list of messages.
    Messages,
    /// A list of turns.
    Conversations,
    /// Who speaks in a turn.
    From,
    /// What is said in a turn.
    Value,
    /// What the user says.
    Prompt,
    /// What the assistant says.
    Response,
    /// What the user asks for.
    Instruction,
    /// What the user adds to that.
    Input,
    /// What the assistant says.
    Output,
    /// A system message before all others.
    System,
    /// Pairs of earlier turns.
    History,
    /// Tool declarations.
    Tools,
}

impl Field {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Messages,
        Self::Conversations,
        Self::From,
        Self::Value,
        Self::Prompt,
        Self::Response,
        Self::Instruction,
        Self::Input,
        Self::Output,
        Self::System,
        Self::History,
        Self::Tools,
    ];

    /// The names under which it is looked for if none is given, the commonest first.
    #[must_use]
    pub fn names(self) -> &'static [&'static str] {
        match self {
            Self::Messages => &["messages", "conversations", "conversation", "trajectory"],
            Self::Conversations => &["conversations", "conversation", "messages"],
            Self::From => &["from"],
            Self::Value => &["value"],
            Self::Prompt => &["prompt", "question", "query", "problem"],
            Self::Response => &["response", "completion", "answer", "solution"],
            Self::Instruction => &["instruction"],
            Self::Input => &["input"],
            Self::Output => &["output", "response"],
            Self::System => &["system", "system_prompt"],
            Self::History => &["history"],
            Self::Tools => &["tools"],
        }
    }

    /// The field of this name.
    ///
    /// # Errors
    /// [`ErrorKind::Option`] if there is none.
    pub fn from_name(name: &str) -> Result<Self> {
        let known = Self::ALL.into_iter().find(|field| field.as_str() == name);
        known.ok_or_else(|| {
            let names = Self::ALL.map(Self::as_str).join(", ");
            let message = format!("expected one of {names}, found {name:?}");
            Error::new(ErrorKind::Option, message).at("fields")
        })
    }

    /// Its own name, among options and in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.names()[0]
    }
}

/// A shape, and the names that its fields have in some records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The shape of the records.
    pub shape: Shape,
    /// The field and its name in the record, for each field that is not under its own name.
    pub names: Vec<(Field, String)>,
}

impl Layout {
    /// `shape` with every field under its own name, but those that `names` says.
    #[must_use]
    pub fn new(shape: Shape, names: Vec<(Field, String)>) -> Self {
        Self { shape, names }
    }

    /// The layout of a record, if it has one that is known. `names` are those that the caller has given.
    #[must_use]
    pub fn detect(record: &Object<'_>, names: &[(Field, String)]) -> Option<Self> {
        Shape::ALL
            .into_iter()
            .find_map(|shape| Self::detect_shape(shape, record, names))
    }

    fn detect_shape(shape: Shape, record: &Object<'_>, given: &[(Field, String)]) -> Option<Self> {
        let mut layout = Self::new(shape, given.to_vec());
        for field in shape.fields() {
            let is_named = given.iter().any(|(named, _)| named == field);
            let name = field.names().iter().find(|name| record.get(name).is_some());
            if let (false, Some(name)) = (is_named, name)
                && *name != field.as_str()
            {
                layout.names.push((*field, (*name).to_owned()));
            }
        }
        layout.fits(record).then_some(layout)
    }

    /// Whether the record has what the shape needs.
    fn fits(&self, record: &Object<'_>) -> bool {
        let has = |field| record.get(self.name(field)).is_some();
        match self.shape {
            Shape::Messages => self.first_turn_has(record, Field::Messages, "role"),
            Shape::ShareGpt => {
                self.first_turn_has(record, Field::Conversations, self.name(Field::From))
            }
            Shape::PromptResponse => has(Field::Prompt) && has(Field::Response),
            Shape::Instruction => has(Field::Instruction) && has(Field::Output),
        }
    }

    /// Whether the first item of the list under `field` has `key`. Of an empty list nothing can be said.
    fn first_turn_has(&self, record: &Object<'_>, field: Field, key: &str) -> bool {
        let Some(Ok(turns)) = record.get(self.name(field)).map(parsed) else {
            return false;
        };
        let first = turns.as_array().and_then(<[Value<'_>]>::first);
        first
            .and_then(Value::as_object)
            .is_some_and(|first| first.get(key).is_some())
    }

    /// The name of a field in the record.
    #[must_use]
    pub fn name(&self, field: Field) -> &str {
        let named = self.names.iter().find(|(named, _)| *named == field);
        named.map_or(field.as_str(), |(_, name)| name)
    }

    /// The layout of `records`: that of the first one that is known, which the others must share. Messages under their
    /// own name if none is known.
    ///
    /// # Errors
    /// [`ErrorKind::Option`] if two of them have different shapes.
    pub fn of<'r, 'v: 'r>(
        records: impl IntoIterator<Item = &'r Object<'v>>,
        shape: Option<Shape>,
        names: &[(Field, String)],
    ) -> Result<Self> {
        let mut layout: Option<Self> = None;
        for record in records {
            let detected = match shape {
                Some(shape) => Self::detect_shape(shape, record, names),
                None => Self::detect(record, names),
            };
            match (&mut layout, detected) {
                (Some(layout), Some(other)) if layout.fits(record) => layout.add_names(other),
                (Some(layout), Some(other)) => {
                    let (shape, other) = (layout.shape.as_str(), other.shape.as_str());
                    let message = format!(
                        "the first records have different shapes, {shape} and {other}: expected files of one shape, \
                         or its name as an option"
                    );
                    return Err(Error::new(ErrorKind::Option, message).at("shape"));
                }
                (layout @ None, detected) => *layout = detected,
                (Some(_), None) => {}
            }
        }
        Ok(layout.unwrap_or_else(|| Self::new(shape.unwrap_or(Shape::Messages), names.to_vec())))
    }

    /// Takes over the names of fields that no record before had.
    fn add_names(&mut self, other: Self) {
        for (field, name) in other.names {
            if self.names.iter().all(|(named, _)| *named != field) {
                self.names.push((field, name));
            }
        }
    }

    /// Whether the record can be read as it is: it is in `OpenAI`'s spelling, and no list of it is JSON in a string.
    #[must_use]
    pub fn reads_as_is(&self, record: &Object<'_>) -> bool {
        let is_text = |value: &Value<'_>| value.as_str().is_some();
        let holds_text = |value: &Value<'_>| {
            is_text(value)
                || value
                    .as_array()
                    .is_some_and(|items| items.iter().any(is_text))
        };
        self.shape == Shape::Messages
            && self.names.is_empty()
            && record
                .get("messages")
                .is_some_and(|messages| !holds_text(messages))
            && !record.get("tools").is_some_and(holds_text)
    }

    /// The record as an object with `messages` and, if it has them, `tools`.
    ///
    /// # Errors
    /// [`ErrorKind::Conversation`] with the place in the record.
    pub fn conversation<'v>(&self, record: &'v Object<'v>) -> Result<Value<'v>> {
        let messages = match self.shape {
            Shape::Messages => self.needed(record, Field::Messages)?,
            Shape::ShareGpt => self.share_gpt(record)?,
            Shape::PromptResponse => self.prompt_response(record)?,
            Shape::Instruction => self.instruction(record)?,
        };
        let mut entries = vec![entry("messages", messages)];
        if let Some(tools) = self.optional(record, Field::Tools)? {
            entries.push(entry("tools", tools));
        }
        Ok(Value::Object(Object::from_entries(entries)))
    }

    /// A place in what [`Self::conversation`] gives, as a place in the record.
    #[must_use]
    pub fn place_in(&self, record: &Object<'_>, place: &Place) -> Place {
        self.message_in(record, place)
            .unwrap_or_else(|| self.field_in(place).unwrap_or_else(|| place.clone()))
    }

    fn field_in(&self, place: &Place) -> Option<Place> {
        let (key, inside) = place.clone().split_key()?;
        let field = match &*key {
            "tools" => Field::Tools,
            "messages" => *self.shape.fields().first()?,
            _ => return None,
        };
        Some(inside.at(self.name(field).to_owned()))
    }

    fn message_in(&self, record: &Object<'_>, place: &Place) -> Option<Place> {
        let (key, inside) = place.clone().split_key()?;
        let (index, inside) = inside.split_index()?;
        if key != "messages" {
            return None;
        }
        let at = |place: Place, field: Field| Some(place.at(self.name(field).to_owned()));
        if self.shape == Shape::Messages {
            return at(inside.at_index(index), Field::Messages);
        }
        let has_system = self
            .system_message(record)
            .is_ok_and(|messages| !messages.is_empty());
        let Some(mut index) = index.checked_sub(usize::from(has_system)) else {
            return at(of_text(inside), Field::System);
        };
        match self.shape {
            Shape::Messages => None,
            Shape::ShareGpt => {
                let turn = match inside.clone().split_key() {
                    Some((key, inside)) if key == "content" => {
                        inside.at(self.name(Field::Value).to_owned())
                    }
                    _ => inside,
                };
                at(turn.at_index(index), Field::Conversations)
            }
            Shape::PromptResponse => {
                for field in [Field::Prompt, Field::Response] {
                    match record.get(self.name(field)) {
                        Some(Value::Array(list)) if index < list.len() => {
                            return at(inside.at_index(index), field);
                        }
                        Some(Value::Array(list)) => index -= list.len(),
                        _ if index == 0 => return at(of_text(inside), field),
                        _ => index -= 1,
                    }
                }
                None
            }
            Shape::Instruction => {
                let history = record.get(self.name(Field::History)).map(parsed);
                let earlier = match &history {
                    Some(Ok(Value::Array(pairs))) => 2 * pairs.len(),
                    _ => 0,
                };
                match index.checked_sub(earlier) {
                    None => at(
                        of_text(inside).at_index(index % 2).at_index(index / 2),
                        Field::History,
                    ),
                    Some(0) => at(of_text(inside), Field::Instruction),
                    Some(_) => at(of_text(inside), Field::Output),
                }
            }
        }
    }

    fn share_gpt<'v>(&self, record: &'v Object<'v>) -> Result<Value<'v>> {
        let name = self.name(Field::Conversations).to_owned();
        let turns = self.needed(record, Field::Conversations)?;
        let Value::Array(turns) = turns else {
            return Err(expected("a list of turns", &turns).at(name));
        };
        let mut messages = self.system_message(record)?;
        let mut calls = Calls::default();
        for (index, turn) in turns.into_iter().enumerate() {
            let message = self.share_gpt_message(turn, &mut calls);
            let at = |error: Error| error.at_index(index).at(name.clone());
            messages.push(message.map_err(at)?);
        }
        Ok(Value::Array(messages))
    }

    fn share_gpt_message<'v>(&self, turn: Value<'v>, calls: &mut Calls) -> Result<Value<'v>> {
        let (from_key, value_key) = (self.name(Field::From), self.name(Field::Value));
        let Value::Object(turn) = turn else {
            return Err(expected("an object", &turn));
        };
        let speaker = match turn.get(from_key) {
            Some(Value::String(speaker)) => Speaker::of(speaker).ok_or_else(|| {
                let message = format!(
                    "expected human, user, gpt, assistant, system, tool, observation, function_response or \
                     function_call, found {speaker:?}"
                );
                fault(message).at(from_key.to_owned())
            })?,
            Some(other) => return Err(expected("a string", other).at(from_key.to_owned())),
            None => return Err(fault("missing").at(from_key.to_owned())),
        };
        let mut entries = vec![entry("role", text(speaker.role()))];
        for (key, value) in turn.into_entries() {
            if key == from_key {
                continue;
            }
            if key != value_key {
                entries.push((key, value));
                continue;
            }
            if speaker == Speaker::Call {
                let made = calls.made(value);
                let made = made.map_err(|error| error.at(value_key.to_owned()))?;
                entries.push(entry("tool_calls", made));
            } else {
                entries.push(entry("content", value));
            }
        }
        let has_id = entries.iter().any(|(key, _)| key == "tool_call_id");
        if speaker == Speaker::Tool
            && !has_id
            && let Some(id) = calls.answered()
        {
            entries.push(entry("tool_call_id", Value::String(Cow::Owned(id))));
        }
        Ok(Value::Object(Object::from_entries(entries)))
    }

    fn prompt_response<'v>(&self, record: &'v Object<'v>) -> Result<Value<'v>> {
        let mut messages = self.system_message(record)?;
        for (field, role) in [(Field::Prompt, "user"), (Field::Response, "assistant")] {
            match record.get(self.name(field)) {
                Some(Value::String(said)) => messages.push(message(role, text(said))),
                Some(Value::Array(list)) => messages.extend(list.iter().map(Value::borrowed)),
                Some(other) => {
                    let error = expected("a string or a list of messages", other);
                    return Err(error.at(self.name(field).to_owned()));
                }
                None => return Err(fault("missing").at(self.name(field).to_owned())),
            }
        }
        Ok(Value::Array(messages))
    }

    fn instruction<'v>(&self, record: &'v Object<'v>) -> Result<Value<'v>> {
        let mut messages = self.system_message(record)?;
        if let Some(history) = self.optional(record, Field::History)? {
            let name = || self.name(Field::History).to_owned();
            let Value::Array(pairs) = history else {
                return Err(expected("a list of pairs of strings", &history).at(name()));
            };
            for (index, pair) in pairs.into_iter().enumerate() {
                let kind = pair.kind();
                let pair = match pair {
                    Value::Array(pair) => <[Value<'v>; 2]>::try_from(pair).ok(),
                    _ => None,
                };
                let Some([asked, answered]) = pair else {
                    let error = fault(format!("expected a list of two strings, found {kind}"));
                    return Err(error.at_index(index).at(name()));
                };
                messages.push(message("user", asked));
                messages.push(message("assistant", answered));
            }
        }
        let said = |field| self.said(record, field);
        let instruction = said(Field::Instruction)?.unwrap_or_default();
        let input = said(Field::Input)?.unwrap_or_default();
        // One newline between the two, and none if either is empty: LLaMA-Factory's way.
        let asked = match (instruction, input) {
            (asked, "") | ("", asked) => text(asked),
            (instruction, input) => Value::String(Cow::Owned(format!("{instruction}\n{input}"))),
        };
        messages.push(message("user", asked));
        let Some(answer) = said(Field::Output)? else {
            return Err(fault("missing").at(self.name(Field::Output).to_owned()));
        };
        messages.push(message("assistant", text(answer)));
        Ok(Value::Array(messages))
    }

    /// The system message, if there is one; an empty text is none.
    fn system_message<'v>(&self, record: &'v Object<'v>) -> Result<Vec<Value<'v>>> {
        let said = self.said(record, Field::System)?;
        let said = said.filter(|said| !said.is_empty());
        Ok(said
            .map(|said| message("system", text(said)))
            .into_iter()
            .collect())
    }

    fn said<'v>(&self, record: &'v Object<'v>, field: Field) -> Result<Option<&'v str>> {
        match record.get(self.name(field)) {
            None => Ok(None),
            Some(Value::String(said)) => Ok(Some(said)),
            Some(other) => Err(expected("a string", other).at(self.name(field).to_owned())),
        }
    }

    fn needed<'v>(&self, record: &'v Object<'v>, field: Field) -> Result<Value<'v>> {
        let found = self.optional(record, field)?;
        found.ok_or_else(|| {
            let keys = record.iter().take(QUOTED_FIELDS).map(|(key, _)| key);
            let keys = keys.collect::<Vec<_>>().join(", ");
            let message = format!("missing; the record has {keys}");
            fault(message).at(self.name(field).to_owned())
        })
    }

    fn optional<'v>(&self, record: &'v Object<'v>, field: Field) -> Result<Option<Value<'v>>> {
        let value = record.get(self.name(field)).map(parsed).transpose();
        value.map_err(|error| error.at(self.name(field).to_owned()))
    }
}

/// The value, or what it says if it is a string with JSON in it: so columns of a table hold lists. Items that are such
/// strings are read too. An empty string is an empty list.
fn parsed<'v>(value: &'v Value<'v>) -> Result<Value<'v>> {
    let from_text = |text: &'v str| {
        Value::from_json(text.as_bytes())
            .map_err(|error| error.with_message(format!("in this string: {}", error.message())))
    };
    match value {
        Value::String(text) if text.is_empty() => Ok(Value::Array(Vec::new())),
        Value::String(text) => from_text(text),
        Value::Array(items) => {
            let read = |(index, item): (usize, &'v Value<'v>)| match item {
                Value::String(text) if text.trim_start().starts_with('{') => {
                    from_text(text).map_err(|error| error.at_index(index))
                }
                item => Ok(item.borrowed()),
            };
            let items = items.iter().enumerate().map(read);
            Ok(Value::Array(items.collect::<Result<_>>()?))
        }
        value => Ok(value.borrowed()),
    }
}

/// The place in a text of what is a place in the message that it became.
fn of_text(place: Place) -> Place {
    match place.clone().split_key() {
        Some((key, inside)) if key == "content" => inside,
        _ => place,
    }
}

/// Who speaks in a turn of `ShareGPT`'s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaker {
    System,
    User,
    Assistant,
    /// The assistant, calling functions.
    Call,
    Tool,
}

impl Speaker {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "system" => Self::System,
            "human" | "user" => Self::User,
            "gpt" | "assistant" | "chatgpt" | "bing" | "bard" | "model" => Self::Assistant,
            "function_call" | "function-call" => Self::Call,
            "tool" | "observation" | "function_response" | "function-response" => Self::Tool,
            _ => return None,
        })
    }

    fn role(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant | Self::Call => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// The calls of a conversation that gives them no ids. They get Kimi's own, and results answer them in order.
#[derive(Default)]
struct Calls {
    count: usize,
    unanswered: VecDeque<String>,
}

impl Calls {
    /// One call or several, as `OpenAI` spells them. `value` is an object with `name` and `arguments`, a list of such,
    /// or either as JSON in a string.
    fn made<'v>(&mut self, value: Value<'v>) -> Result<Value<'v>> {
        let read = match &value {
            Value::String(text) => Value::from_json(text.as_bytes())?.into_owned(),
            _ => value,
        };
        let calls = match read {
            Value::Array(calls) => calls,
            call => vec![call],
        };
        let calls = calls.into_iter().map(|call| self.call(call));
        Ok(Value::Array(calls.collect::<Result<_>>()?))
    }

    fn call<'v>(&mut self, call: Value<'v>) -> Result<Value<'v>> {
        let name = call
            .as_object()
            .and_then(|call| call.get("name"))
            .and_then(Value::as_str);
        let Some(name) = name else {
            let found = call.kind();
            let message = format!("expected an object with `name` and `arguments`, found {found}");
            return Err(fault(message));
        };
        let id = format!("functions.{name}:{}", self.count);
        self.count += 1;
        self.unanswered.push_back(id.clone());
        Ok(Value::Object(Object::from_entries(vec![
            entry("id", Value::String(Cow::Owned(id))),
            entry("type", text("function")),
            entry("function", call),
        ])))
    }

    /// The call that a result answers.
    fn answered(&mut self) -> Option<String> {
        self.unanswered.pop_front()
    }
}

fn message<'v>(role: &'static str, content: Value<'v>) -> Value<'v> {
    let entries = vec![entry("role", text(role)), entry("content", content)];
    Value::Object(Object::from_entries(entries))
}

fn entry<'v>(key: &'static str, value: Value<'v>) -> (Cow<'v, str>, Value<'v>) {
    (Cow::Borrowed(key), value)
}

fn text(text: &str) -> Value<'_> {
    Value::String(Cow::Borrowed(text))
}

fn expected(what: &str, found: &Value<'_>) -> Error {
    fault(format!("expected {what}, found {}", found.kind()))
}

fn fault(message: impl Into<Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::Conversation, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::json::Spacing;

    fn read(record: &str) -> Value<'_> {
        Value::from_json(record.as_bytes()).unwrap()
    }

    /// What a record becomes, in the layout that is found for it.
    fn became(record: &str, names: &[(Field, String)]) -> Result<(Shape, String)> {
        let record = read(record);
        let record = record.as_object().unwrap();
        let layout = Layout::of([record], None, names)?;
        let mut out = String::new();
        let conversation = layout.conversation(record)?;
        conversation.write_json(Spacing::Compact, &mut out);
        Ok((layout.shape, out.replace('"', "'")))
    }

    fn error_of(record: &str) -> String {
        became(record, &[]).unwrap_err().to_string()
    }

    #[test]
    fn messages_may_be_json_in_a_string() {
        let expected = "{'messages':[{'role':'user','content':'a'}],'tools':[{'type':'function'}]}";
        for record in [
            r#"{"messages": "[{\"role\": \"user\", \"content\": \"a\"}]", "tools": ["{\"type\": \"function\"}"]}"#,
            r#"{"conversation": [{"role": "user", "content": "a"}], "tools": "[{\"type\": \"function\"}]"}"#,
        ] {
            let (shape, out) = became(record, &[]).unwrap();
            assert_eq!((shape, out.as_str()), (Shape::Messages, expected));
        }
    }

    #[test]
    fn share_gpt_turns_become_messages() {
        let record = r#"{"system": "s", "tools": "", "conversations": [
            {"from": "human", "value": "a"},
            {"from": "function_call", "value": "{\"name\": \"f\", \"arguments\": {\"x\": 1}}"},
            {"from": "observation", "value": "r"},
            {"from": "gpt", "value": "b", "weight": 0}]}"#;
        let expected = "{'messages':[{'role':'system','content':'s'},{'role':'user','content':'a'},\
            {'role':'assistant','tool_calls':[{'id':'functions.f:0','type':'function',\
            'function':{'name':'f','arguments':{'x':1}}}]},\
            {'role':'tool','content':'r','tool_call_id':'functions.f:0'},\
            {'role':'assistant','content':'b','weight':0}],'tools':[]}";
        let (shape, out) = became(record, &[]).unwrap();
        assert_eq!((shape, out.as_str()), (Shape::ShareGpt, expected));
    }

    #[test]
    fn a_prompt_and_a_response_are_texts_or_lists_of_messages() {
        let expected =
            "{'messages':[{'role':'user','content':'a'},{'role':'assistant','content':'b'}]}";
        for record in [
            r#"{"prompt": "a", "response": "b"}"#,
            r#"{"question": "a", "answer": "b", "source": "c"}"#,
            r#"{"prompt": [{"role": "user", "content": "a"}],
                "completion": [{"role": "assistant", "content": "b"}]}"#,
        ] {
            let (shape, out) = became(record, &[]).unwrap();
            assert_eq!((shape, out.as_str()), (Shape::PromptResponse, expected));
        }
    }

    #[test]
    fn an_instruction_may_have_an_input_and_a_history() {
        let record =
            r#"{"instruction": "a", "input": "b", "output": "c", "history": [["d", "e"]]}"#;
        let expected = "{'messages':[{'role':'user','content':'d'},{'role':'assistant','content':'e'},\
            {'role':'user','content':'a\\nb'},{'role':'assistant','content':'c'}]}";
        let (shape, out) = became(record, &[]).unwrap();
        assert_eq!((shape, out.as_str()), (Shape::Instruction, expected));
        let record = r#"{"instruction": "a", "input": "", "output": "c"}"#;
        let expected =
            "{'messages':[{'role':'user','content':'a'},{'role':'assistant','content':'c'}]}";
        assert_eq!(became(record, &[]).unwrap().1, expected);
    }

    #[test]
    fn names_that_are_given_come_first() {
        let names = [
            (Field::Prompt, "q".to_owned()),
            (Field::Response, "r".to_owned()),
        ];
        let record = r#"{"q": "a", "prompt": "x", "r": "b"}"#;
        let expected =
            "{'messages':[{'role':'user','content':'a'},{'role':'assistant','content':'b'}]}";
        assert_eq!(became(record, &names).unwrap().1, expected);
    }

    #[test]
    fn errors_name_the_fields_of_the_record() {
        let cases = [
            (
                r#"{"conversations": [{"from": "human", "value": "a"}, {"from": "narrator"}]}"#,
                "conversations[1].from: expected human",
            ),
            (
                r#"{"conversations": [{"from": "human", "value": "a"}, 3]}"#,
                "conversations[1]: expected an object, found a number",
            ),
            (
                r#"{"conversations": [{"from": "human"}, {"from": "function_call", "value": "{}"}]}"#,
                "conversations[1].value: expected an object with `name`",
            ),
            (
                r#"{"prompt": 3, "response": "b"}"#,
                "prompt: expected a string or a list of messages, found a number",
            ),
            (
                r#"{"instruction": "a", "output": "b", "history": [["c"]]}"#,
                "history[0]: expected a list of two strings",
            ),
            (
                r#"{"text": "a", "b": 1}"#,
                "messages: missing; the record has text, b",
            ),
        ];
        for (record, expected) in cases {
            let error = error_of(record);
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn a_place_among_the_messages_is_one_in_the_record() {
        let cases = [
            (r#"{"chat": [{"role": "user"}]}"#, 0, "chat[0].content"),
            (
                r#"{"system": "s", "conversations": [{"from": "gpt", "value": "a"}]}"#,
                0,
                "system",
            ),
            (
                r#"{"system": "s", "conversations": [{"from": "gpt", "value": "a"}]}"#,
                1,
                "conversations[0].value",
            ),
            (r#"{"prompt": "a", "answer": "b"}"#, 0, "prompt"),
            (r#"{"prompt": "a", "answer": "b"}"#, 1, "answer"),
            (
                r#"{"prompt": [{"role": "user"}, {"role": "assistant"}], "answer": [{"role": "user"}]}"#,
                1,
                "prompt[1].content",
            ),
            (
                r#"{"prompt": [{"role": "user"}, {"role": "assistant"}], "answer": [{"role": "user"}]}"#,
                2,
                "answer[0].content",
            ),
            (
                r#"{"instruction": "a", "output": "b", "history": [["c", "d"]]}"#,
                1,
                "history[0][1]",
            ),
            (
                r#"{"instruction": "a", "output": "b", "history": [["c", "d"]]}"#,
                2,
                "instruction",
            ),
            (
                r#"{"instruction": "a", "output": "b", "system": "s"}"#,
                2,
                "output",
            ),
        ];
        let names = [(Field::Messages, "chat".to_owned())];
        for (record, index, expected) in cases {
            let record = read(record);
            let record = record.as_object().unwrap();
            let layout = Layout::of([record], None, &names).unwrap();
            let place = Place::default()
                .at("content")
                .at_index(index)
                .at("messages");
            assert_eq!(layout.place_in(record, &place).path(), expected);
        }
    }

    #[test]
    fn records_of_two_shapes_are_refused_and_unknown_ones_are_not_asked() {
        let records = [
            r#"{"x": 1}"#,
            r#"{"prompt": "a", "answer": "b"}"#,
            r#"{"prompt": "a", "answer": "b", "system_prompt": "c"}"#,
        ]
        .map(read);
        let objects = || records.iter().filter_map(Value::as_object);
        let layout = Layout::of(objects(), None, &[]).unwrap();
        assert_eq!(layout.name(Field::Response), "answer");
        assert_eq!(layout.name(Field::System), "system_prompt");
        let other = read(r#"{"messages": [{"role": "user"}]}"#);
        let mixed = objects().chain(other.as_object());
        let error = Layout::of(mixed, None, &[]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Option);
    }
}
