//! Which segments train.
//!
//! A pure function of the facts that a template stated; nothing here searches text or ids, so no text that a user or
//! a tool supplies can move a mask bit.

use crate::chat::segment::{Facts, Part, Role};

/// The policy `all_assistant_messages`: what the model samples trains. That is its reasoning with the closing tag, its
/// content, its tool calls with their markers, and the end token; not a header, not the think opener that the
/// generation prompt supplies, not an empty think pair.
#[must_use]
pub fn trains(facts: Facts) -> bool {
    facts.sampled
}

/// The structural assistant mask of the reference data: everything after an assistant header, up to and including the
/// end token, whoever supplied it.
#[must_use]
pub fn in_assistant_body(facts: Facts) -> bool {
    facts.role == Role::Assistant && facts.part != Part::Header
}
