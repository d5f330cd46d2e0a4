"""The rate limiter: a sliding rate limit window in Redis for each limit, such as requests per minute or rows per hour.

Each operation is one Lua script: one round trip, and atomic across threads, processes and machines. Time is Redis' own.
A window has at most its limit in any span of its length:

- Requests: a list of the times of accepted requests, newest first. Another request is accepted while fewer than the
  limit are younger than the window. `RATE_MARGIN_SECONDS` is added to the window because callers measure when
  responses arrive, not when they were decided.
- Rows: a counter per second. A second leaves the window when all of it is old, so never too early.

An accepted request is also counted for its hour and caller, for the usage page (`metering.hourly`).

When Redis has been emptied, request windows start empty, and the rows of the last hour are restored from the audit log
(state `unknown`, then `restore_rows`). While Redis is unavailable, `redis.RedisError` reaches the caller.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import redis

from webapp import limits

# Every script returns one text with numbers separated by spaces.

# KEYS: log, epoch, counts. ARGV: expected epoch ("" = any), limit, window (us), caller ("" = do not count).
# -> 1 accepted | 0 rejected | -1 the epoch has changed; remaining; reset (us); now (us) as pushed
_HIT_LUA: Final = """
local time = redis.call('TIME')
local epoch = false
if ARGV[1] ~= '' then
  epoch = redis.call('GET', KEYS[2])
  if epoch ~= ARGV[1] then return '-1 0 0 0' end
end
local limit, window = tonumber(ARGV[2]), tonumber(ARGV[3])
local now = time[1] * 1000000 + time[2]
local oldest = redis.call('LINDEX', KEYS[1], -1)
while oldest and tonumber(oldest) <= now - window do
  redis.call('RPOP', KEYS[1])
  oldest = redis.call('LINDEX', KEYS[1], -1)
end
local text = string.format('%.0f', now)
local used = redis.call('LPUSH', KEYS[1], text)
if used > limit then
  redis.call('LPOP', KEYS[1])
  local frees = redis.call('LINDEX', KEYS[1], limit > 0 and limit - 1 or 0)
  return string.format('0 0 %.0f 0', (frees or now) + window)
end
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', window / 1000 + 1000))
if ARGV[4] ~= '' then
  redis.call('HINCRBY', KEYS[3], string.format('%.0f|', math.floor(time[1] / 3600)) .. ARGV[4], 1)
end
return string.format('1 %d %.0f %s', limit - used, (oldest or now) + window, text)
"""

# KEYS: rows by second (hash, with their `total`), seconds (list, newest first). ARGV: rows, limit, window (s).
# -> 1 reserved | 0 exceeded | -1 unknown; total; the second of the reservation | the second at which it would fit
_RESERVE_ROWS_LUA: Final = """
local time = redis.call('TIME')
local total = tonumber(redis.call('HGET', KEYS[1], 'total') or '-1')
if total < 0 then return '-1 0 0' end
local want, limit, window = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local now = tonumber(time[1])
local oldest, before = redis.call('LINDEX', KEYS[2], -1), total
while oldest and tonumber(oldest) + window < now do
  total = total - tonumber(redis.call('HGET', KEYS[1], oldest) or '0')
  redis.call('HDEL', KEYS[1], oldest)
  redis.call('RPOP', KEYS[2])
  oldest = redis.call('LINDEX', KEYS[2], -1)
end
if total ~= before then redis.call('HSET', KEYS[1], 'total', string.format('%.0f', total)) end
if total + want > limit then
  local left, at, when = total, -1, now + window + 1
  while want <= limit do
    local second = redis.call('LINDEX', KEYS[2], at)
    if not second then break end
    left = left - tonumber(redis.call('HGET', KEYS[1], second) or '0')
    when = tonumber(second) + window + 1
    if left + want <= limit then break end
    at = at - 1
  end
  return string.format('0 %.0f %.0f', total, when)
end
if want > 0 then
  local second = tostring(now)
  local here = redis.call('HINCRBY', KEYS[1], second, ARGV[1])
  total = total + want
  redis.call('HSET', KEYS[1], 'total', string.format('%.0f', total))
  if here == want then  -- the second's first rows, or its first after all were returned
    if redis.call('LINDEX', KEYS[2], 0) ~= second then redis.call('LPUSH', KEYS[2], second) end
    redis.call('EXPIRE', KEYS[1], window + 60)
    redis.call('EXPIRE', KEYS[2], window + 60)
  end
end
return string.format('1 %.0f %.0f', total, now)
"""

# KEYS as above. ARGV: second, rows. -> rows returned: at most what is still counted for that second.
_RETURN_ROWS_LUA: Final = """
local held = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '0')
local back = math.min(held, tonumber(ARGV[2]))
if back <= 0 then return '0' end
local text = string.format('%.0f', -back)
redis.call('HINCRBY', KEYS[1], ARGV[1], text)
redis.call('HINCRBY', KEYS[1], 'total', text)
return string.format('%.0f', back)
"""

# KEYS as above. ARGV: window (s), then second, rows, ... oldest first. Does nothing if there is a count.
_RESTORE_ROWS_LUA: Final = """
if redis.call('HEXISTS', KEYS[1], 'total') == 1 then return '0' end
redis.call('DEL', KEYS[1], KEYS[2])
local total = 0
for i = 2, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
  redis.call('LPUSH', KEYS[2], ARGV[i])
  total = total + tonumber(ARGV[i + 1])
end
redis.call('HSET', KEYS[1], 'total', string.format('%.0f', total))
redis.call('EXPIRE', KEYS[1], ARGV[1] + 60)
redis.call('EXPIRE', KEYS[2], ARGV[1] + 60)
return '1'
"""


@dataclass(frozen=True, slots=True)
class RateLimitResult:
    """The result of counting one request. `reset`: when the next request is possible, in seconds since 1970."""

    accepted: bool
    stale: bool  # the epoch is not the expected one; nothing was counted
    limit: int
    remaining: int
    reset: float
    member: bytes  # identifies the request for `undo_hit`


@dataclass(frozen=True, slots=True)
class RowsResult:
    """The result of reserving rows. `second`: of the reservation, or when the rows would fit."""

    state: str  # reserved, exceeded, unknown
    used: int
    second: int


class RateLimiter:
    """The sliding windows of one Redis."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._hit = client.register_script(_HIT_LUA)
        self._reserve_rows = client.register_script(_RESERVE_ROWS_LUA)
        self._return_rows = client.register_script(_RETURN_ROWS_LUA)
        self._restore_rows = client.register_script(_RESTORE_ROWS_LUA)

    def hit(
        self,
        log: str,
        limit: int,
        window: float,
        epoch_key: str = "",
        epoch: str = "",
        usage: tuple[str, str] | None = None,
    ) -> RateLimitResult:
        """Count one request in the window `log`, unless `epoch_key` no longer has the value `epoch` ("": not compared).
        `usage`: the key and field under which the request is counted for the usage page."""
        usage_key, field = usage or (log, "")
        state, remaining, reset, mark = _run(
            self._hit, [log, epoch_key or log, usage_key], [epoch, limit, int(window * 1_000_000), field]
        )
        return RateLimitResult(state == b"1", state == b"-1", limit, int(remaining), int(reset) / 1e6, mark)

    def undo_hit(self, log: str, result: RateLimitResult) -> None:
        """Remove one accepted request from its window."""
        self._client.lrem(log, 1, result.member)  # type: ignore[arg-type]  # bytes are accepted as well

    def reserve_rows(self, name: str, rows: int, limit: int) -> RowsResult:
        """Reserve `rows` of the hour's `limit`, all or none. With 0 rows, return only how many are used."""
        state, used, second = _run(
            self._reserve_rows, _rows_keys(name), [rows, limit, limits.ROWS_WINDOW_SECONDS]
        )
        return RowsResult(_STATES[state], int(used), int(second))

    def reset_times(
        self, log: str, name: str, window: float
    ) -> tuple[float | None, float | None, float | None]:
        """Return when all requests of `log` have left their window, when the first rows of `name` leave the hour, and
        when all of them have left it. In seconds since 1970; None if nothing is counted."""
        seconds = _rows_keys(name)[1]
        with self._client.pipeline(transaction=False) as pipeline:
            pipeline.lindex(log, 0)
            pipeline.lindex(seconds, -1)
            pipeline.lindex(seconds, 0)
            newest, oldest_row, newest_row = pipeline.execute()
        window_seconds = limits.ROWS_WINDOW_SECONDS + 1  # a second leaves the window when all of it is old
        return (
            int(newest) / 1e6 + window if newest else None,
            float(int(oldest_row) + window_seconds) if oldest_row else None,
            float(int(newest_row) + window_seconds) if newest_row else None,
        )

    def return_rows(self, name: str, second: int, rows: int) -> int:
        """Return unused rows to the second in which they were reserved. Return how many were still counted there."""
        return int(_run(self._return_rows, _rows_keys(name), [second, rows])[0])

    def restore_rows(self, name: str, by_second: list[tuple[int, int]]) -> None:
        """Restore the rows of the last hour after Redis was emptied: `(second, rows)`, oldest first."""
        arguments = [number for pair in by_second for number in pair]
        _run(self._restore_rows, _rows_keys(name), [limits.ROWS_WINDOW_SECONDS, *arguments])


_STATES: Final = {b"1": "reserved", b"0": "exceeded", b"-1": "unknown"}


def _run(script: Any, keys: list[str], args: list[str | int]) -> list[bytes]:
    """Run a script. Raises redis.RedisError.

    A lost connection (Redis restarted, an idle connection closed) is retried once. At worst one request counts twice.
    """
    try:
        result = script(keys, args)
    except redis.ConnectionError:
        result = script(keys, args)
    parts: list[bytes] = result.split(b" ")
    return parts


def _rows_keys(name: str) -> list[str]:
    return [f"{name}:by-second", f"{name}:seconds"]
