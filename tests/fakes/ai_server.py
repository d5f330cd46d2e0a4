"""A model behind OpenAI's chat API, with every quirk we heard of: `/v1/models` and `/v1/chat/completions`.

    with AiServer() as server:
        server.quirks.append(fenced)            # in this order, one for each answer; then it behaves
        server.refuses = {"json_schema"}        # response formats that it answers with 400
        ...
        assert len(server.asked) == 3

It writes "text 1", "text 2" and so on, and similar values for other types, so that all values are different.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from tests.fakes.echo_target import Answer, EchoTarget, Seen, busy

Quirk = Callable[["Chat"], Answer | str]
"""What is answered in place of what would be: an HTTP answer, or another text of the message."""


@dataclass
class Chat:
    """One request, read."""

    body: dict[str, Any]
    prompts: dict[int, str] = field(default_factory=dict)
    """Prompts by their ids."""
    rows: list[dict[str, Any]] = field(default_factory=list)
    """What a good answer holds."""

    @property
    def format(self) -> str:
        return self.body.get("response_format", {}).get("type", "none")

    @property
    def user(self) -> str:
        return self.body["messages"][-1]["content"]

    @property
    def good(self) -> str:
        return json.dumps({"rows": self.rows})


class AiServer(EchoTarget):
    """See the module. `key`: the bearer token that is wanted; None takes everybody."""

    def __init__(self, models: tuple[str, ...] = ("small", "large"), key: str | None = None) -> None:
        super().__init__()
        self.models, self.key = models, key
        self.quirks: list[Quirk] = []
        self.refuses: set[str] = set()
        self.counts_tokens = True
        self.replies: list[str] = []
        """Texts for requests that are not about rows, one after the other; the last one repeats."""
        self.asked: list[Chat] = []
        self._numbers = itertools.count(1)
        self._turn = threading.Lock()
        self.on("/v1/models", self._listed)
        self.on("/v1/chat/completions", self._chat)

    @property
    def base_url(self) -> str:
        return self.url("/v1")

    def settings(self, **more: Any) -> dict[str, Any]:
        """Settings of a connection to it, whose retries do not wait."""
        quick = {"timeout_seconds": 5, "retries": 2, "backoff_seconds": [0]}
        return {"base_url": self.base_url, "model": "small", "retry": quick, **more}

    def _refused(self, seen: Seen) -> Answer | None:
        if self.key is None or seen.headers.get("authorization") == f"Bearer {self.key}":
            return None
        value = seen.headers.get("authorization", "")
        return Answer(401, {"error": {"message": f"Incorrect API key provided: {value}", "type": "auth"}})

    def _listed(self, seen: Seen) -> Answer:
        data = [{"id": name, "object": "model"} for name in self.models]
        return self._refused(seen) or Answer(200, {"object": "list", "data": data})

    def _chat(self, seen: Seen) -> Answer:
        refused = self._refused(seen)
        if refused:
            return refused
        with self._turn:
            chat = self._read(seen.json)
            self.asked.append(chat)
            if chat.format in self.refuses:
                return Answer(400, {"error": {"message": f"response_format {chat.format} is not supported"}})
            if chat.body["model"] not in self.models:
                return Answer(404, {"error": {"message": f"model {chat.body['model']} not found"}})
            if chat.prompts:
                text: Answer | str = self.quirks.pop(0)(chat) if self.quirks else chat.good
            elif self.quirks and not self.replies:
                text = self.quirks.pop(0)(chat)
            else:
                text = (
                    (self.replies.pop(0) if len(self.replies) > 1 else self.replies[0])
                    if self.replies
                    else "ready"
                )
        return text if isinstance(text, Answer) else self.completion(chat, text)

    def _read(self, body: dict[str, Any]) -> Chat:
        chat = Chat(body)
        found = re.search(r'^\{"prompts":.*\}$', chat.user, re.M)
        for prompt in json.loads(found[0])["prompts"] if found else ():
            chat.prompts |= dict.fromkeys(prompt["ids"], prompt["prompt"])
        chat.rows = [{"id": number, "value": self._value(chat.user)} for number in sorted(chat.prompts)]
        return chat

    def _value(self, asked: str) -> Any:
        number = next(self._numbers)
        choices = re.search(r"exactly one of: (\[.*\])\.", asked)
        if choices:
            known = json.loads(choices[1])
            return known[number % len(known)]
        if "a whole number" in asked:
            return number
        if "a number with" in asked:
            return number + 0.25
        if "true or false" in asked:
            return bool(number % 2)
        if "a date" in asked:
            return (date(2026, 1, 1) + timedelta(days=number)).isoformat()
        return f"text {number}"

    def completion(self, chat: Chat, text: Any, finish: str = "stop") -> Answer:
        body = {
            "object": "chat.completion",
            "choices": [
                {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text}}
            ],
        }
        if self.counts_tokens:
            body["usage"] = {"prompt_tokens": 1_000, "completion_tokens": 100}
        return Answer(200, body)


# --- Quirks -----------------------------------------------------------------------------------------------


def fenced(chat: Chat) -> str:
    return f"Here you are:\n```json\n{chat.good}\n```\nAnything else?"


def thinking(chat: Chat) -> str:
    return f'<think>Maybe {{"rows": [{{"id": 1, "value": "a thought"}}]}}?</think>{chat.good}'


def broken(chat: Chat) -> str:
    return "I am sorry, {I cannot write [JSON"


def cut_off(chat: Chat) -> str:
    """The last row is not whole."""
    return chat.good[: chat.good.rindex('"value"')]


def too_few(chat: Chat) -> str:
    return json.dumps({"rows": chat.rows[:1]})


def too_many(chat: Chat) -> str:
    more = [{"id": number, "value": "one more"} for number in (0, len(chat.rows) + 1)]
    return json.dumps({"rows": [*more, *chat.rows, {"id": 1, "value": "a second answer"}]})


def backwards(chat: Chat) -> str:
    return json.dumps({"rows": chat.rows[::-1]})


def plain_list(chat: Chat) -> str:
    return json.dumps([row["value"] for row in chat.rows])


def wrong_types(chat: Chat) -> str:
    return json.dumps({"rows": [{"id": row["id"], "value": {"is": "an object"}} for row in chat.rows]})


def nothing(chat: Chat) -> Answer:
    return Answer(200, {"choices": [{"message": {"role": "assistant", "content": None, "refusal": "No."}}]})


def html(chat: Chat) -> Answer:
    return Answer(200, "<!doctype html><title>Sign in</title>", {"Content-Type": "text/html"})


def stream(chat: Chat) -> Answer:
    return Answer(
        200,
        'data: {"choices":[{"delta":{"content":"x"}}]}\n\ndata: [DONE]\n',
        {"Content-Type": "text/event-stream"},
    )


def throttled(after: str | int = 0) -> Quirk:
    return lambda chat: busy(after)


def slow(seconds: float) -> Quirk:
    return lambda chat: Answer(200, {}, delay=seconds)


def says(*values: Any) -> Quirk:
    """These values, in the order of the ids."""
    return lambda chat: json.dumps(
        {"rows": [{"id": n, "value": value} for n, value in zip(sorted(chat.prompts), values, strict=False)]}
    )
