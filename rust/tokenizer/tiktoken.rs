//! The vocabulary and the special tokens as Kimi's repositories carry them: `tiktoken.model`, and the names in
//! `tokenizer_config.json`.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::error::{Error, ErrorKind, Result};
use crate::tokenizer::TokenId;
use crate::tokenizer::special_tokens::SpecialTokens;
use crate::tokenizer::vocab::{Vocab, fault};

/// Reads a `tiktoken.model`.
///
/// # Errors
/// [`ErrorKind::Io`] if the file cannot be read, [`ErrorKind::Vocab`] if it is not Kimi's.
pub fn read_vocab(path: &Path) -> Result<Vocab> {
    let text = read(path)?;
    parse_vocab(&text).map_err(|error| error.in_file(path.display().to_string()))
}

fn parse_vocab(text: &[u8]) -> Result<Vocab> {
    let mut ranks: Vec<(Vec<u8>, TokenId)> = Vec::new();
    for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        let wrong =
            || fault("expected a token in base64, a blank and its rank").on_line(index as u64 + 1);
        let blank = line
            .iter()
            .rposition(|&byte| byte == b' ')
            .ok_or_else(wrong)?;
        let token = STANDARD.decode(&line[..blank]).map_err(|_| wrong())?;
        let rank = std::str::from_utf8(&line[blank + 1..])
            .ok()
            .and_then(|rank| rank.parse().ok())
            .ok_or_else(wrong)?;
        ranks.push((token, rank));
    }
    Vocab::from_ranks(ranks.iter().map(|(token, rank)| (token.as_slice(), *rank)))?.require_kimi()
}

/// Reads the names of special tokens from the `added_tokens_decoder` of a `tokenizer_config.json`.
///
/// # Errors
/// [`ErrorKind::Io`] if the file cannot be read, [`ErrorKind::Vocab`] if it names no tokens or impossible ones.
pub fn read_special_tokens(path: &Path) -> Result<SpecialTokens> {
    let text = read(path)?;
    parse_special_tokens(&text).map_err(|error| error.in_file(path.display().to_string()))
}

fn parse_special_tokens(text: &[u8]) -> Result<SpecialTokens> {
    let config: serde_json::Value =
        serde_json::from_slice(text).map_err(|error| fault(error.to_string()))?;
    let added = config
        .get("added_tokens_decoder")
        .and_then(serde_json::Value::as_object);
    let added =
        added.ok_or_else(|| fault("expected an object, found none").at("added_tokens_decoder"))?;
    let mut names = Vec::with_capacity(added.len());
    for (id, token) in added {
        let content = token.get("content").and_then(serde_json::Value::as_str);
        let (Ok(id), Some(content)) = (id.parse(), content) else {
            return Err(fault("expected an id and its `content`")
                .at(id.clone())
                .at("added_tokens_decoder"));
        };
        names.push((id, content));
    }
    SpecialTokens::from_names(names)
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| {
        Error::new(ErrorKind::Io, error.to_string()).in_file(path.display().to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model_file(vocab: &Vocab) -> String {
        let line = |id| format!("{} {id}\n", STANDARD.encode(vocab.token(id).unwrap()));
        (0..vocab.len() as TokenId).map(line).collect()
    }

    #[test]
    fn only_the_whole_and_unchanged_file_is_taken() {
        let file = model_file(&Vocab::embedded());
        assert!(parse_vocab(file.as_bytes()).is_ok());

        let cut = &file[..file.len() / 2];
        let cut = &cut[..=cut.rfind('\n').unwrap()];
        let message = parse_vocab(cut.as_bytes()).err().unwrap().to_string();
        assert!(
            message.starts_with("expected Kimi's 163584 tokens, found "),
            "{message}"
        );

        let lines: Vec<&str> = file.lines().collect();
        let (a, b) = (
            lines[1000].split(' ').next().unwrap(),
            lines[1001].split(' ').next().unwrap(),
        );
        let swapped = file
            .replace(lines[1000], &format!("{b} 1000"))
            .replace(lines[1001], &format!("{a} 1001"));
        let message = parse_vocab(swapped.as_bytes()).err().unwrap().to_string();
        assert!(
            message.contains("found another of the same length"),
            "{message}"
        );

        let message = parse_vocab(b"IQ== 0\n{\"a\": 1}\n")
            .err()
            .unwrap()
            .to_string();
        assert_eq!(
            message,
            "line 2: expected a token in base64, a blank and its rank"
        );
        assert!(parse_vocab(b"").is_err());
    }

    #[test]
    fn special_tokens_come_from_added_tokens_decoder() {
        let config = br#"{"added_tokens_decoder": {"163586": {"content": "<|end_of_msg|>", "special": true}}}"#;
        let specials = parse_special_tokens(config).unwrap();
        assert_eq!(specials.id("<|end_of_msg|>"), Some(163_586));
        assert_eq!(specials.named().count(), 1);
        for wrong in [
            "{}",
            "[]",
            "{",
            r#"{"added_tokens_decoder": {"x": {"content": "a"}}}"#,
        ] {
            assert!(parse_special_tokens(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
