//! Up to three ids in an integer.

use crate::tokenizer::TokenId;
use crate::tokenizer::vocab::ID_BITS;

const ID: u64 = (1 << ID_BITS) - 1;
const COUNT_SHIFT: u32 = 3 * ID_BITS;

/// The most ids that fit. Of the pieces of up to 16 bytes that are no token, 97 of 100 become two or three.
pub const MAX_IDS: usize = 3;

/// The ids of a piece, and how many they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PackedIds(u64);

impl PackedIds {
    /// None if the ids are too many.
    #[must_use]
    pub fn new(ids: &[TokenId]) -> Option<Self> {
        if ids.len() > MAX_IDS {
            return None;
        }
        let packed = ids
            .iter()
            .rfold(0, |packed, &id| packed << ID_BITS | u64::from(id));
        let count = (ids.len() as u64) << COUNT_SHIFT;
        Some(Self(packed | count))
    }

    /// How many ids there are.
    #[must_use]
    #[inline]
    pub fn len(self) -> usize {
        (self.0 >> COUNT_SHIFT) as usize
    }

    /// Whether there are none, which is so of no piece.
    #[must_use]
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The ids, and zeros.
    #[must_use]
    #[inline]
    pub fn padded(self) -> [TokenId; MAX_IDS] {
        [0, ID_BITS, 2 * ID_BITS].map(|shift| (self.0 >> shift & ID) as TokenId)
    }
}
