//! What encoding yields: ids, spans and the loss mask of one conversation, or of many laid end to end.

use crate::chat::segment::Facts;
use crate::tokenizer::TokenId;

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
}

/// One encoded conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EncodedConversation {
    /// The ids that the model reads.
    pub input_ids: Vec<TokenId>,
    /// For each id 1 if it trains, else 0.
    pub loss_mask: Vec<u8>,
    /// What each stretch of ids is.
    pub spans: Vec<Span>,
    /// What to tell the user.
    pub notices: Notices,
}

impl EncodedConversation {
    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.input_ids.clear();
        self.loss_mask.clear();
        self.spans.clear();
        self.notices = Notices::default();
    }

    /// A mask by another rule than the loss mask's: 1 where `rule` holds, from the spans alone.
    #[must_use]
    pub fn mask(&self, rule: impl Fn(Facts) -> bool) -> Vec<u8> {
        let mut mask = Vec::with_capacity(self.input_ids.len());
        write_mask(&self.spans, rule, &mut mask);
        mask
    }
}

/// Appends 1 or 0 for each token of `spans`.
pub(super) fn write_mask(spans: &[Span], rule: impl Fn(Facts) -> bool, mask: &mut Vec<u8>) {
    for span in spans {
        let len = mask.len() + (span.end - span.start) as usize;
        mask.resize(len, u8::from(rule(span.facts)));
    }
}

/// Many encoded conversations, end to end.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// One entry a conversation.
    pub notices: Vec<Notices>,
}

impl EncodedBatch {
    /// Lays conversations end to end.
    #[must_use]
    pub fn from_conversations(conversations: Vec<EncodedConversation>) -> Self {
        let ids = conversations.iter().map(|one| one.input_ids.len()).sum();
        let spans = conversations.iter().map(|one| one.spans.len()).sum();
        let mut batch = Self {
            input_ids: Vec::with_capacity(ids),
            loss_mask: Vec::with_capacity(ids),
            offsets: vec![0],
            spans: Vec::with_capacity(spans),
            span_offsets: vec![0],
            notices: Vec::with_capacity(conversations.len()),
        };
        for one in conversations {
            batch.input_ids.extend_from_slice(&one.input_ids);
            batch.loss_mask.extend_from_slice(&one.loss_mask);
            batch.spans.extend_from_slice(&one.spans);
            batch.offsets.push(batch.input_ids.len());
            batch.span_offsets.push(batch.spans.len());
            batch.notices.push(one.notices);
        }
        batch
    }
}
