//! Chats into training tokens for Kimi models: the exact `input_ids` of a model's chat template, and a loss mask that
//! is 1 just where the model itself speaks.
//!
//! ```text
//!        rust/python/       the face: translate, release the GIL, translate back
//!              │
//!        rust/dataset/      files → files
//!              │
//!        rust/encoder/      conversation → ids, spans, loss mask
//!          /        \
//! rust/tokenizer/  rust/chat/
//!  text → ids      conversation → segments
//!          \        /
//!        rust/error.rs
//! ```
//!
//! `tokenizer` never hears of a role, `chat` never hears of an id. `tests/layers.rs` holds the folders to the picture.

pub mod chat;
pub mod dataset;
pub mod encoder;
pub mod error;
#[cfg(feature = "python")]
mod python;
pub mod tokenizer;

pub use chat::templates::{RenderOptions, Template};
pub use encoder::Encoder;
pub use encoder::encoded::{EncodedBatch, EncodedConversation, Span};
pub use error::{Error, ErrorKind, Result};
pub use tokenizer::{TokenId, Tokenizer};
