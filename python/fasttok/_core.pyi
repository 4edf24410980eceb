"""The native module. Its classes are the public ones, so this file is the reference of the API.

Conversations go in as in `fasttok.types.ConversationInput`: a list of messages in OpenAI's spelling, a mapping with
`messages` and perhaps `tools`, or either as JSON text. Ids, text and mask are what the model repositories' own Python
tokenizer yields under transformers 5.24; the README lists the few places where fasttok raises instead.

Native work runs with the GIL released, and every object may be used from several threads at once.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Final, Generic, Literal, SupportsIndex, TypeAlias, TypeVar, final, overload

import numpy as np
from numpy.typing import NDArray

from fasttok.types import (
    ControlStrings,
    ConversationInput,
    ErrorKind,
    FindingCode,
    OnEmpty,
    OnError,
    OutputFormat,
    PrepareSummary,
    ReasoningMode,
    RecordField,
    RecordShape,
    ResponseFormatInput,
    SpanPart,
    SpanRole,
    Target,
    ThinkingEffort,
    ToolCallIds,
    ToolChoice,
    ToolNulls,
    ToolsInput,
    Truncate,
    Validate,
    VerifyResult,
)

__all__ = [
    "FINDINGS_FILE",
    "MANIFEST_FILE",
    "RECORDS_FILE",
    "REJECTED_FILE",
    "REPORT_FILE",
    "EncodedBatch",
    "EncodedConversation",
    "Encoder",
    "FasttokError",
    "Finding",
    "Span",
    "Spans",
    "Tokenizer",
    "__version__",
    "encode_conversation",
    "prepare",
    "verify",
]

__version__: str

RECORDS_FILE: Final = "tokenized_data.jsonl"
"""The records, in the folder that `prepare` writes."""

REJECTED_FILE: Final = "rejected.jsonl"
"""The lines that failed and why, in the same folder; not there if none failed."""

FINDINGS_FILE: Final = "findings.jsonl"
"""What is odd in the records, in the same folder; not there if nothing is."""

REPORT_FILE: Final = "report.json"
"""What became of the records, in numbers, in the same folder."""

MANIFEST_FILE: Final = "manifest.json"
"""What the folder was made from and how, with the hashes of its files; the last file to get its name."""

_Array: TypeAlias = NDArray[np.int32] | NDArray[np.uint8]
_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)

class _Indexed(Generic[_T_co]):
    # No such class exists at run time: Python iterates over these objects by their `__getitem__`, and this is how
    # type checkers learn that `list(batch)` works.
    def __iter__(self) -> Iterator[_T_co]: ...

class FasttokError(ValueError):
    """A fault with its kind and its place: `messages[3].content: expected a string, …, found a number`.

    What is wrong with a conversation, a file or a model name is a FasttokError. An argument of the wrong Python type
    (ids that are not integers, a number for a text) is a TypeError, as with any function.

    >>> try:
    ...     fasttok.encode_conversation([{"role": "user", "content": 1}])
    ... except fasttok.FasttokError as error:
    ...     print(error.kind, error.path)
    conversation messages[0].content
    """

    kind: ErrorKind
    """What sort of fault it is."""
    path: str
    """The place inside the record, such as `messages[3].tool_calls[0].id`; empty when all of it is meant.

    A fault in a batch starts with `conversations[i]`, one in ids with `ids[i]`.
    """
    file: str | None
    """The file, if the fault lies in one."""
    line: int | None
    """The line of the file, counted from 1."""
    message: str
    """What was expected and what was found, without the place."""

@final
class Encoder:
    """Turns conversations into training tokens for one model.

    Making one takes some milliseconds for a name and about a second for a folder; keep it. A pickled encoder holds
    only `model` and `template` and loads anew where it is unpickled, so it may be handed to worker processes.

    >>> encoder = fasttok.Encoder("kimi-k2.6")
    >>> one = encoder.encode_conversation([
    ...     {"role": "user", "content": "hi"},
    ...     {"role": "assistant", "content": "yo"},
    ... ])
    >>> one.input_ids
    array([163587,   2482, 163601,   9663, 163586, 163588,  69702, 163601,
           163606, 163607,  18009, 163586], dtype=int32)
    >>> one.loss_mask
    array([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1], dtype=uint8)
    """

    def __new__(cls, model: str = "kimi-k2.5", *, template: str | None = None) -> Encoder:
        """Load the encoder of a model.

        `model` is one of `kimi-k2-0711`, `kimi-k2`, `kimi-k2-thinking`, `kimi-k2.5`, `kimi-k2.6`, `kimi-k2.7-code`,
        `kimi-k3`, `kimi-linear`, `kimi-vl`, `moonlight`, or the name of a model that has such a template, in upper or
        lower case, with or without `moonshotai/`; the vocabulary comes with the package, and nothing is downloaded.
        Or it is a folder with the model's tokenizer files: `tiktoken.model` and `tokenizer_config.json`, or
        `tokenizer.json`. `template` (a model name) says which chat template to use, and is needed only for a folder
        whose own names do not tell.

        Raises FasttokError: `unknown_model` for a name that is not known or a folder whose template is not clear;
        `vocab`, `json` or `io` for a folder whose files are missing, damaged or not Kimi's.
        """

    @property
    def model(self) -> str:
        """The model, as it was asked for."""

    @property
    def template(self) -> str:
        """The name of the chat template, such as `kimi-k2.5`."""

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer, for text without a conversation."""

    def encode_conversation(
        self,
        messages: ConversationInput,
        *,
        tools: ToolsInput | None = None,
        add_generation_prompt: bool = False,
        thinking: bool = True,
        preserve_thinking: bool = False,
        thinking_effort: ThinkingEffort | None = "max",
        tool_choice: ToolChoice | None = None,
        response_format: ResponseFormatInput | None = None,
        tool_nulls: ToolNulls = "absent",
        mask: str = "all_assistant_messages",
        on_empty: OnEmpty = "keep",
        control_strings: ControlStrings = "as_reference",
        reasoning: ReasoningMode = "template",
        tool_call_ids: ToolCallIds = "verbatim",
        max_length: int | None = None,
        truncate: Truncate = "turn",
        validate: Validate = "warn",
    ) -> EncodedConversation:
        """Encode one conversation. The options are those of the model's own `apply_chat_template`.

        - `tools`: the tools declared to the model; they take the place of the conversation's own, even if empty.
        - `add_generation_prompt`: end with the header of an assistant turn, for a model to go on from.
        - `thinking`: False shows no reasoning. True shows what the template shows: Kimi-K3 and Kimi-K2.7-Code all,
          Kimi-K2.5 and Kimi-K2.6 that of the turns after the last assistant message without tool calls. Kimi-K2.5,
          Kimi-K2.6 and Kimi-K3 only.
        - `preserve_thinking`: show all reasoning. Kimi-K2.6 only.
        - `thinking_effort`, `tool_choice`, `response_format`: what Kimi-K3 is told in system messages of their own.
          None says nothing; the effort is `max` unless given, as in the model's own tokenizer.

        A template ignores the options that its model does not have, as the model's own does.

        - `tool_nulls`: what becomes of nulls in tool declarations. `absent` leaves out those that say nothing, as
          Arrow tables are full of; a default or a constant of null stays. `as_reference` prints all, as the models'
          own code does.

        - `mask`: which tokens train, in the language of `docs/masks.md`, such as `last_assistant_turn-think`.
        - `on_empty`: what becomes of a row in which no token trains. `raise` makes it an error, `skip` leaves it out of
          a batch, and keeps it here.
        - `control_strings`: what becomes of special tokens that a text spells out, such as `<|im_end|>`. Most models'
          own code makes tokens of them (K3's does not); `text` keeps them text, `error` refuses the conversation. The
          mask cannot be forged in any case.
        - `reasoning`: what becomes of reasoning that the template does not show. `template` leaves it out, as the
          model's own code does; `preserve` shows all, where the template can (Kimi-K2.6, Kimi-K2.7-Code, Kimi-K3);
          `expand` is for `encode_batch` (`docs/masks.md`).
        - `tool_call_ids`: from Kimi-K2 to K2.7 the id of a call is all that the model sees of the function's name.
          `verbatim` keeps ids as they are; `canonical` writes `functions.NAME:N`, in calls and results.
        - `max_length`, in tokens, and `truncate`: `turn` leaves whole messages out from the end, `left_turn` the oldest
          ones after the first user message, `token` cuts anywhere, `raise` makes it an error. `drop` leaves the row
          out of a batch, and is an error here. The ids that stay are those of the full rendering.
        - `validate`: what becomes of what is odd and renders all the same, such as a result that answers no call.
          `warn` puts it into `findings`, `strict` makes the first of it an error, `off` does not look.

        Raises FasttokError: `conversation` with the path of whatever is missing or of the wrong type, `json` for text
        that is not JSON, `validation` for what `strict` refuses.
        """

    def encode_batch(
        self,
        conversations: Iterable[ConversationInput],
        *,
        add_generation_prompt: bool = False,
        thinking: bool = True,
        preserve_thinking: bool = False,
        thinking_effort: ThinkingEffort | None = "max",
        tool_choice: ToolChoice | None = None,
        response_format: ResponseFormatInput | None = None,
        tool_nulls: ToolNulls = "absent",
        mask: str = "all_assistant_messages",
        on_empty: OnEmpty = "keep",
        control_strings: ControlStrings = "as_reference",
        reasoning: ReasoningMode = "template",
        tool_call_ids: ToolCallIds = "verbatim",
        max_length: int | None = None,
        truncate: Truncate = "turn",
        validate: Validate = "warn",
        num_threads: int | None = None,
    ) -> EncodedBatch:
        """Encode many conversations in parallel; the result equals encoding each one, whatever the threads.

        `conversations` is listed before the work starts, and each is read when its turn comes. `num_threads` counts
        from 1; None means as many as the machine offers. Tools stand with the messages, in
        `{"messages": …, "tools": …}`. The threads live for one call, so forking later is safe.

        >>> batch = encoder.encode_batch([[{"role": "user", "content": text}] for text in ("hi", "hi there")])
        >>> batch.offsets
        array([ 0,  5, 11])
        >>> batch[1].input_ids
        array([163587,   2482, 163601,   9663,   1459, 163586], dtype=int32)

        Raises FasttokError as `encode_conversation` does, for the first conversation that cannot be encoded, with a
        path that starts with `conversations[i]`. `option` for a `num_threads` below 1.
        """

    def render(
        self,
        messages: ConversationInput,
        *,
        tools: ToolsInput | None = None,
        add_generation_prompt: bool = False,
        thinking: bool = True,
        preserve_thinking: bool = False,
        thinking_effort: ThinkingEffort | None = "max",
        tool_choice: ToolChoice | None = None,
        response_format: ResponseFormatInput | None = None,
        tool_nulls: ToolNulls = "absent",
    ) -> str:
        """The text of a conversation, special tokens written out: `apply_chat_template(…, tokenize=False)`.

        `tokenizer.encode_as_served` of it gives the ids of `encode_conversation`, but for Kimi-K3, whose strings are
        encoded one by one, and with `control_strings="text"`.

        Raises FasttokError as `encode_conversation` does.
        """

@final
class Tokenizer:
    """The tokenizer of an encoder: 163,840 ids, the last 256 of them special tokens.

    Each way from text to ids reads a text such as `<|im_end|>` differently, and each is what one path of the model's
    own tokenizer does. All of them cut a text at 400,000 characters, and where 25,000 characters follow each other
    without a change between blank and not blank, since the reference does.

    >>> tokenizer = fasttok.Encoder().tokenizer
    >>> tokenizer.encode_ordinary("You<|im_end|>").tolist()
    [3900, 27, 91, 348, 11129, 91, 29]
    >>> tokenizer.encode_as_served("You<|im_end|>").tolist()
    [3900, 163586]
    >>> tokenizer.decode([3900, 163586])
    'You<|im_end|>'
    """

    def encode_ordinary(self, text: str) -> NDArray[np.int32]:
        """Ids of shape (n,), special tokens read as plain text.

        Raises FasttokError (`conversation`) for text with half of a surrogate pair, which UTF-8 cannot hold.
        """

    def encode_with_special_tokens(self, text: str) -> NDArray[np.int32]:
        """Ids of shape (n,), every special token read as such, reserved ones included.

        The text is cut first, so a special token across a cut becomes plain text: the reference's `encode(text)`.

        Raises FasttokError as `encode_ordinary` does.
        """

    def encode_as_served(self, text: str) -> NDArray[np.int32]:
        """Ids of shape (n,): split at the named special tokens, then `encode_with_special_tokens` on each gap.

        What a server and `apply_chat_template(tokenize=True)` do. Differs from `encode_with_special_tokens` only in
        texts that are cut.

        Raises FasttokError as `encode_ordinary` does.
        """

    def decode(self, ids: Iterable[SupportsIndex]) -> str:
        """The text of ids; bytes that are not UTF-8, such as half a character, become U+FFFD.

        Raises FasttokError (`vocab`) with the place of an id that is negative or not below `len(tokenizer)`.
        """

    def decode_bytes(self, ids: Iterable[SupportsIndex]) -> bytes:
        """The bytes of ids, exactly.

        Raises FasttokError as `decode` does.
        """

    @property
    def special_tokens(self) -> dict[str, int]:
        """The special tokens that the model names, and their ids, in the order of the ids: a new dict each time."""

    def __len__(self) -> int:
        """How many ids there are, special ones included; the first id that means nothing."""

@final
class EncodedConversation(Mapping[str, _Array]):
    """Ids and loss mask of one conversation; a mapping of `input_ids` and `loss_mask`.

    `dict(one)` gives the two arrays by name. The arrays are writable, and those of a conversation from a batch are
    views of the batch's. It can be pickled, as can a batch, so worker processes can return it.
    """

    @property
    def input_ids(self) -> NDArray[np.int32]:
        """What the model reads: ids of shape (n,)."""

    @property
    def loss_mask(self) -> NDArray[np.uint8]:
        """1 for each token that trains, else 0: shape (n,).

        By default that is what the model itself would have sampled: the assistant's reasoning with its closing tag,
        content, tool calls with their markers, and the end token; not headers, not `<think>` where the generation
        prompt supplies it, not the tags of an empty reasoning. It follows from the structure of the messages, so no
        text that a user or a tool writes can change it.
        """

    @property
    def labels(self) -> NDArray[np.int64]:
        """The ids where the loss mask is 1, elsewhere −100, which PyTorch's cross entropy ignores: shape (n,).

        A new array each time, from the present state of `input_ids` and `loss_mask`. Not shifted: PyTorch models that
        take labels shift them on their own.
        """

    @property
    def loss_weight(self) -> NDArray[np.float32]:
        """How much each token weighs: shape (n,). The loss mask times the weight of its message, 1 by default.

        A new array each time.
        """

    def mask(self, policy: str) -> NDArray[np.uint8]:
        """The mask of another policy, from the spans: shape (n,), without a second tokenization.

        >>> one = encoder.encode_conversation([
        ...     {"role": "user", "content": "hi"},
        ...     {"role": "assistant", "content": "yo"},
        ... ])
        >>> one.mask("all_assistant_messages-end")
        array([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0], dtype=uint8)

        Raises FasttokError (`option`) for a policy that is not known.
        """

    @property
    def spans(self) -> Spans:
        """What each stretch of tokens is; end to end, the spans cover all ids."""

    @property
    def control_strings(self) -> int:
        """How many special tokens came out of text that a message supplied, as in the reference."""

    @property
    def dropped_reasoning(self) -> int:
        """How many assistant messages have reasoning that is not shown, in this row or an earlier one of `expand`."""

    @property
    def hidden_tool_names(self) -> int:
        """How many tool calls have an id that hides the name of their function, where the template shows ids."""

    @property
    def cut_tokens(self) -> int:
        """How many tokens were left out because there were more than `max_length`."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is odd in the conversation, in all its messages; empty with `validate="off"`.

        >>> one = encoder.encode_conversation([
        ...     {"role": "user", "content": "hi"},
        ...     {"role": "assistant", "content": "<think>Be brief.</think>yo"},
        ... ])
        >>> [(finding.code, finding.path) for finding in one.findings]
        [('inline_think', 'messages[1].content')]
        """

    @overload
    def __getitem__(self, key: Literal["input_ids"], /) -> NDArray[np.int32]: ...
    @overload
    def __getitem__(self, key: Literal["loss_mask"], /) -> NDArray[np.uint8]: ...
    @overload
    def __getitem__(self, key: str, /) -> _Array: ...
    @overload
    def get(self, key: str, default: None = None) -> _Array | None: ...
    @overload
    def get(self, key: str, default: _Array | _T) -> _Array | _T: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[str]: ...
    def __contains__(self, key: object, /) -> bool: ...

@final
class EncodedBatch(_Indexed[EncodedConversation]):
    """Many encoded conversations, laid end to end in flat arrays.

    `batch[i]` is conversation i as views of these arrays, and iterating yields one after the other.
    """

    @property
    def input_ids(self) -> NDArray[np.int32]:
        """The ids of all conversations: shape (total,)."""

    @property
    def loss_mask(self) -> NDArray[np.uint8]:
        """The loss mask of all conversations: shape (total,)."""

    @property
    def loss_weight(self) -> NDArray[np.float32]:
        """How much each token weighs: shape (total,). See `EncodedConversation.loss_weight`."""

    def mask(self, policy: str) -> NDArray[np.uint8]:
        """The mask of another policy: shape (total,). See `EncodedConversation.mask`."""

    @property
    def sources(self) -> NDArray[np.int64]:
        """For each row the index of its conversation: shape (len(batch),). 0, 1, 2, … unless reasoning is expanded."""

    @property
    def skipped(self) -> dict[str, int]:
        """How many rows were left out, by reason: by `truncate="drop"` or `on_empty="skip"`. A new dict each time."""

    @property
    def finding_counts(self) -> dict[str, int]:
        """In how many conversations each `FindingCode` is found; `batch[i].findings` has the places. A new dict."""

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Shape (len(batch) + 1,): conversation i is `input_ids[offsets[i]:offsets[i + 1]]`."""

    def __len__(self) -> int:
        """How many conversations there are."""

    def __getitem__(self, index: SupportsIndex, /) -> EncodedConversation:
        """Conversation `index`, counted from the end if negative. Raises IndexError outside the batch."""

@final
class Finding:
    """Something odd in a conversation, which renders all the same. `str(finding)` has it all in one line.

    `docs/findings.md` lists the codes.
    """

    @property
    def code(self) -> FindingCode:
        """What kind of oddity it is; stable, for programs to rely on."""

    @property
    def path(self) -> str:
        """Where it is, such as `messages[3].tool_call_id`."""

    @property
    def message(self) -> str:
        """What was found, and what becomes of it."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Spans(_Indexed[Span]):
    """The spans of one conversation, in order. Indexed like a list, without slices."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: SupportsIndex, /) -> Span: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Span:
    """Neighbouring tokens of one kind: `input_ids[start:end]`."""

    @property
    def role(self) -> SpanRole:
        """Who speaks."""

    @property
    def part(self) -> SpanPart:
        """Which part of the message this is."""

    @property
    def message_index(self) -> int | None:
        """Which message, counted from 0; None for what no message holds: tool declaration, generation prompt."""

    @property
    def start(self) -> int:
        """The first token, counted from the start of the conversation."""

    @property
    def end(self) -> int:
        """One past the last token."""

    @property
    def sampled(self) -> bool:
        """Whether the model produced it when the turn was sampled; the default loss mask is this, token by token."""

    @property
    def prefilled(self) -> bool:
        """Whether the generation prompt supplies it after the header, as `<think>` from Kimi-K2.5 on."""

    @property
    def calls(self) -> bool:
        """Whether its message calls tools."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

def encode_conversation(
    messages: ConversationInput,
    model: str = "kimi-k2.5",
    *,
    tools: ToolsInput | None = None,
    add_generation_prompt: bool = False,
    thinking: bool = True,
    preserve_thinking: bool = False,
    thinking_effort: ThinkingEffort | None = "max",
    tool_choice: ToolChoice | None = None,
    response_format: ResponseFormatInput | None = None,
    tool_nulls: ToolNulls = "absent",
    mask: str = "all_assistant_messages",
    on_empty: OnEmpty = "keep",
    control_strings: ControlStrings = "as_reference",
    reasoning: ReasoningMode = "template",
    tool_call_ids: ToolCallIds = "verbatim",
    max_length: int | None = None,
    truncate: Truncate = "turn",
    validate: Validate = "warn",
) -> EncodedConversation:
    """`Encoder(model).encode_conversation(messages, …)`, with the encoder of each model kept for the next call."""

def prepare(
    encoder: Encoder,
    inputs: Sequence[str | PathLike[str]],
    output: str | PathLike[str],
    *,
    shape: RecordShape | None = None,
    fields: Mapping[RecordField, str] | None = None,
    format: OutputFormat | None = None,
    target: Target | None = None,
    shard_size: int | None = None,
    keep: Sequence[str] = (),
    on_error: OnError = "skip",
    overwrite: bool = False,
    add_generation_prompt: bool = False,
    thinking: bool = True,
    preserve_thinking: bool = False,
    thinking_effort: ThinkingEffort | None = "max",
    tool_choice: ToolChoice | None = None,
    response_format: ResponseFormatInput | None = None,
    tool_nulls: ToolNulls = "absent",
    mask: str = "all_assistant_messages",
    on_empty: OnEmpty = "keep",
    control_strings: ControlStrings = "as_reference",
    reasoning: ReasoningMode = "template",
    tool_call_ids: ToolCallIds = "verbatim",
    max_length: int | None = None,
    truncate: Truncate = "turn",
    validate: Validate = "warn",
    num_threads: int | None = None,
    progress: Callable[[int, int, int, int, int], object] | None = None,
) -> PrepareSummary:
    """Encode every conversation of some files into a folder, in constant memory.

    `inputs` are JSONL files, plain, gzip or zstd, Parquet and Arrow files, folders that hold such or that
    `datasets.save_to_disk` has made, patterns such as `chats/*.jsonl`, and `-` for standard input. Files of a folder or
    a pattern come sorted by name.

    `shape` says how a record holds its conversation: `messages`, `sharegpt`, `prompt_response` or `instruction`; the
    first 100 records of each file say so if it is None. `fields` has the names of fields that go by another name, such
    as `{"messages": "chat"}`. Lists that are JSON in a string are read too.

    `output` gets the records in the order of the inputs: `input_ids` and `loss_mask`, with `id` if there is one,
    `loss_weight` if a message weighs something other than 0 and 1, `cut_tokens` if the row was too long, and the fields
    that `keep` names. `format` is `jsonl` (one file, `tokenized_data.jsonl`), `parquet` or `arrow` (a folder for
    `datasets.load_from_disk`), both in files of at most about 500 MB of rows; `shard_size` is another number of bytes
    after which the next file begins. `target` names a trainer, and writes the columns and files that it reads
    (docs/targets.md).

    Beside them stand `rejected.jsonl` if lines failed, `findings.jsonl` if something is odd in a record, `report.json`
    with the numbers, and `manifest.json`, which gets its name when all is done. A line that cannot be encoded is
    counted and reported; with `on_error="raise"` it ends the run.

    A run that was stopped or killed goes on where it was when it is called again, and one that is finished does
    nothing. If inputs or options have changed, that is an error, unless `overwrite` is true.

    `progress(records, failed, tokens, bytes, total_bytes)` is called at the start and after each chunk of lines; bytes
    are those of the inputs as they lie on disk, 0 where a pipe does not say. What it raises stops the run, as Ctrl-C
    does.

    >>> summary = fasttok.prepare(encoder, ["chats.jsonl"], "prepared")
    >>> summary["written"], summary["failed"]
    (2, {})

    Raises FasttokError for an option, an input that is missing, an output that cannot be written, and a folder that was
    prepared otherwise.
    """

def verify(
    encoder: Encoder,
    folder: str | PathLike[str],
    *,
    against: Sequence[str | PathLike[str]] | None = None,
    num_threads: int | None = None,
    progress: Callable[[int, int, int, int, int], object] | None = None,
) -> VerifyResult:
    """Check a folder that `prepare` has written, every file and every row.

    Files are compared with the hashes of the manifest, rows with what a row must be: ids of the vocabulary, a mask of 0
    and 1 as long as the ids, labels that agree with them, a token that trains (unless `on_empty` was `keep`), and
    trained tokens only where the ids themselves say that an assistant speaks, from its header to its end.

    With `against`, the inputs, every record is encoded again with the options of the manifest, and compared with its
    rows. `encoder` must be of the model that the folder was prepared for.

    `progress` is called as by `prepare`.

    >>> found = fasttok.verify(encoder, "prepared", against=["chats.jsonl"])
    >>> found["rows"], found["problems"]
    (2, {})

    Raises FasttokError for a folder without a manifest or with an unfinished one, and for an encoder of another model.
    What is wrong in the folder is counted and quoted, not raised.
    """
