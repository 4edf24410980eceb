//! What a folder was made from and how: enough to know whether another run would make the same, and, if the run was
//! stopped, where the next one goes on.
//!
//! The manifest gets its name last, so a folder with one is complete. Until then the same data lies in a hidden file,
//! with the place where the run is. Nothing in either depends on the time or the number of threads.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};
use serde_json::{Map, Value as Json};

use crate::chat::conversation::Conversation;
use crate::chat::json::Value;
use crate::dataset::columns::KeptColumn;
use crate::dataset::digest::{Digest, Hasher};
use crate::dataset::inputs::is_standard_input;
use crate::dataset::output_file::{NamedFile, at, write_whole};
use crate::dataset::reader::{self, Beginning, Position};
use crate::dataset::shape::{Field, Layout};
use crate::dataset::shard::Shard;
use crate::dataset::summary::Summary;
use crate::dataset::target::Format;
use crate::encoder::Encoder;
use crate::error::{Error, ErrorKind, Result};

/// The manifest of a finished folder.
pub const MANIFEST_FILE: &str = "manifest.json";

/// That of a folder whose run is not at its end.
const UNFINISHED_FILE: &str = ".manifest.unfinished.json";

/// Changes when a manifest cannot be read as the ones before.
const VERSION: u32 = 1;

/// An input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// The path, as it was given or found.
    pub path: String,
    /// When it was last changed, in nanoseconds since 1970: another time is reason to read it again and compare. 0 for
    /// what has none, such as standard input.
    pub modified: u64,
    /// What it holds; empty for what is not read yet.
    #[serde(flatten)]
    pub digest: Digest,
}

impl Input {
    /// The input at `path`, of which the size is known, and not what it holds. Pipes and standard input have no size.
    pub(super) fn new(path: &Path) -> Result<Self> {
        let mut input = Self {
            path: path.display().to_string(),
            ..Self::default()
        };
        if is_standard_input(path) {
            return Ok(input);
        }
        let unreadable = |error: io::Error| at(path, "read", &error);
        let metadata = fs::metadata(path).map_err(unreadable)?;
        if metadata.is_file() {
            // Better now than after hours.
            File::open(path).map_err(unreadable)?;
            let modified = metadata.modified().ok();
            let since = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            input.modified = since.map_or(0, |since| since.as_nanos() as u64);
            input.digest.bytes = metadata.len();
        }
        Ok(input)
    }

    fn is_stream(&self) -> bool {
        self.modified == 0
    }
}

/// Where a run is that is not at its end.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Progress {
    /// All before it is done.
    pub position: Position,
    /// What was read of the input there.
    pub read: Option<Beginning>,
    /// How the inputs so far hold their conversations.
    pub layouts: Vec<Layout>,
    /// The shard that is being written, if a run can go on with it.
    pub shard: Option<Shard>,
    /// The lines that failed, and what is odd in the others, so far.
    pub rejected: Option<NamedFile>,
    pub findings: Option<NamedFile>,
}

/// What a folder was made from, how, and what is in it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// Of this format.
    pub manifest_version: u32,
    /// The version of fasttok that made it.
    pub fasttok: String,
    /// What tells models apart: names and fingerprints of vocabulary and template.
    pub model: Map<String, Json>,
    /// All options that what is written depends on, as Python names them.
    pub options: Map<String, Json>,
    /// The inputs, in order.
    pub inputs: Vec<Input>,
    /// The columns that pass through from the records, once the first records have told their types.
    pub(super) kept: Vec<KeptColumn>,
    /// The shards that are written.
    pub shards: Vec<Shard>,
    /// The other files.
    pub reports: Vec<NamedFile>,
    /// What became of the records.
    pub summary: Summary,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) progress: Option<Progress>,
}

impl Manifest {
    /// That of a run that has done nothing yet.
    pub(super) fn new(
        encoder: &Encoder,
        options: Map<String, Json>,
        inputs: &[PathBuf],
    ) -> Result<Self> {
        let inputs = inputs.iter().map(|path| Input::new(path));
        Ok(Self {
            manifest_version: VERSION,
            fasttok: env!("CARGO_PKG_VERSION").to_owned(),
            model: model_of(encoder),
            options,
            inputs: inputs.collect::<Result<_>>()?,
            kept: Vec::new(),
            shards: Vec::new(),
            reports: Vec::new(),
            summary: Summary::default(),
            progress: Some(Progress::default()),
        })
    }

    /// The manifest in `folder`, of a finished run or of one that goes on; None if there is neither.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] for one that cannot be read or understood.
    pub fn read(folder: &Path) -> Result<Option<Self>> {
        for name in [MANIFEST_FILE, UNFINISHED_FILE] {
            let path = folder.join(name);
            let text = match fs::read(&path) {
                Ok(text) => text,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(at(&path, "read", &error)),
            };
            return match serde_json::from_slice(&text) {
                Ok(manifest) => Ok(Some(manifest)),
                Err(error) => {
                    let message =
                        format!("expected a manifest, found what cannot be read as one: {error}");
                    Err(Error::new(ErrorKind::Io, message).in_file(path.display().to_string()))
                }
            };
        }
        Ok(None)
    }

    /// The value of an option that is a name.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.get(name).and_then(Json::as_str)
    }

    /// The names of fields that were given.
    #[must_use]
    pub fn fields(&self) -> BTreeMap<Field, String> {
        let fields = self.options.get("fields").cloned();
        fields
            .and_then(|fields| serde_json::from_value(fields).ok())
            .unwrap_or_default()
    }

    /// What the records are written to.
    pub(super) fn format(&self) -> Result<Format> {
        let name = self.option("format").unwrap_or_default();
        match name {
            "megatron" => Ok(Format::Megatron),
            name => Format::from_name(name),
        }
    }

    /// Whether the mask trains all that the model has said in a message that trains: a policy with parts switched off
    /// says so by a sign in its name.
    pub(super) fn trains_whole(&self) -> bool {
        self.option("mask").is_some_and(|mask| !mask.contains('-'))
    }

    /// Whether an encoder is of the model that the folder was made for.
    ///
    /// # Errors
    /// [`ErrorKind::Option`] with the difference.
    pub(super) fn check_model(&self, encoder: &Encoder) -> Result<()> {
        let now = model_of(encoder);
        for (name, was) in &self.model {
            if now.get(name) != Some(was) {
                let message = format!(
                    "this folder was prepared with the {name} {was}, and now it is {}",
                    shown(now.get(name))
                );
                return Err(Error::new(ErrorKind::Option, message).at("model"));
            }
        }
        Ok(())
    }

    /// Whether the run is at its end.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.progress.is_none()
    }

    /// Writes it where the next run finds it.
    pub(super) fn save(&self, folder: &Path) -> Result<()> {
        let name = match self.progress {
            Some(_) => UNFINISHED_FILE,
            None => MANIFEST_FILE,
        };
        write_whole(folder, name, &self.to_json()?)?;
        if self.is_finished() {
            remove(&folder.join(UNFINISHED_FILE))?;
        }
        Ok(())
    }

    fn to_json(&self) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        let mut serializer = Serializer::with_formatter(&mut text, ListsOnOneLine::default());
        self.serialize(&mut serializer)
            .map_err(|error| Error::new(ErrorKind::Io, error.to_string()))?;
        text.push(b'\n');
        Ok(text)
    }

    /// All files that it names and that have their names.
    pub(super) fn files(&self) -> impl Iterator<Item = &NamedFile> {
        let shards = self.shards.iter().flat_map(|shard| &shard.files);
        shards.chain(&self.reports)
    }

    /// Compares a manifest that was found with that of the run that is to be: each difference in a line.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] for an input that cannot be read.
    pub(super) fn differences(&self, now: &Self) -> Result<Vec<String>> {
        let mut lines = Vec::new();
        if self.fasttok != now.fasttok {
            let (was, is) = (&self.fasttok, &now.fasttok);
            lines.push(format!("fasttok was {was}, now {is}"));
        }
        let pairs = [(&self.model, &now.model), (&self.options, &now.options)];
        for (was, is) in pairs {
            let names = was
                .keys()
                .chain(is.keys().filter(|name| !was.contains_key(*name)));
            for name in names {
                let (was, is) = (shown(was.get(name)), shown(is.get(name)));
                if was != is {
                    lines.push(format!("{name} was {was}, now {is}"));
                }
            }
        }
        if self.inputs.len() != now.inputs.len() {
            let (was, is) = (self.inputs.len(), now.inputs.len());
            lines.push(format!("inputs were {was}, now {is}"));
        }
        for (was, is) in self.inputs.iter().zip(&now.inputs) {
            lines.extend(was.difference(is)?);
        }
        Ok(lines)
    }
}

impl Input {
    /// How what was read differs from what is there now. What was not read to its end is confirmed where that is done.
    fn difference(&self, now: &Self) -> Result<Option<String>> {
        if self.path != now.path {
            return Ok(Some(format!("input {:?} is now {:?}", self.path, now.path)));
        }
        let path = Path::new(&self.path);
        let sizes = (self.digest.bytes, now.digest.bytes);
        if !now.is_stream() && sizes.0 != sizes.1 {
            let (was, is) = sizes;
            return Ok(Some(format!(
                "input {:?} had {was} bytes, now {is}",
                self.path
            )));
        }
        let is_read = !self.digest.sha256.is_empty();
        let is_newer = self.modified != now.modified || now.is_stream();
        if is_read && is_newer && reader::digest(path)? != self.digest {
            return Ok(Some(format!("input {:?} holds something else", self.path)));
        }
        Ok(None)
    }
}

/// Takes away the manifest of a folder, finished or not.
pub(super) fn forget(folder: &Path) -> Result<()> {
    remove(&folder.join(MANIFEST_FILE))?;
    remove(&folder.join(UNFINISHED_FILE))
}

/// Removes a file if it is there.
pub(super) fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at(path, "remove", &error)),
        _ => Ok(()),
    }
}

fn shown(value: Option<&Json>) -> String {
    value.map_or_else(|| "not there".to_owned(), Json::to_string)
}

fn model_of(encoder: &Encoder) -> Map<String, Json> {
    let template = encoder.template();
    let entries = [
        ("template", template.name().to_owned()),
        ("template_sha256", template_sha256(encoder)),
        ("vocabulary_sha256", encoder.tokenizer().vocab().sha256()),
    ];
    let entry = |(name, value): (&str, String)| (name.to_owned(), Json::String(value));
    entries.into_iter().map(entry).collect()
}

/// A conversation that says something in each part of a message that templates know.
const PROBE: &str = r#"{
    "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object",
        "properties": {"a": {"type": "string", "enum": ["x", "y"]}, "b": {"type": ["integer", "null"], "minimum": 0}},
        "required": ["a"]}}}],
    "messages": [
        {"role": "system", "content": "s"},
        {"role": "user", "content": [{"type": "text", "text": "u"}], "name": "n"},
        {"role": "assistant", "reasoning_content": "r", "content": "c", "tool_calls": [{"id": "functions.f:0",
            "type": "function", "function": {"name": "f", "arguments": "{\"a\": \"x\", \"b\": 1}"}}]},
        {"role": "tool", "tool_call_id": "functions.f:0", "content": "t"},
        {"role": "assistant", "reasoning_content": "r", "content": "c"},
        {"role": "user", "content": "u"},
        {"role": "assistant", "reasoning_content": "r", "content": "c"}
    ]
}"#;

/// The sha256 of what the template makes of one conversation that has a bit of everything.
fn template_sha256(encoder: &Encoder) -> String {
    let render = || {
        let value = Value::from_json(PROBE.as_bytes())?;
        let conversation = Conversation::from_value(&value, None)?;
        encoder.render(
            &conversation,
            crate::chat::templates::RenderOptions::default(),
        )
    };
    // What a template says of what it cannot show is part of it too.
    let text = render().unwrap_or_else(|error| error.to_string());
    let mut hasher = Hasher::default();
    hasher.update(text.as_bytes());
    hasher.digest().sha256
}

/// Indents objects, and keeps a list on one line, since some are of thousands of numbers.
#[derive(Default)]
struct ListsOnOneLine {
    pretty: PrettyFormatter<'static>,
}

impl Formatter for ListsOnOneLine {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first {
            Ok(())
        } else {
            writer.write_all(b", ")
        }
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.begin_object(writer)
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.pretty.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.end_object_value(writer)
    }
}

/// The refusal of a folder that was prepared otherwise.
pub(super) fn refusal(folder: &Path, is_finished: bool, differences: &[String]) -> Error {
    let mut message = String::from(if is_finished {
        "this folder was prepared otherwise"
    } else {
        "the run that was stopped in this folder was another one"
    });
    for difference in differences {
        // Writing to a `String` cannot fail.
        let _ = write!(message, "; {difference}");
    }
    message.push_str(" (choose another folder, or overwrite this one)");
    Error::new(ErrorKind::Option, message).in_file(folder.display().to_string())
}
