//! Lists that are JSON in a string, as the columns of a table hold them.

use crate::chat::json::Value;
use crate::error::Result;

/// The value, or what it says if it is a string with JSON in it: so columns of a table hold lists. Items that are such
/// strings are read too. An empty string is an empty list.
pub(super) fn parsed<'v>(value: &'v Value<'v>) -> Result<Value<'v>> {
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

#[cfg(test)]
mod tests {
    use super::super::Shape;
    use super::super::testing::became;

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
}
