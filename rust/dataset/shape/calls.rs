//! The calls of a conversation that gives them no ids.
//!
//! Kimi's templates show a call by its id, so one is made for each; a result says nothing but its place, so it answers the
//! calls in order, those from before the user's last word excepted.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::message::{entry, text};
use crate::chat::conversation::fault;
use crate::chat::json::{Object, Value};
use crate::error::Result;

/// The calls so far.
#[derive(Default)]
pub(super) struct Calls {
    /// How many there were, which numbers the next.
    count: usize,
    /// The ids of those without a result, in order.
    unanswered: VecDeque<String>,
}

impl Calls {
    /// One call or several, as `OpenAI` spells them. `value` is an object with `name` and `arguments`, a list of such,
    /// or either as JSON in a string.
    pub(super) fn made<'v>(&mut self, value: Value<'v>) -> Result<Value<'v>> {
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
    pub(super) fn answered(&mut self) -> Option<String> {
        self.unanswered.pop_front()
    }

    /// Calls without a result stay without one: what comes later answers later calls.
    pub(super) fn forget(&mut self) {
        self.unanswered.clear();
    }
}
