//! The face: Python objects to core values, the GIL released for the work, and back.
//!
//! The native classes are the public ones; `python/fasttok/_core.pyi` is their reference.
// pyo3's macros expand to unsafe code; nothing in this folder writes any.
#![allow(unsafe_code)]

mod arrays;
mod convert;
mod dataset;
mod encoded;
mod encoder;
mod error;
mod findings;
mod interrupt;
mod options;
mod spans;
mod tokenizer;

use mimalloc::MiMalloc;
use pyo3::prelude::*;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The native part of fasttok.
#[pymodule(gil_used = false)]
mod _core {
    #[pymodule_export]
    use super::dataset::{prepare, verify};
    #[pymodule_export]
    use super::encoded::{EncodedBatch, EncodedConversation};
    #[pymodule_export]
    use super::encoder::{Encoder, encode_conversation};
    #[pymodule_export]
    use super::error::FasttokError;
    #[pymodule_export]
    use super::findings::Finding;
    #[pymodule_export]
    use super::spans::{Span, Spans};
    #[pymodule_export]
    use super::tokenizer::Tokenizer;

    use pyo3::prelude::*;

    use crate::dataset;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("RECORDS_FILE", dataset::RECORDS_FILE)?;
        module.add("REJECTED_FILE", dataset::REJECTED_FILE)?;
        module.add("REPORT_FILE", dataset::REPORT_FILE)?;
        module.add("MANIFEST_FILE", dataset::manifest::MANIFEST_FILE)?;
        module.add("FINDINGS_FILE", dataset::FINDINGS_FILE)
    }
}
