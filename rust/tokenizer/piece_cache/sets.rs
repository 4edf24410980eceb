//! A bounded map from short pieces to ids: a table whose sets are cache lines.

use std::hint::select_unpredictable;

use crate::tokenizer::piece_cache::packed::PackedIds;

/// A piece as an integer that no other piece has, and that is not 0.
pub trait Key: Copy + PartialEq + Default {
    /// Bits without a pattern, the highest ones best.
    fn hash(self) -> u64;
}

/// An odd number without a pattern.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

impl Key for u64 {
    /// Every bit reaches the highest ones.
    #[inline]
    fn hash(self) -> u64 {
        self.wrapping_mul(FACTOR)
    }
}

impl Key for u128 {
    /// A product folded once, so that every bit of either half reaches all.
    #[inline]
    fn hash(self) -> u64 {
        let (low, high) = (self as u64, (self >> 64) as u64);
        let product = u128::from(low ^ FACTOR) * u128::from(high ^ 0xD1B5_4A32_D192_ED03);
        product as u64 ^ (product >> 64) as u64
    }
}

/// As many keys as leave room in 64 bytes for their ids.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Set<K, const WAYS: usize> {
    keys: [K; WAYS],
    ids: [PackedIds; WAYS],
}

/// A map of `SETS` sets, a power of two. A piece that comes to a full set drives out the oldest one.
pub struct Sets<K, const WAYS: usize, const SETS: usize> {
    sets: Box<[Set<K, WAYS>; SETS]>,
}

impl<K: Key, const WAYS: usize, const SETS: usize> Default for Sets<K, WAYS, SETS> {
    fn default() -> Self {
        const { assert!(size_of::<Set<K, WAYS>>() == 64, "a set is one cache line") };
        let empty = Set {
            keys: [K::default(); WAYS],
            ids: [PackedIds::default(); WAYS],
        };
        let sets = vec![empty; SETS].into_boxed_slice();
        let Ok(sets) = sets.try_into() else {
            unreachable!("as many as were asked for")
        };
        Self { sets }
    }
}

impl<K: Key, const WAYS: usize, const SETS: usize> Sets<K, WAYS, SETS> {
    /// The ids of a piece, if it is here.
    #[must_use]
    #[inline]
    pub fn get(&self, key: K) -> Option<PackedIds> {
        let set = &self.sets[Self::place(key)];
        let mut found = PackedIds::default();
        for (&known, &ids) in set.keys.iter().zip(&set.ids) {
            // Which one it is is as good as random: as branches, these double the time of encoding, since the processor
            // guesses wrong, and notices only when the line has come.
            found = select_unpredictable(known == key, ids, found);
        }
        (!found.is_empty()).then_some(found)
    }

    /// Keeps the ids of a piece.
    pub fn insert(&mut self, key: K, ids: PackedIds) {
        let set = &mut self.sets[Self::place(key)];
        set.keys.rotate_right(1);
        set.keys[0] = key;
        set.ids.rotate_right(1);
        set.ids[0] = ids;
    }

    #[inline]
    fn place(key: K) -> usize {
        const { assert!(SETS.is_power_of_two()) };
        (key.hash() >> (u64::BITS - SETS.ilog2())) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_piece_of_a_full_set_goes() {
        type Few = Sets<u64, 4, 16>;
        let mut sets = Few::default();
        let place = Few::place(7);
        let same_set: Vec<u64> = (7..)
            .filter(|&key| Few::place(key) == place)
            .take(5)
            .collect();
        for &key in &same_set {
            assert_eq!(sets.get(key), None);
            sets.insert(key, PackedIds::new(&[key as u32]).unwrap());
        }
        assert_eq!(sets.get(same_set[0]), None);
        for &key in &same_set[1..] {
            assert_eq!(sets.get(key).unwrap().padded()[0], key as u32);
        }
    }
}
