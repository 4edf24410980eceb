//! The vocabulary and the special tokens from a `tokenizer.json`, read by the `tokenizers` crate.
//!
//! Kimi's repositories carry no such file; converters make them. Only the tokens are taken from it: the usual
//! converter writes another split pattern, which would yield other ids.

use std::path::Path;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;

use crate::error::Result;
use crate::tokenizer::special_tokens::SpecialTokens;
use crate::tokenizer::vocab::{KIMI_VOCAB_LEN, Vocab, fault};
use crate::tokenizer::{TokenId, Tokenizer, tiktoken};

/// Reads a `tokenizer.json`.
///
/// # Errors
/// [`crate::error::ErrorKind::Io`] if the file cannot be read, [`crate::error::ErrorKind::Vocab`] if it is not Kimi's.
pub fn read_tokenizer(path: &Path) -> Result<Tokenizer> {
    let text = tiktoken::read(path)?;
    parse(&text).map_err(|error| error.in_file(path.display().to_string()))
}

fn parse(text: &[u8]) -> Result<Tokenizer> {
    let file = tokenizers::Tokenizer::from_bytes(text)
        .map_err(|error| fault(format!("not a tokenizer.json: {error}")))?;
    let bytes_of = byte_alphabet();
    let mut ranks: Vec<(Vec<u8>, TokenId)> = Vec::new();
    for (token, rank) in file.get_vocab(false) {
        if rank as usize >= KIMI_VOCAB_LEN {
            continue;
        }
        let bytes: Option<Vec<u8>> = token
            .chars()
            .map(|char| bytes_of.get(&char).copied())
            .collect();
        let Some(bytes) = bytes else {
            return Err(fault(format!(
                "expected byte-level tokens, found `{token}` at rank {rank}"
            )));
        };
        ranks.push((bytes, rank));
    }
    let vocab = Vocab::from_ranks(ranks.iter().map(|(token, rank)| (token.as_slice(), *rank)))?
        .require_kimi()?;

    let added = file.get_added_tokens_decoder();
    let is_special = |id: TokenId| id as usize >= KIMI_VOCAB_LEN;
    let named = added.iter().filter(|&(&id, _)| is_special(id));
    let special_tokens =
        SpecialTokens::from_names(named.map(|(&id, token)| (id, token.content.as_str())))?;
    Ok(Tokenizer::new(Arc::new(vocab), special_tokens))
}

/// The byte that each character of a byte-level token stands for: printable bytes for themselves, the others in order
/// for the characters from U+0100 on (GPT-2's table).
fn byte_alphabet() -> FxHashMap<char, u8> {
    let is_printable = |byte: u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let mut others = '\u{100}'..;
    let stands_for = |byte: u8| {
        if is_printable(byte) {
            Some(char::from(byte))
        } else {
            others.next()
        }
    };
    let alphabet: FxHashMap<char, u8> = (0..=u8::MAX)
        .map(stands_for)
        .zip(0..=u8::MAX)
        .filter_map(|(char, byte)| Some((char?, byte)))
        .collect();
    debug_assert!(
        ByteLevel::alphabet()
            .iter()
            .all(|char| alphabet.contains_key(char))
    );
    alphabet
}
