//! The join: a conversation to ids, spans and loss mask, in one pass.
//!
//! Segments are grouped into runs, each run is encoded as the reference encodes it, and the tokens are handed back to
//! the segments. The mask follows from the facts of the spans; it is never found by looking at text or ids.

mod align;
pub mod batch;
pub(crate) mod crew;
pub mod encoded;
mod in_order;
mod input;
pub mod length;
pub(crate) mod long_text;
mod model;
mod options;
mod scratch;

use std::borrow::Borrow;
use std::num::NonZero;

use batch::Threads;
use crew::Crew;
use encoded::{EncodedBatch, EncodedConversation, LeftOut, Notices, Rows};
use in_order::InOrder;
pub use input::Input;
use length::CallsOfResults;
use long_text::{Helpers, LongText};
pub use options::{ControlStrings, EncodeOptions, OnEmpty, Reasoning, ToolCallIds, Validate};
use scratch::Idle;
pub use scratch::{Checkout, Scratch};

use crate::chat::conversation::Conversation;
use crate::chat::expand;
use crate::chat::pairing::Pairing;
use crate::chat::segment::{Body, ControlToken, Segment};
use crate::chat::templates::{
    CallsNamedBy, ReasoningText, RenderOptions, ShownReasoning, SpelledTokens, Template,
};
use crate::chat::tool_call_ids::{self, Numbering};
use crate::chat::validation::{self, Finding, View};
use crate::error::{Error, ErrorKind, Result};
use crate::tokenizer::{Spelled, TokenId, Tokenizer};

/// Encodes conversations for one model.
pub struct Encoder {
    tokenizer: Tokenizer,
    template: Template,
    /// By the discriminant of a [`ControlToken`]; None for one that the template does not emit.
    control_ids: Vec<Option<TokenId>>,
    idle: Idle,
}

impl Encoder {
    /// The encoder of a model: `kimi-k2.5`, `moonshotai/Kimi-K2.5` (upper and lower case are the same), or a folder
    /// with the model's tokenizer files. `template` overrules what the name says.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownModel`] with the known names; [`ErrorKind::Vocab`] or [`ErrorKind::Io`] for a folder whose
    /// files are missing or not Kimi's.
    pub fn from_model(model: &str, template: Option<Template>) -> Result<Self> {
        let (tokenizer, template) = model::load(model, template)?;
        Self::new(tokenizer, template)
    }

    /// An encoder of these parts.
    ///
    /// # Errors
    /// [`ErrorKind::Vocab`] if the tokenizer lacks a special token that templates emit.
    pub fn new(tokenizer: Tokenizer, template: Template) -> Result<Self> {
        let mut control_ids = vec![None; ControlToken::ALL.len()];
        for token in template.control_tokens() {
            let name = token.as_str();
            let id = tokenizer.special_tokens().id(name);
            if id.is_none() {
                let template = template.name();
                let message =
                    format!("expected the special token `{name}` of {template}, found none");
                return Err(Error::new(ErrorKind::Vocab, message));
            }
            control_ids[token as usize] = id;
        }
        Ok(Self {
            tokenizer,
            template,
            control_ids,
            idle: Idle::default(),
        })
    }

    /// The tokenizer.
    #[must_use]
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The template.
    #[must_use]
    pub fn template(&self) -> Template {
        self.template
    }

    /// The text of a conversation, special tokens written out.
    ///
    /// # Errors
    /// As [`Template::render_into`].
    pub fn render(
        &self,
        conversation: &Conversation<'_>,
        options: RenderOptions<'_>,
    ) -> Result<String> {
        let mut scratch = self.checkout();
        scratch.segments.clear();
        self.template
            .render_into(conversation, options, &mut scratch.segments)?;
        let mut text = String::new();
        scratch.segments.write_rendered(&mut text);
        Ok(text)
    }

    /// Encodes one conversation to one row.
    ///
    /// # Errors
    /// As [`Self::encode_rows`], and where that yields no row, or several.
    pub fn encode_conversation(
        &self,
        conversation: &Conversation<'_>,
        options: EncodeOptions<'_>,
    ) -> Result<EncodedConversation> {
        // It cannot be left out of anything.
        let on_empty = match options.on_empty {
            OnEmpty::Raise => OnEmpty::Raise,
            OnEmpty::Keep | OnEmpty::Skip => OnEmpty::Keep,
        };
        let options = EncodeOptions {
            on_empty,
            ..options
        };
        let Rows { mut rows, left_out } =
            self.encode_rows(conversation, options, &mut self.checkout())?;
        let is_one = rows.len() + left_out.len() == 1;
        match (rows.pop(), is_one) {
            (Some(one), true) => Ok(one),
            (None, true) => {
                let tokens = options.max_length.map_or(0, |max_length| max_length.tokens);
                let message = format!("longer than {tokens} tokens, and to be left out");
                Err(Error::new(ErrorKind::Conversation, message))
            }
            (_, false) => {
                let message = "expand makes several rows of this conversation: use encode_batch";
                Err(Error::new(ErrorKind::Option, message).at("reasoning"))
            }
        }
    }

    /// Encodes a conversation as it stands to one row, replacing what `out` held. Returns why, if the row is to be left
    /// out.
    ///
    /// # Errors
    /// As [`Template::render_into`], and what [`EncodeOptions`] makes errors.
    fn encode_row_into<'e>(
        &'e self,
        conversation: &Conversation<'_>,
        options: EncodeOptions<'_>,
        scratch: &mut Scratch,
        helpers: Option<&dyn Helpers<'e>>,
        out: &mut EncodedConversation,
    ) -> Result<Option<LeftOut>> {
        out.clear();
        scratch.segments.clear();
        let dropped_reasoning =
            self.template
                .render_into(conversation, options.render, &mut scratch.segments)?;
        let control_strings = self.encode_runs(options, scratch, helpers, out)?;
        out.notices = Notices {
            control_strings: control_strings as u32,
            dropped_reasoning,
            hidden_tool_names: match self.template.calls_named_by() {
                CallsNamedBy::Id => tool_call_ids::hidden_names(&conversation.messages),
                CallsNamedBy::Function | CallsNamedBy::Place => 0,
            },
            cut_tokens: 0,
        };
        if let Some(max_length) = options.max_length
            && !length::fit(out, max_length, &self.calls_of_results(conversation))?
        {
            return Ok(Some(LeftOut::TooLong));
        }
        let weights = conversation.messages.iter().enumerate();
        let weights = weights.filter_map(|(index, message)| Some((index as u32, message.weight?)));
        out.message_weights.extend(weights);
        encoded::write_mask(
            options.mask,
            &out.spans,
            &out.message_weights,
            &mut out.loss_mask,
        );
        match options.on_empty {
            OnEmpty::Skip if !out.trains() => Ok(Some(LeftOut::Untrained)),
            OnEmpty::Raise if !out.trains() => {
                let message = format!("no token trains under the mask {}", options.mask);
                Err(Error::new(ErrorKind::Conversation, message))
            }
            _ => Ok(None),
        }
    }

    /// Appends the ids and the spans of the segments in `scratch`. Returns how many special tokens their text spelled
    /// out.
    fn encode_runs<'e>(
        &'e self,
        options: EncodeOptions<'_>,
        scratch: &mut Scratch,
        helpers: Option<&dyn Helpers<'e>>,
        out: &mut EncodedConversation,
    ) -> Result<usize> {
        let stays_text = self.template.spelled_tokens() == SpelledTokens::StayText
            || options.control_strings == ControlStrings::Text;
        let spelled = if stays_text {
            Spelled::AsText
        } else {
            Spelled::AsTokens
        };
        let mut shared = helpers
            .filter(|_| scratch.segments.text_len() >= long_text::LEAST_SHARED)
            .map(|helpers| {
                let segments = std::mem::take(&mut scratch.segments);
                let long_text = LongText::new(&self.tokenizer, segments, spelled);
                let done = helpers.share(long_text, &mut scratch.tokenizer);
                let (segments, encoded) = done.into_encoded();
                scratch.segments = segments;
                encoded
            });
        let Scratch {
            segments,
            tokenizer: tokenizer_scratch,
            ..
        } = scratch;
        out.input_ids.reserve(segments.text_len() / 3);
        let mut control_strings = 0;
        for run in segments.runs() {
            let first = out.input_ids.len();
            let ids = &mut out.input_ids;
            if let Some(range) = long_text::text_of_run(run) {
                let text = segments.text(range);
                control_strings += if let Some(encoded) = &mut shared {
                    encoded.append_run_to(run[0].run, ids)
                } else {
                    self.tokenizer
                        .encode_repeating_into(text, spelled, tokenizer_scratch, ids)
                };
                if options.control_strings == ControlStrings::Error && control_strings > 0 {
                    return Err(self.control_string(run, text));
                }
                align::push_run(&self.tokenizer, run, &out.input_ids, first, &mut out.spans);
            } else if let Body::Token(token) = run[0].body {
                let id = self.control_ids[token as usize];
                debug_assert!(id.is_some(), "{token:?} is not in the template's list");
                ids.extend(id);
                align::push_span(&mut out.spans, run[0].facts, first + 1);
            }
        }
        Ok(control_strings)
    }

    /// Encodes one conversation to rows: one, or several with [`Reasoning::Expand`], without those that are too long
    /// and to be left out.
    ///
    /// # Errors
    /// As [`Template::render_into`]; [`ErrorKind::Option`] for a mode of reasoning that the template or the other
    /// options rule out.
    pub fn encode_rows(
        &self,
        conversation: &Conversation<'_>,
        options: EncodeOptions<'_>,
        scratch: &mut Scratch,
    ) -> Result<Rows> {
        self.encode_rows_with(conversation, options, scratch, None)
    }

    /// The same with the help of idle threads.
    fn encode_rows_with<'e>(
        &'e self,
        conversation: &Conversation<'_>,
        options: EncodeOptions<'_>,
        scratch: &mut Scratch,
        helpers: Option<&dyn Helpers<'e>>,
    ) -> Result<Rows> {
        let mut rows = Rows::default();
        self.for_each_row(conversation, options, scratch, helpers, |row| match row {
            Ok(row) => rows.rows.push(std::mem::take(row)),
            Err(reason) => rows.left_out.push(reason),
        })?;
        Ok(rows)
    }

    /// Hands each row of a conversation to `take`, or why it is left out. `take` may keep what the row holds.
    pub(crate) fn for_each_row<'e>(
        &'e self,
        conversation: &Conversation<'_>,
        mut options: EncodeOptions<'_>,
        scratch: &mut Scratch,
        helpers: Option<&dyn Helpers<'e>>,
        mut take: impl FnMut(std::result::Result<&mut EncodedConversation, LeftOut>),
    ) -> Result<()> {
        self.check(options)?;
        let findings = self.findings(conversation, options)?;
        let numbering = match (options.tool_call_ids, self.template.calls_named_by()) {
            (ToolCallIds::Canonical, CallsNamedBy::Id) => Some(Numbering::Conversation),
            (ToolCallIds::Canonical, CallsNamedBy::Place) => Some(Numbering::Message),
            (ToolCallIds::Canonical, CallsNamedBy::Function) | (ToolCallIds::Verbatim, _) => None,
        };
        let messages = &conversation.messages;
        let ids = numbering.map(|numbering| tool_call_ids::canonical(messages, numbering));
        let renamed = ids.as_ref().map(|ids| {
            let pairing = Pairing::of(messages, self.template.calls_named_by());
            tool_call_ids::renamed(conversation, &pairing, ids)
        });
        let conversation = renamed.as_ref().unwrap_or(conversation);
        if options.reasoning == Reasoning::Preserve {
            options.render.preserve_thinking = true;
        }
        let mut row = std::mem::take(&mut scratch.row);
        let mut encode = |conversation: &Conversation<'_>, options: EncodeOptions<'_>, shown| {
            let left_out =
                self.encode_row_into(conversation, options, scratch, helpers, &mut row)?;
            if let Some(reason) = left_out {
                take(Err(reason));
            } else {
                row.notices.dropped_reasoning -= shown;
                row.findings.clone_from(&findings);
                take(Ok(&mut row));
            }
            Ok(())
        };
        if let Some(text) = self.expanded(options) {
            for row in expand::rows(&conversation.messages, text) {
                options.render.history = Some(row.history);
                // What an earlier row shows is not lost.
                let history = conversation.messages[..row.history].iter();
                let shown =
                    history.filter(|message| message.is_assistant() && !text(message).is_empty());
                encode(&conversation.row(row), options, shown.count() as u32)?;
            }
        } else {
            encode(conversation, options, 0)?;
        }
        scratch.row = row;
        Ok(())
    }

    /// The reasoning of a message as the template would show it, if these options make a row of each time that it would
    /// lose some.
    fn expanded(&self, options: EncodeOptions<'_>) -> Option<ReasoningText> {
        let expands =
            options.reasoning == Reasoning::Expand && self.template.is_thinking(options.render);
        match self.template.shown_reasoning() {
            ShownReasoning::SinceLastAnswer(text) if expands => Some(text),
            ShownReasoning::SinceLastAnswerOrAll(text) if expands => {
                (!options.render.preserve_thinking).then_some(text)
            }
            _ => None,
        }
    }

    /// For each tool message that answers a call the index of that call's message.
    fn calls_of_results(&self, conversation: &Conversation<'_>) -> CallsOfResults {
        let pairing = Pairing::of(&conversation.messages, self.template.calls_named_by());
        let answers = pairing.answers.iter();
        let pairs = answers.filter_map(|&(message, answer)| {
            Some((message as u32, pairing.calls[answer.call()?].message as u32))
        });
        pairs.collect()
    }

    fn findings(
        &self,
        conversation: &Conversation<'_>,
        options: EncodeOptions<'_>,
    ) -> Result<Vec<Finding>> {
        if options.validate == Validate::Off {
            return Ok(Vec::new());
        }
        let view = View {
            calls_named_by: self.template.calls_named_by(),
            tool_nulls: options.render.tool_nulls,
        };
        let findings = validation::findings(conversation, view);
        match findings.first() {
            Some(first) if options.validate == Validate::Strict => Err(first.to_error()),
            _ => Ok(findings),
        }
    }

    /// Refuses options that the template, or each other, rule out, whatever the conversation.
    ///
    /// # Errors
    /// [`ErrorKind::Option`]
    pub fn check(&self, options: EncodeOptions<'_>) -> Result<()> {
        let wrong = |message: String| Err(Error::new(ErrorKind::Option, message).at("reasoning"));
        match (options.reasoning, self.template.shown_reasoning()) {
            (Reasoning::Expand, _) if self.expanded(options).is_some() => options.check_expand(),
            (Reasoning::Preserve, ShownReasoning::None | ShownReasoning::SinceLastAnswer(_)) => {
                wrong(format!(
                    "{} cannot show all reasoning",
                    self.template.name()
                ))
            }
            (Reasoning::Preserve, ShownReasoning::All)
                if !self.template.is_thinking(options.render) =>
            {
                wrong("expected to show all, but thinking is switched off".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// The error for the first special token that the text of a run spells out.
    fn control_string(&self, run: &[Segment], text: &str) -> Error {
        let found = self.tokenizer.special_tokens().find(text).next();
        let at = found.as_ref().map_or(0, |found| found.range.start);
        let name = found.map_or("", |found| &text[found.range]);
        let message = format!("expected no special token in text, found `{name}`");
        let error = Error::new(ErrorKind::Conversation, message);
        let mut end = 0;
        let segment = run.iter().find(|segment| {
            if let Body::Text(range) = &segment.body {
                end += range.len();
            }
            at < end
        });
        match segment.and_then(|segment| segment.facts.message_index) {
            Some(index) => error.at_index(index as usize).at("messages"),
            None => error.at("tools"),
        }
    }

    /// Encodes many conversations over `num_threads` threads (all that the machine offers if None), in order. The
    /// result does not depend on the number of threads.
    ///
    /// # Errors
    /// The error of the first conversation that has one, with its place.
    pub fn encode_batch(
        &self,
        conversations: &[Input<'_>],
        options: EncodeOptions<'_>,
        num_threads: Option<NonZero<usize>>,
    ) -> Result<EncodedBatch> {
        let text_len = || conversations.iter().map(Input::text_len).sum();
        let threads = batch::thread_count(num_threads, conversations.len(), text_len);
        let mut rest = conversations.iter();
        let next = || rest.next().map(Ok);
        let rows = conversations.len();
        self.encode_batch_from(next, batch::at_once, rows, threads, options, &|| true)
    }

    /// The same of the conversations that `next` yields, some `rows` in all, for as long as `go_on` says yes, which is
    /// asked before each conversation, on every thread. `next` is called on this thread. All else that this thread does,
    /// waiting included, it does inside `apart`, which must call what it is given.
    ///
    /// # Errors
    /// As [`Self::encode_batch`], and that of `next`; [`ErrorKind::Interrupted`] if `go_on` says no.
    pub fn encode_batch_from<'i, I: Borrow<Input<'i>> + Send>(
        &self,
        next: impl FnMut() -> Option<Result<I>>,
        apart: impl Fn(&mut (dyn FnMut() + Send)),
        rows: usize,
        threads: usize,
        options: EncodeOptions<'_>,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<EncodedBatch> {
        self.check(options)?;
        let in_order = InOrder::for_rows(rows);
        batch::try_fold(
            Threads::that_read(threads),
            next,
            apart,
            || self.checkout(),
            |scratch, crew: &Crew<I, LongText<'_>>, index, conversation| {
                let helpers = (threads > 1).then_some(crew as &dyn Helpers<'_>);
                let rows = conversation.borrow().read(None, |conversation| {
                    self.encode_rows_with(conversation, options, scratch, helpers)
                });
                let rows = rows.map_err(|error| error.at_index(index).at("conversations"))?;
                scratch.row = in_order.put(index, rows);
                Ok(())
            },
            |scratch| scratch.tokenizer(),
            go_on,
        )?;
        Ok(in_order.into_batch())
    }

    /// Scratch for one thread, given back when it is dropped.
    pub fn checkout(&self) -> Checkout<'_> {
        self.idle.lend()
    }
}
