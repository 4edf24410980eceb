//! A place among the messages to the place in the record that they were made of.
//!
//! Errors and findings are about messages; whoever has to mend the record needs its own fields. Each function here undoes
//! what a shape does to the order of its fields.

use super::json_text::parsed;
use super::tools::is_bare_function;
use super::{Field, Layout, Shape};
use crate::chat::json::{Object, Value};
use crate::error::Place;

impl Layout {
    /// A place in what [`Self::conversation`] gives, as a place in the record.
    #[must_use]
    pub fn place_in(&self, record: &Object<'_>, place: &Place) -> Place {
        let Some((key, inside)) = place.clone().split_key() else {
            return place.clone();
        };
        match &*key {
            "messages" => match inside.clone().split_index() {
                Some((index, inside)) => self.message_place(record, index, inside),
                None => self.at(inside, self.shape.fields()[0]),
            },
            "tools" => self.at(self.tool_place(record, inside), Field::Tools),
            _ => place.clone(),
        }
    }

    /// The place in the record of what is `inside` the message at `index`.
    fn message_place(&self, record: &Object<'_>, index: usize, inside: Place) -> Place {
        if self.shape == Shape::Messages {
            return self.at(inside.at_index(index), Field::Messages);
        }
        let has_system = self
            .system_message(record)
            .is_ok_and(|messages| !messages.is_empty());
        let Some(index) = index.checked_sub(usize::from(has_system)) else {
            return self.at(in_text(inside), Field::System);
        };
        match self.shape {
            Shape::Messages | Shape::ShareGpt => self.turn_place(index, inside),
            Shape::PromptResponse => self.prompt_or_response_place(record, index, inside),
            Shape::Instruction => self.instruction_place(record, index, inside),
        }
    }

    fn turn_place(&self, index: usize, inside: Place) -> Place {
        let inside = match inside.clone().split_key() {
            Some((key, inside)) if key == "content" => self.at(inside, Field::Value),
            _ => inside,
        };
        self.at(inside.at_index(index), Field::Conversations)
    }

    fn prompt_or_response_place(&self, record: &Object<'_>, index: usize, inside: Place) -> Place {
        let len = |field| match record.get(self.name(field)) {
            Some(Value::Array(list)) => Some(list.len()),
            _ => None,
        };
        let prompts = len(Field::Prompt).unwrap_or(1);
        let (index, field) = match index.checked_sub(prompts) {
            None => (index, Field::Prompt),
            Some(index) => (index, Field::Response),
        };
        let inside = match len(field) {
            Some(_) => inside.at_index(index),
            None => in_text(inside),
        };
        self.at(inside, field)
    }

    fn instruction_place(&self, record: &Object<'_>, index: usize, inside: Place) -> Place {
        let history = record.get(self.name(Field::History)).map(parsed);
        let earlier = match &history {
            Some(Ok(Value::Array(pairs))) => 2 * pairs.len(),
            _ => 0,
        };
        let inside = in_text(inside);
        match index.checked_sub(earlier) {
            None => {
                let pair = inside.at_index(index % 2).at_index(index / 2);
                self.at(pair, Field::History)
            }
            Some(0) => self.at(inside, Field::Instruction),
            Some(_) => self.at(inside, Field::Output),
        }
    }

    /// The place among the tools of the record: a bare function has no key `function` around it.
    fn tool_place(&self, record: &Object<'_>, place: Place) -> Place {
        let bare = || {
            let (index, inside) = place.clone().split_index()?;
            let (key, inside) = inside.split_key()?;
            let tools = self.optional(record, Field::Tools).ok()??;
            let is_bare = is_bare_function(tools.as_array()?.get(index)?);
            (is_bare && key == "function" && self.shape != Shape::Messages)
                .then(|| inside.at_index(index))
        };
        bare().unwrap_or(place)
    }

    /// The place, known to lie under the record's name for `field`.
    fn at(&self, place: Place, field: Field) -> Place {
        place.at(self.name(field).to_owned())
    }
}

/// The place in a text of what is a place in the message that it became.
fn in_text(place: Place) -> Place {
    match place.clone().split_key() {
        Some((key, inside)) if key == "content" => inside,
        _ => place,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::testing::read;
    use super::*;

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
        let names = BTreeMap::from([(Field::Messages, "chat".to_owned())]);
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
    fn a_place_in_a_bare_function_is_one_in_the_record() {
        let record = read(
            r#"{"conversations": [{"from": "gpt"}], "tools": "[{\"name\": \"f\"}, {\"function\": {\"name\": \"g\"}}]"}"#,
        );
        let record = record.as_object().unwrap();
        let layout = Layout::of([record], None, &BTreeMap::new()).unwrap();
        for (index, expected) in [(0, "tools[0].name"), (1, "tools[1].function.name")] {
            let place = Place::default().at("name").at("function");
            let place = place.at_index(index).at("tools");
            assert_eq!(layout.place_in(record, &place).path(), expected);
        }
    }
}
