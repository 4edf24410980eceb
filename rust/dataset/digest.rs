//! What a file holds, in short: enough to know it again.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// How long something is, and its hash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest {
    /// How many bytes it has.
    pub bytes: u64,
    /// Their sha256, in hexadecimal.
    pub sha256: String,
}

impl Digest {
    /// That of the file at `path`.
    ///
    /// # Errors
    /// Those of reading it.
    pub fn of_file(path: &Path) -> io::Result<Self> {
        Self::of(&mut File::open(path)?)
    }

    /// That of all that can be read.
    ///
    /// # Errors
    /// Those of reading it.
    pub(super) fn of(reader: &mut impl io::Read) -> io::Result<Self> {
        let mut hasher = Hasher::default();
        io::copy(reader, &mut hasher)?;
        Ok(hasher.digest())
    }
}

/// Hashes what is written to it.
#[derive(Clone, Default)]
pub(super) struct Hasher {
    sha256: Sha256,
    bytes: u64,
}

impl Hasher {
    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.sha256.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    /// How many bytes it was given.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What it was given so far.
    pub(super) fn digest(&self) -> Digest {
        let mut sha256 = String::with_capacity(64);
        for byte in self.sha256.clone().finalize() {
            // Writing to a `String` cannot fail.
            let _ = write!(sha256, "{byte:02x}");
        }
        Digest {
            bytes: self.bytes,
            sha256,
        }
    }
}

impl Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_a_length_and_a_sha256() {
        // The second example of FIPS 180-2.
        let text = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        let digest = Digest::of(&mut &text[..]).unwrap();
        assert_eq!(digest.bytes, 56);
        assert_eq!(
            digest.sha256,
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        );
    }
}
