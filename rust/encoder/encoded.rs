//! What encoding yields: ids, spans and the loss mask of one conversation, or of many laid end to end.

use std::ops::AddAssign;

use crate::chat::mask::{MaskPolicy, MessageWeight};
use crate::chat::segment::Facts;
use crate::chat::validation::Finding;
use crate::tokenizer::TokenId;

/// The label of a token that does not train: the default `ignore_index` of PyTorch's cross entropy.
pub const IGNORE_INDEX: i64 = -100;

/// Neighbouring tokens with one set of facts. The spans of a conversation tile its ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// Who speaks, in which message, which part, and whether the model sampled it.
    pub facts: Facts,
    /// The first token, counted from the start of the conversation.
    pub start: u32,
    /// One past the last token.
    pub end: u32,
}

/// What happened to a conversation on the way that its ids do not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notices {
    /// Special tokens that came out of text which a message supplied, as the reference reads them.
    pub control_strings: u32,
    /// Assistant messages whose reasoning the template does not show.
    pub dropped_reasoning: u32,
    /// Tool calls whose id, all that the template shows of them, does not hold the name of their function.
    pub hidden_tool_names: u32,
    /// Tokens that were left out because the row was too long.
    pub cut_tokens: u32,
}

impl AddAssign for Notices {
    fn add_assign(&mut self, other: Self) {
        for (sum, count) in [
            (&mut self.control_strings, other.control_strings),
            (&mut self.dropped_reasoning, other.dropped_reasoning),
            (&mut self.hidden_tool_names, other.hidden_tool_names),
            (&mut self.cut_tokens, other.cut_tokens),
        ] {
            *sum = sum.saturating_add(count);
        }
    }
}

/// One encoded conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EncodedConversation {
    /// The ids that the model reads.
    pub input_ids: Vec<TokenId>,
    /// For each id 1 if it trains, else 0.
    pub loss_mask: Vec<u8>,
    /// What each stretch of ids is.
    pub spans: Vec<Span>,
    /// The messages that say how much they weigh.
    pub message_weights: Vec<MessageWeight>,
    /// What to tell the user.
    pub notices: Notices,
    /// What is odd in the conversation that the row comes from, in all its messages.
    pub findings: Vec<Finding>,
}

impl EncodedConversation {
    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.input_ids.clear();
        self.loss_mask.clear();
        self.spans.clear();
        self.message_weights.clear();
        self.notices = Notices::default();
        self.findings.clear();
    }

    /// Whether any token trains.
    #[must_use]
    pub fn trains(&self) -> bool {
        self.loss_mask.contains(&1)
    }

    /// The mask of another policy, from the spans alone.
    #[must_use]
    pub fn mask(&self, policy: MaskPolicy) -> Vec<u8> {
        let mut mask = Vec::with_capacity(self.input_ids.len());
        write_mask(policy, &self.spans, &self.message_weights, &mut mask);
        mask
    }

    /// Whether a message weighs something other than 0 and 1.
    #[must_use]
    pub fn is_weighted(&self) -> bool {
        let mut weights = self.message_weights.iter();
        weights.any(|(_, weight)| ![0.0, 1.0].contains(weight))
    }

    /// The weight of each token under a policy, 0 where it does not train.
    #[must_use]
    pub fn weights(&self, policy: MaskPolicy) -> Vec<f32> {
        let mut weights = Vec::with_capacity(self.input_ids.len());
        write_weights(policy, &self.spans, &self.message_weights, &mut weights);
        weights
    }

    /// A mask by any rule: 1 where `rule` holds.
    #[must_use]
    pub fn mask_where(&self, rule: impl Fn(Facts) -> bool) -> Vec<u8> {
        let mut mask = Vec::with_capacity(self.input_ids.len());
        for span in &self.spans {
            mask.resize(mask.len() + span.len(), u8::from(rule(span.facts)));
        }
        mask
    }
}

impl Span {
    /// How many tokens there are.
    #[must_use]
    pub fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// Whether there are none, as after a cut.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Appends 1 for each token of one conversation's `spans` that trains, else 0.
pub fn write_mask(
    policy: MaskPolicy,
    spans: &[Span],
    weights: &[MessageWeight],
    mask: &mut Vec<u8>,
) {
    let facts = spans.iter().map(|span| span.facts);
    for (span, weight) in spans.iter().zip(policy.weigh(facts, weights)) {
        mask.resize(mask.len() + span.len(), u8::from(weight > 0.0));
    }
}

/// Appends the weight of each token of one conversation's `spans`, 0 where it does not train.
pub fn write_weights(
    policy: MaskPolicy,
    spans: &[Span],
    weights: &[MessageWeight],
    out: &mut Vec<f32>,
) {
    let facts = spans.iter().map(|span| span.facts);
    for (span, weight) in spans.iter().zip(policy.weigh(facts, weights)) {
        out.resize(out.len() + span.len(), weight);
    }
}

/// Why a row is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LeftOut {
    /// It has more tokens than it may have.
    TooLong,
    /// No token trains.
    Untrained,
}

impl LeftOut {
    /// The reason, as reports give it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TooLong => "longer than max_length",
            Self::Untrained => "no token that trains",
        }
    }
}

/// What becomes of one conversation: one row, or several, without those left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// The rows, in order.
    pub rows: Vec<EncodedConversation>,
    /// One entry for each row that is left out.
    pub left_out: Vec<LeftOut>,
}

/// Many encoded conversations, end to end.
#[derive(Clone, Debug, PartialEq)]
pub struct EncodedBatch {
    /// The ids of all conversations.
    pub input_ids: Vec<TokenId>,
    /// The loss mask of all conversations.
    pub loss_mask: Vec<u8>,
    /// Where each conversation starts in `input_ids`, and at the end where the last one ends.
    pub offsets: Vec<usize>,
    /// The spans of all conversations, each counting from its own start.
    pub spans: Vec<Span>,
    /// Where each conversation starts in `spans`, and at the end where the last one ends.
    pub span_offsets: Vec<usize>,
    /// The weights of all conversations' messages, each counting messages from its own first.
    pub message_weights: Vec<MessageWeight>,
    /// Where each conversation starts in `message_weights`, and at the end where the last one ends.
    pub weight_offsets: Vec<usize>,
    /// One entry a row.
    pub notices: Vec<Notices>,
    /// One entry a row.
    pub findings: Vec<Vec<Finding>>,
    /// For each row the index of the conversation that it comes from.
    pub sources: Vec<usize>,
    /// One entry for each row that is left out.
    pub left_out: Vec<LeftOut>,
}

impl Default for EncodedBatch {
    fn default() -> Self {
        Self {
            input_ids: Vec::new(),
            loss_mask: Vec::new(),
            offsets: vec![0],
            spans: Vec::new(),
            span_offsets: vec![0],
            message_weights: Vec::new(),
            weight_offsets: vec![0],
            notices: Vec::new(),
            findings: Vec::new(),
            sources: Vec::new(),
            left_out: Vec::new(),
        }
    }
}

impl EncodedBatch {
    /// An empty batch that makes room for about so many rows at once: growing would copy what is there.
    #[must_use]
    pub fn for_rows(rows: usize) -> Self {
        Self {
            notices: Vec::with_capacity(rows),
            ..Self::default()
        }
    }

    /// Appends a row of conversation `source`. It may keep what the row holds.
    pub fn push(&mut self, source: usize, row: &mut EncodedConversation) {
        self.sources.push(source);
        if self.input_ids.is_empty() && self.notices.capacity() <= 1 {
            // A batch of one very long conversation is not copied.
            std::mem::swap(&mut self.input_ids, &mut row.input_ids);
            std::mem::swap(&mut self.loss_mask, &mut row.loss_mask);
            std::mem::swap(&mut self.spans, &mut row.spans);
        } else {
            self.make_room(row.input_ids.len());
            self.input_ids.extend_from_slice(&row.input_ids);
            self.loss_mask.extend_from_slice(&row.loss_mask);
            self.spans.extend_from_slice(&row.spans);
        }
        self.message_weights.extend_from_slice(&row.message_weights);
        self.notices.push(row.notices);
        self.findings.push(std::mem::take(&mut row.findings));
        self.end_row();
    }

    /// Makes room for a row of so many tokens, and for all the rows that are still to come if they are like those
    /// before.
    fn make_room(&mut self, tokens: usize) {
        let known = self.input_ids.len() + tokens;
        if known <= self.input_ids.capacity() {
            return;
        }
        let rows = self.notices.len() + 1;
        let to_come = self.notices.capacity().saturating_sub(rows);
        // Twice as much, since rows differ: growing again copies everything, and room that is not used costs no memory.
        let room = tokens + known / rows * to_come * 2;
        // Where the address space is limited, pushing takes what it needs.
        let _ = self.input_ids.try_reserve_exact(room);
        let _ = self.loss_mask.try_reserve_exact(room);
    }

    fn end_row(&mut self) {
        self.offsets.push(self.input_ids.len());
        self.span_offsets.push(self.spans.len());
        self.weight_offsets.push(self.message_weights.len());
    }
}
