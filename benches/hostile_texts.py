"""Texts that make tokenizers slow: few borders between pieces, or pieces that were never seen before."""

import random
from collections.abc import Callable


def one_letter(size: int) -> str:
    return "a" * size


def spaces(size: int) -> str:
    return " " * size


def base64(size: int) -> str:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    return "".join(random.Random(1).choices(letters, k=size))


def random_bytes(size: int) -> str:
    """As a tool shows a binary file: what is no UTF-8 becomes U+FFFD, which is three bytes."""
    return first_bytes(random.Random(2).randbytes(size).decode(errors="replace"), size)


def han(size: int) -> str:
    generator = random.Random(3)
    return "".join(chr(generator.randint(0x4E00, 0x9FFF)) for _ in range(size // 3))


def emoji(size: int) -> str:
    generator = random.Random(4)
    return "".join(chr(generator.randint(0x1F300, 0x1F64F)) for _ in range(size // 4))


def digits(size: int) -> str:
    return "".join(random.Random(5).choices("0123456789", k=size))


def first_bytes(text: str, size: int) -> str:
    return text.encode()[:size].decode(errors="ignore")


HOSTILE_TEXTS: dict[str, Callable[[int], str]] = {
    "one letter": one_letter,
    "spaces": spaces,
    "base64": base64,
    "random bytes": random_bytes,
    "Han": han,
    "emoji": emoji,
    "digits": digits,
}
