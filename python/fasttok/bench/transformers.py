"""transformers: `apply_chat_template`, once a conversation, or once for each message, as masks are made today."""

# transformers is typed in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

# Read when transformers is imported: it would speak of PyTorch, which nothing here needs, and of forks.
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from transformers import AutoTokenizer, PreTrainedTokenizerFast
from transformers.convert_slow_tokenizer import TikTokenConverter

from fasttok.bench.chat_template import wrapper_variables
from fasttok.bench.contender import Contender, Job, Kind
from fasttok.bench.error import BenchError
from fasttok.bench.vocabulary import PATTERN, Vocabulary
from fasttok.bench.workload import Workload

PER_MESSAGE_SAMPLE = 5


def converted(vocabulary: Vocabulary, chat_template: str) -> PreTrainedTokenizerFast:
    """Kimi's vocabulary, put into a fast tokenizer by transformers' own converter."""

    class Converter(TikTokenConverter):
        # From a file it would read with tiktoken, which keeps a copy of every file it reads.
        @staticmethod
        def load_tiktoken_bpe(tiktoken_url: str) -> dict[bytes, int]:
            return vocabulary.ranks

    converter = Converter(pattern=PATTERN, extra_special_tokens=vocabulary.special_tokens)
    return PreTrainedTokenizerFast(tokenizer_object=converter.converted(), chat_template=chat_template)


def shipped(folder_or_id: str) -> Any:
    """The tokenizer of a folder or of the model hub as it is, with the Python code that comes with it."""
    try:
        return AutoTokenizer.from_pretrained(folder_or_id, trust_remote_code=True)
    # The code of a model may raise anything.
    except Exception as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise BenchError(f"--hf-model {folder_or_id}: transformers cannot load it: {reason}") from None


class ChatTemplate:
    """Calls `apply_chat_template` of one tokenizer. `template_name` is None for one that makes its own declarations."""

    def __init__(self, tokenizer: Any, template_name: str | None) -> None:
        self.apply_chat_template: Callable[..., object] = tokenizer.apply_chat_template
        self.template_name = template_name

    def ids(self, messages: Sequence[Any], tools: Sequence[Any] | None, **options: Any) -> list[int]:
        variables = wrapper_variables(self.template_name, tools) if self.template_name else {}
        result = self.apply_chat_template(
            messages, tools=tools, tokenize=True, **{"add_generation_prompt": False, **variables, **options}
        )
        # Kimi-K3's own tokenizer returns the list.
        found = cast("Mapping[str, list[int]]", result)["input_ids"] if isinstance(result, Mapping) else result
        return cast("list[int]", found)


class OneCall(Contender):
    label = "transformers"
    kind: Kind = "chats to ids"

    def __init__(self, workload: Workload, chat_template: ChatTemplate) -> None:
        super().__init__(workload)
        self.chat_template = chat_template

    def ids(self, index: int) -> Sequence[int]:
        conversation = self.workload.conversations[index]
        return self.chat_template.ids(conversation["messages"], conversation.get("tools"))

    def job(self, indices: Sequence[int], threads: int) -> Job:
        return lambda: [self.ids(index) for index in indices]


class CallPerMessage(OneCall):
    """A call for every prefix of the messages, which shows where each begins. The last one yields the whole."""

    label = "transformers, per message"

    def sample(self) -> Sequence[int]:
        """Those around the median in messages: the time grows with the square of their number."""
        by_messages = sorted(range(len(self.workload)), key=self.workload.messages)
        middle = max(0, (len(by_messages) - PER_MESSAGE_SAMPLE) // 2)
        return sorted(by_messages[middle : middle + PER_MESSAGE_SAMPLE])

    def job(self, indices: Sequence[int], threads: int) -> Job:
        conversations = [self.workload.conversations[index] for index in indices]

        def prefixes() -> None:
            for conversation in conversations:
                messages, tools = conversation["messages"], conversation.get("tools")
                for end in range(1, len(messages) + 1):
                    self.chat_template.ids(messages[:end], tools)

        return prefixes
