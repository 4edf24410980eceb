"""Other tokenizers with Kimi's vocabulary, to measure against: gigatoken, and a fast one of Hugging Face.

Both are made from the vocabulary that fasttok embeds, so nothing is downloaded. Neither makes the cuts of Kimi's own
tokenizer, so a conversation with very long text may get other ids; whoever times must compare first.
"""

import base64
import hashlib
import importlib
import os
from pathlib import Path
from typing import Any

from timing import MeasurementError

from fasttok import Encoder

RANKS = 163_584
TOKENS = 163_840

# Of the file in the models' repositories, so that peers get the very vocabulary that they are made for.
TIKTOKEN_SHA256 = "b6c497a7469b33ced9c38afb1ad6e47f03f5e5dc05f15930799210ec050c5103"

# The pattern as the models' own `tokenization_kimi.py` gives it to tiktoken.
PATTERN = "|".join(
    [
        r"[\p{Han}]+",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*"
        r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
        r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)

# Kimi-K2.5's format in Jinja. The models' own wrapper writes the tool declaration in Python and hands it over as text,
# and so does `encode_with_huggingface`.
CHAT_TEMPLATE = """
{%- macro body(content) -%}
    {%- if content is string -%}
        {{- content -}}
    {%- elif content -%}
        {%- for part in content -%}
            {%- if part.type in ['image', 'image_url'] -%}
                {{- '<|media_begin|>image<|media_content|><|media_pad|><|media_end|>\\n' -}}
            {%- elif part.type in ['video', 'video_url'] -%}
                {{- '<|kimi_k25_video_placeholder|>\\n' -}}
            {%- else -%}
                {{- part.text -}}
            {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro -%}
{%- set ns = namespace(answer=-1) -%}
{%- for message in messages -%}
    {%- if message.role == 'assistant' and not message.tool_calls -%}{%- set ns.answer = loop.index0 -%}{%- endif -%}
{%- endfor -%}
{%- if tool_declaration -%}
    {{- '<|im_system|>tool_declare<|im_middle|>' + tool_declaration + '<|im_end|>' -}}
{%- endif -%}
{%- for message in messages -%}
    {%- if message.role in ['user', 'assistant'] -%}
        {{- '<|im_' + message.role + '|>' -}}
    {%- else -%}
        {{- '<|im_system|>' -}}
    {%- endif -%}
    {{- (message.name or message.role) + '<|im_middle|>' -}}
    {%- if message.role == 'assistant' -%}
        {{- '<think>' -}}
        {%- if loop.index0 > ns.answer -%}{{- message.reasoning_content or '' -}}{%- endif -%}
        {{- '</think>' -}}
    {%- elif message.role == 'tool' -%}
        {{- '## Return of ' + (message.tool_call_id or '') + '\\n' -}}
    {%- endif -%}
    {{- body(message.content) -}}
    {%- if message.role == 'assistant' and message.tool_calls -%}
        {{- '<|tool_calls_section_begin|>' -}}
        {%- for call in message.tool_calls -%}
            {{- '<|tool_call_begin|>' + (call.id or '') + '<|tool_call_argument_begin|>' -}}
            {%- if call.function.arguments is string -%}
                {{- call.function.arguments -}}
            {%- else -%}
                {{- call.function.arguments | tojson -}}
            {%- endif -%}
            {{- '<|tool_call_end|>' -}}
        {%- endfor -%}
        {{- '<|tool_calls_section_end|>' -}}
    {%- endif -%}
    {{- '<|im_end|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_assistant|>assistant<|im_middle|><think>' -}}{%- endif -%}
"""


def installed(name: str) -> Any:
    """A module that carries no types, or is not among the project's own requirements."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        raise MeasurementError(f"{name} is not installed: pip install {name}") from None


def special_tokens(encoder: Encoder) -> dict[str, int]:
    """All 256, in the order of their ids; those that the model does not name too."""
    return {encoder.tokenizer.decode([token]): token for token in range(RANKS, TOKENS)}


def write_tiktoken_model(encoder: Encoder, path: Path) -> None:
    decode = encoder.tokenizer.decode_bytes
    lines = [base64.b64encode(decode([rank])) + b" %d\n" % rank for rank in range(RANKS)]
    content = b"".join(lines)
    found = hashlib.sha256(content).hexdigest()
    if found != TIKTOKEN_SHA256:
        raise ValueError(f"the vocabulary is not Kimi's: expected the sha256 {TIKTOKEN_SHA256}, found {found}")
    path.write_bytes(content)


def gigatoken_tokenizer(encoder: Encoder, tiktoken_model: Path) -> Any:
    gigatoken = installed("gigatoken")
    return gigatoken.Tokenizer.from_tiktoken(tiktoken_model, "kimi", special_tokens(encoder))


def huggingface_tokenizer(encoder: Encoder, tiktoken_model: Path) -> Any:
    """What transformers' own converter makes of the vocabulary, with Kimi's pattern in place of its default one."""
    # It says on import that PyTorch is missing, which nobody needs here.
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    transformers = installed("transformers")
    # The converter reads the file with the one, and chat templates need the other.
    installed("tiktoken")
    installed("jinja2")
    converter = installed("transformers.convert_slow_tokenizer").TikTokenConverter(
        vocab_file=str(tiktoken_model), pattern=PATTERN, extra_special_tokens=special_tokens(encoder)
    )
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=converter.converted())
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def tool_declaration(encoder: Encoder, tools: Any) -> str | None:
    """The text that declares `tools`, without its header and end."""
    if not tools:
        return None
    # A conversation cannot be empty; the declaration stands before all messages.
    text = encoder.render([{"role": "user", "content": ""}], tools=tools)
    start = text.index("<|im_middle|>") + len("<|im_middle|>")
    return text[start : text.rindex("<|im_end|><|im_user|>")]


def encode_with_huggingface(tokenizer: Any, messages: Any, declaration: str | None) -> list[int]:
    return tokenizer.apply_chat_template(messages, return_dict=False, tool_declaration=declaration)
