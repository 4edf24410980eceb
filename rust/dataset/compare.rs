//! A prepared folder against its inputs: each record is encoded again and compared with its rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::dataset::columns::{Columns, Row};
use crate::dataset::manifest::Manifest;
use crate::dataset::prepared::PreparedRow;
use crate::dataset::reader::{Chunks, Position};
use crate::dataset::record::{Outcome, Record, Rows};
use crate::dataset::run::{Encoded, Run, Seen};
use crate::dataset::target::{Form, Format};
use crate::dataset::verify::{AllRows, Verified, finished_manifest};
use crate::dataset::{PrepareOptions, Progress, inputs};
use crate::encoder::Encoder;
use crate::error::{Error, ErrorKind, Result};

/// Encodes the inputs again, with the options that `options` has, and compares every row with that of the folder
/// `options.output`. What differs is added to `found`.
///
/// # Errors
/// As [`finished_manifest`]; [`ErrorKind::Option`] for an encoder of another model; [`ErrorKind::Io`] if an input is
/// missing; whatever `report` returns.
pub fn compare(
    encoder: &Encoder,
    options: &PrepareOptions<'_>,
    found: &mut Verified,
    mut report: impl FnMut(&Progress) -> Result<()>,
) -> Result<()> {
    let manifest = finished_manifest(&options.output)?;
    manifest.check_model(encoder)?;
    encoder.check(options.encode)?;
    let inputs = inputs::expand(&options.inputs)?;
    let sizes = Manifest::new(encoder, serde_json::Map::new(), &inputs)?.inputs;
    let total_bytes = sizes.iter().map(|input| input.digest.bytes).sum();
    let columns = Columns {
        kept: manifest.kept.clone(),
        parts: Vec::new(),
    };
    // Rows that are not yet lines of JSON can be compared.
    let form = Form {
        format: Format::Megatron,
        ..Form::new(None, None, None)?
    };
    let run = Run {
        encoder,
        options,
        inputs: &inputs,
        columns: &columns,
        form: &form,
    };
    let taken = Arc::new(AtomicU64::new(0));
    let paths = inputs.clone();
    let chunks = Chunks::new(paths, Position::default(), None, Arc::clone(&taken));
    let done = AtomicU64::new(0);
    let tell = || {
        report(&Progress {
            records: done.load(Ordering::Relaxed),
            bytes: taken.load(Ordering::Relaxed),
            total_bytes,
            ..Progress::default()
        })
    };
    let mut rows = AllRows::new(&options.output, &manifest)?;
    let is_table = manifest.format()? != Format::Jsonl;
    run.encode_all(chunks, &mut Seen::default(), tell, |encoded| {
        let Encoded {
            chunk, outcomes, ..
        } = encoded;
        for (line, outcome) in chunk.lines.iter().zip(outcomes) {
            done.fetch_add(1, Ordering::Relaxed);
            if let Outcome::Written(record) = outcome {
                let file = inputs[line.file].display().to_string();
                compare_record(
                    &record,
                    is_table.then_some(&columns),
                    &mut rows,
                    |what, error| {
                        found.problem(what, error.in_file(file.clone()).on_line(line.number));
                    },
                );
            }
        }
        true
    })?;
    let more = rows.count();
    if more > 0 {
        let message = format!("expected no more rows, found {more} that the inputs do not have");
        let error = Error::new(ErrorKind::Validation, message);
        let file = options.output.display().to_string();
        found.problem("rows that the inputs do not have", error.in_file(file));
    }
    Ok(())
}

fn compare_record(
    record: &Record,
    table: Option<&Columns>,
    prepared: &mut AllRows,
    mut problem: impl FnMut(&'static str, Error),
) {
    let Rows::Rows(rows) = &record.rows else {
        return;
    };
    // A table refuses a record of which a kept value does not fit its column.
    if table.is_some_and(|columns| rows.iter().any(|row| columns.check(row).is_err())) {
        return;
    }
    for row in rows {
        let difference = match prepared.next() {
            Some(Ok(prepared)) => difference(row, &prepared),
            Some(Err(error)) => Some(error),
            None => {
                let message = "expected a row of this record, found the end of the rows";
                problem(
                    "records without a row",
                    Error::new(ErrorKind::Validation, message),
                );
                continue;
            }
        };
        if let Some(error) = difference {
            problem("rows that differ from their record", error);
        }
    }
}

/// What differs first between a row as it is encoded now and as it was written.
fn difference(row: &Row, prepared: &PreparedRow) -> Option<Error> {
    let mask = match prepared.mask() {
        Ok(mask) => mask,
        Err(error) => return Some(error),
    };
    first_difference("input_ids", &row.input_ids, &prepared.input_ids)
        .or_else(|| first_difference("loss_mask", &row.loss_mask, &mask))
        .or_else(|| {
            let weights = row.loss_weight.as_ref().zip(prepared.loss_weight.as_ref());
            weights.and_then(|(now, then)| first_difference("loss_weight", now, then))
        })
}

fn first_difference<T: PartialEq + std::fmt::Display>(
    column: &'static str,
    now: &[T],
    then: &[T],
) -> Option<Error> {
    let message = |expected: &dyn std::fmt::Display, found: &dyn std::fmt::Display| {
        format!("expected {expected} as it is encoded now, found {found}")
    };
    let differs = now.iter().zip(then).position(|(now, then)| now != then);
    let error = match differs {
        Some(token) => {
            let message = message(&now[token], &then[token]);
            Error::new(ErrorKind::Validation, message).at_index(token)
        }
        None if now.len() == then.len() => return None,
        None => {
            let message = format!(
                "expected {} tokens as it is encoded now, found {}",
                now.len(),
                then.len()
            );
            Error::new(ErrorKind::Validation, message)
        }
    };
    Some(error.at(column))
}
