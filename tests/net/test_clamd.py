"""The protocol of the virus scanner: with clamd itself if it is installed, and with a fake server for failures."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.fakes.clamd import EICAR, MOST, NAME, Clamd
from tests.jobs.waiting import eventually
from webapp import limits
from webapp.config import values as config_values
from webapp.config.values import Scanner
from webapp.net import clamd


def stood_in(mood: str = ""):
    server = Clamd(mood)
    return server, Scanner("", "127.0.0.1", server.port)


@pytest.fixture(scope="module", params=["clamd", "stand-in"])
def scanner(request, tmp_path_factory):
    """Where a scanner listens that knows EICAR's file and nothing else."""
    if request.param == "stand-in":
        server, where = stood_in()
        yield where
        server.stop()
        return
    program = shutil.which("clamd")
    if program is None:
        pytest.skip("clamd is not installed")
    folder: Path = tmp_path_factory.mktemp("clamd")
    folder.chmod(0o755)
    known = folder / "known"
    known.mkdir()
    (known / "test.hdb").write_text(f"{hashlib.md5(EICAR).hexdigest()}:{len(EICAR)}:{NAME}\n")
    settings = folder / "clamd.conf"
    settings.write_text(
        f"Foreground yes\nLocalSocket {folder}/c.sock\nDatabaseDirectory {known}\nStreamMaxLength {MOST}\nUser root\n"
    )
    process = subprocess.Popen([program, "-c", str(settings)], stdout=subprocess.DEVNULL)
    where = Scanner(f"{folder}/c.sock", "", 0)
    try:
        eventually(lambda: _listens(where), 60)
        yield where
    finally:
        process.kill()
        process.wait()


def _listens(where: Scanner) -> bool:
    try:
        with clamd.open_scan(where) as scan:
            return scan.verdict() is None
    except clamd.ScannerError:
        return False


def verdict(where: Scanner, *pieces: bytes) -> str | None:
    with clamd.open_scan(where) as scan:
        for piece in pieces:
            scan.feed(piece)
        return scan.verdict()


def test_known_fields_are_named_and_all_others_are_clean(scanner):
    assert verdict(scanner, EICAR[:30], b"", EICAR[30:]) == f"{NAME}.UNOFFICIAL"
    assert verdict(scanner, b"a,b\n1,2\n" * 10_000) is None
    assert verdict(scanner) is None


def test_a_file_beyond_what_it_takes_has_no_verdict(scanner):
    with pytest.raises(clamd.ScannerError, match=r"size limit exceeded|broke off"):
        verdict(scanner, *[b"x" * 100_000] * (MOST // 100_000 + 20))


@pytest.mark.parametrize(
    ("mood", "expected"), [("silent", "TimeoutError"), ("odd", "PONG"), ("cut", "nothing")]
)
def test_a_scanner_with_troubles_gives_no_verdict(mood, expected, monkeypatch):
    monkeypatch.setattr(limits, "SCANNER_SECONDS", 0.2)
    server, where = stood_in(mood)
    try:
        with pytest.raises(clamd.ScannerError, match=expected):
            verdict(where, b"x")
    finally:
        server.stop()


@pytest.mark.parametrize("path", ["", "/nowhere/c.sock"])
def test_one_that_is_not_there_gives_no_verdict(path):
    server, where = stood_in()
    server.stop()
    with pytest.raises(clamd.ScannerError, match="could not be reached"):
        verdict(Scanner(path, where.host, where.port), b"x")


def test_the_setting_is_a_host_or_a_socket():
    assert config_values.scanner("clamd://av.example.org") == Scanner("", "av.example.org", 3310)
    assert config_values.scanner("clamd://[::1]:99") == Scanner("", "::1", 99)
    assert config_values.scanner("clamd:///run/c.sock").path == "/run/c.sock"
    for wrong in (
        "av.example.org",
        "http://a",
        "clamd://",
        "clamd://a/b",
        "clamd://u@a",
        "clamd://a?b",
        "clamd://a:b",
    ):
        with pytest.raises(ValueError, match=r"must be clamd|is not a URL"):
            config_values.scanner(wrong)
