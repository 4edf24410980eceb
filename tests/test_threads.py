"""Threads, signals, and what the caller's own code raises while native code runs."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from fasttok import EncodedConversation, Encoder

CHAT: list[dict[str, Any]] = [{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "4"}]


def seen(one: EncodedConversation) -> object:
    return one.input_ids.tolist(), one.loss_mask.tolist(), list(one.spans)


class Raising(Mapping[str, Any]):
    """A conversation whose own code raises."""

    def __init__(self, error: BaseException) -> None:
        self.error = error
        self.asked = 0

    def __getitem__(self, key: str) -> Any:
        raise self.error

    def __iter__(self) -> Iterator[str]:
        self.asked += 1
        raise self.error

    def __len__(self) -> int:
        return 1


def test_an_error_of_the_generator_reaches_the_caller(encoder: Encoder) -> None:
    def chats() -> Iterator[Any]:
        yield CHAT
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        encoder.encode_batch(chats())


@pytest.mark.parametrize("num_threads", [1, 2, 3, 8])
def test_the_first_conversation_that_raises_is_told(encoder: Encoder, num_threads: int) -> None:
    raising = [Raising(LookupError("first")), Raising(ValueError("second"))]
    with pytest.raises(LookupError, match="first"):
        encoder.encode_batch([CHAT, *raising], num_threads=num_threads)
    assert raising[1].asked == 0


def test_a_signal_in_the_first_call_of_a_process_is_no_panic() -> None:
    # It arrives while the text is encoded.
    program = """
import signal, numpy, fasttok
def raising(*_):
    raise KeyboardInterrupt
encoder = fasttok.Encoder("kimi-k2.5")
text = "".join(f"{number} " for number in range(5_000_000))
signal.signal(signal.SIGALRM, raising)
signal.setitimer(signal.ITIMER_REAL, 0.02)
try:
    encoder.tokenizer.encode_ordinary(text)
    while True:
        pass
except KeyboardInterrupt:
    print("interrupted")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "interrupted\n"


def test_what_is_raised_while_numpy_is_loaded_is_no_panic() -> None:
    program = """
import numpy.lib, fasttok
class Interrupted:
    def __init__(self, *_):
        raise KeyboardInterrupt
version, numpy.lib.NumpyVersion = numpy.lib.NumpyVersion, Interrupted
encoder = fasttok.Encoder("kimi-k2.5")
try:
    encoder.tokenizer.encode_ordinary("a")
except KeyboardInterrupt:
    numpy.lib.NumpyVersion = version
    print("interrupted", encoder.tokenizer.encode_ordinary("a").tolist())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "interrupted [64]\n"


def test_one_encoder_serves_many_threads(encoder: Encoder) -> None:
    chats = [[{"role": "user", "content": f"Number {i}: " + "word " * (i * 7 % 90)}, CHAT[1]] for i in range(40)]
    expected = [seen(encoder.encode_conversation(chat)) for chat in chats]
    with ThreadPoolExecutor(8) as pool:
        singles = list(pool.map(encoder.encode_conversation, chats * 5))
        batches = list(pool.map(partial(encoder.encode_batch, num_threads=2), [chats] * 8))
    assert [seen(one) for one in singles] == expected * 5
    assert all([seen(one) for one in batch] == expected for batch in batches)


@pytest.mark.usefixtures("heeded_ctrl_c")
@pytest.mark.parametrize("num_threads", [1, 2])
def test_ctrl_c_ends_a_long_batch(encoder: Encoder, num_threads: int) -> None:
    # Seconds of work, were it not interrupted, and nearly none of it in Python.
    chat = json.dumps([{"role": "user", "content": "".join(f"{number} " for number in range(20_000))}])
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            encoder.encode_batch([chat] * 10_000, num_threads=num_threads)
    finally:
        timer.cancel()


def test_other_threads_run_while_a_batch_is_encoded(encoder: Encoder) -> None:
    # With a switch interval this long a thread runs until it lets go of the GIL by itself, so the main thread can get
    # its word in between the other two only if the native code lets go.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        # A busy machine may be slow to wake the main thread, so a longer text is tried then.
        orders: list[list[str]] = []
        for repeats in (400_000, 1_600_000, 6_400_000):
            order: list[str] = []
            chat = [{"role": "user", "content": "some words, " * repeats}]

            def encode(order: list[str] = order, chat: list[dict[str, str]] = chat) -> None:
                order.append("begin")
                encoder.encode_batch([chat], num_threads=1)
                order.append("end")

            thread = threading.Thread(target=encode)
            thread.start()
            order.append("main")
            thread.join()
            orders.append(order)
            if order == ["begin", "main", "end"]:
                return
        pytest.fail(f"the GIL was never released in time: {orders}")
    finally:
        sys.setswitchinterval(interval)
