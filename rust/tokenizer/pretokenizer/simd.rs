//! The classes of 64 bytes with AVX2: the only file with `unsafe` of its own.
//!
//! Each class is a range of ASCII or two, so it costs an addition that puts the range at the top of the signed bytes,
//! and a comparison. What is built from the classes is in [`super::block`], compiled here with the same instructions
//! switched on.

#![allow(
    unsafe_code,
    reason = "loads from memory, and calls that need the processor to be asked first"
)]

use std::arch::x86_64::{
    __m256i, _mm256_add_epi8, _mm256_cmpeq_epi8, _mm256_cmpgt_epi8, _mm256_loadu_si256,
    _mm256_movemask_epi8, _mm256_set1_epi8,
};

use super::block::{self, Classes, LEN};

/// Proof that this processor has what the scanner is compiled for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Simd(());

impl Simd {
    /// None on a processor without AVX2, or without the bit instructions that came with it.
    #[inline]
    pub(super) fn detect() -> Option<Self> {
        let found = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt");
        found.then_some(Self(()))
    }

    /// [`block::ends`]
    #[inline]
    #[expect(
        clippy::unused_self,
        reason = "its existence is the proof that is needed"
    )]
    pub(super) fn ends(self, bytes: &[u8; LEN], len: usize, is_all: bool) -> u64 {
        // SAFETY: a `Simd` exists only where `detect` has found all that `ends` is compiled for.
        unsafe { ends(bytes, len, is_all) }
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
fn ends(bytes: &[u8; LEN], len: usize, is_all: bool) -> u64 {
    block::ends(bytes, &classes(bytes), len, is_all)
}

#[target_feature(enable = "avx2")]
fn classes(bytes: &[u8; LEN]) -> Classes {
    let (low, high) = bytes.split_at(LEN / 2);
    // SAFETY: either half of 64 bytes has the 32 that are read, and the load asks for no alignment.
    let halves = unsafe {
        [
            _mm256_loadu_si256(low.as_ptr().cast()),
            _mm256_loadu_si256(high.as_ptr().cast()),
        ]
    };
    let blank = equal(halves, b' ');
    Classes {
        upper: range(halves, b'A', b'Z'),
        lower: range(halves, b'a', b'z'),
        digit: range(halves, b'0', b'9'),
        space: range(halves, b'\t', b'\r') | blank,
        newline: equal(halves, b'\n') | equal(halves, b'\r'),
        blank,
        apostrophe: equal(halves, b'\''),
        other: positions(halves) | equal(halves, 0),
    }
}

#[target_feature(enable = "avx2")]
fn equal([low, high]: [__m256i; 2], to: u8) -> u64 {
    let to = _mm256_set1_epi8(to.cast_signed());
    positions([_mm256_cmpeq_epi8(low, to), _mm256_cmpeq_epi8(high, to)])
}

/// The bytes from `first` to `last`, both ASCII.
#[target_feature(enable = "avx2")]
fn range([low, high]: [__m256i; 2], first: u8, last: u8) -> u64 {
    const TOP: u8 = i8::MAX.cast_unsigned();
    // Puts `last` at the top: what is greater becomes negative, and so does, or becomes small, what is beyond ASCII.
    let shift = _mm256_set1_epi8((TOP - last).cast_signed());
    let below_first = _mm256_set1_epi8((TOP - (last - first) - 1).cast_signed());
    positions([
        _mm256_cmpgt_epi8(_mm256_add_epi8(low, shift), below_first),
        _mm256_cmpgt_epi8(_mm256_add_epi8(high, shift), below_first),
    ])
}

/// The bytes whose top bit is set.
#[target_feature(enable = "avx2")]
fn positions([low, high]: [__m256i; 2]) -> u64 {
    let low = _mm256_movemask_epi8(low).cast_unsigned();
    let high = _mm256_movemask_epi8(high).cast_unsigned();
    u64::from(low) | u64::from(high) << (LEN / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokenizer::pretokenizer::char_class::CharClass;

    /// Byte by byte, from the table that the scalar scanner reads.
    fn plain_classes(bytes: &[u8; LEN]) -> Classes {
        let positions = |is_it: &dyn Fn(u8) -> bool| {
            let bits = bytes.iter().map(|&byte| u64::from(is_it(byte)));
            bits.rev().fold(0, |bits, bit| bits << 1 | bit)
        };
        let class = |class| positions(&move |byte| CharClass::of_byte(byte).intersects(class));
        Classes {
            upper: class(CharClass::UPPER),
            lower: class(CharClass::LOWER),
            digit: class(CharClass::NUMBER),
            space: class(CharClass::SPACE),
            newline: class(CharClass::NEWLINE),
            blank: positions(&|byte| byte == b' '),
            apostrophe: positions(&|byte| byte == b'\''),
            other: positions(&|byte| byte == 0 || !byte.is_ascii()),
        }
    }

    #[test]
    fn every_byte_in_every_place_has_its_class() {
        if Simd::detect().is_none() {
            return;
        }
        for first in 0..=u8::MAX {
            let bytes: [u8; LEN] = std::array::from_fn(|at| first.wrapping_add(at as u8));
            // SAFETY: the processor has been asked.
            assert_eq!(unsafe { classes(&bytes) }, plain_classes(&bytes));
        }
    }
}
