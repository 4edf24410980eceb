//! Rows as lines of JSON.

use std::io::Write as _;

use crate::chat::mask::MaskPolicy;
use crate::dataset::columns::{Columns, Part};
use crate::encoder::encoded::{EncodedConversation, IGNORE_INDEX};
use crate::tokenizer::TokenId;

/// Appends one row as a line of JSON: the kept fields that it has, which are JSON already, and the parts. `loss_weight`
/// is there if a message weighs something other than 0 and 1, `cut_tokens` if the row was too long.
pub(super) fn write_row(
    columns: &Columns,
    kept: &[Option<String>],
    row: &EncodedConversation,
    mask: MaskPolicy,
    line: &mut Vec<u8>,
) {
    // Eight bytes an id while they are written, seven at most after it, and two a digit of the mask.
    line.reserve(10 * row.input_ids.len());
    line.push(b'{');
    for (column, value) in columns.kept.iter().zip(kept) {
        if let Some(value) = value {
            // Writing to a `Vec` cannot fail.
            let _ = serde_json::to_writer(&mut *line, &column.name);
            line.push(b':');
            line.extend_from_slice(value.as_bytes());
            line.push(b',');
        }
    }
    for part in &columns.parts {
        match part {
            Part::InputIds(_) => write_ids(&row.input_ids, line),
            Part::LossMask(_) => write_mask("loss_mask", &row.loss_mask, line),
            Part::LossWeight if row.is_weighted() => write_weights(&row.weights(mask), line),
            Part::Labels(_) => write_labels(row, line),
            Part::AttentionMask => {
                write_mask("attention_mask", &vec![1; row.input_ids.len()], line);
            }
            Part::SeqLen => {
                let _ = write!(line, "\"seq_len\":{}", row.input_ids.len());
            }
            Part::CutTokens if row.notices.cut_tokens > 0 => {
                let _ = write!(line, "\"cut_tokens\":{}", row.notices.cut_tokens);
            }
            Part::LossWeight | Part::CutTokens => continue,
        }
        line.push(b',');
    }
    close(b'}', line);
    line.push(b'\n');
}

/// `"input_ids":[…]`.
fn write_ids(ids: &[TokenId], line: &mut Vec<u8>) {
    line.extend_from_slice(b"\"input_ids\":[");
    if ids.iter().all(|&id| id < ID_LIMIT) {
        // Each id is written as eight bytes, of which the next one overwrites what is too much.
        let mut end = line.len();
        line.resize(end + ids.len() * MOST_OF_ID, 0);
        for &id in ids {
            let (text, len) = digits_and_comma(id);
            line[end..end + MOST_OF_ID].copy_from_slice(&text);
            end += len;
        }
        line.truncate(end);
    } else {
        for id in ids {
            let _ = write!(line, "{id},");
        }
    }
    close(b']', line);
}

/// The bytes of the longest id below [`ID_LIMIT`] and a comma.
const MOST_OF_ID: usize = 8;

const ID_LIMIT: TokenId = 10_000_000;

/// The decimal digits of an id below [`ID_LIMIT`] and a comma, and how many bytes that is. All digits come out of the
/// same few multiplications, and no branch depends on how many there are.
fn digits_and_comma(id: TokenId) -> ([u8; MOST_OF_ID], usize) {
    // Two numbers below 10^4, four below 10^2, eight below 10, the first in the lowest bits. The quotients are exact
    // there.
    let numbers = u64::from(id / 10_000) | u64::from(id % 10_000) << 32;
    let hundreds = ((numbers * 10_486) >> 20) & 0x0000_007F_0000_007F;
    let numbers = hundreds | (numbers - hundreds * 100) << 16;
    let tens = ((numbers * 103) >> 10) & 0x000F_000F_000F_000F;
    let digits = tens | (numbers - tens * 10) << 8;
    // The last digit stays, even of zero.
    let leading_zeros = (digits | 1 << 56).trailing_zeros() / 8;
    let len = MOST_OF_ID - leading_zeros as usize;
    let text = (digits | 0x3030_3030_3030_3030) >> (8 * leading_zeros);
    let with_comma = text | u64::from(b',') << (8 * len);
    (with_comma.to_le_bytes(), len + 1)
}

/// `"labels":[…]`.
fn write_labels(row: &EncodedConversation, line: &mut Vec<u8>) {
    line.extend_from_slice(b"\"labels\":[");
    for (id, trains) in row.input_ids.iter().zip(&row.loss_mask) {
        // Writing to a `Vec` cannot fail.
        let _ = match trains {
            1 => write!(line, "{id},"),
            _ => write!(line, "{IGNORE_INDEX},"),
        };
    }
    close(b']', line);
}

/// A list of 0 and 1, all digits at once: an item is a digit and a comma.
fn write_mask(name: &str, mask: &[u8], line: &mut Vec<u8>) {
    let _ = write!(line, "\"{name}\":[");
    let start = line.len();
    line.resize(start + 2 * mask.len(), b',');
    for ([digit, _], trains) in line[start..].as_chunks_mut().0.iter_mut().zip(mask) {
        *digit = b'0' + trains;
    }
    close(b']', line);
}

/// `"loss_weight":[…]`.
fn write_weights(weights: &[f32], line: &mut Vec<u8>) {
    line.extend_from_slice(b"\"loss_weight\":[");
    for weight in weights {
        // The shortest digits that read back as the same float32. Writing to a `Vec` cannot fail.
        let _ = write!(line, "{weight},");
    }
    close(b']', line);
}

/// Puts the bracket in the place of the comma after the last item, if there is one.
fn close(bracket: u8, line: &mut Vec<u8>) {
    if line.last() == Some(&b',') {
        line.pop();
    }
    line.push(bracket);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::segment::{Facts, Part as MessagePart, Role};
    use crate::dataset::columns::{KeptColumn, KeptKind, Width};
    use crate::encoder::encoded::Span;

    #[test]
    fn a_record_is_one_line_of_json() {
        let mask = MaskPolicy::default();
        let facts = Facts {
            role: Role::Assistant,
            message_index: Some(0),
            part: MessagePart::Text,
            sampled: true,
            prefilled: false,
            calls: false,
        };
        let mut row = EncodedConversation {
            input_ids: vec![163_586, 7],
            loss_mask: vec![1, 1],
            spans: vec![Span {
                facts,
                start: 0,
                end: 2,
            }],
            ..EncodedConversation::default()
        };
        let mut columns = Columns {
            kept: vec![KeptColumn {
                name: "id".to_owned(),
                kind: KeptKind::Text,
            }],
            parts: vec![
                Part::InputIds(Width::Narrow),
                Part::LossMask(Width::Narrow),
                Part::LossWeight,
                Part::CutTokens,
            ],
        };
        let mut line = Vec::new();
        write_row(&columns, &[Some("\"a\"".to_owned())], &row, mask, &mut line);
        row.message_weights = vec![(0, 0.1)];
        write_row(&columns, &[None], &row, mask, &mut line);
        let mut cut = EncodedConversation::default();
        cut.notices.cut_tokens = 5;
        write_row(&columns, &[], &cut, mask, &mut line);
        columns.parts = vec![
            Part::AttentionMask,
            Part::Labels(Width::Narrow),
            Part::SeqLen,
        ];
        row.loss_mask = vec![0, 1];
        write_row(&columns, &[], &row, mask, &mut line);
        let expected = [
            "{\"id\":\"a\",\"input_ids\":[163586,7],\"loss_mask\":[1,1]}\n",
            "{\"input_ids\":[163586,7],\"loss_mask\":[1,1],\"loss_weight\":[0.1,0.1]}\n",
            "{\"input_ids\":[],\"loss_mask\":[],\"cut_tokens\":5}\n",
            "{\"attention_mask\":[1,1],\"labels\":[-100,7],\"seq_len\":2}\n",
        ];
        assert_eq!(String::from_utf8(line).unwrap(), expected.concat());
    }

    #[test]
    fn ids_are_printed_as_rust_prints_them() {
        let short: Vec<u32> = (0..200_000)
            .chain((0..ID_LIMIT).rev().step_by(97))
            .collect();
        let long = vec![7, ID_LIMIT - 1, ID_LIMIT, u32::MAX, 0];
        for ids in [&short[..], &long, &[163_586], &[]] {
            let mut line = Vec::new();
            write_ids(ids, &mut line);
            let printed: Vec<String> = ids.iter().map(u32::to_string).collect();
            let expected = format!("\"input_ids\":[{}]", printed.join(","));
            assert!(line == expected.as_bytes());
        }
    }
}
