//! The indexed datasets of Megatron-LM: a `.bin` file with all values one after the other, and an `.idx` file that says
//! where each sequence begins.
//!
//! Megatron knows ids only. The loss mask is therefore a second dataset beside the first, of the same lengths, and
//! nothing else of a row is written. A row is one sequence and one document. The index holds the number of sequences
//! before their lengths, so it is made last; four bytes a row are held until then.

use std::io::{self, BufReader, ErrorKind as IoErrorKind, Read, Write};

use crate::dataset::columns::Row;
use crate::error::{Error, ErrorKind, Result};
use crate::tokenizer::TokenId;

/// What an index begins with: the name of the format, and its version.
const MAGIC: &[u8; 9] = b"MMIDIDX\0\0";
const VERSION: u64 = 1;

/// What a sequence is made of, by the code that Megatron has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum DType {
    UInt8 = 1,
    Int32 = 4,
}

impl DType {
    fn size(self) -> u64 {
        match self {
            Self::UInt8 => 1,
            Self::Int32 => 4,
        }
    }
}

/// Writes rows as two indexed datasets, of ids and of loss masks.
pub(super) struct MegatronWriter<W: Write> {
    ids: W,
    mask: W,
    lengths: Vec<i32>,
    /// The ids of a row as bytes.
    bytes: Vec<u8>,
}

impl<W: Write> MegatronWriter<W> {
    /// A writer to the `.bin` file of the ids and that of the masks.
    pub(super) fn new(ids: W, mask: W) -> Self {
        Self {
            ids,
            mask,
            lengths: Vec::new(),
            bytes: Vec::new(),
        }
    }

    /// Appends a row.
    ///
    /// # Errors
    /// [`ErrorKind::Conversation`] for a row of 2^31 tokens or more, of which nothing is written; [`ErrorKind::Io`] if
    /// a file cannot be written.
    pub(super) fn push(&mut self, row: &Row) -> Result<()> {
        let Ok(length) = i32::try_from(row.input_ids.len()) else {
            let message = format!("expected below 2^31 tokens, found {}", row.input_ids.len());
            return Err(Error::new(ErrorKind::Conversation, message).at("input_ids"));
        };
        self.bytes.clear();
        let ids = row.input_ids.iter().flat_map(|id| id.to_le_bytes());
        self.bytes.extend(ids);
        self.ids.write_all(&self.bytes).map_err(unwritable)?;
        self.mask.write_all(&row.loss_mask).map_err(unwritable)?;
        self.lengths.push(length);
        Ok(())
    }

    /// Writes the two indices, and hands back the `.bin` files.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if a file cannot be written.
    pub(super) fn finish(
        self,
        ids_idx: &mut impl Write,
        mask_idx: &mut impl Write,
    ) -> Result<(W, W)> {
        write_index(DType::Int32, &self.lengths, ids_idx).map_err(unwritable)?;
        write_index(DType::UInt8, &self.lengths, mask_idx).map_err(unwritable)?;
        Ok((self.ids, self.mask))
    }
}

fn write_index(dtype: DType, lengths: &[i32], out: &mut impl Write) -> io::Result<()> {
    let sequences = lengths.len() as u64;
    out.write_all(MAGIC)?;
    out.write_all(&VERSION.to_le_bytes())?;
    out.write_all(&[dtype as u8])?;
    out.write_all(&sequences.to_le_bytes())?;
    // A document is the stretch between two of these.
    out.write_all(&(sequences + 1).to_le_bytes())?;
    for length in lengths {
        out.write_all(&length.to_le_bytes())?;
    }
    let mut pointer = 0_u64;
    for length in lengths {
        out.write_all(&pointer.to_le_bytes())?;
        pointer += dtype.size() * u64::from(length.unsigned_abs());
    }
    for document in 0..=sequences {
        out.write_all(&document.to_le_bytes())?;
    }
    out.flush()
}

/// The rows of a pair of indexed datasets, as [`MegatronWriter`] writes them.
pub(super) struct MegatronRows<R: Read> {
    ids: BufReader<R>,
    mask: BufReader<R>,
    lengths: std::vec::IntoIter<i32>,
}

impl<R: Read> MegatronRows<R> {
    /// Reads both indices.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if an index cannot be read, is not one, is of another type, has rows in another order than
    /// their bytes, or if the two differ in the lengths of their rows.
    pub(super) fn new(ids: R, ids_idx: impl Read, mask: R, mask_idx: impl Read) -> Result<Self> {
        let lengths = read_index(DType::Int32, BufReader::new(ids_idx))?;
        let of_masks = read_index(DType::UInt8, BufReader::new(mask_idx))?;
        if let Some(row) = first_difference(&lengths, &of_masks) {
            let found = |lengths: &[i32]| {
                lengths.get(row).map_or_else(
                    || "no such row".to_owned(),
                    |length| format!("a row of {length}"),
                )
            };
            let (ids, masks) = (found(&lengths), found(&of_masks));
            let message =
                format!("expected a mask for each id, found {ids} ids and {masks} in the mask");
            return Err(Error::new(ErrorKind::Io, message).at_index(row));
        }
        Ok(Self {
            ids: BufReader::with_capacity(1 << 18, ids),
            mask: BufReader::with_capacity(1 << 16, mask),
            lengths: lengths.into_iter(),
        })
    }

    fn read_row(&mut self, length: i32) -> io::Result<(Vec<TokenId>, Vec<u8>)> {
        let length = u64::from(length.unsigned_abs());
        let bytes = read_bytes(&mut self.ids, length * DType::Int32.size())?;
        let ids = bytes
            .as_chunks()
            .0
            .iter()
            .map(|&id| TokenId::from_le_bytes(id));
        let mask = read_bytes(&mut self.mask, length)?;
        Ok((ids.collect(), mask))
    }

    /// Says whether bytes follow after the last row.
    fn end(&mut self) -> io::Result<()> {
        for file in [&mut self.ids, &mut self.mask] {
            if !read_bytes(file, 1).is_err_and(|error| error.kind() == IoErrorKind::UnexpectedEof) {
                return Err(invalid(
                    "expected the end after the last row, found more bytes",
                ));
            }
        }
        Ok(())
    }
}

impl<R: Read> Iterator for MegatronRows<R> {
    /// The ids and the mask of a row. After an error nothing follows.
    type Item = Result<(Vec<TokenId>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        let row = match self.lengths.next() {
            Some(length) => self.read_row(length).map(Some),
            None => self.end().map(|()| None),
        };
        row.map_err(|error| {
            self.lengths = Vec::new().into_iter();
            unreadable(&error)
        })
        .transpose()
    }
}

fn first_difference(a: &[i32], b: &[i32]) -> Option<usize> {
    let differs = a.iter().zip(b).position(|(a, b)| a != b);
    differs.or_else(|| (a.len() != b.len()).then(|| a.len().min(b.len())))
}

/// The lengths of all sequences.
fn read_index(dtype: DType, mut index: impl Read) -> Result<Vec<i32>> {
    let mut read = || {
        if read_array(&mut index)? != *MAGIC {
            return Err(invalid(
                "expected an index of Megatron, found something else",
            ));
        }
        let version = u64::from_le_bytes(read_array(&mut index)?);
        if version != VERSION {
            return Err(invalid(format!(
                "expected version {VERSION}, found {version}"
            )));
        }
        let [code] = read_array(&mut index)?;
        if code != dtype as u8 {
            return Err(invalid(format!(
                "expected values of type {}, found type {code}",
                dtype as u8
            )));
        }
        let sequences = u64::from_le_bytes(read_array(&mut index)?);
        let documents = u64::from_le_bytes(read_array(&mut index)?);
        // No index of that size exists, and the sizes below are sure to fit.
        if sequences > 1 << 56 || documents != sequences + 1 {
            let message = format!(
                "expected one document a sequence, found {documents} ends and {sequences} sequences"
            );
            return Err(invalid(message));
        }
        let lengths = read_bytes(&mut index, 4 * sequences)?;
        let lengths: Vec<i32> = lengths
            .as_chunks()
            .0
            .iter()
            .map(|&length| i32::from_le_bytes(length))
            .collect();
        let mut expected = 0_u64;
        for &length in &lengths {
            let pointer = u64::from_le_bytes(read_array(&mut index)?);
            if length < 0 || pointer != expected {
                return Err(invalid(format!(
                    "expected a row at byte {expected}, found {length} values at byte {pointer}"
                )));
            }
            expected += dtype.size() * u64::from(length.unsigned_abs());
        }
        for expected in 0..=sequences {
            let document = u64::from_le_bytes(read_array(&mut index)?);
            if document != expected {
                return Err(invalid(format!(
                    "expected document {expected}, found {document}"
                )));
            }
        }
        Ok(lengths)
    };
    read().map_err(|error| unreadable(&error))
}

fn read_array<const N: usize>(file: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Just so many bytes. What a corrupt file claims is not reserved before it is there.
fn read_bytes(file: &mut impl Read, len: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(len).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == len {
        Ok(bytes)
    } else {
        Err(IoErrorKind::UnexpectedEof.into())
    }
}

fn invalid(message: impl Into<String>) -> io::Error {
    io::Error::new(IoErrorKind::InvalidData, message.into())
}

fn unreadable(error: &io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot read on: {error}"))
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn unwritable(error: io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot write: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ids: &[TokenId], mask: &[u8]) -> Row {
        Row {
            input_ids: ids.to_vec(),
            loss_mask: mask.to_vec(),
            ..Row::default()
        }
    }

    /// The `.bin` and `.idx` of the ids, and those of the masks.
    fn written(rows: &[Row]) -> [Vec<u8>; 4] {
        let mut writer = MegatronWriter::new(Vec::new(), Vec::new());
        for row in rows {
            writer.push(row).unwrap();
        }
        let (mut ids_idx, mut mask_idx) = (Vec::new(), Vec::new());
        let (ids, mask) = writer.finish(&mut ids_idx, &mut mask_idx).unwrap();
        [ids, ids_idx, mask, mask_idx]
    }

    fn read([ids, ids_idx, mask, mask_idx]: &[Vec<u8>; 4]) -> Result<Vec<(Vec<TokenId>, Vec<u8>)>> {
        MegatronRows::new(&ids[..], &ids_idx[..], &mask[..], &mask_idx[..])?.collect()
    }

    #[test]
    fn the_bytes_are_those_of_megatron() {
        let [ids, ids_idx, mask, mask_idx] =
            written(&[row(&[1, 163_586], &[0, 1]), row(&[], &[]), row(&[7], &[1])]);
        assert_eq!(ids, [1, 0, 0, 0, 0x02, 0x7f, 2, 0, 7, 0, 0, 0]);
        assert_eq!(mask, [0, 1, 1]);
        let index = |dtype: u8, pointers: [u64; 3]| {
            let mut bytes = b"MMIDIDX\0\0\x01\0\0\0\0\0\0\0".to_vec();
            bytes.push(dtype);
            bytes.extend([3_u64, 4].map(u64::to_le_bytes).concat());
            bytes.extend([2_i32, 0, 1].map(i32::to_le_bytes).concat());
            bytes.extend(pointers.map(u64::to_le_bytes).concat());
            bytes.extend([0_u64, 1, 2, 3].map(u64::to_le_bytes).concat());
            bytes
        };
        assert_eq!(ids_idx, index(4, [0, 8, 8]));
        assert_eq!(mask_idx, index(1, [0, 2, 2]));
    }

    #[test]
    fn rows_come_back() {
        let rows = [
            row(&[1, 2, 3], &[0, 0, 1]),
            row(&[], &[]),
            row(&[TokenId::MAX >> 1], &[1]),
        ];
        let read = read(&written(&rows)).unwrap();
        let expected = rows.map(|row| (row.input_ids, row.loss_mask));
        assert_eq!(read, expected);
    }

    #[test]
    fn a_cut_or_changed_file_is_an_error() {
        let files = written(&[row(&[1, 2], &[0, 1]), row(&[3], &[1])]);
        for file in 0..files.len() {
            for len in 0..files[file].len() {
                let mut cut = files.clone();
                cut[file].truncate(len);
                let error = read(&cut).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Io);
                assert!(error.message().starts_with("cannot read on: "), "{error}");
            }
        }
        for file in [1, 3] {
            for at in 0..files[file].len() {
                let mut changed = files.clone();
                changed[file][at] ^= 0x81;
                assert!(read(&changed).is_err(), "byte {at} of file {file}");
            }
        }
        let mut longer = files.clone();
        longer[0].push(0);
        assert!(read(&longer).is_err());
        let mut other = files;
        other[2..].clone_from_slice(&written(&[row(&[1, 2], &[0, 1])])[2..]);
        let error = read(&other).unwrap_err();
        assert_eq!(
            error.to_string(),
            "[1]: expected a mask for each id, found a row of 1 ids and no such row in the mask"
        );
    }
}
