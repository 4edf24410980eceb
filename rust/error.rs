//! One error type: what went wrong, and where.
//!
//! An [`Error`] is data. Its [`Place`] is filled in on the way out, one step a level, so the code that finds a
//! fault only has to know its own name for it; the text is made when somebody reads it.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

/// What every fallible function of the crate returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kinds of fault a caller may want to tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A conversation that the template cannot render faithfully.
    Conversation,
    /// A conversation in which something is odd, where nothing may be.
    Validation,
    /// Text that is not JSON, or not UTF-8.
    Json,
    /// A model or template name that is not known.
    UnknownModel,
    /// A vocabulary file that is wrong, cut or foreign, or an id outside the vocabulary.
    Vocab,
    /// An option with a value that it cannot take.
    Option,
    /// A file that cannot be read or written.
    Io,
    /// The caller asked to stop.
    Interrupted,
}

impl ErrorKind {
    /// The name that Python and the reports use.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Conversation => "conversation",
            Self::Validation => "validation",
            Self::Json => "json",
            Self::UnknownModel => "unknown_model",
            Self::Vocab => "vocab",
            Self::Option => "option",
            Self::Io => "io",
            Self::Interrupted => "interrupted",
        }
    }
}

/// One step from a value to a value inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(Cow<'static, str>),
    Index(usize),
}

/// Where a fault is: a file and line if there is one, and a path such as `messages[12].tool_calls[0].id`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    file: Option<String>,
    line: Option<u64>,
    /// Innermost first, since that is the order in which they become known.
    steps: Vec<Step>,
}

impl Place {
    /// The file, as the caller named it.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// The line in the file, counted from 1.
    #[must_use]
    pub fn line(&self) -> Option<u64> {
        self.line
    }

    /// The same place, in `file`.
    #[must_use]
    pub fn in_file(self, file: impl Into<String>) -> Self {
        let file = Some(file.into());
        Self { file, ..self }
    }

    /// The same place, on `line` (from 1) of its file.
    #[must_use]
    pub fn on_line(self, line: u64) -> Self {
        let line = Some(line);
        Self { line, ..self }
    }

    /// The same place, known to lie under the key `key` of the surrounding object.
    #[must_use]
    pub fn at(mut self, key: impl Into<Cow<'static, str>>) -> Self {
        self.steps.push(Step::Key(key.into()));
        self
    }

    /// The same place, known to lie at `index` of the surrounding list.
    #[must_use]
    pub fn at_index(mut self, index: usize) -> Self {
        self.steps.push(Step::Index(index));
        self
    }

    /// The key of the outermost object that it lies under, and the place inside of that; None for the record itself.
    #[must_use]
    pub fn split_key(mut self) -> Option<(Cow<'static, str>, Self)> {
        match self.steps.pop() {
            Some(Step::Key(key)) => Some((key, self)),
            _ => None,
        }
    }

    /// The index of the outermost list that it lies at, and the place inside of that.
    #[must_use]
    pub fn split_index(mut self) -> Option<(usize, Self)> {
        match self.steps.pop() {
            Some(Step::Index(index)) => Some((index, self)),
            _ => None,
        }
    }

    /// The path inside the record, such as `messages[3].content`; empty when the record itself is meant.
    #[must_use]
    pub fn path(&self) -> String {
        let mut path = String::new();
        for step in self.steps.iter().rev() {
            match step {
                Step::Key(key) => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(key);
                }
                Step::Index(index) => {
                    // Writing to a `String` cannot fail.
                    let _ = write!(path, "[{index}]");
                }
            }
        }
        path
    }
}

/// A fault, its kind and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Fault>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Fault {
    kind: ErrorKind,
    place: Place,
    message: Cow<'static, str>,
}

impl Error {
    /// A fault without a place yet; `message` says what was expected and what was found, in lower case.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Fault {
            kind,
            place: Place::default(),
            message: message.into(),
        }))
    }

    /// The same fault, known to lie under the key `key` of the surrounding object.
    #[must_use]
    pub fn at(mut self, key: impl Into<Cow<'static, str>>) -> Self {
        self.0.place.steps.push(Step::Key(key.into()));
        self
    }

    /// The same fault, in another place.
    #[must_use]
    pub fn in_place(mut self, place: Place) -> Self {
        self.0.place = place;
        self
    }

    /// The same fault, known to lie at `index` of the surrounding list.
    #[must_use]
    pub fn at_index(mut self, index: usize) -> Self {
        self.0.place.steps.push(Step::Index(index));
        self
    }

    /// The same fault, known to lie in `file`.
    #[must_use]
    pub fn in_file(mut self, file: impl Into<String>) -> Self {
        self.0.place.file = Some(file.into());
        self
    }

    /// The same fault, known to lie on `line` (from 1) of its file.
    #[must_use]
    pub fn on_line(mut self, line: u64) -> Self {
        self.0.place.line = Some(line);
        self
    }

    /// The fault in the same place, in other words.
    #[must_use]
    pub fn with_message(&self, message: impl Into<Cow<'static, str>>) -> Self {
        let mut error = self.clone();
        error.0.message = message.into();
        error
    }

    /// What kind of fault it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Where it is.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.0.place
    }

    /// What was expected and what was found, without the place.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = &self.0.place;
        match (&place.file, place.line) {
            (Some(file), Some(line)) => write!(f, "{file}:{line}: ")?,
            (Some(file), None) => write!(f, "{file}: ")?,
            (None, Some(line)) => write!(f, "line {line}: ")?,
            (None, None) => {}
        }
        if !place.steps.is_empty() {
            write!(f, "{}: ", place.path())?;
        }
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_reads_from_the_outside_in() {
        let error = Error::new(
            ErrorKind::Conversation,
            "expected a string or an object, found a list",
        )
        .at("arguments")
        .at("function")
        .at_index(0)
        .at("tool_calls")
        .at_index(12)
        .at("messages")
        .in_file("trajectories.jsonl")
        .on_line(17);
        assert_eq!(
            error.to_string(),
            "trajectories.jsonl:17: messages[12].tool_calls[0].function.arguments: expected a string or an object, \
             found a list"
        );
        assert_eq!(
            error.place().path(),
            "messages[12].tool_calls[0].function.arguments"
        );
    }
}
