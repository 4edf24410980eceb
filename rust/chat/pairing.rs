//! Which result answers which call.
//!
//! A result answers the latest call of its id that has no result yet, and of calls with one id in one message the
//! first: ids may come back in later messages, and do, in logs of several sessions. A result without an id answers the
//! first call without a result of the last message with calls.

use rustc_hash::FxHashMap;

use crate::chat::conversation::Message;
use crate::chat::templates::CallsNamedBy;

/// One call of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The index of its message.
    pub message: usize,
    /// Its place in the message.
    pub position: usize,
    /// Whether a result answers it.
    pub is_answered: bool,
}

/// What a tool message answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The call of this index, which it names.
    Named(usize),
    /// The call of this index, by its place: it names none.
    Placed(usize),
    /// A call that has a result already.
    Again,
    /// No call before it, though it names one.
    Unknown,
    /// No call before it, and it names none.
    Nothing,
}

impl Answer {
    /// The index of the call that it answers.
    #[must_use]
    pub fn call(self) -> Option<usize> {
        match self {
            Self::Named(call) | Self::Placed(call) => Some(call),
            Self::Again | Self::Unknown | Self::Nothing => None,
        }
    }
}

/// The calls and the results of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pairing {
    /// Every call, in order.
    pub calls: Vec<Call>,
    /// The index of each tool message, and what it answers.
    pub answers: Vec<(usize, Answer)>,
}

impl Pairing {
    /// The pairing of `messages` as a template sees them: only one that names calls by their function reads the `id` of
    /// a result. An empty id is none.
    #[must_use]
    pub fn of(messages: &[Message<'_>], calls_named_by: CallsNamedBy) -> Self {
        let mut pairing = Self::default();
        // The calls of an id that have no result yet, the next to be answered last.
        let mut open: FxHashMap<&str, Vec<usize>> = FxHashMap::default();
        // Of the last message with calls, the first call that may be without a result.
        let mut next_by_place = 0;
        for (index, message) in messages.iter().enumerate() {
            let Self { calls, answers } = &mut pairing;
            if !message.tool_calls.is_empty() {
                next_by_place = calls.len();
                for (position, call) in message.tool_calls.iter().enumerate().rev() {
                    if let Some(id) = call.id.filter(|id| !id.is_empty()) {
                        open.entry(id).or_default().push(calls.len() + position);
                    }
                }
                calls.extend((0..message.tool_calls.len()).map(|position| Call {
                    message: index,
                    position,
                    is_answered: false,
                }));
            }
            if message.role != "tool" {
                continue;
            }
            let answer = if let Some(id) = result_id(message, calls_named_by) {
                match open.get_mut(id) {
                    // A result without an id may have taken the call in the meantime.
                    Some(open) => std::iter::from_fn(|| open.pop())
                        .find(|&call| !calls[call].is_answered)
                        .map_or(Answer::Again, Answer::Named),
                    None => Answer::Unknown,
                }
            } else {
                while calls
                    .get(next_by_place)
                    .is_some_and(|call| call.is_answered)
                {
                    next_by_place += 1;
                }
                if next_by_place < calls.len() {
                    Answer::Placed(next_by_place)
                } else {
                    Answer::Nothing
                }
            };
            if let Some(call) = answer.call() {
                calls[call].is_answered = true;
            }
            answers.push((index, answer));
        }
        pairing
    }
}

/// The id of the call that a tool message says it answers, as far as the template reads it.
fn result_id<'v>(message: &Message<'v>, calls_named_by: CallsNamedBy) -> Option<&'v str> {
    let id = match calls_named_by {
        CallsNamedBy::Function => message.result_id(),
        CallsNamedBy::Id | CallsNamedBy::Place => message.tool_call_id,
    };
    id.filter(|id| !id.is_empty())
}
