//! The layout of records, found by looking at the first ones.
//!
//! Nothing in a file says how its records are to be read, so the fields that they have must. What they leave open is not
//! guessed: a wrong layout would spoil every record of the file without a word.

use std::collections::BTreeMap;
use std::fmt;

use super::json_text::parsed;
use super::{Field, Layout, Shape};
use crate::chat::json::{Object, Value};
use crate::error::{Error, ErrorKind, Result};

/// What a prompt and a response are called in many files of NVIDIA's. Each of the two names is Alpaca's for something else,
/// so they count together only.
const PAIR: [(Field, &str); 2] = [(Field::Prompt, "input"), (Field::Response, "output")];

impl Layout {
    /// The layout of `records`: that of the first one that is known, which the others must share. Messages under their
    /// own name if none is known.
    ///
    /// # Errors
    /// [`ErrorKind::Option`] if two of them have different shapes.
    pub fn of<'r, 'v: 'r>(
        records: impl IntoIterator<Item = &'r Object<'v>>,
        shape: Option<Shape>,
        names: &BTreeMap<Field, String>,
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
                    let message = format!(
                        "the first records have different shapes, {layout} and {other}: expected files of one shape, \
                         or its name as an option"
                    );
                    return Err(Error::new(ErrorKind::Option, message).at("shape"));
                }
                (layout @ None, detected) => *layout = detected,
                (Some(_), None) => {}
            }
        }
        Ok(layout.unwrap_or_else(|| Self::new(shape.unwrap_or(Shape::Messages), names.clone())))
    }

    /// Takes over the names of fields that no record before had.
    fn add_names(&mut self, other: Self) {
        for (field, name) in other.names {
            self.names.entry(field).or_insert(name);
        }
    }

    /// The layout of a record, if it has one that is known. `names` are those that the caller has given.
    #[must_use]
    pub fn detect(record: &Object<'_>, names: &BTreeMap<Field, String>) -> Option<Self> {
        Shape::ALL
            .into_iter()
            .find_map(|shape| Self::detect_shape(shape, record, names))
    }

    fn detect_shape(
        shape: Shape,
        record: &Object<'_>,
        given: &BTreeMap<Field, String>,
    ) -> Option<Self> {
        let mut layout = Self::new(shape, given.clone());
        for &field in shape.fields() {
            // These two are in the turns.
            if !matches!(field, Field::From | Field::Value)
                && let Some(name) = only_name(field, |name| record.get(name).is_some())
            {
                layout.find(field, name);
            }
        }
        match shape {
            Shape::ShareGpt => {
                let turns = layout.turns(record, Field::Conversations);
                let has = |name: &str| turns.iter().any(|turn| turn.get(name).is_some());
                if layout.says_without_content(&turns) {
                    layout.find(Field::From, "role");
                }
                if let Some(name) = only_name(Field::Value, has) {
                    layout.find(Field::Value, name);
                }
            }
            Shape::PromptResponse if has_only_the_pair(record) => {
                for (field, name) in PAIR {
                    layout.find(field, name);
                }
            }
            _ => {}
        }
        layout.fits(record).then_some(layout)
    }

    /// Takes down the name of a field, unless it is known or its own.
    fn find(&mut self, field: Field, name: &str) {
        if name != field.as_str() {
            self.names.entry(field).or_insert_with(|| name.to_owned());
        }
    }

    /// Whether the record has what the shape needs.
    fn fits(&self, record: &Object<'_>) -> bool {
        let has = |field| record.get(self.name(field)).is_some();
        let first_has = |turns: &[Object<'_>], key: &str| {
            // Of an empty list nothing can be said.
            turns.first().is_some_and(|turn| turn.get(key).is_some())
        };
        match self.shape {
            Shape::Messages => {
                let messages = self.turns(record, Field::Messages);
                first_has(&messages, "role") && !self.says_without_content(&messages)
            }
            Shape::ShareGpt => {
                let turns = self.turns(record, Field::Conversations);
                first_has(&turns, self.name(Field::From))
            }
            Shape::PromptResponse => has(Field::Prompt) && has(Field::Response),
            Shape::Instruction => has(Field::Instruction) && has(Field::Output),
        }
    }

    /// The objects at the head of the list under `field`.
    fn turns<'v>(&self, record: &'v Object<'v>, field: Field) -> Vec<Object<'v>> {
        let Some(Ok(Value::Array(turns))) = record.get(self.name(field)).map(parsed) else {
            return Vec::new();
        };
        let objects = turns.into_iter().map_while(|turn| match turn {
            Value::Object(turn) => Some(turn),
            _ => None,
        });
        objects.collect()
    }

    /// Whether turns name their speakers as `OpenAI` does, and what is said as it does not: read as messages they would
    /// all be empty.
    fn says_without_content(&self, turns: &[Object<'_>]) -> bool {
        let has = |key: &str| turns.iter().any(|turn| turn.get(key).is_some());
        let mut names = Field::Value.names().iter().copied();
        has("role")
            && !has("content")
            && !has("from")
            && (has(self.name(Field::Value)) || names.any(has))
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shape.as_str())?;
        for (index, (field, name)) in self.names.iter().enumerate() {
            let before = if index == 0 { "with" } else { "and" };
            write!(f, " {before} {name:?} as {}", field.as_str())?;
        }
        Ok(())
    }
}

/// The name under which a field is there: its own, or the only one of the others. Of two others neither is meant more:
/// some have a worked `solution` beside a bare `answer`.
fn only_name(field: Field, has: impl Fn(&str) -> bool) -> Option<&'static str> {
    let mut found = field.names().iter().copied().filter(|name| has(name));
    let first = found.next()?;
    (first == field.as_str() || found.next().is_none()).then_some(first)
}

/// Whether the record has the [`PAIR`], and nothing else that could be a prompt or a response.
fn has_only_the_pair(record: &Object<'_>) -> bool {
    let has = |name: &str| record.get(name).is_some();
    let fields = [Field::Prompt, Field::Response, Field::Instruction];
    let mut others = fields.into_iter().flat_map(Field::names);
    PAIR.iter().all(|(_, name)| has(name)) && !others.any(|name| has(name))
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use super::*;

    #[test]
    fn records_of_two_shapes_are_refused_and_unknown_ones_are_not_asked() {
        let records = [
            r#"{"x": 1}"#,
            r#"{"prompt": "a", "answer": "b"}"#,
            r#"{"prompt": "a", "answer": "b", "system_prompt": "c"}"#,
        ]
        .map(read);
        let objects = || records.iter().filter_map(Value::as_object);
        let layout = Layout::of(objects(), None, &BTreeMap::new()).unwrap();
        assert_eq!(layout.name(Field::Response), "answer");
        assert_eq!(layout.name(Field::System), "system_prompt");
        let other = read(r#"{"messages": [{"role": "user"}]}"#);
        let mixed = objects().chain(other.as_object());
        let error = Layout::of(mixed, None, &BTreeMap::new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Option);
    }

    #[test]
    fn one_shape_under_two_names_is_named_with_them() {
        let records = [
            r#"{"prompt": "a", "answer": "b"}"#,
            r#"{"prompt": "a", "completion": "b"}"#,
        ]
        .map(read);
        let objects = records.iter().filter_map(Value::as_object);
        let error = Layout::of(objects, None, &BTreeMap::new()).unwrap_err();
        let expected = "prompt_response with \"answer\" as response and prompt_response with \"completion\" as response";
        assert!(error.message().contains(expected), "{error}");
    }

    #[test]
    fn messages_without_content_are_turns() {
        let turns = r#"{"messages": [{"role": "user", "value": "a"}, {"role": "assistant", "value": "b"}]}"#;
        let record = read(turns);
        let layout = Layout::detect(record.as_object().unwrap(), &BTreeMap::new()).unwrap();
        assert_eq!(
            layout.to_string(),
            "sharegpt with \"messages\" as conversations and \"role\" as from"
        );
        // A call says nothing, and a note beside what is said is not it.
        for messages in [
            r#"{"messages": [{"role": "assistant", "tool_calls": []}]}"#,
            r#"{"messages": [{"role": "user", "content": "a", "text": "b"}]}"#,
        ] {
            let record = read(messages);
            let layout = Layout::detect(record.as_object().unwrap(), &BTreeMap::new()).unwrap();
            assert_eq!(layout.shape, Shape::Messages);
        }
    }

    #[test]
    fn a_column_beside_the_turns_does_not_name_what_is_in_them() {
        let record = read(
            r#"{"text": "x", "role": "y", "conversations": [{"from": "human", "value": "a"}]}"#,
        );
        let layout = Layout::detect(record.as_object().unwrap(), &BTreeMap::new()).unwrap();
        assert_eq!(layout, Layout::new(Shape::ShareGpt, BTreeMap::new()));
    }
}
