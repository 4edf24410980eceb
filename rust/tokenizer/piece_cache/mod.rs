//! Pieces already encoded, with their ids.
//!
//! Text repeats its words: the 4,096 commonest pieces of the real trajectories are 86 % of their text, so most pieces were
//! seen a moment ago. A hit costs one memory access where the vocabulary's own table costs three and a merge many more. Both
//! tables have a fixed size, and what is put in drives out what was there, so nothing is ever searched or moved.
//!
//! Pieces of up to 15 bytes, more than 99 of 100, are packed into an integer and compared in registers. One table of 64-byte
//! slots with keys as bytes for all lengths was the design before: a fifth of the time of encoding went into its hashing of
//! bytes, its call of `memcmp`, and the merges of pieces that had driven each other out.

pub mod long;
pub mod short;

use long::LongPieces;
use short::ShortPieces;

/// The pieces that one thread has seen.
#[derive(Default)]
pub struct PieceCache {
    /// Of up to 15 bytes.
    pub short: ShortPieces,
    /// Of more, but not of many more.
    pub long: LongPieces,
}
