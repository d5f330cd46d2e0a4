"""Who is there: parts of the service say so in Redis, and /health/ready asks.

One sorted set a part: member is a process (`host:pid`), score the epoch second of its last word. Emptying Redis
costs one beat.
"""

from __future__ import annotations

import redis

from webapp import limits

WORKER = "worker"
RUNNER = "runner"
SWEEPER = "sweeper"


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
