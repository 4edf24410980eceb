//! A prompt and a response to messages: two texts, or the two halves of one list.

use super::message::{message, text};
use super::{Field, Layout};
use crate::chat::conversation::expected;
use crate::chat::json::{Object, Value};
use crate::error::Result;

impl Layout {
    pub(super) fn prompt_response<'v>(&self, record: &'v Object<'v>) -> Result<Value<'v>> {
        let mut messages = self.system_message(record)?;
        for (field, role) in [(Field::Prompt, "user"), (Field::Response, "assistant")] {
            match record.get(self.name(field)) {
                Some(Value::String(said)) => messages.push(message(role, text(said))),
                Some(Value::Array(list)) => messages.extend(list.iter().map(Value::borrowed)),
                Some(other) => {
                    let error = expected("a string or a list of messages", other);
                    return Err(error.at(self.name(field).to_owned()));
                }
                None => return Err(self.missing(record, field)),
            }
        }
        Ok(Value::Array(messages))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Shape;
    use super::super::testing::{became, error_of};

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
    fn errors_name_the_field() {
        let error = error_of(r#"{"prompt": 3, "response": "b"}"#);
        assert!(
            error.starts_with("prompt: expected a string or a list of messages, found a number"),
            "{error}"
        );
    }
}
