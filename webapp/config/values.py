"""Convert the text of a setting to its value. Each function raises ValueError with a description of valid values."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

SANDBOXES: Final = ("auto", "bubblewrap", "landlock", "plain")
LOG_LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR")
LOG_FORMATS: Final = ("text", "json")
CLAMD_PORT: Final = 3310  # the TCPSocket of clamd.conf(5)


@dataclass(frozen=True, slots=True)
class Scanner:
    """The address of clamd: a socket in the file system, or (`path` "") a port of a host."""

    path: str
    host: str
    port: int


def plain(text: str) -> str:
    """Return the text unchanged."""
    return text


def whole(low: int, high: int) -> Callable[[str], int]:
    """A reader of whole numbers within two bounds."""

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise ValueError(f"must be a whole number, not {text!r}") from None
        if not low <= number <= high:
            raise ValueError(f"must be from {low} to {high}, not {number}")
        return number

    return parse


def switch(text: str) -> bool:
    """true or false, also as 1, yes, on and their likes."""
    word = text.strip().casefold()
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("0", "false", "no", "off"):
        return False
    raise ValueError(f"must be true or false, not {text!r}")


def words(text: str) -> tuple[str, ...]:
    """Split a text at commas and whitespace."""
    return tuple(part for part in text.replace(",", " ").split() if part)


def networks(text: str, word: str = "unix") -> tuple[str, ...]:
    """Addresses and networks, or a word that stands for something else."""
    found = []
    for part in words(text):
        if part == word:
            found.append(part)
            continue
        try:
            found.append(str(ipaddress.ip_network(part)))
        except ValueError:
            raise ValueError(
                f"must list addresses, networks or the word {word}; {part!r} is invalid"
            ) from None
    return tuple(found)


def target_networks(text: str) -> tuple[str, ...]:
    """Networks, or the word none."""
    found = networks(text, "none")
    if "none" in found and len(found) > 1:
        raise ValueError("must be the word none, or networks")
    return found


def sandbox(text: str) -> str:
    """The way in which programs are shut in."""
    if text not in SANDBOXES:
        raise ValueError(f"must be one of {', '.join(SANDBOXES)}, not {text!r}")
    return text


def level(text: str) -> str:
    """The log level."""
    if text.upper() not in LOG_LEVELS:
        raise ValueError(f"must be one of {', '.join(LOG_LEVELS)}, not {text!r}")
    return text.upper()


def one_of(words: tuple[str, ...]) -> Callable[[str], str]:
    """A reader of one of some words, in any case."""

    def parse(text: str) -> str:
        if text.casefold() not in words:
            raise ValueError(f"must be one of {', '.join(words)}, not {text!r}")
        return text.casefold()

    return parse


def log_format(text: str) -> str:
    """The format of log lines."""
    if text.casefold() not in LOG_FORMATS:
        raise ValueError(f"must be one of {', '.join(LOG_FORMATS)}, not {text!r}")
    return text.casefold()


def scanner(text: str) -> Scanner:
    """The address of the virus scanner."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise ValueError("is not a URL") from None
    whole = parts.scheme == "clamd" and bool(host) != bool(parts.path.strip("/"))
    if not whole or parts.query or parts.fragment or parts.username:
        raise ValueError("must be clamd://host:3310 or clamd:///run/clamav/clamd.ctl")
    return Scanner("" if host else parts.path, host, CLAMD_PORT if port is None else port)
