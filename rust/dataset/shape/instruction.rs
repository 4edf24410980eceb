//! Alpaca's instruction, input and output to messages, with the history that `LLaMA-Factory` puts before them.

use std::borrow::Cow;

use super::message::{message, text};
use super::{Field, Layout};
use crate::chat::conversation::{expected, fault};
use crate::chat::json::{Object, Value};
use crate::error::Result;

impl Layout {
    pub(super) fn instruction<'v>(&self, record: &'v Object<'v>) -> Result<Value<'v>> {
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
        let answer = said(Field::Output)?.ok_or_else(|| self.missing(record, Field::Output))?;
        messages.push(message("assistant", text(answer)));
        Ok(Value::Array(messages))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Shape;
    use super::super::testing::{became, error_of};

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
    fn errors_name_the_pair() {
        let error = error_of(r#"{"instruction": "a", "output": "b", "history": [["c"]]}"#);
        assert!(
            error.starts_with("history[0]: expected a list of two strings"),
            "{error}"
        );
    }
}
