//! The rows of many threads in one batch, in the order of their conversations.
//!
//! A thread that is done with a conversation leaves its rows here. Whoever finds that the next ones are there copies
//! them to the batch, while the others go on encoding: the results are copied once, and no thread waits for another.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::encoder::encoded::{EncodedBatch, EncodedConversation, Rows};

/// Rows whose memory is kept for others: more than two a thread are seldom under way.
const MOST_SPARE: usize = 64;

/// A batch that is being filled.
pub(super) struct InOrder {
    waiting: Mutex<Waiting>,
    batch: Mutex<EncodedBatch>,
}

#[derive(Default)]
struct Waiting {
    /// The conversation whose rows come next.
    next: usize,
    /// The rows of later ones.
    rows: BTreeMap<usize, Rows>,
    /// Whether a thread is copying. It goes on until the next rows are not there yet.
    is_taken_care_of: bool,
    /// Rows that were copied, with their memory.
    spare: Vec<EncodedConversation>,
}

impl InOrder {
    /// One for about so many rows.
    pub(super) fn for_rows(rows: usize) -> Self {
        Self {
            waiting: Mutex::default(),
            batch: Mutex::new(EncodedBatch::for_rows(rows)),
        }
    }

    /// Leaves the rows of conversation `source`. Returns a row to write the next one to.
    pub(super) fn put(&self, source: usize, rows: Rows) -> EncodedConversation {
        let mut waiting = lock(&self.waiting);
        waiting.rows.insert(source, rows);
        if !waiting.is_taken_care_of {
            waiting.is_taken_care_of = true;
            while let Some((source, mut rows)) = waiting.take_next() {
                drop(waiting);
                let mut batch = lock(&self.batch);
                for row in &mut rows.rows {
                    batch.push(source, row);
                }
                batch.left_out.append(&mut rows.left_out);
                drop(batch);
                waiting = lock(&self.waiting);
                let room = MOST_SPARE.saturating_sub(waiting.spare.len());
                waiting.spare.extend(rows.rows.into_iter().take(room));
            }
            waiting.is_taken_care_of = false;
        }
        waiting.spare.pop().unwrap_or_default()
    }

    /// The batch of all that was left here.
    pub(super) fn into_batch(self) -> EncodedBatch {
        let batch = self.batch.into_inner();
        batch.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn take_next(&mut self) -> Option<(usize, Rows)> {
        let source = self.next;
        let rows = self.rows.remove(&source)?;
        self.next += 1;
        Some((source, rows))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;
    use crate::encoder::encoded::LeftOut;

    #[test]
    fn rows_come_in_the_order_of_their_conversations_whoever_brings_them() {
        const CONVERSATIONS: usize = 1000;
        for threads in 1..5 {
            let in_order = InOrder::for_rows(CONVERSATIONS);
            let next = AtomicUsize::new(0);
            thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| {
                        let mut row = EncodedConversation::default();
                        loop {
                            // Neighbours the other way round, so that one thread alone brings them out of order.
                            let source = next.fetch_add(1, Ordering::Relaxed) ^ 1;
                            if source >= CONVERSATIONS {
                                return;
                            }
                            row.clear();
                            row.input_ids.extend([source as u32; 3]);
                            row.loss_mask.extend([1; 3]);
                            let mut rows = Rows::default();
                            if source.is_multiple_of(7) {
                                rows.left_out.push(LeftOut::Untrained);
                            } else {
                                rows.rows.push(std::mem::take(&mut row));
                            }
                            row = in_order.put(source, rows);
                        }
                    });
                }
            });
            let batch = in_order.into_batch();
            let sources: Vec<usize> = (0..CONVERSATIONS)
                .filter(|n| !n.is_multiple_of(7))
                .collect();
            let ids = sources.iter().flat_map(|&source| [source as u32; 3]);
            assert!(batch.input_ids.iter().copied().eq(ids));
            assert_eq!(batch.sources, sources);
            assert_eq!(batch.left_out.len(), CONVERSATIONS - sources.len());
        }
    }
}
