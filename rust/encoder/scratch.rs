//! What a thread writes to while it encodes: lent for a call, so that caches stay warm from call to call.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::chat::segment::Segments;
use crate::encoder::encoded::EncodedConversation;
use crate::tokenizer;

/// What one thread keeps from conversation to conversation. It never changes a result of the encoder that it belongs
/// to.
#[derive(Default)]
pub struct Scratch {
    pub(super) segments: Segments,
    /// A row that was copied away, with its memory.
    pub(super) row: EncodedConversation,
    pub(super) tokenizer: tokenizer::Scratch,
}

impl Scratch {
    /// The tokenizer's part, for text without a conversation.
    pub fn tokenizer(&mut self) -> &mut tokenizer::Scratch {
        &mut self.tokenizer
    }
}

/// Scratch of one encoder that no thread is using.
#[derive(Default)]
pub(super) struct Idle(Mutex<Vec<Scratch>>);

impl Idle {
    /// Scratch for one thread, given back when it is dropped.
    pub(super) fn lend(&self) -> Checkout<'_> {
        let known = self.list().pop();
        Checkout {
            idle: self,
            scratch: Some(known.unwrap_or_default()),
        }
    }

    fn list(&self) -> MutexGuard<'_, Vec<Scratch>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Scratch on loan from an [`Encoder`](super::Encoder).
pub struct Checkout<'e> {
    idle: &'e Idle,
    /// There until it is given back. Making another one to put in its place would take longer than encoding a short
    /// text.
    scratch: Option<Scratch>,
}

const GIVEN_BACK: &str = "scratch is given back only when its loan is dropped";

impl Deref for Checkout<'_> {
    type Target = Scratch;

    fn deref(&self) -> &Scratch {
        self.scratch.as_ref().expect(GIVEN_BACK)
    }
}

impl DerefMut for Checkout<'_> {
    fn deref_mut(&mut self) -> &mut Scratch {
        self.scratch.as_mut().expect(GIVEN_BACK)
    }
}

impl Drop for Checkout<'_> {
    fn drop(&mut self) {
        let Some(mut scratch) = self.scratch.take() else {
            return;
        };
        // What a panic has left half done would change what comes next.
        if thread::panicking() {
            return;
        }
        scratch.segments.forget_large();
        scratch.row = EncodedConversation::default();
        scratch.tokenizer.forget_large();
        self.idle.list().push(scratch);
    }
}
