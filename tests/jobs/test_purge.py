"""What has run out is removed; what can still be restored stays."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import func, select

from jobs import sweeper
from webapp import limits, storage
from webapp.access.models import Project, SignInLink, User
from webapp.connections.models import Connection, Endpoint, Fetched, Secret
from webapp.exports.models import Export
from webapp.extensions import read_session, write_session
from webapp.operations.purge import purge
from webapp.pushes.models import Push
from webapp.row_templates.models import Template, TemplateVersion
from webapp.web.models import IdempotencyRecord

LONG_AGO = timedelta(days=limits.RESTORE_DAYS, seconds=1)


@pytest.fixture
def count(app):
    def rows(model) -> int:
        with read_session() as session:
            return session.scalar(select(func.count()).select_from(model))

    return rows


@pytest.fixture
def place(new_export, row):
    """`workspace_id`, `team_id`, `project_id` of the test's project."""
    export = row(new_export())
    return {name: getattr(export, name) for name in ("workspace_id", "team_id", "project_id")}


def test_a_deletion_is_final_after_thirty_days_and_not_before(place, count, clock):
    with write_session() as session:
        for deleted_at in (None, clock() - LONG_AGO + timedelta(seconds=2), clock() - LONG_AGO):
            template = Template(name="t", deleted_at=deleted_at, **place)
            session.add(template)
            session.flush()
            session.add(TemplateVersion(template_id=template.id, number=1, spec={}))
    assert purge(clock()) == 1
    assert (count(Template), count(TemplateVersion)) == (2, 2)
    assert purge(clock()) == 0


def test_the_file_of_a_removed_export_goes_with_it(app, new_export, count, clock):
    store = storage.get_storage(app)
    for key, deleted_at in (("exports/kept.csv", None), ("exports/gone.csv", clock() - LONG_AGO)):
        store.put(key, [b"a,b\n"])
        new_export(storage_key=key, deleted_at=deleted_at, status="completed")
    purge(clock())
    assert count(Export) == 1
    assert store.head("exports/kept.csv").size == 4
    with pytest.raises(storage.MissingError):
        store.head("exports/gone.csv")


def test_a_removed_project_takes_its_exports_and_their_files_along(app, place, new_export, count, clock):
    storage.get_storage(app).put("exports/inside.csv", [b"x"])
    new_export(storage_key="exports/inside.csv", status="completed")
    with write_session() as session:
        session.get_one(Project, place["project_id"]).deleted_at = clock() - LONG_AGO
    purge(clock())
    assert (count(Project), count(Export)) == (0, 0)
    with pytest.raises(storage.MissingError):
        storage.get_storage(app).head("exports/inside.csv")


def test_the_keys_of_a_removed_push_go_with_it(app, place, count, clock):
    stored = {}
    for push_id, deleted_at in (("psh_KEPT", None), ("psh_GONE", clock() - LONG_AGO)):
        stored[push_id] = f"pushes/{place['workspace_id']}/{push_id}/keys/0/1-9.psh.1.1"
        storage.get_storage(app).put(stored[push_id], [b"x"])
        with write_session() as session:
            session.add(Push(id=push_id, target="t", total=1, deleted_at=deleted_at, **place))
    purge(clock())
    assert count(Push) == 1
    assert storage.get_storage(app).head(stored["psh_KEPT"]).size == 1
    with pytest.raises(storage.MissingError):
        storage.get_storage(app).head(stored["psh_GONE"])


def test_deleting_an_endpoint_deletes_its_private_connection(app, place, count, clock):
    for name, of_endpoint, deleted_at in (
        ("SHARED", False, clock() - LONG_AGO), ("OWN", True, clock() - LONG_AGO), ("KEPT", True, None),
    ):  # fmt: skip
        storage.get_storage(app).put(f"connections/{name}.xml", [b"<x/>"])
        with write_session() as session:
            stored = Connection(
                name=name, type="rest", of_endpoint=of_endpoint, document_key=f"connections/{name}.xml"
            )
            for key, value in place.items():
                setattr(stored, key, value)
            session.add(stored)
            session.flush()
            session.add(Endpoint(name=name, connection_id=stored.id, deleted_at=deleted_at, **place))
            session.add(Secret(connection_id=stored.id, sealed=b"x", workspace_id=place["workspace_id"]))
    purge(clock())
    assert (count(Endpoint), count(Connection)) == (1, 3)
    purge(clock())
    assert (count(Endpoint), count(Connection), count(Secret)) == (1, 2, 2)
    with pytest.raises(storage.MissingError):
        storage.get_storage(app).head("connections/OWN.xml")
    assert storage.get_storage(app).head("connections/SHARED.xml").size == 4


def test_a_removed_connection_takes_its_secrets_and_its_cache_along(app, place, count, clock):
    for name, deleted_at in (
        ("con_KEPT", None),
        ("con_GONE", clock() - LONG_AGO),
        ("con_USED", clock() - LONG_AGO),
    ):
        storage.get_storage(app).put(f"connections/{name}.json", [b"{}"])
        with write_session() as session:
            session.add(
                Connection(
                    id=name, name=name, type="sqlite", metadata_key=f"connections/{name}.json", deleted_at=deleted_at,
                    **place,
                )
            )  # fmt: skip
            session.flush()
            session.add(Secret(connection_id=name, sealed=b"x", workspace_id=place["workspace_id"]))
    with write_session() as session:
        fetched = {"question": "q", "snapshot": "s", "fetched_at": clock(), "expires_at": clock() + LONG_AGO}
        session.add(Fetched(workspace_id=place["workspace_id"], connection_id="con_USED", **fetched))
    assert purge(clock()) == 1
    assert (count(Connection), count(Secret)) == (2, 2)
    assert storage.get_storage(app).head("connections/con_USED.json").size == 2
    with pytest.raises(storage.MissingError):
        storage.get_storage(app).head("connections/con_GONE.json")


def test_answers_and_tokens_that_have_run_out_are_removed(place, count, clock):
    with write_session() as session:
        user = User(email="ada@example.com")
        session.add(user)
        session.flush()
        for number, ends in enumerate((clock() - LONG_AGO, clock() + timedelta(hours=1))):
            session.add(SignInLink(token_hash=f"{number}", user_id=user.id, expires_at=ends))
            session.add(
                IdempotencyRecord(
                    workspace_id=place["workspace_id"],
                    caller=user.id,
                    key_hash=f"{number}",
                    request_hash="",
                    expires_at=ends,
                )
            )
    assert purge(clock()) == 2
    assert (count(SignInLink), count(IdempotencyRecord)) == (1, 1)


def test_the_sweeper_purges_now_and_then(app, new_export, count, clock, monkeypatch):
    monkeypatch.setattr(
        limits, "RETENTION_TURN_SECONDS", float("inf")
    )  # a deletion that is cut short is continued at once
    sweeping = sweeper.Sweeper(app, lambda _seconds: True, clock)
    new_export(deleted_at=clock() - LONG_AGO)
    sweeping.run_once()
    assert count(Export) == 0
    new_export(deleted_at=clock() - LONG_AGO)
    sweeping.run_once()
    assert count(Export) == 1, "not at every turn"
    clock.forward(limits.PURGE_SECONDS + 1)
    sweeping.run_once()
    assert count(Export) == 0
