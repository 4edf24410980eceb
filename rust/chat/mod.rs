//! Conversation to segments: messages in, facts out. Nothing here knows an id.

pub mod conversation;
pub mod expand;
pub mod json;
pub mod mask;
pub mod pairing;
pub mod segment;
pub mod templates;
pub mod tool_call_ids;
pub mod tool_declaration;
pub mod validation;
