"""jinja2 and tiktoken, put together by hand: the chat template rendered, its text encoded."""

# A template's globals and filters carry no types.
# pyright: reportUnknownMemberType=false

import json
from collections.abc import Sequence
from typing import Any

from jinja2 import Template
from jinja2.sandbox import ImmutableSandboxedEnvironment

from fasttok.bench.chat_template import wrapper_variables
from fasttok.bench.contender import Contender, Job, Kind
from fasttok.bench.conversations import Conversation
from fasttok.bench.vocabulary import Vocabulary
from fasttok.bench.workload import Workload


def tojson(value: Any, separators: tuple[str, str] | None = None, sort_keys: bool = False) -> str:
    """Jinja's own filter escapes for HTML, so chat templates are written for this one."""
    return json.dumps(value, ensure_ascii=False, separators=separators, sort_keys=sort_keys)


def compiled(chat_template: str) -> Template:
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = tojson
    return environment.from_string(chat_template)


def rendered(template: Template, name: str, conversation: Conversation, **options: Any) -> str:
    tools = conversation.get("tools")
    # As transformers does before it renders.
    messages = [
        {key: value for key, value in message.items() if value is not None} for message in conversation["messages"]
    ]
    return template.render(messages=messages, tools=tools, **wrapper_variables(name, tools), **options)


class JinjaTiktoken(Contender):
    label = "jinja2 + tiktoken"
    kind: Kind = "chats to ids"

    def __init__(self, workload: Workload, vocabulary: Vocabulary, template_name: str, chat_template: str) -> None:
        # Only this needs it: a template renders without.
        from fasttok.bench.tiktoken import encoding

        super().__init__(workload)
        self.encoding = encoding(vocabulary)
        self.template_name = template_name
        self.template = compiled(chat_template)

    def ids(self, index: int) -> Sequence[int]:
        text = rendered(self.template, self.template_name, self.workload.conversations[index])
        return self.encoding.encode(text, allowed_special="all")

    def job(self, indices: Sequence[int], threads: int) -> Job:
        return lambda: [self.ids(index) for index in indices]
