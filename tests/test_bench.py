"""`fasttok-bench`: its chat templates against the golden cases, what it times, and what it says."""

# transformers is typed in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import gzip
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import zstandard

from fasttok import Encoder
from fasttok.bench import main, peers, scaling, timing
from fasttok.bench.chat_template import chat_template, known_templates, wrapper_variables
from fasttok.bench.command import bench
from fasttok.bench.comparison import Comparison, timed_comparison
from fasttok.bench.contender import Contender, Job, Kind
from fasttok.bench.conversations import EXAMPLES, read_conversations
from fasttok.bench.encoder import Fasttok
from fasttok.bench.error import BenchError
from fasttok.bench.jinja2 import compiled, rendered
from fasttok.bench.progress import Steps
from fasttok.bench.vocabulary import RANKS, Vocabulary
from fasttok.bench.workload import Workload

GOLDEN = Path(__file__).parent / "golden"
CHATS: list[dict[str, Any]] = [
    {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]},
    {
        "messages": [
            {"role": "user", "content": "list the files"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "functions.ls:0", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
                ],
            },
            {"role": "tool", "tool_call_id": "functions.ls:0", "content": "a.txt"},
        ],
        "tools": [{"type": "function", "function": {"name": "ls", "parameters": {"type": "object", "properties": {}}}}],
    },
]

HAS_MATPLOTLIB = find_spec("matplotlib") is not None
INSTALLED = {module for modules in peers.PEERS.values() for module in modules if find_spec(module)}

Case = dict[str, Any]


def golden_cases() -> Iterator[Case]:
    """Those with the text and ids of a template that is here in Jinja."""
    for name in known_templates():
        for path in sorted((GOLDEN / name).glob("*.json")):
            yield {**json.loads(path.read_text(encoding="utf-8")), "model": name}
    with gzip.open(GOLDEN / "fuzz.jsonl.gz", "rt", encoding="utf-8") as file:
        for case in map(json.loads, file):
            name = case["model"].lower().removesuffix("-instruct")
            if name in known_templates():
                yield {**case, "model": name}


CASES = [case for case in golden_cases() if not {"error", "fasttok_error", "fasttok_text"} & case.keys()]


def without(*modules: str) -> Callable[[str], object]:
    """`find_spec` where these are not installed."""
    return lambda module: None if module in modules else find_spec(module)


@pytest.fixture(autouse=True)
def one_pass_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """No figure of these tests is looked at."""
    monkeypatch.setattr(timing, "LEAST_SECONDS", 0)


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    path = tmp_path / "chats.jsonl"
    path.write_text("".join(json.dumps(chat) + "\n" for chat in CHATS))
    return path


@pytest.fixture(scope="module")
def workload(encoder: Encoder) -> Workload:
    return Workload.of(encoder, CHATS)


def test_no_case_is_lost() -> None:
    assert known_templates() == ["kimi-k2", "kimi-k2-thinking", "kimi-k2.5", "kimi-k2.6", "kimi-k2.7-code"]
    assert len(CASES) >= 1438


@pytest.mark.parametrize("name", known_templates())
def test_the_templates_render_what_the_models_render(name: str) -> None:
    template = compiled(chat_template(name) or "")
    for case in CASES:
        if case["model"] == name:
            # The spellings of reasoning are transformers' business, which gives them all one name.
            messages = [with_reasoning_content(message) for message in case["messages"]]
            text = rendered(template, name, {**case, "messages": messages}, **(case.get("options") or {}))
            assert text == case["text"], case["case"]


def with_reasoning_content(message: dict[str, Any]) -> dict[str, Any]:
    found = (message.get(key) for key in ("reasoning_content", "thinking", "reasoning"))
    reasoning = next((text for text in found if text is not None), None)
    return message if reasoning is None else {**message, "reasoning_content": reasoning}


@pytest.fixture(scope="module")
def hf_tokenizer(encoder: Encoder, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Encoder], Any]:
    """A conversion takes seconds, and the vocabularies differ in the names of special tokens alone."""
    pytest.importorskip("transformers", reason="transformers is not installed")
    from tokenizers import AddedToken, Tokenizer
    from transformers import PreTrainedTokenizerFast

    from fasttok.bench.transformers import converted

    first = converted(Vocabulary(encoder.tokenizer, tmp_path_factory.mktemp("vocabulary")), "")
    backend: Any = first.backend_tokenizer
    made: dict[tuple[str, ...], Any] = {tuple(encoder.tokenizer.special_tokens): first}

    def tokenizer_of(other: Encoder) -> Any:
        key = tuple(other.tokenizer.special_tokens)
        if key not in made:
            names = [other.tokenizer.decode([token]) for token in range(RANKS, len(other.tokenizer))]
            twin = Tokenizer(backend.model)
            twin.pre_tokenizer = backend.pre_tokenizer
            twin.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in names])
            made[key] = PreTrainedTokenizerFast(tokenizer_object=twin)
        made[key].chat_template = chat_template(other.template)
        return made[key]

    return tokenizer_of


def test_transformers_yields_the_ids_of_the_models(
    encoders: dict[str, Encoder], hf_tokenizer: Callable[[Encoder], Any]
) -> None:
    from fasttok.bench.transformers import ChatTemplate

    for case in CASES:
        name = case["model"]
        template = ChatTemplate(hf_tokenizer(encoders[name]), name)
        ids = template.ids(case["messages"], case.get("tools"), **(case.get("options") or {}))
        assert ids == case["input_ids"], (name, case["case"])


def test_a_schema_without_a_typescript_form_is_declared_as_json() -> None:
    schema: dict[str, Any] = {"properties": {"a": {"oneOf": []}}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    assert wrapper_variables("kimi-k2.5", tools) == {"declaration": None}
    assert wrapper_variables("kimi-k2", tools) == {}


def test_the_examples_in_the_package_are_the_examples() -> None:
    assert EXAMPLES.read_bytes() == (Path(__file__).parents[1] / "examples" / "trajectories.jsonl").read_bytes()


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress], ids=["plain", "gzip", "zstd"])
def test_conversations_are_read_plain_and_compressed(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(pack(b"\n".join(json.dumps(chat).encode() for chat in CHATS)))
    assert read_conversations(path) == CHATS


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "{path}: expected conversations, one a line, found an empty file"),
        (b'{"messages": []}\n{', "{path}:2: expected JSON: "),
        (b"5", '{path}:1: expected an object with a list of "messages"'),
        (gzip.compress(b"[]")[:-9], "{path}: "),
        (zstandard.compress(b"[]")[:5], "{path}: "),
    ],
)
def test_data_that_cannot_be_read_is_one_line_with_its_place(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_bytes(content)
    with pytest.raises(BenchError) as raised:
        read_conversations(path)
    assert str(raised.value).startswith(message.format(path=path))


def test_the_whole_command(
    chats: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    encoder: Encoder,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With whatever libraries there are."""
    if "transformers" in INSTALLED:
        # `.ci/run` runs the command with the conversion in it.
        tokenizer = request.getfixturevalue("hf_tokenizer")(encoder)

        def converted(vocabulary: Vocabulary, template: str) -> Any:
            return tokenizer

        monkeypatch.setattr("fasttok.bench.transformers.converted", converted)
    report, chart = tmp_path / "report.json", tmp_path / "chart.svg"
    picture = ["--plot", str(chart)] if HAS_MATPLOTLIB else []
    options = ["--data", str(chats), "--rounds", "1", "--threads", "1", "--json", str(report)]
    capfd.readouterr()
    assert main([*options, *picture]) == 0
    output, errors = capfd.readouterr()
    steps = ("loading the libraries", "comparing ids with ", "timing, 1 round")
    assert all(line.startswith(steps) for line in errors.splitlines()), errors
    assert "  fasttok " in output
    figures = json.loads(report.read_text())
    assert figures["data"]["conversations"] == 2
    assert figures["machine"]["cores"] >= 1
    assert set(figures["machine"]["versions"]) >= {"fasttok", "numpy"}
    named = {one["name"] for one in (*figures["timed"], *figures["not_timed"])}
    assert named == {"fasttok", *peers.PEERS}
    for one in figures["timed"]:
        assert len(one["seconds"]) == 1
        assert one["seconds"][0] > 0
        assert one["bytes"] / one["seconds"][0] / 1e6 == pytest.approx(one["megabytes_per_second"]["median"])
    for one in figures["not_timed"]:
        assert f"{one['name']}: {one['reason']}" in output
        assert one["reason"].startswith("not installed: pip install ")
    assert not any(figures["differences"].values())
    if picture:
        assert "<svg" in chart.read_text()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


class Fake(Contender):
    """Has the ids of fasttok, but for some conversations."""

    label = "fake"
    kind: Kind = "rendered text to ids"

    def __init__(self, workload: Workload, wrong: Sequence[int], broken: Sequence[int] = ()) -> None:
        super().__init__(workload)
        self.wrong = wrong
        self.broken = broken
        self.timed: list[int] = []

    def ids(self, index: int) -> list[int]:
        if index in self.broken:
            raise RuntimeError("no such thing\nas the second line")
        ids: list[int] = self.workload.ids[index].tolist()
        return [*ids[:3], 0, *ids[4:]] if index in self.wrong else ids

    def job(self, indices: Sequence[int], threads: int) -> Job:
        return lambda: self.timed.extend(indices)


def compared(workload: Workload, encoder: Encoder, fake: Fake, threads: Sequence[int] = (1,)) -> Comparison:
    return timed_comparison(workload, Fasttok(workload, encoder), {"fake": fake}, [], threads, 1, Steps(None))


def test_a_conversation_with_other_ids_is_shown_and_not_timed(workload: Workload, encoder: Encoder) -> None:
    fake = Fake(workload, wrong=[1])
    comparison = compared(workload, encoder, fake)
    assert str(comparison.equality["fake"]) == (
        "1 of 2 conversations differ (the first: conversations[1], token 3), not timed"
    )
    assert set(fake.timed) == {0}
    row = next(one for one in comparison.timed if one.name == "fake")
    assert row.size == workload.sizes[0]
    assert row.reference is not None
    assert list(row.reference.indices) == [0]
    assert [list(one.indices) for one in comparison.timed if one.name == "fasttok"] == [[0, 1], [0, 1]]


def test_what_differs_more_often_than_not_has_no_row(workload: Workload, encoder: Encoder) -> None:
    fake = Fake(workload, wrong=[0], broken=[1])
    comparison = compared(workload, encoder, fake)
    assert {one.name for one in comparison.timed} == {"fasttok"}
    assert fake.timed == []
    assert str(comparison.equality["fake"]).endswith("nothing is timed")
    assert comparison.equality["fake"].differences[1].error == "RuntimeError: no such thing"


def test_what_has_one_thread_is_named_if_only_more_are_asked_for(workload: Workload, encoder: Encoder) -> None:
    comparison = compared(workload, encoder, Fake(workload, wrong=[]), threads=[2])
    assert list(comparison.not_timed) == [("fake", "with 2 threads: one thread only")]


def test_a_library_that_is_missing_is_named_with_the_command_that_installs_it(
    chats: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "find_spec", without("splintr", "jinja2", "tiktoken"))
    options = ["--data", str(chats), "--rounds", "1", "--threads", "1"]
    assert main([*options, "--against", "splintr,jinja-tiktoken"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "splintr: not installed: pip install splintr-rs" in lines
    assert "jinja-tiktoken: not installed: pip install jinja2 tiktoken" in lines


@pytest.mark.skipif(
    find_spec("transformers") is None or find_spec("tiktoken") is None,
    reason="transformers or tiktoken is not installed",
)
def test_a_model_without_a_jinja_template_is_named(chats: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--data", str(chats), "--rounds", "1", "--threads", "1", "--model", "kimi-k3"]
    assert main([*options, "--against", "hf,jinja-tiktoken,tiktoken"]) == 0
    output = capsys.readouterr().out
    assert "hf: there is no chat template in Jinja for kimi-k3, but for kimi-k2, " in output
    assert "jinja-tiktoken: there is no chat template" in output
    assert "  tiktoken " in output


def test_a_tokenizer_as_it_is_shipped_and_its_curves(
    chats: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    encoders: dict[str, Encoder],
    hf_tokenizer: Callable[[Encoder], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hf_tokenizer(encoders["kimi-k2"]).save_pretrained(tmp_path / "shipped")
    monkeypatch.setattr(scaling, "MESSAGES", (8, 16, 32, 64))
    picture = ["--plot", str(tmp_path / "curves.png")] if HAS_MATPLOTLIB else []
    shipped = ["--model", "kimi-k2", "--hf-model", str(tmp_path / "shipped"), "--json", str(tmp_path / "curves.json")]
    options = ["--scaling", "--budget", "0.1", "--rounds", "1", "--data", str(chats)]
    assert main([*options, *shipped, *picture]) == 0
    output = capsys.readouterr().out
    assert "transformers, per message: stopped before " in output
    assert "differ" not in output
    figures = json.loads((tmp_path / "curves.json").read_text())
    assert [size["messages"] for size in figures["sizes"]] == [8, 16, 32, 64]
    assert [one["messages"] for one in figures["timed"] if one["name"] == "fasttok"] == [8, 16, 32, 64]
    if picture:
        assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--against", "hf,other"], "expected names out of hf, hf-per-message, jinja-tiktoken, tiktoken, gigatoken, "),
        (["--against", ""], "expected names out of hf, "),
        (["--threads", "1,0"], "expected numbers from 1 to 256, as in 1,2, found '0'"),
        (["--threads", "two"], "expected numbers from 1 to 256, as in 1,2, found 'two'"),
        (["--plot", "chart.gif"], "expected a name that ends with .svg, .png, .pdf, found 'chart.gif'"),
        (["--json", "no/such/folder/out.json"], "--json: there is no folder no/such/folder"),
        (["--json", "."], "--json: expected a file, found the folder ."),
        (["--json", os.devnull], f"--json: expected a file, found something else at {os.devnull}"),
        (["--json", "a.svg", "--plot", "a.svg"], "--json and --plot: expected two files, found a.svg twice"),
        (["--data", __file__, "--json", __file__], f"--json: {__file__} holds the conversations"),
        (["--threads", "1" * 5000], "expected numbers from 1 to 256, as in 1,2, found '1"),
        (["--model", "no\udcff"], r"expected UTF-8, found 'no\udcff'"),
        (["--scaling", "--threads", "1"], "--scaling has no --against and no --threads"),
        (["--model", "kimi-9"], "unknown model `kimi-9`: "),
        (["--data", "no-such-file"], "No such file or directory: 'no-such-file'"),
        (["--other"], "No such option: --other"),
    ],
)
def test_what_is_wrong_is_one_line(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(options) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert message in captured.err
    assert captured.err.count("\n") == 1


def test_a_chart_without_matplotlib_is_refused_before_anything_is_timed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[bench.__module__], "find_spec", without("matplotlib"))
    assert main(["--plot", str(tmp_path / "chart.svg")]) == 2
    assert capsys.readouterr().err == "error: --plot needs matplotlib: pip install matplotlib\n"


def test_a_conversation_that_cannot_be_encoded_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"messages": [{"role": "user", "content": 5}]}')
    assert main(["--data", str(path)]) == 2
    assert capsys.readouterr().err.startswith(f"error: {path}: conversations[0].messages[0].content: expected ")


def test_conversations_that_the_model_cannot_read_are_left_out_and_named(
    chats: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with chats.open("a") as file:
        file.write('\n{"messages": [{"role": "user", "content": 5}]}')
    assert main(["--data", str(chats), "--against", "tiktoken", "--threads", "1", "--rounds", "1"]) == 0
    assert (
        "left out: 1 of 3 conversations; the first is conversations[2].messages[0].content: " in capsys.readouterr().out
    )


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
@pytest.mark.usefixtures("heeded_ctrl_c")
def test_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    options = ["--rounds", "100000", "--threads", "1", "--against", "tiktoken", "--json", "out.json"]
    command = [sys.executable, "-m", "fasttok.bench", *options]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("timing"):
                break
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 130
    assert rest.strip() == "stopped; nothing was written"
    assert list(tmp_path.iterdir()) == []


def test_importing_fasttok_imports_none_of_this() -> None:
    script = (
        "import sys, fasttok, fasttok.cli\n"
        "print([name for name in sys.modules if name.startswith(('fasttok.bench', 'transformers', 'matplotlib'))])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout == "[]\n"
