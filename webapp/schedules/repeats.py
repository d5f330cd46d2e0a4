"""Repetitions in words: `every day at 02:00` as a cron expression, and back.

A form asks for one of a few usual repetitions. Each is stored as a cron expression; an expression that none of them
produces is shown as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

Every = Literal["hour", "day", "weekdays", "week", "month", "last_day", "cron"]
EVERY: Final[tuple[tuple[Every, str], ...]] = (
    ("hour", "Every hour"),
    ("day", "Every day"),
    ("weekdays", "Monday to Friday"),
    ("week", "Every week"),
    ("month", "Every month"),
    ("last_day", "Last day of the month"),
    ("cron", "Cron expression"),
)
DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_NUMBER: Final = re.compile(r"\d{1,2}")


@dataclass(frozen=True, slots=True)
class Repeat:
    """A repetition. `at` is a time of day, `HH:MM` (of an hour, only its minutes count); `weekday` counts from Sunday,
    0; `day` is that of the month; `cron` is set for `cron` only."""

    every: Every = "day"
    at: str = "02:00"
    weekday: int = 1
    day: int = 1
    cron: str = ""


def to_cron(repeat: Repeat) -> str:
    """Return the cron expression of a repetition."""
    if repeat.every == "cron":
        return " ".join(repeat.cron.split())
    hour, minute = (int(part) for part in repeat.at.split(":"))
    return {
        "hour": f"{minute} * * * *",
        "day": f"{minute} {hour} * * *",
        "weekdays": f"{minute} {hour} * * 1-5",
        "week": f"{minute} {hour} * * {repeat.weekday}",
        "month": f"{minute} {hour} {repeat.day} * *",
        "last_day": f"{minute} {hour} L * *",
    }[repeat.every]


def from_cron(cron: str) -> Repeat:
    """Return the repetition that produces a cron expression; `cron` if none does."""
    parts = cron.split()
    if len(parts) != 5 or not _NUMBER.fullmatch(parts[0]):
        return Repeat("cron", cron=cron)
    minute, hour, day, month, weekday = parts
    if hour == "*" and (day, month, weekday) == ("*", "*", "*"):
        return Repeat("hour", f"00:{int(minute):02}")
    if not _NUMBER.fullmatch(hour) or month != "*":
        return Repeat("cron", cron=cron)
    at = f"{int(hour):02}:{int(minute):02}"
    if (day, weekday) == ("*", "*"):
        return Repeat("day", at)
    if (day, weekday) == ("*", "1-5"):
        return Repeat("weekdays", at)
    if day == "*" and weekday in tuple("0123456"):
        return Repeat("week", at, weekday=int(weekday))
    if weekday == "*" and day.upper() == "L":
        return Repeat("last_day", at)
    if weekday == "*" and _NUMBER.fullmatch(day):
        return Repeat("month", at, day=int(day))
    return Repeat("cron", cron=cron)


def in_words(cron: str) -> str:
    """Return a cron expression as people say it: `Every day at 02:00`."""
    repeat = from_cron(cron)
    if repeat.every == "hour":
        minute = repeat.at.removeprefix("00")
        return "Every hour" if minute == ":00" else f"Every hour at {minute}"
    return {
        "day": f"Every day at {repeat.at}",
        "weekdays": f"Weekdays at {repeat.at}",
        "week": f"{DAYS[repeat.weekday]}s at {repeat.at}",
        "month": f"Day {repeat.day} of the month at {repeat.at}",
        "last_day": f"Last day of the month at {repeat.at}",
        "cron": f"Cron {cron}",
    }[repeat.every]
