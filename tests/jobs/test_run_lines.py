"""What a program prints becomes lines, however it comes out of the pipe."""

from __future__ import annotations

import base64
import random
from urllib.parse import quote

import pytest

from jobs.scenarios.log_reader import LineSplitter
from webapp import limits
from webapp.connectors.redaction import Redactor


def lines_of(data: bytes, *sizes: int, cutter: Redactor | None = None) -> list[str]:
    """The lines of some bytes that come in pieces of these sizes."""
    lines, found, at = LineSplitter(cutter), [], 0
    for size in (*sizes, len(data)):
        found += lines.feed(data[at : at + size])
        at += size
    return found + lines.finish()


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"one", ["one"]),
        (b"one\n", ["one"]),
        (b"one\n\ntwo\n", ["one", "", "two"]),
        (b"one\r\ntwo\r\n", ["one", "two"]),
        (b" 10%\r 20%\r 30%\n", [" 10%", " 20%", " 30%"]),
        (b"\xff\xfe caf\xc3\xa9\n", ["\ufffd\ufffd café"]),
        (b"nul\0nul\n", ["nul\ufffdnul"]),
        ("a\u2028b\x85c\x0cd\n".encode(), ["a\u2028b\x85c\x0cd"]),
    ],
)
def test_every_kind_of_line_end_and_any_byte_makes_lines(data, lines):
    assert lines_of(data) == lines
    assert lines_of(data, *[1] * len(data)) == lines, "byte by byte"


@pytest.mark.parametrize(
    "line",
    [
        "rowsmith: failed",
        "Rowsmith: failed",
        "rowsmith:failed",
        " rowsmith: failed",
        "\t\u00a0rowsmith: failed",
        "\x1b[31mrowsmith\x1b[0m: failed",
        "row\x1b[0msmith: failed",
        "\x1b]8;;https://example.org\x1b\\rowsmith: failed",
        "\x07rowsmith: failed",
        "\u200browsmith: failed",
        "row\u00adsmith: failed",
        "\ufeff\u202arowsmith: failed",
        "ｒｏｗｓｍｉｔｈ: failed",
    ],
)
def test_line_of_a_program_does_not_look_like_one_of_the_service(line):
    assert lines_of(f"before\n{line}\n".encode()) == ["before", f"| {line}"]
    long = "x" * limits.RUN_LINE_BYTES
    assert lines_of(f"{long}{line}\n".encode()) == [long, f"| {line}"], "the continuation of a long line"


@pytest.mark.parametrize(
    "line", ["rowsmith", "rowsmith failed", "using rowsmith: 1.0", "a rowsmith: b", "| x", ""]
)
def test_other_lines_stay_as_they_were_printed(line):
    assert lines_of(f"{line}\n".encode()) == [line]


def test_pieces_of_any_size_make_the_same_lines():
    chance = random.Random(20261122)
    text = "".join(chance.choice(["ä", "x", "😀", "\n", "\r\n", "\r", " "]) for _ in range(5_000)).encode()
    whole = lines_of(text)
    for _ in range(50):
        sizes = [chance.randrange(1, 40) for _ in range(2_000)]
        assert lines_of(text, *sizes) == whole


def test_a_long_line_is_split_without_losing_a_character():
    text = "ä😀x" * 20_000
    found = lines_of(text.encode() + b"\nend\n", 70_000, 1, 1)
    assert "".join(found[:-1]) == text
    assert found[-1] == "end"
    assert all(len(line.encode()) <= limits.RUN_LINE_BYTES for line in found)


def test_a_line_without_end_is_not_held_back_for_ever():
    lines = LineSplitter()
    found = lines.feed(b"x" * (3 * limits.RUN_LINE_BYTES + 5))
    assert len(found) == 3
    assert lines.finish() == ["xxxxx"]


@pytest.mark.parametrize("more", [-1, 0, 1])
@pytest.mark.parametrize("times", [1, 2, 4])
@pytest.mark.parametrize("letter", ["x", "ä"])
def test_a_line_as_long_as_the_limit_is_read_in_one_piece(letter, times, more):
    """A pipe is read 64 KB at a time, so a multiple of the limit is the usual size of a piece of a long line."""
    data = letter.encode() * (times * limits.RUN_LINE_BYTES + more)
    assert "".join(lines_of(data, len(data))) == data.decode()


SECRET = "s3cr/t valü&e"


@pytest.mark.parametrize(
    "form",
    [
        SECRET.encode(),
        quote(SECRET, safe="").encode(),
        quote(SECRET, safe="").lower().encode(),
        base64.b64encode(b"user:" + SECRET.encode()),
        base64.urlsafe_b64encode(SECRET.encode()),
    ],
)
def test_a_secret_is_redacted_in_every_form_across_chunk_boundaries(form):
    cutter = Redactor([SECRET], limits.REDACTED_SECRET_MIN_CHARS)
    data = b"before " + form + b" after\n"
    for at in range(len(data)):
        text = "\n".join(lines_of(data, at, cutter=cutter))
        assert "********" in text
        assert form.decode() not in text
        assert SECRET not in text
        assert text.startswith("before ")
        assert text.endswith(" after")


def test_a_secret_is_cut_over_the_border_of_a_line_that_is_too_long():
    cutter = Redactor([SECRET], limits.REDACTED_SECRET_MIN_CHARS)
    for shift in range(-20, 5):
        data = b"x" * (limits.RUN_LINE_BYTES + shift) + SECRET.encode() + b"y" * 50_000
        for tail in (b"", b"\n"):
            found = "".join(lines_of(data + tail, 40_000, cutter=cutter))
            assert "s3cr" not in found.replace("********", ""), shift
            assert found.count("y") == 50_000


def test_the_lines_of_a_secret_that_has_several_are_cut():
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSjAgEAAoIB\n-----END KEY-----\n"
    found = lines_of(
        f"key:\n{key}done\n".encode(), 17, 30, cutter=Redactor([key], limits.REDACTED_SECRET_MIN_CHARS)
    )
    assert found[0] == "key:"
    assert found[-1] == "done"
    assert "MIIEvQ" not in "".join(found)
    assert "AQEFAA" not in "".join(found)


def test_a_secret_that_is_too_short_is_not_redacted():
    assert lines_of(b"a cat\n", cutter=Redactor(["cat"], limits.REDACTED_SECRET_MIN_CHARS)) == ["a cat"]
