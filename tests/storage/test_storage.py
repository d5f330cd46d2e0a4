"""Files: put whole or not at all, read by range, gone when deleted; the same on a folder and on S3."""

from __future__ import annotations

import os

import pytest

from webapp import storage
from webapp.storage import MissingError, from_url


@pytest.fixture
def store(tmp_path):
    return from_url(f"file://{tmp_path}/files")


def test_stored_content_is_read_unchanged(store):
    chunks = [os.urandom(300_000) for _ in range(5)]
    assert store.put("exports/e1/rows.csv", iter(chunks)) == 1_500_000
    assert b"".join(store.get("exports/e1/rows.csv")) == b"".join(chunks)
    assert store.head("exports/e1/rows.csv").size == 1_500_000


@pytest.mark.parametrize(("start", "end"), [(0, 3), (2, 5), (4, None), (9, 10), (0, None), (9, 99), (5, 5)])
def test_any_range_is_read(store, start, end):
    store.put("f", [b"01234", b"56789"])
    assert b"".join(store.get("f", start, end)) == b"0123456789"[start:end]


def test_a_put_replaces(store):
    store.put("f", [b"old and long"])
    store.put("f", [b"new"])
    assert b"".join(store.get("f")) == b"new"


def test_an_empty_file_is_a_file(store):
    assert store.put("f", []) == 0
    assert b"".join(store.get("f")) == b""


def test_an_interrupted_stream_leaves_no_file_and_a_reason(store):
    def broken():
        yield b"x" * 100_000
        raise KeyError("the reason")

    with pytest.raises(KeyError, match="the reason"):
        store.put("f", broken())
    with pytest.raises(MissingError):
        store.head("f")


def test_a_stream_that_breaks_leaves_what_was_there(store):
    def broken():
        yield b"x"
        raise KeyError("the reason")

    store.put("f", [b"old"])
    with pytest.raises(KeyError):
        store.put("f", broken())
    assert b"".join(store.get("f")) == b"old"


def test_a_missing_file_is_reported_immediately(store):
    with pytest.raises(MissingError):
        store.get("f")
    with pytest.raises(MissingError):
        store.get("f", 5, 5)
    store.delete("f")


def test_a_deleted_file_is_not_found(store):
    store.put("f", [b"x"])
    store.delete("f")
    with pytest.raises(MissingError):
        store.head("f")


@pytest.mark.parametrize(
    "key", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "a/./b", "a\\b", "a\0b", "a\n"]
)
def test_no_key_leads_out_of_the_store(store, key):
    for verb in (store.head, store.get, store.delete, lambda k: store.put(k, [b"x"])):
        with pytest.raises(ValueError, match="not a storage key"):
            verb(key)


def test_names_in_any_language_are_keys(store):
    store.put("uploads/Straße – 東京.csv", [b"x"])
    assert b"".join(store.get("uploads/Straße – 東京.csv")) == b"x"


def test_no_connection_is_opened_before_it_is_used(tmp_path):
    from_url(f"file://{tmp_path}/none")
    assert not (tmp_path / "none").exists()


def test_a_store_says_whether_it_is_usable(store, tmp_path):
    assert store.is_usable()
    assert not [p for p in (tmp_path / "files").rglob("*") if p.is_file()]


def test_an_s3_address_is_taken_with_its_options():
    result = storage._s3(
        "s3://bucket/some/prefix",
        {
            "AWS_ACCESS_KEY_ID": "id",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "eu-central-1",
            "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        },
    )
    assert result.prefix == "some/prefix"
    assert result.config["bucket"] == "bucket"
    assert result.config["endpoint"] == "http://127.0.0.1:9"


def test_a_folder_lists_its_files_and_no_others(store):
    for key in ("vocab/b", "vocab/a", "vocabulary/c", "exports/d"):
        store.put(key, [key.encode()])
    assert [(item.key, item.size) for item in store.listing("vocab")] == [("vocab/a", 7), ("vocab/b", 7)]
    assert store.listing("nothing") == []
