//! What became of all lines, in numbers.

use std::collections::BTreeMap;

use crate::dataset::record::Record;
use crate::dataset::shape::Layout;
use crate::error::Error;

/// How many failures the summary quotes; [`REJECTED_FILE`](super::REJECTED_FILE) has all of them.
const QUOTED_FAILURES: usize = 10;

/// What became of every line. `records == written + skipped + failed`, and each of the last two has its reasons.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Lines read.
    pub records: u64,
    /// How the inputs hold their conversations, and how many files hold them so.
    pub layouts: Vec<(Layout, u64)>,
    /// Records written.
    pub written: u64,
    /// Lines of the output: one a record, or more where reasoning is expanded.
    pub rows: u64,
    /// Lines skipped, by reason.
    pub skipped: BTreeMap<&'static str, u64>,
    /// Rows left out of records that were written, by reason; where reasoning is expanded a record has several.
    pub skipped_rows: BTreeMap<&'static str, u64>,
    /// Lines that failed, by the kind of error.
    pub failed: BTreeMap<&'static str, u64>,
    /// The first failures, with their places.
    pub failures: Vec<Error>,
    /// Tokens written.
    pub tokens: u64,
    /// Tokens that train.
    pub trained_tokens: u64,
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
    /// Records written in which something is odd, by the code of the finding; [`FINDINGS_FILE`](super::FINDINGS_FILE)
    /// has all of them.
    pub findings: BTreeMap<&'static str, u64>,
}

impl Summary {
    pub(super) fn count_written(&mut self, record: &Record) {
        for reason in &record.left_out {
            *self.skipped_rows.entry(reason.as_str()).or_default() += 1;
        }
        self.written += 1;
        self.rows += record.rows;
        self.tokens += record.tokens;
        self.trained_tokens += record.trained_tokens;
        self.untrained_records += u64::from(record.trained_tokens == 0);
        let notices = record.notices;
        self.hidden_tool_name_records += u64::from(notices.hidden_tool_names > 0);
        self.cut_records += u64::from(notices.cut_tokens > 0);
        self.dropped_reasoning_records += u64::from(notices.dropped_reasoning > 0);
        self.control_string_records += u64::from(notices.control_strings > 0);
    }

    pub(super) fn count_failed(&mut self, error: Error) {
        *self.failed.entry(error.kind().as_str()).or_default() += 1;
        if self.failures.len() < QUOTED_FAILURES {
            self.failures.push(error);
        }
    }
}
