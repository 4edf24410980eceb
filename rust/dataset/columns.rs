//! The columns of the output, whatever file they end up in: what a row holds, which type each column has, and which
//! values fit it.
//!
//! A table has one type a column, and a field of a record may hold anything. So the first records say what a field is,
//! and a later value that does not fit is an error of its row, found before any part of that row is written.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::chat::json::Value;
#[cfg(feature = "parquet")]
use crate::encoder::encoded::IGNORE_INDEX;
use crate::error::{Error, ErrorKind, Result};
use crate::tokenizer::TokenId;

/// One row to write.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Row {
    /// The kept fields in the order of [`Columns::kept`], as JSON text; None where the record has none.
    pub kept: Vec<Option<String>>,
    /// The ids.
    pub input_ids: Vec<TokenId>,
    /// 1 where a token trains, of the same length.
    pub loss_mask: Vec<u8>,
    /// How much each token counts, of the same length; None where that is just the mask.
    pub loss_weight: Option<Vec<f32>>,
    /// The tokens that were left out because the row was too long.
    pub cut_tokens: u32,
}

impl Row {
    /// The bytes of the row in memory, which bound shards, batches and row groups. They depend on nothing but the row,
    /// so the same rows are cut into the same files.
    pub(super) fn bytes(&self) -> u64 {
        let kept = self.kept.iter().flatten().map(String::len).sum::<usize>();
        let weights = self.loss_weight.as_ref().map_or(0, Vec::len);
        (kept + 4 * self.input_ids.len() + self.loss_mask.len() + 4 * weights) as u64
    }

    /// The ids where the mask is 1, and [`IGNORE_INDEX`] elsewhere.
    #[cfg(feature = "parquet")]
    pub(super) fn labels(&self) -> impl ExactSizeIterator<Item = i64> {
        let pairs = self.input_ids.iter().zip(&self.loss_mask);
        pairs.map(|(&id, &trains)| {
            if trains == 1 {
                i64::from(id)
            } else {
                IGNORE_INDEX
            }
        })
    }
}

/// How many bits an integer takes in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    /// As few as the values need: 32 for ids, 8 for a mask.
    Narrow,
    /// 64, which PyTorch wants in the end.
    Wide,
}

/// What a column holds that is not kept from the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The ids, as int32 or int64.
    InputIds(Width),
    /// 1 where a token trains, as uint8 or int64.
    LossMask(Width),
    /// How much each token counts, as float32; null for a row of which the mask says it.
    LossWeight,
    /// The ids where the mask is 1 and -100 elsewhere, as int32 or int64.
    Labels(Width),
    /// 1 for each token, as int8.
    AttentionMask,
    /// The number of tokens, as int64.
    SeqLen,
    /// The tokens that were left out because the row was too long, as int32.
    CutTokens,
}

impl Part {
    /// The name of the column.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::InputIds(_) => "input_ids",
            Self::LossMask(_) => "loss_mask",
            Self::LossWeight => "loss_weight",
            Self::Labels(_) => "labels",
            Self::AttentionMask => "attention_mask",
            Self::SeqLen => "seq_len",
            Self::CutTokens => "cut_tokens",
        }
    }
}

/// The type of a column that is kept from the record. Each may be null.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum KeptKind {
    /// A string.
    Text,
    /// An integer of 64 bits.
    Integer,
    /// A float of 64 bits.
    Float,
    /// True or false.
    Boolean,
    /// Anything: its JSON text, in a column of strings.
    Json,
}

/// Integers up to this size are all floats too.
const EXACT_IN_FLOAT: u64 = 1 << 53;

impl KeptKind {
    /// The narrowest kind that fits what the first records hold under a field. Null says nothing.
    pub(super) fn of<'v>(values: impl IntoIterator<Item = &'v Value<'v>>) -> Self {
        let mut found: Option<Self> = None;
        let mut in_float = true;
        for value in values {
            let kind = match value {
                Value::Null => continue,
                Value::String(_) => Self::Text,
                Value::Bool(_) => Self::Boolean,
                Value::Int(number) => {
                    in_float &= is_float(*number);
                    Self::Integer
                }
                Value::Float(_) => Self::Float,
                Value::BigInt(_) | Value::Array(_) | Value::Object(_) => return Self::Json,
            };
            found = match (found, kind) {
                (None, kind) => Some(kind),
                (Some(before), kind) if before == kind => Some(kind),
                (Some(Self::Integer), Self::Float) | (Some(Self::Float), Self::Integer) => {
                    Some(Self::Float)
                }
                _ => return Self::Json,
            };
        }
        match found {
            None => Self::Json,
            Some(Self::Float) if !in_float => Self::Json,
            Some(kind) => kind,
        }
    }

    /// What it takes, for an error message.
    fn expected(self) -> &'static str {
        match self {
            Self::Text => "a string",
            Self::Integer => "an integer",
            Self::Float => "a number",
            Self::Boolean => "a boolean",
            Self::Json => "JSON",
        }
    }

    /// The JSON text of a kept value as what the column holds; None for null.
    fn cell(self, text: &str) -> Result<Option<Cell<'_>>> {
        if self == Self::Json {
            return Ok((text != "null").then_some(Cell::Text(Cow::Borrowed(text))));
        }
        let value = Value::from_json(text.as_bytes())?;
        let cell = match (self, value) {
            (_, Value::Null) => return Ok(None),
            (Self::Text, Value::String(text)) => Cell::Text(text),
            (Self::Integer, Value::Int(number)) => Cell::Integer(number),
            (Self::Float, Value::Float(number)) => Cell::Float(number),
            #[expect(clippy::cast_precision_loss, reason = "it was found to be exact")]
            (Self::Float, Value::Int(number)) if is_float(number) => Cell::Float(number as f64),
            (Self::Boolean, Value::Bool(value)) => Cell::Boolean(value),
            (_, value) => {
                let expected = self.expected();
                let found = found(&value);
                let message =
                    format!("expected {expected}, as in the first records, found {found}");
                return Err(Error::new(ErrorKind::Conversation, message));
            }
        };
        Ok(Some(cell))
    }
}

fn is_float(number: i64) -> bool {
    number.unsigned_abs() <= EXACT_IN_FLOAT
}

/// What a value is, where one kind of number is expected and another found.
fn found(value: &Value<'_>) -> &'static str {
    match value {
        Value::Int(number) if is_float(*number) => "an integer",
        Value::Int(_) => "an integer beyond 2^53",
        Value::BigInt(_) => "an integer beyond 64 bits",
        Value::Float(_) => "a float",
        value => value.kind(),
    }
}

/// A kept value as its column holds it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell<'t> {
    /// Of a column of text, or of JSON.
    Text(Cow<'t, str>),
    /// Of a column of integers.
    Integer(i64),
    /// Of a column of floats.
    Float(f64),
    /// Of a column of booleans.
    Boolean(bool),
}

/// A column that is kept from the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeptColumn {
    /// The name of the column.
    pub name: String,
    /// Its type.
    pub kind: KeptKind,
}

/// The columns of the output, the kept ones first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Columns {
    /// Those kept from the record.
    pub kept: Vec<KeptColumn>,
    /// Those made from it.
    pub parts: Vec<Part>,
}

impl Columns {
    /// The kept values of a row as their columns hold them, one a column.
    ///
    /// # Errors
    /// [`ErrorKind::Conversation`] under the name of the column for a value that does not fit it.
    pub(super) fn cells<'r>(&self, row: &'r Row) -> Result<Vec<Option<Cell<'r>>>> {
        let cell = |(place, column): (usize, &KeptColumn)| {
            let Some(Some(text)) = row.kept.get(place) else {
                return Ok(None);
            };
            let cell = column.kind.cell(text);
            cell.map_err(|error| error.at(column.name.clone()))
        };
        self.kept.iter().enumerate().map(cell).collect()
    }

    /// Whether a table with these columns takes the row.
    ///
    /// # Errors
    /// As [`Columns::cells`].
    pub(super) fn check(&self, row: &Row) -> Result<()> {
        self.cells(row).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(values: &str) -> KeptKind {
        let values = Value::from_json(values.as_bytes()).unwrap();
        KeptKind::of(values.as_array().unwrap())
    }

    #[test]
    fn the_first_records_say_what_a_field_is() {
        for (values, expected) in [
            (r#"["a", null, "b"]"#, KeptKind::Text),
            ("[1, -2, null]", KeptKind::Integer),
            ("[9223372036854775807]", KeptKind::Integer),
            ("[1, 0.5, 2]", KeptKind::Float),
            ("[0.5, NaN]", KeptKind::Float),
            ("[true, false]", KeptKind::Boolean),
            ("[]", KeptKind::Json),
            ("[null]", KeptKind::Json),
            ("[9223372036854775808]", KeptKind::Json),
            ("[9007199254740993, 0.5]", KeptKind::Json),
            (r#"[1, "a"]"#, KeptKind::Json),
            ("[1, true]", KeptKind::Json),
            ("[[1], [2]]", KeptKind::Json),
            ("[{}]", KeptKind::Json),
        ] {
            assert_eq!(kind(values), expected, "{values}");
        }
    }

    #[test]
    fn a_value_that_does_not_fit_is_an_error_of_its_row() {
        for (kind, text, message) in [
            (
                KeptKind::Integer,
                "\"a\"",
                "expected an integer, as in the first records, found a string",
            ),
            (
                KeptKind::Integer,
                "1.0",
                "expected an integer, as in the first records, found a float",
            ),
            (
                KeptKind::Integer,
                "9223372036854775808",
                "expected an integer, as in the first records, found an integer beyond 64 bits",
            ),
            (
                KeptKind::Float,
                "9007199254740993",
                "expected a number, as in the first records, found an integer beyond 2^53",
            ),
            (
                KeptKind::Text,
                "[]",
                "expected a string, as in the first records, found a list",
            ),
            (
                KeptKind::Boolean,
                "0",
                "expected a boolean, as in the first records, found an integer",
            ),
        ] {
            let columns = Columns {
                kept: vec![KeptColumn {
                    name: "field".to_owned(),
                    kind,
                }],
                parts: Vec::new(),
            };
            let row = Row {
                kept: vec![Some(text.to_owned())],
                ..Row::default()
            };
            let error = columns.check(&row).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Conversation);
            assert_eq!(error.place().path(), "field");
            assert_eq!(error.message(), message);
        }
    }

    #[test]
    fn values_fit_their_columns() {
        let text = |text: &'static str| Some(Cell::Text(Cow::Borrowed(text)));
        for (kind, json, cell) in [
            (KeptKind::Text, r#""a\n""#, text("a\n")),
            (KeptKind::Json, r#"["a\n"]"#, text(r#"["a\n"]"#)),
            (KeptKind::Json, "null", None),
            (KeptKind::Text, "null", None),
            (KeptKind::Integer, "-7", Some(Cell::Integer(-7))),
            (KeptKind::Float, "7", Some(Cell::Float(7.0))),
            (
                KeptKind::Float,
                "-Infinity",
                Some(Cell::Float(f64::NEG_INFINITY)),
            ),
            (KeptKind::Boolean, "true", Some(Cell::Boolean(true))),
        ] {
            assert_eq!(kind.cell(json).unwrap(), cell, "{json}");
        }
    }

    #[test]
    fn labels_are_ids_where_the_mask_is_one() {
        let row = Row {
            input_ids: vec![5, 6, 7],
            loss_mask: vec![0, 1, 0],
            ..Row::default()
        };
        #[cfg(feature = "parquet")]
        assert_eq!(row.labels().collect::<Vec<_>>(), [-100, 6, -100]);
        assert_eq!(row.bytes(), 15);
    }
}
