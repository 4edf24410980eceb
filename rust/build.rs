//! Writes Kimi's vocabulary as the library reads it: one file for each of its tables, in the byte order of the target.

use std::path::PathBuf;
use std::{env, fs};

use splintr::core::load_packed_bpe_borrowed;
use splintr::core::pretrained::KIMI_VOCAB_PACKED;

#[allow(dead_code, reason = "the library reads what is only written here")]
#[path = "tokenizer/vocab/tables.rs"]
mod tables;

fn main() {
    println!("cargo::rerun-if-changed=rust/build.rs");
    println!("cargo::rerun-if-changed=rust/tokenizer/vocab/tables.rs");
    let packed = load_packed_bpe_borrowed(KIMI_VOCAB_PACKED).expect("the vocabulary is whole");
    let mut ranks: Vec<(&[u8], u32)> = packed.iter().collect();
    ranks.sort_unstable_by_key(|&(_, rank)| rank);
    assert!(
        ranks
            .iter()
            .map(|&(_, rank)| rank)
            .eq(0..ranks.len() as u32),
        "ids are ranks, without a hole"
    );
    let tokens: Vec<&[u8]> = ranks.into_iter().map(|(token, _)| token).collect();
    let tables = tables::Tables::new(&tokens).expect("no token comes twice");

    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo names a folder"));
    let write = |name: &str, content: &[u8]| {
        fs::write(folder.join(name), content).expect("the folder can be written to");
    };
    let integers = |table: &[u32]| in_target_order(table.iter().map(|one| one.to_le_bytes()));
    let words = |table: &[u64]| in_target_order(table.iter().map(|word| word.to_le_bytes()));
    write("vocab_bytes", &tables.bytes);
    write("vocab_starts", &integers(&tables.starts));
    write("vocab_slots", &integers(&tables.slots));
    write("vocab_words", &words(&tables.words));
    write("vocab_singles", &integers(&tables.singles));
    write("vocab_pairs", &integers(&tables.pairs));
    write("vocab_filter", &integers(&tables.filter));
}

/// Integers, given with the lowest byte first, as the target has them in memory.
fn in_target_order<const N: usize>(integers: impl Iterator<Item = [u8; N]>) -> Vec<u8> {
    let is_big_endian = env::var("CARGO_CFG_TARGET_ENDIAN").as_deref() == Ok("big");
    let in_order = |mut bytes: [u8; N]| {
        if is_big_endian {
            bytes.reverse();
        }
        bytes
    };
    integers.flat_map(in_order).collect()
}
