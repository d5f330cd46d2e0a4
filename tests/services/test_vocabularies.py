"""A vocabulary that a template version pins is in the storage, opened from there, and never replaced by another."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.views.speak import make
from webapp import storage
from webapp.engine.data import archive, vocab_lock, vocabulary
from webapp.errors import ApiError
from webapp.extensions import db, write_session
from webapp.row_templates.models import TemplateVersion
from webapp.row_templates.services import compilation, vocabularies

PRESENT = vocab_lock.current_entry().id
FIELDS = [{"name": "n", "type": "row_number"}, {"name": "color", "type": "color_name"}]


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """The file of a vocabulary with other colours."""
    contents, metadata = archive.read(vocab_lock.REPOSITORY_ROOT / "var" / "vocab" / f"{PRESENT}.arrow")
    contents["words:color:"] = pa.array(["Mauve", "Teal"])
    result = archive.digest(contents)
    path = tmp_path_factory.mktemp("other") / f"{result}.arrow"
    archive.write(path, contents, {**metadata, "id": result})
    return path


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A local folder of this test's own, with the present vocabulary in it."""
    folder = tmp_path / "vocab"
    folder.mkdir()
    vocabulary.open_default()
    (folder / f"{PRESENT}.arrow").symlink_to(
        vocab_lock.REPOSITORY_ROOT / "var" / "vocab" / f"{PRESENT}.arrow"
    )
    monkeypatch.setattr(vocabularies, "local_folder", lambda: folder)
    return folder


@pytest.fixture
def fresh(app, home):
    """The application's context, in a process that has not looked into the storage yet."""
    app.extensions[vocabularies._STORED_IDS_KEY].clear()
    with app.app_context():
        yield app


@pytest.fixture
def edith(api, cast):
    return api(cast.edith)


def pin(template_id: str, wanted: str) -> None:
    """Let a template's first version pin another vocabulary, as one saved under another release does."""
    db.session.remove()  # a request inside a context of ours leaves its reads open
    with write_session() as session:
        version = session.query(TemplateVersion).filter_by(template_id=template_id).one()
        version.pins = {**version.pins, "vocabulary": wanted}


def test_saving_a_version_puts_its_vocabulary_into_the_storage(fresh, edith):
    assert vocabularies.stored_sizes() == {}
    make(edith, fields=FIELDS)
    stored = b"".join(storage.get_storage(fresh).get(vocabularies.key_of(PRESENT)))
    assert stored == vocabularies.local_path(PRESENT).read_bytes()


def test_the_storage_is_checked_once_per_process(fresh, edith):
    make(edith, fields=FIELDS)
    storage.get_storage(fresh).delete(vocabularies.key_of(PRESENT))
    make(edith, fields=FIELDS)
    assert vocabularies.stored_sizes() == {}


def test_no_version_is_saved_where_the_storage_cannot_keep_its_vocabulary(fresh, edith, monkeypatch):
    def full(*_given):
        raise OSError("no space left")

    monkeypatch.setattr(storage.Storage, "put", full)
    answer = edith.post("/templates", json={"name": "T", "fields": FIELDS})
    assert (answer.status_code, answer.json["error"]["code"]) == (503, "unavailable")
    assert edith.get("/templates").json["total"] == 0


def test_a_version_makes_rows_of_the_vocabulary_it_pins_fetched_from_the_storage(fresh, edith, home, other):
    vocabularies.store(other, other.stem)
    template = make(edith, fields=FIELDS)
    pin(template["id"], other.stem)
    answer = edith.post(f"/templates/{template['id']}/generate", json={"count": 50, "seed": "s"})
    assert answer.headers["X-Vocabulary"] == other.stem
    assert {row["color"] for row in answer.json} == {"Mauve", "Teal"}
    assert (home / other.name).read_bytes() == other.read_bytes()


def test_fetched_files_are_opened_from_the_local_disk(fresh, other):
    vocabularies.store(other, other.stem)
    assert compilation.vocabulary(other.stem).id == other.stem
    storage.get_storage(fresh).delete(vocabularies.key_of(other.stem))
    assert compilation.vocabulary(other.stem).id == other.stem


def test_a_missing_vocabulary_is_rejected_by_name_with_the_command_that_restores_it(fresh, edith, other):
    template = make(edith, fields=FIELDS)
    pin(template["id"], other.stem)
    answer = edith.post(f"/templates/{template['id']}/generate", json={"count": 1})
    error = answer.json["error"]
    assert (answer.status_code, error["code"]) == (503, "unavailable")
    assert other.stem in error["message"]
    assert f"./rowsmith vocab install {other.stem}" in error["message"]
    assert error["details"]["vocabulary"] == other.stem


def test_a_stored_file_with_another_vocabulary_is_rejected_and_not_kept(fresh, home, other):
    store = storage.get_storage(fresh)
    store.put(vocabularies.key_of("d" * 32), [other.read_bytes()])
    with pytest.raises(ApiError, match=f"contains vocabulary {other.stem}"):
        compilation.vocabulary("d" * 32)
    assert [path.stem for path in home.iterdir()] == [PRESENT]


@pytest.mark.parametrize("content", [b"", b"cut off"])
def test_a_damaged_stored_file_is_rejected_and_not_kept(fresh, home, content):
    storage.get_storage(fresh).put(vocabularies.key_of("d" * 32), [content])
    with pytest.raises(ApiError, match="in storage is invalid"):
        compilation.vocabulary("d" * 32)
    assert [path.stem for path in home.iterdir()] == [PRESENT]


def test_no_file_is_stored_under_another_vocabularys_name(fresh, other):
    with pytest.raises(vocab_lock.VocabularyError, match=other.stem):
        vocabularies.store(other, "d" * 32)
    assert vocabularies.stored_sizes() == {}


def test_versions_are_counted_by_the_vocabulary_they_pin(fresh, edith, other):
    first = make(edith, fields=FIELDS)
    make(edith, fields=FIELDS)
    pin(first["id"], other.stem)
    assert vocabularies.count_pins() == {other.stem: 1, PRESENT: 1}


def test_a_start_stores_what_is_pinned_and_names_what_is_missing(fresh, edith, home, other):
    first = make(edith, fields=FIELDS)
    make(edith, fields=FIELDS)
    pin(first["id"], other.stem)
    storage.get_storage(fresh).delete(vocabularies.key_of(PRESENT))
    fresh.extensions[vocabularies._STORED_IDS_KEY].clear()
    assert vocabularies.store_pinned() == [other.stem]
    assert set(vocabularies.stored_sizes()) == {PRESENT}
    (home / other.name).symlink_to(other)
    assert vocabularies.store_pinned() == []
    assert set(vocabularies.stored_sizes()) == {PRESENT, other.stem}


def test_pruning_removes_what_nothing_pins_and_nothing_else(fresh, edith, home, other):
    template = make(edith, fields=FIELDS)
    vocabularies.store(other, other.stem)
    pin(template["id"], other.stem)
    compilation.vocabulary(other.stem)
    assert vocabularies.prune() == []
    edith.delete(f"/templates/{template['id']}")
    assert vocabularies.prune() == []  # the deletion can be taken back
    pin(template["id"], PRESENT)
    assert vocabularies.prune() == [other.stem]
    assert set(vocabularies.stored_sizes()) == {PRESENT}
    assert [path.stem for path in home.iterdir()] == [PRESENT]


@pytest.mark.parametrize(("writable", "there"), [(True, "clone/var/vocab"), (False, "data/vocab")])
def test_a_clone_that_cannot_be_written_keeps_its_files_in_the_data_folder(
    tmp_path, monkeypatch, writable, there
):
    (tmp_path / "clone").mkdir()
    monkeypatch.setattr(vocab_lock, "REPOSITORY_ROOT", tmp_path / "clone")
    monkeypatch.setattr(vocabularies.os, "access", lambda *_asked: writable)
    assert vocabularies._local_folder.__wrapped__(tmp_path / "data") == tmp_path / there
