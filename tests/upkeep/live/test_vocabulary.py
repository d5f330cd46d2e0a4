"""Promise 24, of what a template version pins: a vocabulary of another release comes back with a restored backup, and
makes the bytes that it made before, on the same kind of database and on the other one."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.cast import Cast, Program, gather
from tests.conftest import close_app
from webapp import create_app
from webapp.engine.data import archive, vocab_lock, vocabulary
from webapp.extensions import db, redis_client, write_session
from webapp.row_templates.models import TemplateVersion
from webapp.row_templates.services import compiled_plans, vocabularies

FIELDS = [{"name": "n", "type": "row_number"}, {"name": "color", "type": "color_name"}]
ASKED = {"count": 500, "seed": "kept", "format": "csv"}
PRESENT = vocab_lock.current_entry().id


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """The file of a vocabulary with other colours."""
    vocabulary.open_default()
    contents, metadata = archive.read(vocab_lock.REPOSITORY_ROOT / "var" / "vocab" / f"{PRESENT}.arrow")
    contents["words:color:"] = pa.array(["Mauve", "Teal", "Ochre"])
    result = archive.digest(contents)
    path = tmp_path / f"{result}.arrow"
    archive.write(path, contents, {**metadata, "id": result})
    return path


def machine(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """A machine that only has the current vocabulary on its disk."""
    folder.mkdir()
    (folder / f"{PRESENT}.arrow").symlink_to(
        vocab_lock.REPOSITORY_ROOT / "var" / "vocab" / f"{PRESENT}.arrow"
    )
    patch.setattr(vocabularies, "local_folder", lambda: folder)
    patch.setattr(
        compiled_plans, "CACHE", compiled_plans.PlanCache()
    )  # and a process that has opened none yet
    return folder


def generated(place, key: str, template: str):
    """What the application answers there."""
    app = create_app(place.settings)
    with app.app_context():
        redis_client().flushdb()
    answer = Program(app, key).post(f"/templates/{template}/generate", json=ASKED)
    answer.get_data()
    close_app(app)
    return answer


def pinned_elsewhere(place, other: Path) -> tuple[Cast, str]:
    """Everybody, and a template whose first version was saved under another release's vocabulary."""
    app = create_app(place.settings)
    with app.app_context():
        cast = gather()
        db.session.remove()
        vocabularies.store(other, other.stem)
    created = Program(app, cast.edith.key).post("/templates", json={"name": "T", "fields": FIELDS})
    assert created.status_code == 201, created.text
    with app.app_context():
        with write_session() as session:
            version = session.query(TemplateVersion).filter_by(template_id=created.json["id"]).one()
            version.pins = {**version.pins, "vocabulary": other.stem}
        db.session.remove()
    close_app(app)
    return cast, created.json["id"]


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_promise_24_a_pinned_vocabulary_comes_back_and_makes_the_same_bytes(
    place, new_place, file, other, kind, tmp_path, monkeypatch
):
    machine(tmp_path / "here", monkeypatch)
    cast, template = pinned_elsewhere(place, other)
    before = generated(place, cast.edith.key, template)
    assert (before.status_code, before.headers["X-Vocabulary"]) == (200, other.stem)
    assert {line.split(b",")[1] for line in before.data.splitlines()[1:]} == {b"Mauve", b"Teal", b"Ochre"}
    assert place.run("backup", str(file), "--include-keys") == 0

    # Where it was: lost from the storage and from the disk it is missing by name, and nothing else is taken for it.
    machine(tmp_path / "later", monkeypatch)
    place.store.delete(vocabularies.key_of(other.stem))
    refused = generated(place, cast.edith.key, template)
    assert (refused.status_code, refused.json["error"]["details"]["vocabulary"]) == (503, other.stem)

    there, disk = new_place(kind), machine(tmp_path / "there", monkeypatch)
    assert there.run("restore", str(file)) == 0
    after = generated(there, cast.edith.key, template)
    assert after.headers["X-Vocabulary"] == other.stem
    assert after.data == before.data
    assert (disk / other.name).read_bytes() == other.read_bytes(), "it came from the restored storage"
