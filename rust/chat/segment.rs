//! What a template writes: segments of facts, and the runs they form.
//!
//! A template never says what trains. It says who speaks, in which message, which part of it this is, and whether the
//! model itself would have produced it; masks are derived from that. It also says where a *run* ends, the unit that
//! the model's own tokenizer encodes as one string: a token may cross segments inside a run, never between runs.

use std::ops::Range;

/// Who speaks in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Role {
    /// `system`, and the tool declaration.
    System,
    /// `user`
    User,
    /// `assistant`: the model.
    Assistant,
    /// `tool`: what a tool returned.
    Tool,
    /// Any other role, such as `developer`; the K2 family shows it under a system header.
    Other,
}

impl Role {
    /// The role that a message names.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        match name {
            "system" => Self::System,
            "user" => Self::User,
            "assistant" => Self::Assistant,
            "tool" => Self::Tool,
            _ => Self::Other,
        }
    }

    /// The name that Python shows.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
            Self::Other => "other",
        }
    }
}

/// Which part of a message a segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Part {
    /// What opens a message: role token, label, `<|im_middle|>`; in K3 the opening tag.
    Header,
    /// `<think>`; in K3 the tag that opens the think channel.
    ThinkOpen,
    /// Reasoning.
    Think,
    /// `</think>`; in K3 the tag that closes the think channel.
    ThinkClose,
    /// Content, of any role; in K3 with the tags around it and the closing tag of the message.
    Text,
    /// The tokens that frame tool calls and their fields.
    ToolCallMarker,
    /// What names the call: in the K2 family its id, in K3 the name of the function.
    ToolName,
    /// The arguments of a call; in K3 without the tags around each.
    ToolArguments,
    /// An image or a video placeholder.
    Media,
    /// The token that ends a message.
    End,
}

impl Part {
    /// Every part.
    pub const ALL: &[Self] = &[
        Self::Header,
        Self::ThinkOpen,
        Self::Think,
        Self::ThinkClose,
        Self::Text,
        Self::ToolCallMarker,
        Self::ToolName,
        Self::ToolArguments,
        Self::Media,
        Self::End,
    ];

    /// The part that Python shows by this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|part| part.as_str() == name)
    }

    /// The name that Python shows.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::ThinkOpen => "think_open",
            Self::Think => "think",
            Self::ThinkClose => "think_close",
            Self::Text => "text",
            Self::ToolCallMarker => "tool_call_marker",
            Self::ToolName => "tool_name",
            Self::ToolArguments => "tool_arguments",
            Self::Media => "media",
            Self::End => "end",
        }
    }
}

/// The special tokens that templates emit, by name: a template never hears of an id.
macro_rules! control_tokens {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// A special token that a template can emit.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum ControlToken { $($(#[$doc])* $variant,)* }

        impl ControlToken {
            /// Every control token, in the order of their discriminants.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The token as it is written.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

control_tokens! {
    /// Opens a user message.
    ImUser = "<|im_user|>",
    /// Opens an assistant message.
    ImAssistant = "<|im_assistant|>",
    /// Opens a message of any other role.
    ImSystem = "<|im_system|>",
    /// Ends a header.
    ImMiddle = "<|im_middle|>",
    /// Ends a message.
    ImEnd = "<|im_end|>",
    /// Opens reasoning.
    ThinkOpen = "<think>",
    /// Closes reasoning.
    ThinkClose = "</think>",
    /// Opens the calls of a message.
    ToolCallsSectionBegin = "<|tool_calls_section_begin|>",
    /// Closes the calls of a message.
    ToolCallsSectionEnd = "<|tool_calls_section_end|>",
    /// Opens one call.
    ToolCallBegin = "<|tool_call_begin|>",
    /// Stands between the id and the arguments of a call.
    ToolCallArgumentBegin = "<|tool_call_argument_begin|>",
    /// Closes one call.
    ToolCallEnd = "<|tool_call_end|>",
    /// Opens a media placeholder.
    MediaBegin = "<|media_begin|>",
    /// Stands between the kind of media and its pads.
    MediaContent = "<|media_content|>",
    /// Stands for one patch of an image.
    MediaPad = "<|media_pad|>",
    /// Closes a media placeholder.
    MediaEnd = "<|media_end|>",
    /// Opens a media placeholder of Kimi-VL.
    MediaStart = "<|media_start|>",
    /// Opens a tag of K3.
    Open = "<|open|>",
    /// Opens a closing tag of K3.
    Close = "<|close|>",
    /// Ends a tag of K3.
    Sep = "<|sep|>",
    /// Ends a message of K3.
    EndOfMsg = "<|end_of_msg|>",
}

/// What a template knows of the text it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Facts {
    /// Who speaks.
    pub role: Role,
    /// The index of the message; None for what no message holds (the tool declaration, the generation prompt).
    pub message_index: Option<u32>,
    /// Which part of the message.
    pub part: Part,
    /// Whether the model produced it when the turn was sampled: false for what the prompt supplied.
    pub sampled: bool,
    /// Whether the generation prompt supplies it, after the header.
    pub prefilled: bool,
    /// Whether its message calls tools, be they shown or not.
    pub calls: bool,
}

/// A stretch of a rendered conversation with one set of facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// What is known of it.
    pub facts: Facts,
    /// Which run it belongs to; a token is a run of its own.
    pub run: u32,
    /// What it holds.
    pub body: Body,
}

/// What a segment holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// A stretch of [`Segments::text`].
    Text(Range<usize>),
    /// One special token.
    Token(ControlToken),
}

/// The bytes of memory that are kept for the next conversation.
const LARGE: usize = 1 << 24;

/// A rendered conversation: the segments in order. Cleared and filled again, it allocates nothing.
#[derive(Clone, Debug, Default)]
pub struct Segments {
    text: String,
    list: Vec<Segment>,
    run: u32,
}

impl Segments {
    /// Forgets the segments and keeps the memory.
    pub fn clear(&mut self) {
        self.text.clear();
        self.list.clear();
        self.run = 0;
    }

    /// Gives back the memory of an unusually long conversation.
    pub fn forget_large(&mut self) {
        self.clear();
        self.text.shrink_to(LARGE);
        self.list.shrink_to(LARGE / size_of::<Segment>());
    }

    /// Appends text. It joins the run of the text before it, and its segment if the facts are the same.
    pub fn push_text(&mut self, facts: Facts, text: &str) {
        self.push_with(facts, |out| out.push_str(text));
    }

    /// Appends what `write` appends to the text.
    pub fn push_with(&mut self, facts: Facts, write: impl FnOnce(&mut String)) {
        let start = self.text.len();
        write(&mut self.text);
        let end = self.text.len();
        if start == end {
            return;
        }
        match self.list.last_mut() {
            Some(Segment {
                facts: last,
                run,
                body: Body::Text(range),
            }) if *last == facts && *run == self.run => range.end = end,
            _ => self.list.push(Segment {
                facts,
                run: self.run,
                body: Body::Text(start..end),
            }),
        }
    }

    /// Ends the run: the next text is encoded on its own.
    pub fn end_run(&mut self) {
        self.run += 1;
    }

    /// Appends a special token, which ends the run of text before it.
    pub fn push_token(&mut self, facts: Facts, token: ControlToken) {
        self.end_run();
        self.list.push(Segment {
            facts,
            run: self.run,
            body: Body::Token(token),
        });
        self.end_run();
    }

    /// The segments in order.
    #[must_use]
    pub fn as_slice(&self) -> &[Segment] {
        &self.list
    }

    /// The segments of each run, in order.
    pub fn runs(&self) -> impl Iterator<Item = &[Segment]> {
        self.list.chunk_by(|a, b| a.run == b.run)
    }

    /// The text that `range` of a [`Body::Text`] refers to. The texts of a run follow each other without a gap.
    #[must_use]
    pub fn text(&self, range: Range<usize>) -> &str {
        &self.text[range]
    }

    /// The bytes of text, special tokens not counted.
    #[must_use]
    pub fn text_len(&self) -> usize {
        self.text.len()
    }

    /// Appends the rendered conversation, special tokens written out.
    pub fn write_rendered(&self, out: &mut String) {
        for segment in &self.list {
            match &segment.body {
                Body::Text(range) => out.push_str(self.text(range.clone())),
                Body::Token(token) => out.push_str(token.as_str()),
            }
        }
    }
}
