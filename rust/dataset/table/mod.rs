//! Parquet and Arrow files: read as lines of JSON text, so that the rest of the way is that of JSONL, and written with
//! a type a column.
//!
//! `batches` opens files and takes them apart into record batches, and `cursor` goes through their rows: `reader` makes
//! JSON text of them by way of `row_text`, `prepared` takes the ids out of what `writer` has made. `folder` knows what
//! Hugging Face's `datasets` puts beside the Arrow files of a folder.

mod batches;
mod column;
mod cursor;
pub(super) mod folder;
pub(super) mod prepared;
pub(super) mod reader;
mod row_text;
pub(super) mod writer;
