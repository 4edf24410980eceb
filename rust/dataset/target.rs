//! What the output looks like: which files, which columns, and for which trainer.
//!
//! The columns of a trainer are those that its own loader reads from data that is tokenized already, and no others
//! (docs/targets.md has them with their sources).

use crate::dataset::columns::{Part, Width};
use crate::error::{Error, ErrorKind, Result};

/// The files that records are written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A line of JSON a row.
    Jsonl,
    /// Parquet.
    Parquet,
    /// A folder that `datasets.load_from_disk` opens.
    Arrow,
    /// The `.bin` and `.idx` files of Megatron-LM, of the ids and, beside them, of the mask.
    Megatron,
}

impl Format {
    /// All that can be asked for; Megatron's comes with its trainer.
    const NAMED: [Self; 3] = [Self::Jsonl, Self::Parquet, Self::Arrow];

    /// The name in Python, on the command line and in manifests.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Parquet => "parquet",
            Self::Arrow => "arrow",
            Self::Megatron => "megatron",
        }
    }

    /// The format of this name.
    ///
    /// # Errors
    /// [`ErrorKind::Option`] if there is none.
    pub fn from_name(name: &str) -> Result<Self> {
        named(&Self::NAMED, Self::as_str, "format", name)
    }

    /// The bytes of rows in a file before the next one begins, if nobody says so. A file of JSONL goes on where it was
    /// if a run is stopped, and scripts want one; a table is written whole or not at all.
    fn shard_size(self) -> Option<u64> {
        match self {
            Self::Jsonl | Self::Megatron => None,
            Self::Parquet | Self::Arrow => Some(500_000_000),
        }
    }
}

/// A trainer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// `SpecForge`: `data.prompts_path`.
    SpecForge,
    /// speculators: the folder that its `prepare-data` would have made.
    Speculators,
    /// TRL's `SFTTrainer`.
    Trl,
    /// axolotl: a dataset with an empty `type:`.
    Axolotl,
    /// `LLaMA-Factory`: `tokenized_path`.
    LlamaFactory,
    /// verl, by a dataset class of one's own.
    Verl,
    /// Megatron-LM.
    Megatron,
}

impl Target {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::SpecForge,
        Self::Speculators,
        Self::Trl,
        Self::Axolotl,
        Self::LlamaFactory,
        Self::Verl,
        Self::Megatron,
    ];

    /// The name in Python, on the command line and in manifests.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SpecForge => "specforge",
            Self::Speculators => "speculators",
            Self::Trl => "trl",
            Self::Axolotl => "axolotl",
            Self::LlamaFactory => "llama-factory",
            Self::Verl => "verl",
            Self::Megatron => "megatron",
        }
    }

    /// The trainer of this name.
    ///
    /// # Errors
    /// [`ErrorKind::Option`] if there is none.
    pub fn from_name(name: &str) -> Result<Self> {
        named(&Self::ALL, Self::as_str, "target", name)
    }

    /// The formats that it reads, the best one first.
    fn formats(self) -> &'static [Format] {
        match self {
            Self::SpecForge => &[Format::Jsonl],
            Self::Speculators => &[Format::Arrow, Format::Jsonl],
            Self::Trl | Self::Axolotl => &[Format::Parquet, Format::Jsonl, Format::Arrow],
            Self::LlamaFactory => &[Format::Arrow],
            Self::Verl => &[Format::Parquet],
            Self::Megatron => &[Format::Megatron],
        }
    }

    fn parts(self, format: Format) -> &'static [Part] {
        const IDS: Part = Part::InputIds(Width::Narrow);
        const MASK: Part = Part::LossMask(Width::Narrow);
        const LABELS: Part = Part::Labels(Width::Narrow);
        match (self, format) {
            (Self::Speculators, Format::Arrow) => &[
                Part::InputIds(Width::Wide),
                Part::LossMask(Width::Wide),
                Part::SeqLen,
            ],
            (Self::SpecForge | Self::Speculators | Self::Verl | Self::Megatron, _) => &[IDS, MASK],
            (Self::Trl, _) => &[IDS, LABELS],
            (Self::Axolotl | Self::LlamaFactory, _) => &[IDS, Part::AttentionMask, LABELS],
        }
    }
}

/// The output, decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub format: Format,
    pub target: Option<Target>,
    pub parts: Vec<Part>,
    /// The bytes of rows in a file before the next one begins; None for one file.
    pub shard_size: Option<u64>,
}

impl Form {
    /// The output for a trainer, or for none, in a format, or in the trainer's own.
    ///
    /// # Errors
    /// [`ErrorKind::Option`] for what the trainer does not read, or this build cannot write.
    pub(super) fn new(
        format: Option<Format>,
        target: Option<Target>,
        shard_size: Option<u64>,
    ) -> Result<Self> {
        let format = match (format, target) {
            (Some(format), Some(target)) if !target.formats().contains(&format) => {
                let known: Vec<_> = target
                    .formats()
                    .iter()
                    .map(|format| format.as_str())
                    .collect();
                let message = format!(
                    "expected {} for {}, found {}",
                    known.join(" or "),
                    target.as_str(),
                    format.as_str()
                );
                return Err(Error::new(ErrorKind::Option, message).at("format"));
            }
            (Some(format), _) => format,
            (None, Some(target)) => target.formats()[0],
            (None, None) => Format::Jsonl,
        };
        if cfg!(not(feature = "parquet")) && matches!(format, Format::Parquet | Format::Arrow) {
            let message = format!("this build of fasttok cannot write {}", format.as_str());
            return Err(Error::new(ErrorKind::Option, message).at("format"));
        }
        if shard_size.is_some() && target == Some(Target::SpecForge) {
            let message = "SpecForge reads one file, which cannot be cut into shards";
            return Err(Error::new(ErrorKind::Option, message).at("shard_size"));
        }
        let parts = match target {
            Some(target) => target.parts(format).to_vec(),
            None => vec![
                Part::InputIds(Width::Narrow),
                Part::LossMask(Width::Narrow),
                Part::LossWeight,
                Part::CutTokens,
            ],
        };
        Ok(Self {
            format,
            target,
            parts,
            shard_size: shard_size.or(format.shard_size()),
        })
    }

    /// The names of the files of the shard at `index`.
    pub(super) fn shard_names(&self, index: usize) -> Vec<String> {
        let number = match self.shard_size {
            Some(_) => format!("-{index:05}"),
            None => String::new(),
        };
        match (self.format, self.target) {
            (Format::Jsonl, _) => vec![format!("tokenized_data{number}.jsonl")],
            (Format::Parquet, _) => vec![format!("data{number}.parquet")],
            (Format::Arrow, Some(Target::LlamaFactory)) => {
                vec![format!("train/data{number}.arrow")]
            }
            (Format::Arrow, _) => vec![format!("data{number}.arrow")],
            (Format::Megatron, _) => ["tokens", "loss_mask"]
                .iter()
                .flat_map(|name| ["bin", "idx"].map(|ending| format!("{name}{number}.{ending}")))
                .collect(),
        }
    }
}

fn named<T: Copy>(
    known: &[T],
    name_of: fn(T) -> &'static str,
    option: &'static str,
    name: &str,
) -> Result<T> {
    let found = known.iter().copied().find(|known| name_of(*known) == name);
    found.ok_or_else(|| {
        let names: Vec<_> = known.iter().copied().map(name_of).collect();
        let message = format!("expected one of {}, found {name:?}", names.join(", "));
        Error::new(ErrorKind::Option, message).at(option)
    })
}
