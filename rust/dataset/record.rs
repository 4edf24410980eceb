//! One line of the input to the lines of its rows.

use crate::chat::conversation::Conversation;
use crate::chat::json::{Spacing, Value};
use crate::chat::mask::MaskPolicy;
use crate::chat::validation::Finding;
use crate::dataset::reader::Line;
use crate::dataset::shape::Layout;
use crate::dataset::writer;
use crate::encoder::encoded::{EncodedConversation, LeftOut, Notices};
use crate::encoder::long_text::Helpers;
use crate::encoder::{EncodeOptions, Encoder, Scratch};
use crate::error::{Error, ErrorKind, Result};

/// What became of one line.
pub(super) enum Outcome {
    Written(Record),
    Skipped(&'static str),
    Failed(Error),
}

/// The rows of one line of the input, as they are written.
#[derive(Default)]
pub(super) struct Record {
    pub lines: Vec<u8>,
    pub rows: u64,
    pub left_out: Vec<LeftOut>,
    pub findings: Vec<Finding>,
    pub tokens: u64,
    pub trained_tokens: u64,
    /// Those of all rows together.
    pub notices: Notices,
}

/// A line to what becomes of it.
pub(super) fn encode_line<'e>(
    encoder: &'e Encoder,
    options: EncodeOptions<'_>,
    layout: &Layout,
    line: &Line,
    scratch: &mut Scratch,
    helpers: Option<&dyn Helpers<'e>>,
) -> Outcome {
    let text = match &line.text {
        Ok(text) => text,
        Err(error) => return Outcome::Failed(error.clone()),
    };
    // What JSON allows between its values.
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    if text.iter().all(is_blank) {
        return Outcome::Skipped("blank line");
    }
    match encode_record(encoder, options, layout, text, scratch, helpers) {
        Ok(record) => match record.left_out.first() {
            Some(reason) if record.rows == 0 => Outcome::Skipped(reason.as_str()),
            _ => Outcome::Written(record),
        },
        Err(error) => Outcome::Failed(error),
    }
}

/// One record of the input to the lines of its rows.
fn encode_record<'e>(
    encoder: &'e Encoder,
    options: EncodeOptions<'_>,
    layout: &Layout,
    text: &[u8],
    scratch: &mut Scratch,
    helpers: Option<&dyn Helpers<'e>>,
) -> Result<Record> {
    let value = Value::from_json(text)?;
    let Some(entries) = value.as_object() else {
        let message = format!("expected an object, found {}", value.kind());
        return Err(Error::new(ErrorKind::Conversation, message));
    };
    let id = entries.get("id").map(printed_id).transpose();
    let printed = id.as_ref().ok().and_then(Option::as_deref);
    let mut encode = |value: &Value<'_>| {
        let conversation = Conversation::from_value(value, None)?;
        let mut record = Record::default();
        encoder.for_each_row(&conversation, options, scratch, helpers, |row| match row {
            Ok(row) => record.push(printed, row, options.mask),
            Err(reason) => record.left_out.push(reason),
        })?;
        Ok(record)
    };
    let record = if layout.reads_as_is(entries) {
        encode(&value)?
    } else {
        let made = layout.conversation(entries)?;
        let in_record = |error: Error| {
            let place = layout.place_in(entries, error.place());
            error.in_place(place)
        };
        let mut record = encode(&made).map_err(in_record)?;
        for finding in &mut record.findings {
            *finding = finding
                .clone()
                .in_place(layout.place_in(entries, finding.place()));
        }
        record
    };
    // Whoever cannot encode the conversation hears of that first.
    id.map(|_| record)
}

impl Record {
    fn push(&mut self, id: Option<&str>, row: &mut EncodedConversation, mask: MaskPolicy) {
        writer::write_record(id, row, mask, &mut self.lines);
        self.rows += 1;
        self.tokens += row.input_ids.len() as u64;
        let trained = row.loss_mask.iter().map(|&trains| u64::from(trains));
        self.trained_tokens += trained.sum::<u64>();
        self.notices += row.notices;
        // Every row has those of the whole conversation.
        self.findings = std::mem::take(&mut row.findings);
    }
}

/// The id of a record as JSON, which has no word for what Python calls NaN and Infinity.
fn printed_id(id: &Value<'_>) -> Result<String> {
    if !id.is_finite() {
        let message = "expected an id that JSON can hold, found NaN or an infinity";
        return Err(Error::new(ErrorKind::Conversation, message).at("id"));
    }
    let mut text = String::new();
    id.write_json(Spacing::Compact, &mut text);
    Ok(text)
}
