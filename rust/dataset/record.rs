//! One line of the input to the rows that it becomes.

use std::mem;

use crate::chat::conversation::Conversation;
use crate::chat::json::{Object, Spacing, Value};
use crate::chat::segment::{Part, Role};
use crate::chat::validation::Finding;
use crate::dataset::columns::{self, Columns, Row};
use crate::dataset::jsonl;
use crate::dataset::reader::Line;
use crate::dataset::shape::Layout;
use crate::dataset::summary::Tokens;
use crate::dataset::target::Format;
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

/// The rows of one line of the input, and what is counted of them.
pub(super) struct Record {
    pub rows: Rows,
    /// The tokens of each row.
    pub tokens: Vec<Tokens>,
    /// Tokens of all rows, by who speaks and which part of the message it is.
    pub parts: Vec<((Role, Part), Tokens)>,
    pub left_out: Vec<LeftOut>,
    pub findings: Vec<Finding>,
    /// Those of all rows together.
    pub notices: Notices,
    /// Whether a message weighs something for which there is no column.
    pub loses_weights: bool,
}

/// Rows as the threads that encode can make them for the one that writes.
pub(super) enum Rows {
    /// Lines of JSON.
    Lines(Vec<u8>),
    /// Rows of a table.
    Rows(Vec<Row>),
}

/// What becomes of every line.
#[derive(Clone, Copy)]
pub(super) struct Recording<'a> {
    pub encoder: &'a Encoder,
    pub options: EncodeOptions<'a>,
    pub format: Format,
    pub columns: &'a Columns,
}

impl<'a> Recording<'a> {
    /// A line to what becomes of it.
    pub(super) fn encode_line(
        self,
        layout: &Layout,
        line: &Line,
        scratch: &mut Scratch,
        helpers: Option<&dyn Helpers<'a>>,
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
        match self.encode_record(layout, text, scratch, helpers) {
            Ok(record) => match record.left_out.first() {
                Some(reason) if record.tokens.is_empty() => Outcome::Skipped(reason.as_str()),
                _ => Outcome::Written(record),
            },
            Err(error) => Outcome::Failed(error),
        }
    }

    fn encode_record(
        self,
        layout: &Layout,
        text: &[u8],
        scratch: &mut Scratch,
        helpers: Option<&dyn Helpers<'a>>,
    ) -> Result<Record> {
        let value = Value::from_json(text)?;
        let Some(entries) = value.as_object() else {
            let message = format!("expected an object, found {}", value.kind());
            return Err(Error::new(ErrorKind::Conversation, message));
        };
        let kept = self.kept_of(entries);
        let printed = kept.as_deref().unwrap_or_default();
        let mut encode = |value: &Value<'_>| {
            let conversation = Conversation::from_value(value, None)?;
            let mut record = Record::empty(self.format);
            self.encoder
                .for_each_row(
                    &conversation,
                    self.options,
                    scratch,
                    helpers,
                    |row| match row {
                        Ok(row) => record.push(self, printed, row),
                        Err(reason) => record.left_out.push(reason),
                    },
                )?;
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
        kept.map(|_| record)
    }

    /// The fields that pass through, as JSON, which has no word for what Python calls NaN and Infinity.
    fn kept_of(self, entries: &Object<'_>) -> Result<Vec<Option<String>>> {
        let print = |column: &columns::KeptColumn| {
            let Some(value) = entries.get(&column.name) else {
                return Ok(None);
            };
            if !value.is_finite() {
                let message = "expected what JSON can hold, found NaN or an infinity";
                let error = Error::new(ErrorKind::Conversation, message);
                return Err(error.at(column.name.clone()));
            }
            let mut text = String::new();
            value.write_json(Spacing::Compact, &mut text);
            Ok(Some(text))
        };
        self.columns.kept.iter().map(print).collect()
    }
}

impl Record {
    fn empty(format: Format) -> Self {
        let rows = match format {
            Format::Jsonl => Rows::Lines(Vec::new()),
            Format::Parquet | Format::Arrow | Format::Megatron => Rows::Rows(Vec::new()),
        };
        Self {
            rows,
            tokens: Vec::new(),
            parts: Vec::new(),
            left_out: Vec::new(),
            findings: Vec::new(),
            notices: Notices::default(),
            loses_weights: false,
        }
    }

    fn push(&mut self, how: Recording<'_>, kept: &[Option<String>], row: &mut EncodedConversation) {
        let mut all = Tokens::default();
        for span in &row.spans {
            let trains = &row.loss_mask[span.start as usize..span.end as usize];
            let tokens = Tokens {
                all: span.len() as u64,
                trained: trains.iter().map(|&trains| u64::from(trains)).sum(),
            };
            all += tokens;
            let what = (span.facts.role, span.facts.part);
            match self.parts.iter_mut().find(|(known, _)| *known == what) {
                Some((_, sum)) => *sum += tokens,
                None => self.parts.push((what, tokens)),
            }
        }
        self.tokens.push(all);
        self.notices += row.notices;
        let mask = how.options.mask;
        let is_weighted = row.is_weighted();
        self.loses_weights |=
            is_weighted && !how.columns.parts.contains(&columns::Part::LossWeight);
        match &mut self.rows {
            Rows::Lines(lines) => jsonl::write_row(how.columns, kept, row, mask, lines),
            Rows::Rows(rows) => rows.push(Row {
                kept: kept.to_vec(),
                loss_weight: is_weighted.then(|| row.weights(mask)),
                input_ids: mem::take(&mut row.input_ids),
                loss_mask: mem::take(&mut row.loss_mask),
                cut_tokens: row.notices.cut_tokens,
            }),
        }
        // Every row has those of the whole conversation.
        self.findings = mem::take(&mut row.findings);
    }
}
