"""Files before and after a run: synced whole, stored safely."""

from __future__ import annotations

import io
import os
import socket
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fakes.clamd import EICAR, NAME, Clamd
from webapp import clock, limits, storage
from webapp.access import actors
from webapp.config.values import Scanner
from webapp.errors import ApiError
from webapp.extensions import db
from webapp.files import services as files
from webapp.files.models import WorkspaceFile
from webapp.scenarios.models import Run, Scenario
from webapp.scenarios.services import run_completion


@pytest.fixture
def acme(app, cast):
    with app.app_context():
        yield actors.system_actor(cast.acme, cast.main, cast.blue)
        db.session.remove()


@pytest.fixture
def put(acme):
    return lambda name, content=b"x": files.upload(acme, name, io.BytesIO(content))[0]


@pytest.fixture
def run(acme, cast):
    where = {"workspace_id": cast.acme, "project_id": cast.main, "team_id": cast.blue}
    scenario = Scenario(name="s", version=1, timeout_seconds=60, network="none", **where)
    db.session.add(scenario)
    db.session.flush()
    created = Run(
        scenario_id=scenario.id, scenario_version=1, trigger="api", status="running",
        created_by=cast.edith.user_id, **where,
    )  # fmt: skip
    db.session.add(created)
    db.session.commit()
    return created


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def folder(tmp_path):
    result = tmp_path / "run"
    result.mkdir()
    return result


def cache(data_dir: Path) -> list[Path]:
    return list((data_dir / "cache" / "files").glob("??/*"))


# Before a run


def test_every_live_file_is_available_under_its_name_and_outputs_are_not(acme, put, folder, cast):
    put("customers.csv", b"1")
    put("in/Bücher/größe.csv", b"22")
    put("outputs/run_1/old.csv", b"3")
    put("outputs.csv", b"4")
    files.delete(acme, put("gone.csv"))
    files.sync(cast.acme, cast.main, folder)
    assert tree(folder) == {"customers.csv": b"1", "in/Bücher/größe.csv": b"22", "outputs.csv": b"4"}
    assert [oct(path.stat().st_mode)[-3:] for path in folder.rglob("*.csv")] == ["444"] * 3


def test_files_of_another_workspace_are_not_there(acme, put, folder, cast):
    put("ours.csv")
    files.sync(cast.mallory_inc, cast.mallorys, folder)
    assert tree(folder) == {}


def test_a_file_is_fetched_once_and_shared(acme, put, tmp_path, cast, monkeypatch):
    put("a", b"same")
    put("b", b"same")
    fetched = []
    real = files.read_chunks
    monkeypatch.setattr(files, "read_chunks", lambda key, *more: fetched.append(key) or real(key, *more))
    for name in ("one", "two"):
        files.sync(cast.acme, cast.main, tmp_path / name)
    assert len(fetched) == 1
    assert (tmp_path / "one" / "a").stat().st_ino == (tmp_path / "two" / "b").stat().st_ino
    files.sync(cast.acme, cast.main, tmp_path / "three", link=False)
    assert (tmp_path / "three" / "a").stat().st_ino != (tmp_path / "one" / "a").stat().st_ino
    assert (tmp_path / "three" / "a").read_bytes() == b"same"


def test_files_are_copied_if_links_are_not_supported(acme, put, folder, cast, monkeypatch):
    put("a", b"bytes")

    def refuse(*_a, **_k):
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    files.sync(cast.acme, cast.main, folder)
    assert tree(folder) == {"a": b"bytes"}


def test_a_file_that_is_replaced_while_it_is_synced_is_the_old_or_the_new_one_whole(
    acme, put, folder, cast, monkeypatch
):
    put("a", b"old")
    real, once = files.read_chunks, []

    def between(key, *more):
        if not once:
            once.append(key)
            put("a", b"the new one")
        return real(key, *more)

    monkeypatch.setattr(files, "read_chunks", between)
    files.sync(cast.acme, cast.main, folder)
    assert tree(folder) == {"a": b"the new one"}


def test_a_file_purged_in_the_meantime_is_skipped(acme, put, folder, cast, monkeypatch):
    put("a", b"old")
    put("b", b"stays")
    real, once = files.read_chunks, []

    def between(key, *more):
        if not once:
            once.append(key)
            row = files.find(acme, "a", "write", lock=True)
            files.delete(acme, row)
            files.delete_content(row.storage_key)
        return real(key, *more)

    monkeypatch.setattr(files, "read_chunks", between)
    files.sync(cast.acme, cast.main, folder)
    assert tree(folder) == {"b": b"stays"}


def test_bytes_that_are_gone_or_damaged_stop_the_sync(app, acme, put, folder, cast):
    key = put("a", b"right").storage_key
    store = storage.get_storage(app)
    store.put(key, [b"wrong"])
    with pytest.raises(ApiError, match="damaged"):
        files.sync(cast.acme, cast.main, folder)
    store.delete(key)
    with pytest.raises(ApiError, match="missing from the storage") as found:
        files.sync(cast.acme, cast.main, folder)
    assert found.value.code == "unavailable"
    assert tree(folder) == {}


def test_the_cache_lets_go_of_what_was_used_longest_ago(acme, put, tmp_path, data_dir, cast, monkeypatch):
    monkeypatch.setattr(limits, "FILE_CACHE_BYTES", 250)
    moment = clock.epoch()
    for place, name in enumerate("abc"):
        put(name, name.encode() * 100)
        monkeypatch.setattr(clock, "epoch", lambda at=moment + place: at)
        if name != "c":
            files.sync(cast.acme, cast.main, tmp_path / name)
    stored = files.find(acme, "a").sha256
    for path in cache(data_dir):
        os.utime(path, (1 if path.name != stored else 2, 1))
    files.delete(acme, files.find(acme, "b", "write", lock=True))
    files.sync(cast.acme, cast.main, tmp_path / "last")
    assert {path.read_bytes()[:1] for path in cache(data_dir)} == {b"a", b"c"}
    assert tree(tmp_path / "b")["b"] == b"b" * 100, "a run keeps what it was given"


def test_a_file_that_is_evicted_between_the_look_and_the_link_is_fetched_again(
    acme, put, folder, cast, monkeypatch
):
    put("a", b"bytes")
    real, once = os.link, []

    def evicted(source, target, **more):
        if not once:
            once.append(source)
            os.unlink(source)
        return real(source, target, **more)

    monkeypatch.setattr(os, "link", evicted)
    files.sync(cast.acme, cast.main, folder)
    assert tree(folder) == {"a": b"bytes"}


def test_runs_can_sync_concurrently(app, acme, put, tmp_path, data_dir, cast, monkeypatch):
    monkeypatch.setattr(limits, "FILE_CACHE_BYTES", 20_000)
    contents = {f"f{number}": os.urandom(5_000) for number in range(12)}
    for name, content in contents.items():
        put(name, content)
    found: list[dict[str, bytes]] = []

    def call(number: int) -> None:
        with app.app_context():
            files.sync(cast.acme, cast.main, tmp_path / f"run{number}")
        found.append(tree(tmp_path / f"run{number}"))

    threads = [threading.Thread(target=call, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [contents] * 6
    assert not list((data_dir / "cache" / "files").glob(".new-*"))


# After a run


def test_outputs_of_a_run_are_stored_under_its_id(acme, run, folder, cast):
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "result.csv").write_bytes(b"a\n1\n")
    (folder / "deep" / "er" / "log.txt").write_bytes(b"")
    done = run_completion.store_outputs(run, folder)
    assert done.rejected == []
    prefix = f"outputs/{run.id}"
    assert [(file["name"], file["size"]) for file in done.files] == [
        (f"{prefix}/deep/er/log.txt", 0), (f"{prefix}/result.csv", 4),
    ]  # fmt: skip
    row = files.find(acme, f"{prefix}/result.csv")
    assert (row.id, row.run_id, row.created_by) == (done.files[1]["file_id"], run.id, cast.edith.user_id)
    assert row.content_type == "text/csv"
    assert b"".join(files.open_file(acme, row)) == b"a\n1\n"
    again = run_completion.store_outputs(run, folder)
    assert [file["file_id"] for file in again.files] == [file["file_id"] for file in done.files]


def test_no_link_is_followed_and_nothing_but_files_is_read(acme, run, folder, tmp_path):
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("canary")
    (folder / "link").symlink_to(secret / "key")
    (folder / "loop").symlink_to(folder)
    (folder / "folder").symlink_to(secret)
    (folder / "etc").symlink_to("/etc")
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "socket"))
        (folder / "good").write_text("yes")
        done = run_completion.store_outputs(run, folder)
    assert [file["name"].rpartition("/")[2] for file in done.files] == ["good"]
    result = dict(done.rejected)
    assert set(result) == {"link", "loop", "folder", "etc", "pipe", "socket"}
    assert "not followed" in result["link"]


def test_a_folder_that_is_a_link_is_not_followed(acme, run, folder, tmp_path):
    (tmp_path / "swapped").symlink_to(folder)
    (folder / "a").write_text("x")
    done = run_completion.store_outputs(run, tmp_path / "swapped")
    assert done.files == []
    assert done.rejected[0][1].startswith("The output folder cannot be read")


def test_a_file_that_becomes_a_link_during_the_check_is_not_followed(
    acme, run, folder, tmp_path, monkeypatch
):
    (tmp_path / "secret").write_text("canary")
    (folder / "a").write_text("mine")
    real = os.stat

    def swapped(path, **how):
        found = real(path, **how)
        if path == "a" and "dir_fd" in how:
            (folder / "a").unlink()
            (folder / "a").symlink_to(tmp_path / "secret")
        return found

    monkeypatch.setattr(os, "stat", swapped)
    done = run_completion.store_outputs(run, folder)
    assert done.files == []
    assert done.rejected[0][0] == "a"


def test_invalid_names_are_cleaned_or_reported(acme, run, folder):
    for name in (b"new\nline", b"back\\slash", b" spaces ", b"not\xffutf8", "e\u0301".encode(), "é".encode()):
        (folder / os.fsdecode(name)).write_bytes(name)
    (folder / ("x" * 250)).write_bytes(b"")
    done = run_completion.store_outputs(run, folder)
    names = {file["name"].removeprefix(f"outputs/{run.id}/") for file in done.files}
    assert names == {"new_line", "back_slash", "_spaces_", "not\ufffdutf8", "é"}
    result = dict(done.rejected)
    assert len(result) == 2
    assert "255 characters" in result["x" * 250]
    assert any("stored as" in why for why in result.values())


def test_a_deep_tree_ends_somewhere(acme, run, folder):
    deep = folder
    for _ in range(200):
        deep = deep / "d"
    deep.mkdir(parents=True)
    (folder / "a").write_text("kept")
    done = run_completion.store_outputs(run, folder)
    assert [file["size"] for file in done.files] == [4]
    assert len(done.rejected) == 1


def test_the_quota_is_asked_file_by_file(acme, run, put, folder, monkeypatch):
    monkeypatch.setattr(limits, "MAX_WORKSPACE_FILES_BYTES", 100)
    put("there", b"x" * 50)
    for name, size in (("a", 40), ("b", 20), ("c", 10)):
        (folder / name).write_bytes(b"x" * size)
    done = run_completion.store_outputs(run, folder)
    assert [file["size"] for file in done.files] == [40, 10]
    assert done.rejected[0][0] == "b"
    assert "100 bytes" in done.rejected[0][1]


def test_the_number_of_outputs_is_bounded(acme, run, folder, monkeypatch):
    monkeypatch.setattr(limits, "MAX_OUTPUT_FILES", 3)
    for number in range(9):
        (folder / str(number)).write_text("x")
    done = run_completion.store_outputs(run, folder)
    assert (len(done.files), len(done.rejected)) == (3, 1)


def test_a_failing_storage_is_reported_once_and_nothing_is_stored_partly(acme, run, folder, monkeypatch):
    for name in "abc":
        (folder / name).write_text("x")

    def broken(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(storage.Storage, "put", broken)
    done = run_completion.store_outputs(run, folder)
    assert (done.files, [name for name, _ in done.rejected]) == ([], ["a"])
    assert "disk is full" in done.rejected[0][1]


def test_a_folder_that_is_not_there_holds_nothing(acme, run, tmp_path):
    assert run_completion.store_outputs(run, tmp_path / "never") == run_completion.StoredOutputs()


def test_outputs_of_a_run_are_not_put_before_the_next(acme, run, folder, tmp_path, cast):
    (folder / "a").write_text("x")
    run_completion.store_outputs(run, folder)
    files.sync(cast.acme, cast.main, tmp_path / "next")
    assert tree(tmp_path / "next") == {}
    assert db.session.query(WorkspaceFile).count() == 1
    db.session.rollback()


def test_a_damaged_cache_is_not_believed(acme, put, tmp_path, data_dir, cast):
    put("a", b"right")
    files.sync(cast.acme, cast.main, tmp_path / "one")
    (stored,) = cache(data_dir)
    stored.chmod(0o644)
    stored.write_bytes(b"cut")
    files.sync(cast.acme, cast.main, tmp_path / "two")
    assert (tmp_path / "two" / "a").read_bytes() == b"right"
    assert files._list_files(cast.acme, cast.main)[0].size == 5


def test_an_output_that_the_virus_scanner_finds_is_left_out_and_the_others_are_kept(app, acme, run, folder):
    server = Clamd()
    app.config["SETTINGS"] = replace(app.config["SETTINGS"], scanner=Scanner("", "127.0.0.1", server.port))
    for name, content in (("a.csv", b"1"), ("b.com", EICAR), ("c.csv", b"3")):
        (folder / name).write_bytes(content)
    try:
        done = run_completion.store_outputs(run, folder)
    finally:
        server.stop()
    assert [file["name"].rpartition("/")[2] for file in done.files] == ["a.csv", "c.csv"]
    assert [name for name, _ in done.rejected] == ["b.com"]
    assert done.rejected[0][1].startswith(f"The virus scanner found {NAME}")
