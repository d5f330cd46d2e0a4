"""Who is there: parts of the service say so in Redis, and /health/ready asks.

One sorted set a part: member is a process (`host:pid`), score the epoch second of its last word. Emptying Redis
costs one beat.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import redis

from webapp import limits

WORKER = "worker"
RUNNER = "runner"
SWEEPER = "sweeper"
WEB = "web"
"""Web processes, where they count for /metrics."""


def process_name() -> str:
    """This process, for people: `host:pid`."""
    return f"{socket.gethostname()}:{os.getpid()}"


@dataclass(frozen=True, slots=True)
class Process:
    """One that beats: `seen` is the epoch second of its last beat, `about` what it says of itself: `since` (epoch
    seconds), and while it works `kind`, `id` and `at`, when it took that up."""

    part: str
    host: str
    pid: str
    seen: float
    about: Mapping[str, Any]


def _key(part: str) -> str:
    return f"rowsmith:alive:{part}"


def beat(client: redis.Redis, part: str, process: str, now: float) -> None:
    """Say that `process` of `part` is there, and forget those not heard of for long. `now` is epoch seconds."""
    with client.pipeline() as pipe:
        pipe.zadd(_key(part), {process: now})
        pipe.zremrangebyscore(_key(part), "-inf", now - limits.WORKER_SEEN_SECONDS)
        pipe.execute()


def gone(client: redis.Redis, part: str, process: str) -> None:
    """Say that `process` has ended."""
    client.zrem(_key(part), process)


def tell(client: redis.Redis, part: str, process: str, word: str) -> None:
    """Say something of a process beside its beat, which keeps the word as long as the beat is young."""
    client.set(f"{_key(part)}:{process}", word, ex=limits.WORKER_SEEN_SECONDS)


def told(client: redis.Redis, part: str, since: float) -> list[str]:
    """What the living processes of a part say of themselves, each word once, in order."""
    processes = client.zrangebyscore(_key(part), since, "+inf")
    words = client.mget([f"{_key(part)}:{process.decode()}" for process in processes]) if processes else []
    return sorted({word.decode() for word in words if word is not None})


def alive(client: redis.Redis, part: str, since: float) -> int:
    """How many processes of `part` spoke at or after `since` (epoch seconds). RedisError when Redis cannot be asked.

    Readiness asks for those of the last WORKER_SEEN_SECONDS.
    """
    return int(client.zcount(_key(part), since, "+inf"))


def describe(client: redis.Redis, part: str, process: str, about: Mapping[str, Any]) -> None:
    """Say what a process does, beside its beat; see `Process`."""
    client.set(f"{_key(part)}:{process}:about", orjson.dumps(about), ex=limits.WORKER_SEEN_SECONDS)


def processes(client: redis.Redis, part: str, since: float) -> list[Process]:
    """The processes of a part that spoke at or after `since`, by name. RedisError when Redis cannot be asked."""
    found = sorted(
        (name.decode(), score)
        for name, score in client.zrangebyscore(_key(part), since, "+inf", withscores=True)
    )
    said = client.mget([f"{_key(part)}:{name}:about" for name, _ in found]) if found else []
    out = []
    for (name, score), about in zip(found, said, strict=True):
        host, _, pid = name.rpartition(":")
        out.append(Process(part, host, pid, float(score), orjson.loads(about) if about else {}))
    return out
