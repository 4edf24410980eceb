//! The rows of a prepared folder, read back as they were written.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use serde::Deserialize;

use crate::dataset::columns::{Part, Width};
use crate::dataset::megatron::MegatronRows;
use crate::dataset::output_file::at;
use crate::dataset::shard::Shard;
#[cfg(feature = "parquet")]
use crate::dataset::table::prepared::PreparedRows;
use crate::dataset::target::Format;
use crate::encoder::encoded::IGNORE_INDEX;
use crate::error::{Error, ErrorKind, Result};
use crate::tokenizer::TokenId;

/// A row as it was written. What has no column is None.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(super) struct PreparedRow {
    /// The ids.
    pub input_ids: Vec<TokenId>,
    /// 1 where a token trains.
    pub loss_mask: Option<Vec<u8>>,
    /// How much each token counts; None as well where the mask says it.
    pub loss_weight: Option<Vec<f32>>,
    /// The ids that train, and -100 elsewhere.
    pub labels: Option<Vec<i64>>,
    /// 1 for each token.
    pub attention_mask: Option<Vec<u8>>,
    /// The number of tokens.
    pub seq_len: Option<u64>,
    /// The tokens that were left out because the row was too long.
    pub cut_tokens: Option<u32>,
}

impl PreparedRow {
    /// The loss mask, be it written or in the labels.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] with the column if two of them contradict each other, or if there is no mask.
    pub(super) fn mask(&self) -> Result<Vec<u8>> {
        if let Some(token) = self
            .attention_mask
            .iter()
            .flatten()
            .position(|&one| one != 1)
        {
            return Err(fault("expected 1").at_index(token).at("attention_mask"));
        }
        let labels = match &self.labels {
            Some(labels) => Some(self.mask_of_labels(labels)?),
            None => None,
        };
        let Some(mask) = self.loss_mask.clone().or(labels) else {
            return Err(fault("expected loss_mask or labels, found neither"));
        };
        if let Some(token) = mask.iter().position(|&trains| trains > 1) {
            let message = format!("expected 0 or 1, found {}", mask[token]);
            return Err(fault(message).at_index(token).at("loss_mask"));
        }
        Ok(mask)
    }

    fn mask_of_labels(&self, labels: &[i64]) -> Result<Vec<u8>> {
        let mask = self.input_ids.iter().zip(labels).enumerate();
        let mask = mask.map(|(token, (&id, &label))| match label {
            IGNORE_INDEX => Ok(0),
            label if label == i64::from(id) => Ok(1),
            label => {
                let message = format!("expected {id} or {IGNORE_INDEX}, found {label}");
                Err(fault(message).at_index(token).at("labels"))
            }
        });
        mask.collect()
    }

    /// Confirms that all columns are as long as the ids.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] with the column that is not.
    pub(super) fn check_lengths(&self) -> Result<()> {
        let seq_len = self.seq_len;
        let seq_len = seq_len.map(|len| usize::try_from(len).unwrap_or(usize::MAX));
        let lengths = [
            (
                Part::LossMask(Width::Narrow),
                self.loss_mask.as_ref().map(Vec::len),
            ),
            (Part::LossWeight, self.loss_weight.as_ref().map(Vec::len)),
            (
                Part::Labels(Width::Narrow),
                self.labels.as_ref().map(Vec::len),
            ),
            (
                Part::AttentionMask,
                self.attention_mask.as_ref().map(Vec::len),
            ),
            (Part::SeqLen, seq_len),
        ];
        let expected = self.input_ids.len();
        for (part, found) in lengths {
            if let Some(found) = found
                && found != expected
            {
                let message = format!("expected {expected} tokens as in input_ids, found {found}");
                return Err(fault(message).at(part.name()));
            }
        }
        Ok(())
    }
}

/// The rows of a shard, each with columns of one length, until one cannot be read.
///
/// # Errors
/// [`ErrorKind::Io`] for a file that cannot be opened, or is not of the format.
pub(super) fn rows_of(
    folder: &Path,
    format: Format,
    shard: &Shard,
) -> Result<Box<dyn Iterator<Item = Result<PreparedRow>>>> {
    let open = |index: usize| {
        let Some(file) = shard.files.get(index) else {
            return Err(fault(
                "expected a file of the shard in the manifest, found none",
            ));
        };
        let path = folder.join(&file.name);
        let file = File::open(&path).map_err(|error| at(&path, "read", &error))?;
        Ok((file, path))
    };
    match format {
        Format::Jsonl => {
            let (file, _) = open(0)?;
            let mut reader = BufReader::with_capacity(1 << 20, file);
            Ok(Box::new(std::iter::from_fn(move || {
                let mut line = Vec::new();
                match reader.read_until(b'\n', &mut line) {
                    Ok(0) => None,
                    Ok(_) => Some(row_of(&line)),
                    Err(error) => Some(Err(fault(error.to_string()))),
                }
            })))
        }
        Format::Megatron => {
            let [ids, ids_idx, mask, mask_idx] = [open(0)?, open(1)?, open(2)?, open(3)?];
            let rows = MegatronRows::new(ids.0, ids_idx.0, mask.0, mask_idx.0)?;
            Ok(Box::new(rows.map(|row| {
                let (input_ids, mask) = row?;
                Ok(PreparedRow {
                    input_ids,
                    loss_mask: Some(mask),
                    ..PreparedRow::default()
                })
            })))
        }
        #[cfg(feature = "parquet")]
        Format::Parquet | Format::Arrow => {
            let (file, path) = open(0)?;
            Ok(Box::new(PreparedRows::open(file, &path)?))
        }
        #[cfg(not(feature = "parquet"))]
        Format::Parquet | Format::Arrow => Err(fault("this build of fasttok has no tables")),
    }
}

fn row_of(line: &[u8]) -> Result<PreparedRow> {
    let row: PreparedRow = sonic_rs::from_slice(line).map_err(|error| fault(error.to_string()))?;
    row.check_lengths()?;
    Ok(row)
}

fn fault(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::Io, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_is_in_the_mask_or_in_the_labels() {
        let mask = |line: &str| row_of(line.as_bytes()).unwrap().mask();
        for line in [
            r#"{"input_ids": [5, 6, 7], "loss_mask": [0, 1, 0]}"#,
            r#"{"input_ids": [5, 6, 7], "labels": [-100, 6, -100], "attention_mask": [1, 1, 1]}"#,
        ] {
            assert_eq!(mask(line).unwrap(), [0, 1, 0]);
        }
        for (line, place, message) in [
            (
                r#"{"input_ids": [5, 6], "labels": [-100, 7]}"#,
                "labels[1]",
                "expected 6 or -100, found 7",
            ),
            (
                r#"{"input_ids": [5, 6], "loss_mask": [0, 2]}"#,
                "loss_mask[1]",
                "expected 0 or 1, found 2",
            ),
            (
                r#"{"input_ids": [5], "loss_mask": [1], "attention_mask": [0]}"#,
                "attention_mask[0]",
                "expected 1",
            ),
            (
                r#"{"input_ids": [5]}"#,
                "",
                "expected loss_mask or labels, found neither",
            ),
        ] {
            let error = mask(line).unwrap_err();
            assert_eq!((&*error.place().path(), error.message()), (place, message));
        }
    }

    #[test]
    fn a_column_of_another_length_is_an_error() {
        let error = row_of(br#"{"input_ids": [5, 6], "loss_mask": [0]}"#).unwrap_err();
        assert_eq!(error.place().path(), "loss_mask");
        assert_eq!(
            error.message(),
            "expected 2 tokens as in input_ids, found 1"
        );
    }
}
