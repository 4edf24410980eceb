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
    let is_big_endian = env::var("CARGO_CFG_TARGET_ENDIAN").as_deref() == Ok("big");
    let integers = |table: &[u32]| -> Vec<u8> {
        let bytes = |&integer: &u32| {
            if is_big_endian {
                integer.to_be_bytes()
            } else {
                integer.to_le_bytes()
            }
        };
        table.iter().flat_map(bytes).collect()
    };
    let long_integers = |table: &[u64]| -> Vec<u8> {
        let bytes = |&integer: &u64| {
            if is_big_endian {
                integer.to_be_bytes()
            } else {
                integer.to_le_bytes()
            }
        };
        table.iter().flat_map(bytes).collect()
    };
    write("vocab_bytes", &tables.bytes);
    write("vocab_starts", &integers(&tables.starts));
    write("vocab_slots", &integers(&tables.slots));
    write("vocab_words", &long_integers(&tables.words));
    write("vocab_singles", &integers(&tables.singles));
    write("vocab_pairs", &integers(&tables.pairs));
    write("vocab_filter", &integers(&tables.filter));
}
