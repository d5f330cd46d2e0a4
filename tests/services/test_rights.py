"""What a process remembers about a key holds no longer than the truth."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from tests.jobs.waiting import eventually
from webapp import clock, limits
from webapp.access import actors
from webapp.access.actors import require_scope
from webapp.access.models import ApiKey, Membership, User, Workspace
from webapp.accounts.services import identity, people
from webapp.errors import ApiError
from webapp.extensions import db, redis_client, write_queue


@pytest.fixture
def queries(app, monkeypatch):
    """How often a key was read from SQL."""
    reads = []
    real = identity._read_key
    monkeypatch.setattr(identity, "_read_key", lambda *a: (reads.append(a), real(*a))[1])
    return reads


def test_a_known_key_costs_no_sql(api, cast, queries):
    for _ in range(5):
        assert api(cast.edith).get("/nope").status_code == 404
    assert len(queries) == 1


def test_every_change_of_rights_is_read_once_more(app, api, cast, queries):
    api(cast.edith).get("/nope")
    with app.app_context():
        acme = actors.system_actor(cast.acme)
        member = db.session.scalar(db.select(Membership).where(Membership.user_id == cast.victor.user_id))
        people.change_role(acme, member, "editor")
    for _ in range(3):
        api(cast.edith).get("/nope")
    assert len(queries) == 2


def test_an_emptied_redis_only_costs_one_more_read(app, api, cast, queries):
    api(cast.edith).get("/nope")
    with app.app_context():
        redis_client().flushdb()
    for _ in range(3):
        assert api(cast.edith).get("/me").status_code == 200
    assert len(queries) == 2


def test_no_entry_is_cached_during_a_change(app, api, cast, queries):
    with app.app_context():
        actors.announce_permission_change(db.session(), cast.acme)
        with ThreadPoolExecutor(1) as elsewhere:
            for _ in range(3):
                assert elsewhere.submit(api(cast.edith).get, "/me").result().status_code == 200
        assert len(queries) == 3
        db.session.commit()
    api(cast.edith).get("/me")
    api(cast.edith).get("/me")
    assert len(queries) == 4


def test_data_read_between_announcement_and_commit_are_not_trusted_afterwards(app, api, cast):
    with app.app_context():
        actors.announce_permission_change(db.session(), cast.acme)
        with ThreadPoolExecutor(1) as elsewhere:
            assert elsewhere.submit(api(cast.edith).get, "/me").result().status_code == 200
        db.session.get_one(ApiKey, cast.edith.key_id).revoked_at = clock.now()
        db.session.commit()
    assert api(cast.edith).get("/me").json["error"]["details"]["reason"] == "revoked"


def test_a_rolled_back_change_leaves_no_pending_epoch(app, cast):
    with app.app_context():
        db.session.execute(db.select(Workspace))
        actors.announce_permission_change(db.session(), cast.acme)
        assert not actors.is_cacheable(actors.current_epoch(cast.acme))
        db.session.rollback()
        assert actors.is_cacheable(actors.current_epoch(cast.acme))


def test_a_process_that_dies_during_the_update_blocks_no_one(app, api, cast):
    with app.app_context():
        redis_client().set(actors.epoch_key(cast.acme), "pending:dead", ex=limits.EPOCH_PENDING_SECONDS)
        assert 0 < redis_client().ttl(actors.epoch_key(cast.acme)) <= limits.EPOCH_PENDING_SECONDS
    assert api(cast.edith).get("/me").status_code == 200


def test_a_change_that_cannot_be_announced_is_not_made(app, cast, monkeypatch):
    import redis

    def away(*_args, **_more):
        raise redis.ConnectionError("away")

    with app.app_context():
        member = db.session.scalar(db.select(Membership).where(Membership.user_id == cast.victor.user_id))
        monkeypatch.setattr(redis.Redis, "set", away)
        with pytest.raises(redis.ConnectionError):
            people.change_role(actors.system_actor(cast.acme), member, "admin")
        db.session.rollback()
        db.session.expire_all()
        assert member.role == "viewer"


def test_a_disabled_account_loses_access_immediately(app, api, cast):
    assert api(cast.edith).get("/me").status_code == 200
    with app.app_context():
        people.disable_user(actors.system_actor(), db.session.get_one(User, cast.edith.user_id))
    assert api(cast.edith).get("/me").json["error"]["details"]["reason"] == "revoked"


def test_constant_changes_of_the_epoch_do_not_reject_a_request(app, api, cast, monkeypatch):
    counted = identity.count_request

    def after_an_edit(*given):
        redis_client().set(actors.epoch_key(cast.acme), clock.now().isoformat())
        return counted(*given)

    monkeypatch.setattr(identity, "count_request", after_an_edit)
    statuses = [api(cast.edith).get("/me").status_code for _ in range(5)]
    assert statuses == [200] * 5


def test_fifty_parallel_edits_are_all_carried_out(app, api, cast):
    created = api(cast.edith).post(
        "/templates", json={"name": "t", "fields": [{"name": "a", "type": "name"}]}
    )
    path = f"/templates/{created.json['id']}"
    with ThreadPoolExecutor(50) as threads:
        edits = [threads.submit(api(cast.edith).patch, path, json={"name": f"t{n}"}) for n in range(50)]
        statuses = [edit.result().status_code for edit in edits]
    assert statuses == [200] * 50
    assert api(cast.edith).get(path).json["version"] == 51


def test_writers_of_sqlite_come_to_their_turn_in_the_order_they_came(tmp_path):
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'own.db'}", poolclass=sa.NullPool)
    came: list[int] = []

    def write(number: int) -> None:
        with engine.begin():
            came.append(number)

    turns, writes = write_queue(engine), []
    with ThreadPoolExecutor(20) as threads:
        with turns.wait_for_turn():
            for number in range(20):
                writes.append(threads.submit(write, number))
                eventually(lambda number=number: turns.waiting == number + 1)
            assert came == []
        for item in writes:
            item.result()
    assert came == list(range(20))
    assert turns.waiting == 0


def test_a_turn_that_does_not_come_is_not_waited_for_longer_than_the_lock(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "SQLITE_BUSY_MS", 50)
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'own.db'}", poolclass=sa.NullPool)
    turns = write_queue(engine)
    with turns.wait_for_turn(), ThreadPoolExecutor(1) as threads:

        def write() -> None:
            with engine.begin():
                pass

        threads.submit(write).result(timeout=20)
    assert turns.waiting == 0
    with engine.begin() as connection:
        assert connection.exec_driver_sql("SELECT 1").scalar() == 1


# --- Roles ---------------------------------------------------------------------------------------------------


def actor(role, team_roles=None, scopes=None):
    from dataclasses import replace

    return replace(
        actors.system_actor("ws_1", "prj_1", "team_1"),
        role=actors.highest_role(role, (team_roles or {}).get("team_1")),
        workspace_role=role,
        team_roles=team_roles or {},
        scopes=scopes,
    )


@pytest.mark.parametrize(
    ("role", "may"),
    [
        ("viewer", {"read", "member"}),
        ("editor", {"read", "member", "write", "generate", "push", "run"}),
        ("admin", {"read", "member", "write", "generate", "push", "run", "secrets", "admin"}),
        ("owner", {"read", "member", "write", "generate", "push", "run", "secrets", "admin", "owner"}),
        (None, set()),
    ],
)
def test_each_role_may_what_the_contract_of_roles_says(role, may):
    scopes = [*actors.PROJECT_SCOPES, *actors.WORKSPACE_SCOPES]
    assert {scope for scope in scopes if actor(role).can(scope)} == may


def test_a_teams_admin_is_none_of_the_workspace():
    of_team = actor(None, {"team_1": "owner"})
    assert of_team.can("write")
    assert of_team.can("member")
    assert not of_team.can("admin")
    assert not of_team.can("secrets")
    assert not of_team.can("write", "team_2")


def test_the_better_of_two_roles_counts():
    assert actor("viewer", {"team_1": "editor"}).can("write")
    assert not actor("viewer", {"team_1": "editor"}).can("write", "team_2")


def test_a_forbidden_error_names_the_missing_permission():
    with pytest.raises(ApiError) as caught:
        require_scope(actor("viewer"), "push")
    assert caught.value.details == {"needs": "push", "role": "editor"}
    with pytest.raises(ApiError) as caught:
        require_scope(actor("owner", scopes=frozenset({"read"})), "owner")
    assert caught.value.details == {"needs": "owner", "scope": "admin"}


# --- Members -------------------------------------------------------------------------------------------------


def member_id(api, cast, name):
    items = api(cast.olivia).get("/members?limit=100").json["items"]
    return next(m["id"] for m in items if m["user_id"] == cast.people[name].user_id)


def test_the_last_owner_stays(api, cast):
    mine = member_id(api, cast, "olivia")
    for answer in (
        api(cast.olivia).delete(f"/members/{mine}"),
        api(cast.olivia).patch(f"/members/{mine}", json={"role": "admin"}),
    ):
        assert (answer.status_code, answer.json["error"]["code"]) == (409, "conflict")


def test_users_cannot_raise_their_own_role_or_change_higher_ones(api, cast):
    adams, olivias = member_id(api, cast, "adam"), member_id(api, cast, "olivia")
    assert api(cast.adam).patch(f"/members/{adams}", json={"role": "owner"}).status_code == 403
    assert api(cast.adam).patch(f"/members/{olivias}", json={"role": "viewer"}).status_code == 403
    assert api(cast.adam).delete(f"/members/{olivias}").status_code == 403
    assert (
        api(cast.adam).post("/invitations", json={"email": "x@example.org", "role": "owner"}).status_code
        == 403
    )


def test_a_user_is_invited_once(api, cast):
    body = {"email": "new@example.org"}
    assert api(cast.adam).post("/invitations", json=body).status_code == 201
    assert api(cast.adam).post("/invitations", json=body).json["error"]["code"] == "conflict"
    assert (
        api(cast.adam).post("/invitations", json={"email": cast.edith.email}).json["error"]["code"]
        == "conflict"
    )
    assert api(cast.adam).post("/invitations", json={"email": "no address"}).status_code == 422
    in_team = {"email": "new@example.org", "team_id": cast.red}
    assert api(cast.adam).post("/invitations", json=in_team).status_code == 201
    assert api(cast.mallory).post("/invitations", json=in_team).status_code == 422


def test_a_second_change_in_one_session_is_announced_like_the_first(app, cast):
    with app.app_context():
        seen = set()
        for _ in range(3):
            actors.announce_permission_change(db.session(), cast.acme)
            assert not actors.is_cacheable(actors.current_epoch(cast.acme))
            db.session.commit()
            seen.add(actors.current_epoch(cast.acme))
        assert len(seen) == 3
        assert all(actors.is_cacheable(epoch) for epoch in seen)
