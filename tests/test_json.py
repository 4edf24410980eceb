"""Conversations as JSON text are read as Python's `json` reads them.

Every case is held against `json.loads`: the same text as values must give the same prompt, and where `json` refuses a
text fasttok does.
"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasttok import Encoder, FasttokError


def record(arguments: str) -> str:
    """A conversation in which `arguments`, as JSON, are the arguments of a call and a part of a tool's declaration."""
    call = '{"id": "functions.f:0", "function": {"name": "f", "arguments": ' + arguments + "}}"
    tool = '{"type": "function", "function": {"name": "f", "parameters": {"default": ' + arguments + "}}}"
    return f'{{"messages": [{{"role": "assistant", "tool_calls": [{call}]}}], "tools": [{tool}]}}'


ODD = [
    '{"a": 1, "b": 2, "a": 3}',
    '{"a": {"x": 1, "x": {"y": 1, "y": 2}}}',
    '{"a": NaN, "b": Infinity, "c": -Infinity, "d": 1e400, "e": -1e400}',
    '{"a": 123456789012345678901234567890, "b": -9223372036854775809, "c": 9223372036854775808}',
    '{"a": 1.0, "b": 1e2, "c": 1E+2, "d": 1e-7, "e": 0.1, "f": -0, "g": -0.0, "h": 1.50}',
    r'{"a": "\u4f60\u597d \ud83d\ude00 \/ \b\f\n\r\t \u0000 \u001f \u007f \u2028"}',
    '{"\\u0061": 1, "a": 2}',
    ' \t\r\n{ "a"\r\n:\t[ ] , "" : { } } \r\n',
    '{"a": "\x7f\u2028\ufeff"}',
    "{}",
]


@pytest.mark.parametrize("arguments", ODD)
def test_odd_texts_read_as_python_reads_them(encoders: dict[str, Encoder], arguments: str) -> None:
    text = record(arguments)
    for name in ("kimi-k2-0711", "kimi-k2", "kimi-k2.5", "kimi-k3"):
        expected = encoders[name].render(json.loads(text))
        assert encoders[name].render(text) == expected, name
        assert encoders[name].render(text.encode()) == expected, name


def test_a_byte_order_mark_belongs_to_bytes_only(encoder: Encoder) -> None:
    text = record("{}")
    marked = text.encode("utf-8-sig")
    assert encoder.render(marked) == encoder.render(json.loads(marked))
    with pytest.raises(json.JSONDecodeError):
        json.loads(marked.decode())
    with pytest.raises(FasttokError, match="not valid JSON at byte 0"):
        encoder.render(marked.decode())


@pytest.mark.parametrize(
    "arguments",
    [f'{{"a": {value}}}' for value in ("01", "+1", ".5", "1.", "nan", "-NaN", "tru", "0x10", '"\n"')]
    + [r'{"a": "\x41"}', r'{"a": "\u12"}', r'{"a": "\U0001f600"}', "{'a': 1}", '{"a": 1,}', '{"a"}', "{} {}"],
)
def test_what_python_refuses_is_an_error(encoder: Encoder, arguments: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        json.loads(record(arguments))
    with pytest.raises(FasttokError) as raised:
        encoder.render(record(arguments))
    assert raised.value.kind == "json"


@pytest.mark.parametrize("arguments", ['"\\ud800"', "[" * 250 + "]" * 250, "1" * 4301])
def test_what_fasttok_cannot_hold_is_an_error_too(encoder: Encoder, arguments: str) -> None:
    with pytest.raises(FasttokError) as raised:
        encoder.render(record(f'{{"a": {arguments}}}'))
    assert raised.value.kind == "json"


class Named(int):
    """An integer whose class prints it in another way, as an enum does."""

    def __repr__(self) -> str:
        return "Named"

    __str__ = __repr__


@pytest.mark.parametrize("number", [Named(7), Named(10**30)])
def test_an_integer_of_another_class_is_printed_as_one(encoder: Encoder, number: int) -> None:
    arguments = {"a": number, "b": {number: 1}}
    call = {"id": "functions.f:0", "function": {"name": "f", "arguments": arguments}}
    assert json.dumps(arguments) in encoder.render([{"role": "assistant", "tool_calls": [call]}])


TEXTS = st.text(st.characters(codec="utf-8"), max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(arguments=st.dictionaries(TEXTS, VALUES, max_size=3), ascii=st.booleans(), indent=st.sampled_from([None, 0, 3]))
def test_any_value_in_any_spelling(
    encoders: dict[str, Encoder], arguments: dict[str, Any], ascii: bool, indent: int | None
) -> None:
    text = record(json.dumps(arguments, ensure_ascii=ascii, indent=indent))
    for name in ("kimi-k2", "kimi-k3"):
        assert encoders[name].render(text) == encoders[name].render(json.loads(text))


@given(st.lists(st.floats() | st.integers(0, 2**53).map(lambda number: number / 4), min_size=1, max_size=40))
def test_floats_are_printed_as_python_prints_them(encoders: dict[str, Encoder], floats: list[float]) -> None:
    arguments = {"floats": floats}
    assert json.dumps(arguments) in encoders["kimi-k2.5"].render(record(json.dumps(arguments)))
