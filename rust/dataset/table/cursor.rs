//! Where one stands among the rows of a file.

use arrow_array::RecordBatch;

use crate::dataset::table::batches::Batches;
use crate::error::Result;

/// Goes from row to row, and from batch to batch.
pub(super) struct Cursor {
    batches: Batches,
    batch: Option<RecordBatch>,
    /// The next row of the batch.
    row: usize,
}

impl Cursor {
    /// Before the first row.
    pub(super) fn new(batches: Batches) -> Self {
        Self {
            batches,
            batch: None,
            row: 0,
        }
    }

    /// What the rows come from.
    pub(super) fn batches(&self) -> &Batches {
        &self.batches
    }

    /// Leaves out the next `rows` rows, or all that are left.
    pub(super) fn skip_rows(&mut self, rows: u64) {
        let left = self
            .batch
            .as_ref()
            .map_or(0, |batch| batch.num_rows() - self.row);
        let here = usize::try_from(rows).unwrap_or(usize::MAX).min(left);
        self.row += here;
        let further = rows - here as u64;
        if further > 0 {
            self.batches.skip_rows(further);
        }
    }

    /// The next row, as its batch and its place in it. After an error there is none.
    pub(super) fn next_row(&mut self) -> Result<Option<(&RecordBatch, usize)>> {
        while self
            .batch
            .as_ref()
            .is_none_or(|batch| self.row >= batch.num_rows())
        {
            self.row = 0;
            // The memory of a batch is free before the next one takes its own.
            self.batch = None;
            match self.batches.next() {
                Some(batch) => self.batch = Some(batch?),
                None => return Ok(None),
            }
        }
        let row = self.row;
        self.row += 1;
        Ok(self.batch.as_ref().map(|batch| (batch, row)))
    }
}
