"""Exact sliding windows in Redis: requests per minute, sign-in failures, rows per hour.

Each question is one Lua script, so it is atomic over all threads, processes and machines, and one round trip.
Time is Redis' own. A window holds at most its limit in ANY span of its length:

- Requests: a list of the accepted ones' times, newest first. One more is accepted while fewer than the limit
  are younger than the window. `RATE_MARGIN_SECONDS` is added to the window, since a caller measures when the
  answers reach it, not when they were decided.
- Rows: one number per second. A second leaves the window when all of it is old, so never too early.

An accepted request is also counted under its hour and its caller, for the usage (`services.usage_hours`).

When Redis has been emptied, request windows begin anew; the rows of the hour are counted again from the audit
trail (`unknown`, then `seed_rows`). When Redis is away, `redis.RedisError` is raised to the caller.
"""

from __future__ import annotations

import hashlib
import os
import socket
import ssl
import struct
import threading
from dataclasses import dataclass
from typing import Any, Final

import redis
from redis.exceptions import NoScriptError

from webapp import limits

_SHORT: Final = 512  # bytes; the scripts answer with a few numbers


class Script:
    """A Lua script that answers with one text, its parts separated by blanks."""

    def __init__(self, source: str) -> None:
        self.source = source.encode()
        # How Redis names scripts; nothing depends on it being hard to forge.
        self.name = hashlib.sha1(self.source, usedforsecurity=False).hexdigest().encode()


class Wire:
    """Runs scripts on the Redis of a client, over one connection a thread."""

    def __init__(self, client: redis.Redis) -> None:
        self._pool = client.connection_pool
        self._local = threading.local()

    def run(self, script: Script, keys: list[str], args: list[str | int]) -> list[bytes]:
        """The parts of the script's answer. Raises redis.RedisError; a broken connection is renewed once."""
        tail = [b"%d" % len(keys), *(k.encode() for k in keys), *(str(a).encode() for a in args)]
        fresh = self._connection() is None
        try:
            answer = self._ask(script, tail)
        except (redis.ConnectionError, redis.TimeoutError):
            self._drop()
            if fresh:
                raise
            # Redis was restarted or an idle connection cut. Asked twice at worst, which counts once too often.
            answer = self._ask(script, tail)
        return answer.split(b" ")

    def _ask(self, script: Script, tail: list[bytes]) -> bytes:
        connection = self._connection() or self._connect()
        try:
            return _exchange(connection, _pack([b"EVALSHA", script.name, *tail]))
        except NoScriptError:
            return _exchange(connection, _pack([b"EVAL", script.source, *tail]))

    def _connection(self) -> Any:
        """This thread's connection, if it has one and it was made in this process."""
        held = getattr(self._local, "held", None)
        return held[1] if held is not None and held[0] == os.getpid() else None

    def _connect(self) -> Any:
        connection = self._pool.connection_class(**self._pool.connection_kwargs)
        connection.connect()
        _leave_timeout_to_kernel(connection._sock)
        self._local.held = (os.getpid(), connection)
        return connection

    def _drop(self) -> None:
        connection = self._connection()
        if connection is not None:
            connection.disconnect()
        self._local.held = None

    def close(self) -> None:
        """Close this thread's connection."""
        self._drop()


def _leave_timeout_to_kernel(sock: socket.socket) -> None:
    wait = sock.gettimeout()
    if not wait or isinstance(sock, ssl.SSLSocket):
        return
    span = struct.pack("ll", int(wait), int(wait % 1 * 1_000_000))  # struct timeval
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, span)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, span)
    sock.settimeout(None)


def _exchange(connection: Any, message: bytes) -> bytes:
    """Send a command, read the text that it answers with. Raises redis.RedisError."""
    sock = connection._sock
    if sock is None or isinstance(sock, ssl.SSLSocket):  # to be connected; has no short way
        connection.send_packed_command([message], check_health=False)
        return bytes(connection.read_response())
    try:
        sock.sendall(message)
        seen = sock.recv(_SHORT)
        while not _is_whole(seen):
            more = sock.recv(_SHORT)
            if not more:
                raise ConnectionError("the connection was closed")
            seen += more
    except OSError as error:
        connection.disconnect()  # an answer that comes late must not be taken for the next one's
        late = isinstance(error, BlockingIOError | TimeoutError)  # how the kernel, and Python, tell a timeout
        raise (redis.TimeoutError if late else redis.ConnectionError)(str(error)) from error
    head, _, text = seen.partition(b"\r\n")
    if head[:1] == b"-":
        raise connection._parser.parse_error(head[1:].decode(errors="replace"))
    return text[:-2]


def _is_whole(seen: bytes) -> bool:
    """Whether this is all of an answer, a text or an error. Raises OSError for what is neither."""
    head, _, text = seen.partition(b"\r\n")
    if head[:1] == b"$":
        return len(text) >= 2 and len(text) == int(head[1:]) + 2
    if head and head[:1] != b"-":
        raise ConnectionError("an answer that no script gives")
    return seen.endswith(b"\r\n")


def _pack(parts: list[bytes]) -> bytes:
    return b"*%d\r\n%b" % (len(parts), b"".join([b"$%d\r\n%b\r\n" % (len(part), part) for part in parts]))


# KEYS: log, epoch, counts. ARGV: expected epoch ("" = any), limit, window (us), caller ("" = do not count).
# -> 1 accepted | 0 refused | -1 the epoch is another; remaining; reset (us); now (us) as pushed
_ENTER_LUA: Final = """
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

# KEYS: rows by second (hash, `total` beside), seconds (list, newest first). ARGV: rows, limit, window (s).
# -> 1 taken | 0 refused | -1 unknown; total; the second taken in | the second at which it would fit
_TAKE_LUA: Final = """
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
  if here == want then  -- the second's first rows, or its first after all were given back
    if redis.call('LINDEX', KEYS[2], 0) ~= second then redis.call('LPUSH', KEYS[2], second) end
    redis.call('EXPIRE', KEYS[1], window + 60)
    redis.call('EXPIRE', KEYS[2], window + 60)
  end
end
return string.format('1 %.0f %.0f', total, now)
"""

_TIME_LUA: Final = "local time = redis.call('TIME')\n"
_ENTER = Script(_TIME_LUA + _ENTER_LUA)
_TAKE_ROWS = Script(_TIME_LUA + _TAKE_LUA)
# Both at once. KEYS and ARGV: of the first, then of the second. -> the first's answer; if accepted, the second's too.
_ENTER_AND_TAKE = Script(f"""{_TIME_LUA}
local function enter(KEYS, ARGV) {_ENTER_LUA} end
local function take(KEYS, ARGV) {_TAKE_LUA} end
local passed = enter({{KEYS[1], KEYS[2], KEYS[3]}}, {{ARGV[1], ARGV[2], ARGV[3], ARGV[4]}})
if string.sub(passed, 1, 2) ~= '1 ' then return passed end
return passed .. ' ' .. take({{KEYS[4], KEYS[5]}}, {{ARGV[5], ARGV[6], ARGV[7]}})
""")

# KEYS as above. ARGV: second, rows. -> rows given back: never more than that second still holds.
_GIVE_ROWS = Script("""
local held = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '0')
local back = math.min(held, tonumber(ARGV[2]))
if back <= 0 then return '0' end
local text = string.format('%.0f', -back)
redis.call('HINCRBY', KEYS[1], ARGV[1], text)
redis.call('HINCRBY', KEYS[1], 'total', text)
return string.format('%.0f', back)
""")

# KEYS as above. ARGV: window (s), then second, rows, ... oldest first. Does nothing where a count exists.
_SEED_ROWS = Script("""
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
""")


@dataclass(frozen=True, slots=True)
class Passage:
    """The answer to one request's question. `reset` is in seconds since 1970: when the next place comes free."""

    accepted: bool
    stale: bool  # the expected epoch is not the present one; nothing was counted
    limit: int
    remaining: int
    reset: float
    mark: bytes  # what `give_back` needs


@dataclass(frozen=True, slots=True)
class RowsAnswer:
    """The answer to a question for rows. `second` is where they were taken, or when they would fit."""

    state: str  # taken, refused, unknown
    used: int
    second: int


class Windows:
    """The scripts, on one Redis client."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._wire = Wire(client)

    def enter(
        self,
        log: str,
        limit: int,
        window: float,
        epoch_key: str = "",
        epoch: str = "",
        counted: tuple[str, str] | None = None,
    ) -> Passage:
        """Ask for one place in the window named `log`, if `epoch_key` still holds `epoch` ("" = do not ask). `counted`:
        under which key and field of the usage the request is counted."""
        key, field = counted or (log, "")
        told = self._wire.run(
            _ENTER, [log, epoch_key or log, key], [epoch, limit, int(window * 1_000_000), field]
        )
        return _passage(told, limit)

    def enter_and_take(
        self,
        log: str,
        limit: int,
        window: float,
        epoch_key: str,
        epoch: str,
        name: str,
        rows: int,
        most: int,
        counted: tuple[str, str] | None = None,
    ) -> tuple[Passage, RowsAnswer | None]:
        """`enter` and, where it accepts, `take_rows` of `name` (`rows` of `most` an hour), in one round trip."""
        key, field = counted or (log, "")
        told = self._wire.run(
            _ENTER_AND_TAKE,
            [log, epoch_key, key, *_rows_keys(name)],
            [epoch, limit, int(window * 1_000_000), field, rows, most, limits.ROWS_WINDOW_SECONDS],
        )
        return _passage(told, limit), _rows_answer(*told[4:]) if len(told) > 4 else None

    def give_back(self, log: str, passage: Passage) -> None:
        """Take one accepted passage out of its window."""
        self._client.lrem(log, 1, passage.mark)

    def take_rows(self, name: str, rows: int, limit: int) -> RowsAnswer:
        """Take `rows` of the hour's `limit`; all or nothing. `rows` 0 only asks."""
        told = self._wire.run(_TAKE_ROWS, _rows_keys(name), [rows, limit, limits.ROWS_WINDOW_SECONDS])
        return _rows_answer(*told)

    def ends(self, log: str, name: str, window: float) -> tuple[float | None, float | None, float | None]:
        """When all requests of `log` have left their window; when the first rows of `name` leave the hour, and when all
        have. In seconds since 1970; None where there is nothing to leave."""
        seconds = _rows_keys(name)[1]
        with self._client.pipeline(transaction=False) as asked:
            asked.lindex(log, 0)
            asked.lindex(seconds, -1)
            asked.lindex(seconds, 0)
            newest, oldest_row, newest_row = asked.execute()
        left = limits.ROWS_WINDOW_SECONDS + 1  # a second leaves when all of it is old
        return (
            int(newest) / 1e6 + window if newest else None,
            float(int(oldest_row) + left) if oldest_row else None,
            float(int(newest_row) + left) if newest_row else None,
        )

    def give_rows(self, name: str, second: int, rows: int) -> int:
        """Give unused rows back to the second they were taken in. Returns how many that second still held."""
        return int(self._wire.run(_GIVE_ROWS, _rows_keys(name), [second, rows])[0])

    def seed_rows(self, name: str, by_second: list[tuple[int, int]]) -> None:
        """Put the hour's rows back after Redis was emptied: `(second, rows)`, oldest first."""
        flat = [part for pair in by_second for part in pair]
        self._wire.run(_SEED_ROWS, _rows_keys(name), [limits.ROWS_WINDOW_SECONDS, *flat])

    def close(self) -> None:
        """Close this thread's connection to Redis."""
        self._wire.close()


_STATES: Final = {b"1": "taken", b"0": "refused", b"-1": "unknown"}


def _passage(told: list[bytes], limit: int) -> Passage:
    state, remaining, reset, mark = told[:4]
    return Passage(state == b"1", state == b"-1", limit, int(remaining), int(reset) / 1e6, mark)


def _rows_answer(state: bytes, used: bytes, second: bytes) -> RowsAnswer:
    return RowsAnswer(_STATES[state], int(used), int(second))


def _rows_keys(name: str) -> list[str]:
    return [f"{name}:by-second", f"{name}:seconds"]
