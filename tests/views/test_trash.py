"""The trash of all kinds, what uses an object, and the end of a workspace."""

from __future__ import annotations

from datetime import timedelta
from itertools import count

import pytest
from sqlalchemy import event, func, select

from tests.cast import Program
from tests.views.uploading import send
from webapp import clock, limits
from webapp.access import actors
from webapp.access.models import ApiKey, Membership, Project, Workspace
from webapp.accounts.services import workspaces
from webapp.audit.models import AuditEntry
from webapp.extensions import db, redis_client
from webapp.operations import purge
from webapp.pushes.models import Push
from webapp.row_templates.models import Template
from webapp.work import batch_delete

ID = [{"name": "id", "type": "row_number"}]


def code(answer):
    return answer.status_code, answer.json["error"]["code"]


def made(program, where, /, **body):
    answer = program.post(where, json=body)
    assert answer.status_code == 201, answer.text
    return answer.json


@pytest.fixture
def things(api, cast):
    """One object of each kind that can be deleted, by kind. Their names say which one uses which."""
    adam = api(cast.adam)
    template = made(adam, "/templates", name="Customers", fields=ID)["id"]
    secret = adam.put("/secrets/token", json={"value": "v"})
    assert secret.status_code == 201
    connection = made(
        adam, "/connections", name="Target", type="rest",
        settings={"base_url": "https://example.org", "auth": {"type": "bearer", "token": "${token}"}},
    )["id"]  # fmt: skip
    return {
        "template": template,
        "dataset": made(adam, "/datasets", name="Shop", templates=[{"template_id": template}])["id"],
        "scenario": made(adam, "/scenarios", name="Nightly", code=f"TEMPLATE = '{template}'\n")["id"],
        "connection": connection,
        "endpoint": made(adam, "/endpoints", name="Post", connection_id=connection, path="/x")["id"],
        "file": send(adam, "inputs/kunden-ü.csv", b"id\n1\n").json["id"],
        "secret": secret.json["id"],
        "webhook": made(
            adam,
            "/webhooks",
            url="https://example.org/hook?key=hidden",
            events=["push.failed"],
            description="Ops",
        )["id"],
        "team": made(adam, "/teams", name="Empty")["id"],
        "project": cast.side,
    }


def delete(program, kind, object_id):
    if kind == "file":
        name = next(
            item["name"] for item in program.get("/workspace/files").json["items"] if item["id"] == object_id
        )
        return program.delete(f"/workspace/files/{name}")
    return program.delete(f"/{kind}s/{object_id}")


KINDS = ("dataset", "endpoint", "scenario", "connection", "template", "file", "webhook", "team", "project")


def test_every_kind_is_in_the_trash_with_who_and_until_when_and_comes_back(api, browser, cast, things):
    adam = api(cast.adam)
    for kind in KINDS:
        assert delete(adam, kind, things[kind]).status_code == 200, kind
    found = adam.get("/trash?limit=100").json
    assert [(item["type"], item["id"]) for item in found["items"]] == [
        (kind, things[kind]) for kind in KINDS[::-1]
    ]
    assert found["total"] == len(KINDS)
    assert {item["deleted_by"] for item in found["items"]} == {cast.adam.user_id}
    assert {item["days_left"] for item in found["items"]} == {29}
    assert {item["restorable"] for item in found["items"]} == {True}
    page = browser(cast.adam).get("/trash").text
    for kind in KINDS:
        assert f'/{things[kind]}/restore"' in page, kind
    adam_by_hand = browser(cast.adam)
    for kind in KINDS:
        path = "workspace/files" if kind == "file" else f"{kind}s"
        assert adam_by_hand.submit(f"/{path}/{things[kind]}/restore").status_code == 303, kind
    assert adam.get("/trash").json["total"] == 0


def test_webhooks_in_the_trash_are_for_those_who_keep_them_and_show_no_address(api, cast):
    adam, edith, victor = api(cast.adam), api(cast.edith), api(cast.victor)
    mine, everybodys = (
        made(adam, "/webhooks", url="https://hooks.example.org/x?key=hidden", events=["*"], scope=scope)["id"]
        for scope in ("project", "workspace")
    )
    for item in (mine, everybodys):
        assert adam.delete(f"/webhooks/{item}").status_code == 200
    found = adam.get("/trash?type=webhook")
    assert [item["id"] for item in found.json["items"]] == [everybodys, mine]
    assert {item["name"] for item in found.json["items"]} == {"hooks.example.org"}
    assert "hidden" not in found.text
    assert [item["id"] for item in edith.get("/trash?type=webhook").json["items"]] == [mine]
    assert victor.get("/trash?type=webhook").json["total"] == 0
    assert code(edith.post(f"/webhooks/{everybodys}/restore"))[0] == 403
    assert edith.post(f"/webhooks/{mine}/restore").status_code == 200
    assert edith.get("/trash?type=webhook").json["total"] == 0


def test_no_more_webhooks_come_back_than_a_workspace_may_have(api, cast, monkeypatch):
    adam = api(cast.adam)
    gone = made(adam, "/webhooks", url="https://example.org/1", events=["*"])["id"]
    adam.delete(f"/webhooks/{gone}")
    made(adam, "/webhooks", url="https://example.org/2", events=["*"])
    monkeypatch.setattr(limits, "WEBHOOKS", 1)
    assert code(adam.post(f"/webhooks/{gone}/restore")) == (409, "conflict")
    assert [item["id"] for item in adam.get("/trash").json["items"]] == [gone]


def test_the_trash_is_searched_narrowed_and_paged(api, cast):
    adam = api(cast.adam)
    for number in range(5):
        adam.delete(f"/templates/{made(adam, '/templates', name=f'T{number}', fields=ID)['id']}")
    adam.delete(f"/projects/{cast.side}")
    assert [item["name"] for item in adam.get("/trash?q=t3").json["items"]] == ["T3"]
    assert [item["type"] for item in adam.get("/trash?type=project").json["items"]] == ["project"]
    first = adam.get("/trash?limit=4").json
    rest = adam.get(f"/trash?limit=4&cursor={first['next_cursor']}").json
    assert [item["name"] for item in (*first["items"], *rest["items"])] == [
        "Side",
        "T4",
        "T3",
        "T2",
        "T1",
        "T0",
    ]
    assert rest["next_cursor"] is None
    assert code(adam.get(f"/trash?q=t&cursor={first['next_cursor']}")) == (400, "invalid_request")
    assert code(adam.get("/trash?type=nonsense")) == (400, "invalid_request")


def test_the_trash_lists_restorable_objects_and_who_may_restore_them(app, api, cast):
    adam = api(cast.adam)
    old, new = (made(adam, "/templates", name=name, fields=ID)["id"] for name in ("Old", "New"))
    for item in (old, new):
        adam.delete(f"/templates/{item}")
    with app.app_context():
        db.session.get_one(Template, old).deleted_at = clock.now() - timedelta(days=30, seconds=1)
        db.session.commit()
    assert [item["id"] for item in adam.get("/trash").json["items"]] == [new]
    assert [item["restorable"] for item in api(cast.victor).get("/trash").json["items"]] == [False]
    assert api(cast.mallory).get("/trash").json["total"] == 0


# --- What uses what -----------------------------------------------------------------------------------------


def uses(program, object_id):
    found = program.get(f"/used-by/{object_id}").json
    return [(item["type"], item["name"], item["blocks"]) for item in found["items"]], found["blocked"]


def test_dependents_of_each_kind_are_listed(api, cast, things):
    adam = api(cast.adam)
    assert uses(adam, things["template"]) == (
        [("dataset", "Shop", False), ("scenario", "Nightly", False)],
        False,
    )
    assert uses(adam, things["connection"]) == ([("endpoint", "Post", True)], True)
    assert uses(adam, things["secret"]) == ([("connection", "Target", True)], True)
    assert uses(adam, things["dataset"]) == ([], False)
    assert uses(adam, things["file"]) == ([], False)
    assert uses(adam, cast.blue)[0] == [
        ("project", "Main", True), ("project", "Side", True), ("member", cast.tessa.email, False),
    ]  # fmt: skip
    assert ("template", "Customers", False) in uses(adam, cast.main)[0]
    assert ("api_key", "edith's key", False) in uses(adam, cast.main)[0]
    assert ("api_key", "edith's key", False) not in uses(api(cast.victor), cast.main)[0]


def test_rows_from_a_file_with_any_characters_in_its_name(api, cast, things):
    adam = api(cast.adam)
    source = {"file": "inputs/kunden-ü.csv"}
    fields = [{"name": "id", "type": "source_column"}]
    answer = adam.post("/templates", json={"name": "Real", "fields": fields, "source": source})
    assert answer.status_code == 201, answer.text
    assert uses(adam, things["file"])[0] == [("template", "Real", False)]


def test_a_connection_that_a_source_reads_is_in_use(api, cast):
    adam = api(cast.adam)
    connection = made(adam, "/connections", name="C", type="sqlite", settings={"file": "used.db"})["id"]
    source = {"connection_id": connection, "query": "SELECT 1 AS id"}
    fields = [{"name": "id", "type": "source_column"}]
    answer = adam.post("/templates", json={"name": "Real", "fields": fields, "source": source})
    assert answer.status_code == 201, answer.text
    assert code(adam.delete(f"/connections/{connection}")) == (409, "in_use")


def test_objects_in_inaccessible_teams_are_reported_without_names(app, api, cast, things):
    adam = api(cast.adam, **{"X-Project-Id": cast.red_project})
    made(adam, "/datasets", name="Hidden", templates=[{"template_id": things["template"]}])
    seen = api(cast.tessa).get(f"/used-by/{things['template']}").json["items"]
    assert ("dataset", None, None) in {(item["type"], item["id"], item["name"]) for item in seen}
    assert "Hidden" not in str(seen)


@pytest.mark.parametrize(
    "strange", ["nonsense", "exp_01M7Y5BT16VAMSDNZ2PWHH1947", "tpl_01M7Y5BT16VAMSDNZ2PWHH1947"]
)
def test_missing_objects_are_not_reported(api, cast, strange):
    assert code(api(cast.adam).get(f"/used-by/{strange}")) == (404, "not_found")


def test_secrets_are_only_shown_to_users_with_permission(api, cast, things):
    assert code(api(cast.edith).get(f"/used-by/{things['secret']}")) == (403, "forbidden")
    sealed = api(cast.adam).get("/secrets").json
    assert sealed["total"] == 1


def test_the_page_before_deleting_lists_dependents_and_blocking_ones(browser, cast, things):
    adam = browser(cast.adam)
    free = adam.get(f"/used-by/{things['template']}").text
    assert "Shop" in free
    assert f'action="/templates/{things["template"]}?_method=DELETE"' in free
    stored = adam.get(f"/used-by/{things['connection']}", headers={"HX-Request": "true"}).text
    assert "This is in use." in stored
    assert "_method=DELETE" not in stored
    assert "<html" not in stored
    assert "_method=DELETE" not in browser(cast.victor).get(f"/used-by/{things['template']}").text


# --- The end of a workspace ---------------------------------------------------------------------------------


def test_only_the_owner_deletes_the_workspace_and_only_by_its_name(api, cast):
    assert code(api(cast.adam).delete("/workspace", json={"confirm": "Acme"})) == (403, "forbidden")
    wrong = api(cast.olivia).delete("/workspace", json={"confirm": "acme"})
    assert wrong.json["error"]["details"]["fields"][0]["path"] == "confirm"
    assert api(cast.olivia).get("/workspace").json["deleted_at"] is None


def test_a_deleted_workspace_is_inaccessible_until_the_operator_restores_it(app, api, browser, cast):
    olivia, edith = browser(cast.olivia), api(cast.edith)
    assert edith.get("/templates").status_code == 200
    gone = olivia.submit("/workspace", {"confirm": "Acme"}, "DELETE")
    assert (gone.status_code, gone.headers["Location"]) == (303, "/sign-in")
    assert edith.get("/templates").json["error"]["details"]["reason"] == "revoked"
    assert olivia.get("/templates").headers["Location"].startswith("/sign-in")
    assert api(cast.mallory).get("/templates").status_code == 200
    with app.app_context():
        workspaces.restore_workspace(actors.system_actor(cast.acme), db.session.get_one(Workspace, cast.acme))
    app.extensions.pop("rowsmith.identities")  # a key that was refused is remembered as such for a minute
    assert edith.get("/templates").status_code == 200


def test_work_on_its_way_in_a_deleted_workspace_is_asked_to_end(app, api, cast):
    edith = api(cast.edith)
    template = made(edith, "/templates", name="T", fields=ID)["id"]
    export = made(edith, f"/templates/{template}/exports", format="csv")["id"]
    api(cast.olivia).delete("/workspace", json={"confirm": "Acme"})
    with app.app_context():
        from webapp.exports.models import Export

        assert db.session.get_one(Export, export).cancel_requested_at is not None


def test_a_deleted_workspace_goes_a_little_at_a_time(app, api, cast, monkeypatch):
    """No transaction takes more than a batch of its trail, and what one turn leaves the next one takes."""
    for number in range(30):
        made(api(cast.adam), "/templates", name=f"T{number}", fields=ID)
    api(cast.olivia).delete("/workspace", json={"confirm": "Acme"})
    monkeypatch.setattr(limits, "RETENTION_BATCH_ROWS", 7)
    monkeypatch.setattr(limits, "RETENTION_PAUSE_SECONDS", 0.0)
    batches, with_it = [], []

    def watch(_connection, cursor, statement, *_rest):
        if statement.startswith("DELETE FROM audit_entries"):
            batches.append(cursor.rowcount)
        elif statement.startswith("DELETE FROM workspaces"):
            with_it.append(statement)

    later, turns = clock.now() + timedelta(days=31), 0
    with app.app_context():
        mine = select(func.count()).where(AuditEntry.workspace_id == cast.acme)
        whole = db.session.scalar(mine)
        theirs = db.session.scalar(select(func.count()).where(AuditEntry.workspace_id == cast.mallory_inc))
        db.session.rollback()
        event.listen(db.engine, "after_cursor_execute", watch)
        while db.session.get(Workspace, cast.acme) is not None:
            db.session.rollback()
            looks = count()
            purge.purge(later, batch_delete.TimeBudget(60, clock=lambda looks=looks: float(next(looks))))
            turns += 1
            assert turns < 100
        event.remove(db.engine, "after_cursor_execute", watch)
        assert whole > 30
        assert sum(batches) == whole
        assert max(batches) <= 7
        assert turns > 1
        assert len(with_it) == 1
        assert db.session.scalar(mine) == 0
        assert (
            db.session.scalar(select(func.count()).where(AuditEntry.workspace_id == cast.mallory_inc))
            == theirs
        )


def test_after_30_days_nothing_of_a_deleted_workspace_is_left_and_all_of_the_others(app, api, cast):
    made(api(cast.edith), "/templates", name="T", fields=ID)
    theirs = made(api(cast.mallory), "/templates", name="M", fields=ID)["id"]
    api(cast.olivia).delete("/workspace", json={"confirm": "Acme"})
    with app.app_context():
        purge.purge(clock.now() + timedelta(days=29))
        assert db.session.get(Workspace, cast.acme) is not None
        db.session.rollback()
        purge.purge(clock.now() + timedelta(days=31))
        for model in (Project, Template, Membership, ApiKey, Push):
            assert db.session.query(model).filter_by(workspace_id=cast.acme).count() == 0, model
        assert db.session.get(Workspace, cast.acme) is None
        redis_client().flushdb()
    assert Program(app, cast.mallory.key).get(f"/templates/{theirs}").status_code == 200
    assert Program(app, cast.edith.key).get("/me").json["error"]["details"]["reason"] == "unknown"
