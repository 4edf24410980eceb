//! Where a model speaks, told from the ids of a row alone: the special tokens that frame messages. This is how a mask is
//! checked, never how one is made.

use crate::encoder::Encoder;
use crate::error::{Error, ErrorKind, Result};
use crate::tokenizer::{TokenId, Tokenizer};

/// The tokens that frame the messages of a family of templates.
pub(super) struct Framing<'e> {
    tokenizer: &'e Tokenizer,
    family: Family,
    /// Whether the mask trains all that the model has said in a message, so that trained tokens end with it.
    trains_whole: bool,
}

enum Family {
    /// A role token, its label, `<|im_middle|>`, and `<|im_end|>` at the end.
    Im {
        assistant: TokenId,
        others: Vec<TokenId>,
        middle: TokenId,
        end: TokenId,
        thinks: Vec<TokenId>,
    },
    /// Tags between `<|open|>` and `<|sep|>`, and `<|end_of_msg|>` at the end.
    Tags {
        open: TokenId,
        sep: TokenId,
        end: TokenId,
    },
}

/// Who speaks where a token stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Speaker {
    Nobody,
    Assistant,
    Other,
}

impl<'e> Framing<'e> {
    /// That of the encoder's template; None if its vocabulary lacks the tokens.
    pub(super) fn of(encoder: &'e Encoder, trains_whole: bool) -> Option<Self> {
        let tokenizer = encoder.tokenizer();
        let id = |name: &str| tokenizer.special_tokens().id(name);
        let ids = |names: &[&str]| names.iter().filter_map(|name| id(name)).collect();
        let is_tags = encoder.template().name().starts_with("kimi-k3");
        let family = if is_tags {
            Family::Tags {
                open: id("<|open|>")?,
                sep: id("<|sep|>")?,
                end: id("<|end_of_msg|>")?,
            }
        } else {
            Family::Im {
                assistant: id("<|im_assistant|>")?,
                others: ids(&["<|im_user|>", "<|im_system|>"]),
                middle: id("<|im_middle|>")?,
                end: id("<|im_end|>")?,
                thinks: ids(&["<think>", "</think>"]),
            }
        };
        Some(Self {
            tokenizer,
            family,
            trains_whole,
        })
    }

    /// Whether trained tokens stand where the assistant speaks, and, if all of a message trains, reach from its header
    /// to its end.
    ///
    /// # Errors
    /// [`ErrorKind::Validation`] with the index of the first token that does not.
    pub(super) fn check(&self, ids: &[TokenId], mask: &[u8]) -> Result<()> {
        let mut speaker = Speaker::Nobody;
        let mut header: Option<usize> = None;
        let mut speaks_next = Speaker::Nobody;
        for (token, (&id, &trains)) in ids.iter().zip(mask).enumerate() {
            if trains == 1 && speaker != Speaker::Assistant {
                return Err(fault(
                    token,
                    "expected a trained token after the header of an assistant",
                ));
            }
            let begins = trains == 1 && token > 0 && mask[token - 1] == 0;
            if begins && self.trains_whole && !self.may_precede(ids[token - 1]) {
                return Err(fault(
                    token,
                    "expected trained tokens to begin after a header",
                ));
            }
            let ends = trains == 1 && mask.get(token + 1) == Some(&0);
            if ends && self.trains_whole && id != self.end() {
                return Err(fault(
                    token,
                    "expected trained tokens to go on to the end of the message",
                ));
            }
            match &self.family {
                Family::Im {
                    assistant,
                    others,
                    middle,
                    end,
                    ..
                } => {
                    if id == *assistant {
                        speaks_next = Speaker::Assistant;
                    } else if others.contains(&id) {
                        speaks_next = Speaker::Other;
                    } else if id == *middle {
                        speaker = speaks_next;
                    } else if id == *end {
                        speaker = Speaker::Nobody;
                    }
                }
                Family::Tags { open, sep, end } => {
                    if id == *open {
                        header = Some(token + 1);
                    } else if id == *sep {
                        let tag = header.take().map(|from| &ids[from..token]);
                        if let Some(next) = tag.and_then(|tag| self.speaker_of(tag)) {
                            speaker = next;
                        }
                    } else if id == *end {
                        speaker = Speaker::Nobody;
                    }
                }
            }
        }
        Ok(())
    }

    fn end(&self) -> TokenId {
        match self.family {
            Family::Im { end, .. } | Family::Tags { end, .. } => end,
        }
    }

    /// Whether a message may go on in the model's own words after this token.
    fn may_precede(&self, id: TokenId) -> bool {
        match &self.family {
            Family::Im { middle, thinks, .. } => id == *middle || thinks.contains(&id),
            Family::Tags { sep, .. } => id == *sep,
        }
    }

    /// Who speaks after a tag, if it opens a message.
    fn speaker_of(&self, tag: &[TokenId]) -> Option<Speaker> {
        let text = self.tokenizer.decode_bytes(tag).ok()?;
        let text = String::from_utf8_lossy(&text);
        let attributes = text.strip_prefix("message ")?;
        Some(if attributes.contains("role=\"assistant\"") {
            Speaker::Assistant
        } else {
            Speaker::Other
        })
    }
}

fn fault(token: usize, message: &'static str) -> Error {
    Error::new(ErrorKind::Validation, message)
        .at_index(token)
        .at("loss_mask")
}
