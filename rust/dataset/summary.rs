//! What became of all lines, in numbers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::chat::segment::{Part, Role};
use crate::dataset::record::Record;
use crate::dataset::shape::Layout;
use crate::error::Error;

/// How many failures the summary quotes; [`REJECTED_FILE`](super::REJECTED_FILE) has all of them.
const QUOTED_FAILURES: usize = 10;

/// Tokens, and those of them that train.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// All of them.
    pub all: u64,
    /// Those that train.
    pub trained: u64,
}

impl std::ops::AddAssign for Tokens {
    fn add_assign(&mut self, other: Self) {
        self.all += other.all;
        self.trained += other.trained;
    }
}

/// How many rows there are of each length. A row of a million tokens is rare, so this stays small.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(u32, u64)>", into = "Vec<(u32, u64)>")]
pub struct Lengths(BTreeMap<u32, u64>);

impl Lengths {
    pub(super) fn add(&mut self, length: u32, rows: u64) {
        *self.0.entry(length).or_default() += rows;
    }

    /// How many rows there are.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.0.values().sum()
    }

    /// The length that `share` of the rows do not exceed: the smallest such. None without rows.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "no dataset has 2^53 rows, and a share is not negative"
    )]
    pub fn quantile(&self, share: f64) -> Option<u32> {
        let rank = ((self.rows() as f64 * share).ceil() as u64).max(1);
        let mut below = 0;
        self.0.iter().find_map(|(length, rows)| {
            below += rows;
            (below >= rank).then_some(*length)
        })
    }

    /// Each length and how many rows have it, the shortest first.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.0.iter().map(|(length, rows)| (*length, *rows))
    }
}

impl From<Vec<(u32, u64)>> for Lengths {
    fn from(pairs: Vec<(u32, u64)>) -> Self {
        Self(pairs.into_iter().collect())
    }
}

impl From<Lengths> for Vec<(u32, u64)> {
    fn from(lengths: Lengths) -> Self {
        lengths.0.into_iter().collect()
    }
}

/// How many rows there are by the share of their tokens that trains, in steps of a twentieth: below 5 %, below 10 %, and
/// so on, the last one with 100 %.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainedShares([u64; 20]);

impl TrainedShares {
    fn add(&mut self, tokens: Tokens) {
        let steps = self.0.len() as u64;
        let step = (tokens.trained * steps).checked_div(tokens.all);
        self.0[step.unwrap_or(0).min(steps - 1) as usize] += 1;
    }
}

/// Files that hold their conversations in one way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesOfLayout {
    /// How they hold them.
    #[serde(flatten)]
    pub layout: Layout,
    /// How many files do so.
    pub files: u64,
}

/// What became of every line. `records == written + skipped + failed`, and each of the last two has its reasons.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    /// Lines read.
    pub records: u64,
    /// How the inputs hold their conversations, and how many files hold them so.
    pub layouts: Vec<FilesOfLayout>,
    /// Records written.
    pub written: u64,
    /// Rows of the output: one a record, or more where reasoning is expanded.
    pub rows: u64,
    /// Lines skipped, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Rows left out of records that were written, by reason; where reasoning is expanded a record has several.
    pub skipped_rows: BTreeMap<String, u64>,
    /// Lines that failed, by the kind of error.
    pub failed: BTreeMap<String, u64>,
    /// The first failures of this run, with their places.
    #[serde(skip)]
    pub failures: Vec<Error>,
    /// Tokens written.
    pub tokens: u64,
    /// Tokens that train.
    pub trained_tokens: u64,
    /// The same by role, and by part of the message.
    pub parts: BTreeMap<String, BTreeMap<String, Tokens>>,
    /// The lengths of the rows in tokens.
    pub lengths: Lengths,
    /// The shares of the rows that train.
    pub trained_shares: TrainedShares,
    /// Records without a token that trains; they are written like the others.
    pub untrained_records: u64,
    /// Records with a call whose id hides the name of its function.
    pub hidden_tool_name_records: u64,
    /// Records of which tokens were left out because they were too long.
    pub cut_records: u64,
    /// Records in which the template does not show reasoning that the messages have.
    pub dropped_reasoning_records: u64,
    /// Records in which text of a message became special tokens, as in the reference.
    pub control_string_records: u64,
    /// Records with weights between 0 and 1, or beyond, for which the output has no column.
    pub lost_weight_records: u64,
    /// Records written in which something is odd, by the code of the finding; [`FINDINGS_FILE`](super::FINDINGS_FILE)
    /// has all of them.
    pub findings: BTreeMap<String, u64>,
}

/// The shares of the rows whose lengths a report tells, by their names.
pub const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)];

impl Summary {
    pub(super) fn count_written(&mut self, record: &Record) {
        for reason in &record.left_out {
            add(&mut self.skipped_rows, reason.as_str());
        }
        self.written += 1;
        self.rows += record.tokens.len() as u64;
        let mut all = Tokens::default();
        for tokens in &record.tokens {
            all += *tokens;
            // Spans count the tokens of a row in 32 bits too.
            self.lengths.add(tokens.all as u32, 1);
            self.trained_shares.add(*tokens);
        }
        for ((role, part), tokens) in &record.parts {
            *self.part(*role, *part) += *tokens;
        }
        self.tokens += all.all;
        self.trained_tokens += all.trained;
        self.untrained_records += u64::from(all.trained == 0);
        let notices = record.notices;
        self.hidden_tool_name_records += u64::from(notices.hidden_tool_names > 0);
        self.cut_records += u64::from(notices.cut_tokens > 0);
        self.dropped_reasoning_records += u64::from(notices.dropped_reasoning > 0);
        self.control_string_records += u64::from(notices.control_strings > 0);
        self.lost_weight_records += u64::from(record.loses_weights);
    }

    fn part(&mut self, role: Role, part: Part) -> &mut Tokens {
        let parts = self.parts.entry(role.as_str().to_owned()).or_default();
        parts.entry(part.as_str().to_owned()).or_default()
    }

    pub(super) fn count_skipped(&mut self, reason: &str) {
        add(&mut self.skipped, reason);
    }

    pub(super) fn count_finding(&mut self, code: &str) {
        add(&mut self.findings, code);
    }

    pub(super) fn count_failed(&mut self, error: Error) {
        add(&mut self.failed, error.kind().as_str());
        if self.failures.len() < QUOTED_FAILURES {
            self.failures.push(error);
        }
    }

    pub(super) fn count_layout(&mut self, layout: &Layout) {
        let mut known = self.layouts.iter_mut();
        match known.find(|known| known.layout == *layout) {
            Some(known) => known.files += 1,
            None => self.layouts.push(FilesOfLayout {
                layout: layout.clone(),
                files: 1,
            }),
        }
    }

    /// Lines that failed.
    #[must_use]
    pub fn all_failed(&self) -> u64 {
        self.failed.values().sum()
    }

    /// Whether every line is accounted for.
    #[must_use]
    pub fn adds_up(&self) -> bool {
        let skipped: u64 = self.skipped.values().sum();
        self.records == self.written + skipped + self.all_failed()
            && self.rows == self.lengths.rows()
    }

    /// The numbers as people read them: quantiles in place of all lengths.
    #[must_use]
    pub fn report(&self) -> Json {
        let mut report = json!(self);
        let lengths = QUANTILES.map(|(name, share)| (name, self.lengths.quantile(share)));
        report["lengths"] = lengths.into_iter().collect();
        report
    }
}

fn add(counts: &mut BTreeMap<String, u64>, name: &str) {
    match counts.get_mut(name) {
        Some(count) => *count += 1,
        None => {
            counts.insert(name.to_owned(), 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_counted_in_steps() {
        let mut shares = TrainedShares::default();
        for (trained, all) in [(0, 0), (0, 7), (1, 20), (99, 1000), (19, 20), (20, 20)] {
            shares.add(Tokens { all, trained });
        }
        assert_eq!((shares.0[0], shares.0[1], shares.0[19]), (2, 2, 2));
    }

    #[test]
    fn quantiles_are_lengths_that_rows_have() {
        let mut lengths = Lengths::default();
        assert_eq!(lengths.quantile(0.5), None);
        for length in 1..=100 {
            lengths.add(length * 10, 1);
        }
        let quantiles = QUANTILES.map(|(_, share)| lengths.quantile(share).unwrap());
        assert_eq!(quantiles, [500, 900, 990, 1000]);
        let mut one = Lengths::default();
        one.add(7, 1);
        assert_eq!(
            QUANTILES.map(|(_, share)| one.quantile(share)),
            [Some(7); 4]
        );
        let text = serde_json::to_string(&lengths).unwrap();
        assert!(text.starts_with("[[10,1],[20,1],"));
        assert_eq!(serde_json::from_str::<Lengths>(&text).unwrap(), lengths);
    }
}
