"""`./rowsmith vocab`: what is pinned is listed, and brought back exactly or not at all; what nothing pins goes."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import rowsmith
from tests.conftest import SECRET_KEY
from webapp.cli import bootstrap, vocab
from webapp.cli.datadir import CliError
from webapp.engine.data import build, vocab_lock, vocabulary
from webapp.paths import ROOT
from webapp.row_templates.services import vocabularies

PRESENT = vocab_lock.current_entry().id
REAL = vocab_lock.REPOSITORY_ROOT / "var" / "vocab" / f"{PRESENT}.arrow"


@pytest.fixture
def lock(tmp_path, monkeypatch):
    """Write a lock of this test's own; subprocesses go by the real one."""
    path = tmp_path / "vocab.lock"
    real = json.loads(vocab_lock.LOCK_FILE.read_text("utf-8"))
    del real["earlier"]
    monkeypatch.setattr(vocab_lock, "LOCK_FILE", path)

    def write(present: dict, *earlier: dict) -> None:
        result = [{**real, **item} for item in earlier]
        path.write_text(json.dumps({**real, **present, "earlier": result}), "utf-8")

    return write


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty local folder of this test's own."""
    folder = tmp_path / "vocab"
    folder.mkdir()
    monkeypatch.setattr(vocabularies, "local_folder", lambda: folder)
    return folder


@pytest.fixture
def service(app, monkeypatch, settings):
    """The service that the commands of this process work on."""
    for name, value in (
        ("SECRET_KEY", SECRET_KEY),
        ("DATABASE_URL", settings.database_url),
        ("REDIS_URL", settings.redis_url),
        ("STORAGE_URL", settings.storage_url),
    ):
        monkeypatch.setenv(name, value)
    with app.app_context():
        yield app


def command(action: str, wanted: str | None = None, data_dir: Path | None = None) -> int:
    return vocab.run(argparse.Namespace(action=action, id=wanted, data_dir=data_dir and str(data_dir)))


def test_every_action_works_without_a_running_service(tmp_path):
    data = ["--data-dir", str(tmp_path)]
    assert rowsmith("migrate", *data, SECRET_KEY=SECRET_KEY).returncode == 0
    assert PRESENT in rowsmith("vocab", "list", *data, SECRET_KEY=SECRET_KEY).stdout
    installed = rowsmith("vocab", "install", PRESENT, *data, SECRET_KEY=SECRET_KEY)
    stored = tmp_path / "storage" / "vocab" / f"{PRESENT}.arrow"
    assert (installed.returncode, installed.stdout) == (0, f"{PRESENT} is in the storage: file://{stored}\n")
    assert stored.read_bytes() == REAL.read_bytes()


def test_the_list_shows_the_present_vocabulary_its_versions_and_its_location(service, home, capsys):
    command("list")
    assert capsys.readouterr().out.split() == [
        *(PRESENT, "present", "pinned", "by", "0", "versions"),
        *("missing:", "./rowsmith", "vocab", "install", PRESENT),
    ]
    vocabularies.store(REAL, PRESENT)
    command("list")
    assert capsys.readouterr().out.endswith(f"/storage/vocab/{PRESENT}.arrow\n")


def test_complete_stored_vocabularies_are_not_built_again(service, home, capsys, monkeypatch):
    vocabularies.store(REAL, PRESENT)
    monkeypatch.setattr(vocab, "rebuild", pytest.fail)
    assert command("install", PRESENT) == 0
    assert capsys.readouterr().out == f"{PRESENT} is already in the storage.\n"


def test_a_broken_stored_file_is_replaced(service, home, capsys):
    from webapp import storage

    storage.get_storage(service).put(vocabularies.key_of(PRESENT), [b"broken"])
    (home / REAL.name).symlink_to(REAL)
    assert command("install", PRESENT) == 0
    assert vocabularies.stored_sizes() == {PRESENT: REAL.stat().st_size}


def test_an_earlier_one_is_built_with_the_libraries_that_the_lock_names(service, home, lock):
    lock({"id": "f" * 32}, {"id": PRESENT, "versions": {"faker": "1.2", "babel": "3.4"}})
    requests = []

    def environment(venv, requirements):
        requests.extend(requirements)
        return Path(sys.executable)

    vocab.rebuild(PRESENT, environment)
    assert requests[:2] == ["babel==3.4", "faker==1.2"]
    assert vocabularies.stored_sizes() == {PRESENT: REAL.stat().st_size}
    assert [path.name for path in home.iterdir()] == [REAL.name]


def program(folder: Path, text: str) -> Path:
    """A fake Python that always runs the same script."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_a_failed_build_stores_nothing_and_has_a_reason(service, home, lock, tmp_path):
    lock({"id": "f" * 32}, {"id": "e" * 32})
    broken = program(tmp_path, "echo This build is vocabulary abc >&2; exit 1")
    with pytest.raises(CliError, match="nothing was stored: This build is vocabulary abc"):
        vocab.rebuild("e" * 32, lambda *_: broken)
    assert vocabularies.stored_sizes() == {}
    assert list(home.iterdir()) == []


def test_a_build_with_a_different_vocabulary_id_is_rejected(service, home, lock, tmp_path):
    lock({"id": "f" * 32}, {"id": "e" * 32})
    lying = program(tmp_path, f'cp {REAL} "$3/{"e" * 32}.arrow"')
    with pytest.raises(vocab_lock.VocabularyError, match=PRESENT):
        vocab.rebuild("e" * 32, lambda *_: lying)
    assert vocabularies.stored_sizes() == {}
    assert list(home.iterdir()) == []


def test_a_vocabulary_that_the_installed_libraries_do_not_produce_is_rejected(
    service, home, lock, monkeypatch
):
    from webapp.engine.data import extract

    monkeypatch.setattr(extract, "WORDS", {"fruit": lambda: {"": ["fig"]}})
    monkeypatch.setattr(extract, "TABLES", {})
    lock({"id": "e" * 32})
    with pytest.raises(CliError, match=f"asks for {'e' * 32}"):
        command("install", "e" * 32)
    assert vocabularies.stored_sizes() == {}
    assert list(home.iterdir()) == []


def test_an_unknown_one_is_named_with_what_to_do(service, home):
    with pytest.raises(CliError, match=rf"{'a' * 32} is unknown here: vocab\.lock lists .* from a backup"):
        command("install", "a" * 32)


def test_a_different_extractor_is_rejected(service, home, lock):
    lock({"id": "f" * 32}, {"id": "e" * 32, "source": "0" * 32})
    with pytest.raises(CliError, match=f"the extractor {build.EXTRACTOR} is not the one that created it"):
        vocab.rebuild("e" * 32)


@pytest.mark.parametrize(("action", "expected"), [("install", None), ("list", "a" * 32), ("prune", "a" * 32)])
def test_an_id_can_only_be_used_with_install(action, expected):
    with pytest.raises(CliError, match="Only install takes an id"):
        command(action, expected)


@pytest.mark.parametrize("expected", ["abc", "../" + "a" * 29, "A" * 32])
def test_an_invalid_id_is_rejected(service, home, expected):
    with pytest.raises(CliError, match="is not a vocabulary"):
        command("install", expected)


def test_without_a_network_the_message_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(vocab.shutil, "which", lambda _name: None)
    with pytest.raises(CliError, match="package index cannot be reached, and nothing was stored"):
        vocab.make_environment(tmp_path / "venv", ["faker==1.0"])


def test_problems_of_uv_are_explained_for_pip(tmp_path, monkeypatch):
    requests = []

    def run(words, log):
        requests.append([str(word) for word in words])
        return words[0] != "/bin/uv"

    monkeypatch.setattr(bootstrap, "run", run)
    monkeypatch.setattr(vocab.shutil, "which", lambda _name: "/bin/uv")
    assert vocab.make_environment(tmp_path / "venv", ["faker==1.0"]) == tmp_path / "venv" / "bin" / "python"
    assert [words[0] for words in requests] == ["/bin/uv", sys.executable, str(tmp_path / "venv/bin/python")]
    assert requests[-1][-1] == "faker==1.0"


def test_pruning_removes_a_stored_one_that_nothing_pins(service, home, lock, capsys):
    lock({"id": PRESENT})
    vocabularies.store(REAL, PRESENT)
    command("prune")
    assert capsys.readouterr().out == "Every stored vocabulary is present or pinned: nothing was removed.\n"
    lock({"id": "f" * 32})
    command("prune")
    assert capsys.readouterr().out == f"removed {PRESENT}\n"
    assert vocabularies.stored_sizes() == {}


def test_the_lock_names_every_vocabulary_once_with_extractors_as_they_were():
    named = vocab_lock.read_entries()
    assert len({item.id for item in named}) == len(named)
    for item in named:
        assert item.source == build.source_digest(item.extractor)
        assert set(item.versions) == set(build.load_extractor(item.extractor).LIBRARIES)


def test_a_build_in_another_process_with_another_hash_seed_gives_the_locked_id(tmp_path):
    environment = {**os.environ, "PYTHONHASHSEED": "31337", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "webapp.engine.data.build", str(tmp_path)]
    subprocess.run(command, env=environment, cwd=ROOT, check=True, capture_output=True)
    (result,) = tmp_path.iterdir()
    assert result.name == f"{vocab_lock.current_entry().id}.arrow"
    assert vocabulary.load(result).id == vocab_lock.current_entry().id
