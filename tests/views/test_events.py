"""Followers of a long piece of work: every state once, a sign of life in between, always an end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import orjson

from webapp import limits
from webapp.exports.services import ExportState
from webapp.web import events


def at(rows: int, status: str = "running", attempt: int = 1) -> ExportState:
    return ExportState(status, attempt, rows, 100, None, None, None)


@dataclass
class Time:
    """A clock that moves only by being waited on."""

    now: float = 0.0
    waits: list[float] = field(default_factory=list)

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    def __call__(self) -> float:
        return self.now


def told(states: list[ExportState | None], last_seen: str = "", time: Time | None = None) -> list[bytes]:
    looks: Iterator[ExportState | None] = iter(states)
    time = time or Time()
    return list(events.progress_events(lambda: next(looks), last_seen, wait=time.wait, clock=time))


def kinds(pieces: list[bytes]) -> list[str]:
    lines = [piece.split(b"\n") for piece in pieces]
    return [
        parts[1].removeprefix(b"event: ").decode() if len(parts) > 2 and parts[1] else "comment"
        for parts in lines
    ]


def test_each_state_is_sent_once_and_then_the_end():
    pieces = told([at(0, "queued", 0), at(0), at(0), at(50), at(50), at(100, "completed")])
    assert kinds(pieces) == ["progress", "progress", "progress", "end"]
    assert pieces[1] == (
        b'id: 1-running-0\nevent: progress\ndata: {"status":"running","attempt":1,"rows_done":0,"count":100}\n\n'
    )
    assert orjson.loads(pieces[-1].split(b"data: ")[1])["status"] == "completed"


def test_a_reconnecting_follower_does_not_get_known_states():
    first = told([at(10), at(20), None])
    last = first[-1].split(b"\n")[0].removeprefix(b"id: ").decode()
    assert kinds(told([at(20), at(20), at(30), at(100, "completed")], last)) == ["progress", "end"]


def test_a_follower_that_connects_after_the_end_gets_the_end_event():
    end = at(100, "completed")
    assert kinds(told([end], end.event_id)) == ["end"]


def test_a_lost_attempt_starts_over_and_is_reported():
    assert kinds(told([at(50, attempt=1), at(50, attempt=2), at(100, "failed", 3)])) == [
        "progress",
        "progress",
        "end",
    ]


def test_a_silent_stream_says_every_15_seconds_that_it_lives():
    polls = int(46 / limits.SSE_POLL_SECONDS)
    pieces = told([at(0)] * polls + [at(1, "cancelled")])
    assert kinds(pieces) == ["progress", "comment", "comment", "comment", "end"]
    assert all(piece.startswith(b":") and piece.endswith(b"\n\n") for piece in pieces[1:4])


def test_work_that_is_gone_ends_the_stream():
    assert kinds(told([at(0), None])) == ["progress"]


def test_a_follower_is_sent_away_after_an_hour_to_come_again():
    time = Time()
    told([at(0)] * int(2 * limits.SSE_MAX_SECONDS / limits.SSE_POLL_SECONDS), time=time)
    assert time.now <= limits.SSE_MAX_SECONDS + limits.SSE_POLL_SECONDS
