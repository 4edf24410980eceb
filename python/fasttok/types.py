"""The shapes of what goes in and comes out, for type checkers.

OpenAI's spelling of messages and tools. At run time these are plain dicts, and nobody has to use the names below: any
list of dicts is accepted. A None counts as absent wherever one is allowed; keys that are not listed are ignored.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypedDict

from fasttok._core import FasttokError

__all__ = [
    "ContentPart",
    "ControlStrings",
    "Conversation",
    "ConversationInput",
    "ErrorKind",
    "FindingCode",
    "Function",
    "FunctionDeclaration",
    "Message",
    "OnEmpty",
    "PrepareSummary",
    "ReasoningMode",
    "RecordField",
    "RecordLayout",
    "RecordShape",
    "ResponseFormatInput",
    "SpanPart",
    "SpanRole",
    "ThinkingEffort",
    "Tool",
    "ToolCall",
    "ToolCallIds",
    "ToolChoice",
    "ToolNulls",
    "ToolsInput",
    "Truncate",
    "Validate",
]


class ContentPart(TypedDict, total=False):
    """One entry of a content list: text, or the placeholder of an image or a video."""

    type: str | None
    """`text`, `image`, `image_url`, `video` or `video_url`."""
    text: str | None


class _CalledFunction(TypedDict):
    arguments: str | Mapping[str, Any]
    """A string is rendered byte for byte; an object as `json.dumps(arguments, ensure_ascii=False)` prints it."""


class Function(_CalledFunction, total=False):
    """What a tool call calls."""

    name: str | None
    """Not rendered by the K2 family, which identifies a call by its id."""


class _Call(TypedDict):
    function: Function


class ToolCall(_Call, total=False):
    """One call that an assistant message makes."""

    id: str | None
    """`functions.<name>:<n>` from a Kimi model, with n counting from 0 over the conversation. Rendered as it is."""
    type: str | None


class _RoleOnly(TypedDict):
    role: str


class Message(_RoleOnly, total=False):
    """One entry of a conversation. `role` is `system`, `user`, `assistant`, `tool` or any other string."""

    content: str | Sequence[ContentPart | Mapping[str, Any]] | None
    name: str | None
    """Stands in the header in place of the role."""
    reasoning_content: str | None
    reasoning: str | None
    """Another spelling of `reasoning_content`; Kimi-K2.6 prefers it where both are there."""
    thinking: str | None
    """A third spelling, which counts if neither of the other two is there; Kimi-K3 does not know it."""
    tool_calls: Sequence[ToolCall | Mapping[str, Any]] | None
    """Read on assistant messages only; the templates show no others."""
    tool_call_id: str | None
    """On a tool message: the id of the call that it answers."""
    tool: str | None
    """On a tool message for Kimi-K3: the name of the tool, where no id tells."""
    tools: Sequence["Tool | Mapping[str, Any]"] | None
    """On a system message for Kimi-K3: tools that it adds."""
    weight: float | None
    """On an assistant message: how much it weighs in training, from 0 on."""
    train: bool | int | None
    """On an assistant message: whether it trains. Also as `trainable`, `loss`, `loss_mask` or `step_loss_mask`."""
    trainable: bool | int | None
    loss: bool | int | None
    loss_mask: bool | int | None
    step_loss_mask: bool | int | None


class FunctionDeclaration(TypedDict, total=False):
    """A function that the model may call."""

    name: str
    description: str | None
    parameters: Mapping[str, Any] | None
    """A JSON schema."""


class Tool(TypedDict, total=False):
    """One tool declaration."""

    type: str
    function: FunctionDeclaration | Mapping[str, Any]


class _MessagesOnly(TypedDict):
    messages: Sequence[Message | Mapping[str, Any]]


class Conversation(_MessagesOnly, total=False):
    """Messages together with the tools that were declared to the model."""

    tools: Sequence[Tool | Mapping[str, Any]] | None


ConversationInput: TypeAlias = Sequence[Message | Mapping[str, Any]] | Conversation | Mapping[str, Any] | str | bytes
"""A list or tuple of messages, a mapping with `messages` and perhaps `tools`, or either as JSON in str or bytes.

numpy arrays and scalars, as pandas reads them from Parquet, stand for the lists and numbers they hold.
"""

ToolsInput: TypeAlias = Sequence[Tool | Mapping[str, Any]] | str | bytes
"""A list or tuple of tool declarations, or the same as JSON in str or bytes."""

ThinkingEffort: TypeAlias = Literal["low", "high", "max"]
"""How much Kimi-K3 is asked to think."""

ToolCallIds: TypeAlias = Literal["verbatim", "canonical"]
"""What becomes of the ids of tool calls, where the template shows them."""

ToolChoice: TypeAlias = Literal["auto", "required", "none"]
"""Whether Kimi-K3 is told that it must call tools, or must not; `auto` says nothing."""

ToolNulls: TypeAlias = Literal["absent", "as_reference"]
"""What becomes of nulls in tool declarations that say nothing: they count as absent, or are printed."""

ControlStrings: TypeAlias = Literal["as_reference", "text", "error"]
"""What becomes of special tokens that the text of a message spells out."""

OnEmpty: TypeAlias = Literal["keep", "skip", "raise"]
"""What becomes of a row in which no token trains: it is kept and counted, left out of a batch or a dataset and counted,
or an error. A single conversation cannot be left out, so `skip` keeps it."""

ReasoningMode: TypeAlias = Literal["template", "preserve", "expand"]
"""What becomes of reasoning that the template does not show: it is left out, shown where the template can, or given
rows of its own."""

ResponseFormatInput: TypeAlias = Mapping[str, Any] | str | bytes
"""The form of Kimi-K3's answer as an API request names it, or the same as JSON: `{"type": "json_object"}`, or
`{"type": "json_schema", "json_schema": {"schema": …}}`; `{"type": "text"}` says nothing."""

Truncate: TypeAlias = Literal["turn", "left_turn", "token", "drop", "raise"]
"""What becomes of a row with more tokens than it may have."""

Validate: TypeAlias = Literal["warn", "strict", "off"]
"""What becomes of what is odd in a conversation: it is noted, is an error, or nobody looks."""

FindingCode: TypeAlias = Literal[
    "orphan_tool_result",
    "duplicate_tool_result",
    "missing_tool_result",
    "tool_result_without_id",
    "tool_call_without_id",
    "duplicate_tool_call_id",
    "tool_calls_outside_assistant",
    "unknown_role",
    "empty_turn",
    "double_encoded_arguments",
    "malformed_arguments",
    "unknown_reasoning_key",
    "inline_think",
    "ignored_flag",
    "null_padding",
]
"""The kinds of oddity that validation finds: `docs/findings.md` explains each."""

SpanRole: TypeAlias = Literal["system", "user", "assistant", "tool", "other"]
"""Who speaks; `other` is any further role, such as `developer`."""

SpanPart: TypeAlias = Literal[
    "header",
    "think_open",
    "think",
    "think_close",
    "text",
    "tool_call_marker",
    "tool_name",
    "tool_arguments",
    "media",
    "end",
]
"""Which part of a message a span is."""

ErrorKind: TypeAlias = Literal["conversation", "validation", "json", "unknown_model", "vocab", "option", "io"]
"""The kinds of fault that a caller may want to tell apart."""


RecordShape: TypeAlias = Literal["messages", "sharegpt", "prompt_response", "instruction"]
"""How a record holds a conversation: `messages` (`role`, `content`) and `tools`; `conversations` (`from`, `value`);
`prompt` and `response`, two texts or two lists of messages; `instruction`, `input` and `output`."""

RecordField: TypeAlias = Literal[
    "messages",
    "conversations",
    "from",
    "value",
    "prompt",
    "response",
    "instruction",
    "input",
    "output",
    "system",
    "history",
    "tools",
]
"""A field that a shape reads, by its usual name."""


OutputFormat: TypeAlias = Literal["jsonl", "parquet", "arrow"]
"""What records are written to; `arrow` is a folder that `datasets.load_from_disk` opens."""

Target: TypeAlias = Literal["specforge", "speculators", "trl", "axolotl", "llama-factory", "verl", "megatron"]
"""A trainer whose columns and files are written."""

OnError: TypeAlias = Literal["skip", "raise"]
"""What becomes of a line that cannot be encoded: it is left out and reported, or ends the run."""


class RecordLayout(TypedDict):
    """How the records of some inputs were read."""

    shape: RecordShape
    fields: dict[RecordField, str]
    """The names of the fields that do not go by their usual one."""
    files: int
    """How many inputs were read so."""


class RowLengths(TypedDict):
    """Lengths of rows in tokens: half of the rows are no longer than `p50`, and so on; None without rows."""

    p50: int | None
    p90: int | None
    p99: int | None
    max: int | None


class TokenCounts(TypedDict):
    """Tokens of one kind."""

    all: int
    trained: int
    """Those whose loss mask is 1."""


class PrepareSummary(TypedDict):
    """What became of every line: `records == written + sum(skipped.values()) + sum(failed.values())`."""

    records: int
    """Lines read."""
    layouts: list[RecordLayout]
    """How the records were read, the first input's way first."""
    written: int
    """Records written."""
    rows: int
    """Rows of the output: one a record, or more where reasoning is expanded."""
    skipped: dict[str, int]
    """Lines skipped, by reason."""
    skipped_rows: dict[str, int]
    """Rows left out of records that were written, by reason; where reasoning is expanded a record has several."""
    failed: dict[str, int]
    """Lines that failed, by the kind of error."""
    failures: list[FasttokError]
    """The first ten failures of this run, each with its file, line and path; `rejected.jsonl` has all of them."""
    tokens: int
    """Tokens written."""
    trained_tokens: int
    """Tokens written whose loss mask is 1."""
    parts: dict[SpanRole, dict[SpanPart, TokenCounts]]
    """The tokens by who speaks, and by which part of the message they are."""
    lengths: RowLengths
    trained_shares: list[int]
    """Rows by the share of their tokens that trains, in twenty steps: below 5 %, below 10 %, …, and up to 100 %."""
    untrained_records: int
    """Records written in which no token trains."""
    cut_records: int
    """Records of which tokens were left out because they were too long."""
    hidden_tool_name_records: int
    """Records with a tool call whose id, all that the template shows of it, hides the name of its function."""
    dropped_reasoning_records: int
    """Records in which the template does not show reasoning that the messages hold."""
    control_string_records: int
    """Records in which text of a message was read as special tokens, as the reference reads it."""
    findings: dict[str, int]
    """In how many records written each `FindingCode` is found; `findings.jsonl` has every finding with its place."""
    lost_weight_records: int
    """Records with weights other than 0 and 1, for which the target has no column."""
    files: list[str]
    """The files with the records, as paths from the output folder."""
    resumed_records: int
    """Lines that runs before this one had done."""
    already_done: bool
    """Whether the folder was finished before, so that nothing was done."""


class VerifyResult(TypedDict):
    """What was found in a prepared folder."""

    rows: int
    tokens: int
    trained_tokens: int
    untrained_rows: int
    """Rows in which no token trains; a problem unless the folder was prepared with `on_empty` as `keep`."""
    unjudged_rows: int
    """Rows of which the ids do not tell who speaks, since text of a message became special tokens in some."""
    problems: dict[str, int]
    """How many problems there are, by what they are; empty if all is well."""
    quoted: list[FasttokError]
    """The first twenty of them, each with its file and, if it is in a row, the number of the row as `line`."""
