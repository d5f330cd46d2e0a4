"""Imports that a worker does: from the API and on the page, their end in every way, and what is left of them."""

from __future__ import annotations

import io
from datetime import timedelta

import pytest
from lxml import html
from sqlalchemy import delete, func, select

from jobs import imports as job
from webapp import clock, limits, storage
from webapp.access.models import Membership
from webapp.extensions import db, read_session, write_session
from webapp.imports.models import ImportJob
from webapp.imports.services import background
from webapp.operations.purge import purge
from webapp.row_templates.models import Template

SQL = """CREATE TABLE customers (id INT PRIMARY KEY, email VARCHAR(120) NOT NULL UNIQUE, city VARCHAR(40));
CREATE TABLE orders (id INT PRIMARY KEY, customer_id INT NOT NULL REFERENCES customers (id));"""
LARGE = SQL + "\n-- " + "x" * limits.IMPORT_IN_REQUEST_BYTES


@pytest.fixture
def worker(app):
    """Does an import as a worker would."""

    def do(import_id):
        with app.app_context():
            job.run(import_id)
            db.session.remove()

    return do


@pytest.fixture
def files(app):
    """The keys of what is stored for imports."""

    def keys():
        with app.app_context():
            return [item.key for item in storage.get_storage(app).listing(background.FOLDER)]

    return keys


@pytest.fixture
def begun(edith):
    """Begins an import in the background, and returns its id."""

    def begin(**body):
        answer = edith.post("/import", json={"content": SQL, "wait": False, **body})
        assert answer.status_code == 202, answer.text
        assert answer.headers["Location"] == f"/imports/{answer.json['id']}"
        assert (answer.json["status"], answer.json["result"]) == ("queued", None)
        return answer.json["id"]

    return begin


def test_a_worker_saves_the_templates_and_the_dataset(edith, begun, worker, files):
    identity = begun(quantity=7)
    worker(identity)
    found = edith.get(f"/imports/{identity}").json
    assert (found["status"], found["tables"], found["tables_done"], found["error"]) == (
        "completed",
        2,
        2,
        None,
    )
    result = found["result"]
    assert [(template["name"], template["quantity"]) for template in result["templates"]] == [
        ("customers", 7),
        ("orders", 7),
    ]
    saved = {item["id"] for item in edith.get("/templates").json["items"]}
    assert {template["id"] for template in result["templates"]} <= saved
    assert edith.get(f"/datasets/{result['dataset']['id']}").status_code == 200
    assert [file.endswith(".json") for file in files()] == [True]  # the document is deleted


def test_the_result_is_that_of_an_import_in_the_request(edith, begun, worker):
    identity = begun(save=False)
    worker(identity)
    result = edith.get(f"/imports/{identity}").json["result"]
    assert result == edith.post("/import", json={"content": SQL, "save": False}).json


def test_what_was_reviewed_is_created_without_the_document(edith, begun, worker):
    identity = begun(save=False)
    assert edith.post("/import", json={"content": SQL, "import_id": identity}).status_code == 422
    created = edith.post("/import", json={"import_id": identity, "types": ["", "", "phone_number"]})
    assert created.status_code == 201
    fields = {field["name"]: field["type"] for field in created.json["templates"][0]["fields"]}
    assert fields["city"] == "phone_number"
    assert edith.post("/import", json={"import_id": "imp_unknown"}).status_code == 404


def test_errors_of_the_document_are_errors_of_the_import(edith, begun, worker, files):
    identity = begun(content="{", format="json")
    worker(identity)
    found = edith.get(f"/imports/{identity}").json
    assert (found["status"], found["error"]["code"]) == ("failed", "validation_error")
    assert found["error"]["details"]["fields"][0]["code"] == "unreadable"
    assert files() == []


def test_an_import_can_be_cancelled_until_it_has_ended(edith, begun, worker, files):
    identity = begun()
    assert edith.delete(f"/imports/{identity}").json["status"] == "cancelled"
    assert files() == []
    with pytest.raises(Exception, match=identity):  # there is nothing to do
        worker(identity)
    assert edith.delete(f"/imports/{identity}").json["error"]["code"] == "run_finished"


def test_a_lost_worker_is_replaced_until_templates_are_saved(edith, begun, worker, row):
    identity = begun()
    lost = {
        "status": "running", "attempt": 1, "epoch": 1, "lease_owner": "gone",
        "lease_until": clock.now() - timedelta(minutes=5),
    }  # fmt: skip
    row(ImportJob, identity, **lost)
    worker(identity)
    assert edith.get(f"/imports/{identity}").json["status"] == "completed"
    other = begun()
    row(ImportJob, other, **lost, saving=True)
    before = len(edith.get("/templates").json["items"])
    worker(other)
    found = edith.get(f"/imports/{other}").json
    assert (found["status"], found["error"]["code"]) == ("failed", "worker_lost")
    assert len(edith.get("/templates").json["items"]) == before


def test_someone_who_lost_access_imports_nothing(edith, begun, worker, app, cast):
    identity = begun()
    before = len(edith.get("/templates").json["items"])
    with app.app_context(), write_session() as session:
        session.execute(delete(Membership).where(Membership.user_id == cast.edith.user_id))
    worker(identity)
    with app.app_context(), read_session() as session:
        found = session.get_one(ImportJob, identity)
        assert (found.status, found.error["code"]) == ("failed", "forbidden")
        assert session.scalar(select(func.count()).select_from(Template)) == before


def test_a_workspace_can_have_so_many_open_imports(edith, begun, monkeypatch, files):
    monkeypatch.setattr(limits, "OPEN_IMPORTS", 1)
    begun()
    answer = edith.post("/import", json={"content": SQL, "wait": False})
    assert (answer.status_code, answer.json["error"]["code"]) == (429, "quota_exceeded")
    assert len(files()) == 1


def test_imports_and_their_files_are_deleted_a_day_after_the_end(app, edith, begun, worker, files):
    identity = begun(save=False)
    worker(identity)
    assert len(files()) == 2
    with app.app_context():
        purge(clock.now() + timedelta(hours=limits.IMPORT_HOURS - 1))
        assert edith.get(f"/imports/{identity}").status_code == 200
        purge(clock.now() + timedelta(hours=limits.IMPORT_HOURS + 1))
    assert edith.get(f"/imports/{identity}").status_code == 404
    assert files() == []


# --- On the page ------------------------------------------------------------------------------------------------


@pytest.fixture
def page(browser, cast):
    return browser(cast.edith)


def sent(page, **fields):
    return page.submit("/import", fields, content_type="multipart/form-data", headers={"HX-Request": "true"})


def poll(page, identity):
    return page.get(f"/imports/{identity}", headers={"HX-Request": "true"})


def test_a_large_document_is_reviewed_and_created_by_a_worker(page, worker):
    waiting = sent(page, save="false", file=(io.BytesIO(LARGE.encode()), "shop.sql"))
    assert waiting.status_code == 202
    shown = html.fromstring(waiting.text)
    (identity,) = shown.xpath("//input[@name='import_id']/@value")
    assert shown.xpath(f"//section[@hx-get='/imports/{identity}'][@hx-target='#review']")
    assert "Waiting for a worker" in waiting.text
    worker(identity)
    review = poll(page, identity)
    assert html.fromstring(review.text).xpath("//table[contains(@class, 'review')]")
    assert "Create 2 templates and a dataset" in " ".join(review.text.split())
    creating = sent(page, save="true", import_id=identity, file=(io.BytesIO(b"id\n1\n"), "other.csv"))
    assert creating.status_code == 202  # what was reviewed, not the other file
    (second,) = html.fromstring(creating.text).xpath("//input[@name='import_id']/@value")
    worker(second)
    done = poll(page, second)
    assert done.headers["HX-Retarget"] == "#result"
    assert "Created 2 templates and the dataset “shop”" in " ".join(done.text.split())


def test_another_file_is_read_again(page):
    first = sent(page, save="false", file=(io.BytesIO(LARGE.encode()), "shop.sql"))
    (identity,) = html.fromstring(first.text).xpath("//input[@name='import_id']/@value")
    again = sent(page, save="false", import_id=identity, file=(io.BytesIO(b"town\nBonn\n"), "towns.csv"))
    assert "towns" in again.text
    assert "town" in html.fromstring(again.text).xpath("//th[@scope='row']/b/text()")


def test_without_javascript_the_import_has_a_page(page, worker):
    answer = page.submit("/import", {"save": "false", "content": LARGE}, content_type="multipart/form-data")
    assert answer.status_code == 303
    where = answer.headers["Location"]
    shown = page.get(where)
    assert html.fromstring(shown.text).xpath("//noscript//a[text()='Refresh']")
    worker(where.rpartition("/")[2])
    assert html.fromstring(page.get(where).text).xpath("//main//table[contains(@class, 'review')]")


def test_a_cancelled_import_and_one_without_its_result_say_so(page, begun, worker, edith, app, files):
    identity = begun()
    edith.delete(f"/imports/{identity}")
    assert "The import was cancelled." in poll(page, identity).text
    other = begun(save=False)
    worker(other)
    with app.app_context():
        for key in files():
            storage.get_storage(app).delete(key)
    assert "The result has been deleted." in poll(page, other).text


def test_a_failed_import_says_why(page, worker):
    answer = sent(page, save="false", content="{" + " " * limits.IMPORT_IN_REQUEST_BYTES, format="json")
    (identity,) = html.fromstring(answer.text).xpath("//input[@name='import_id']/@value")
    worker(identity)
    shown = html.fromstring(poll(page, identity).text)
    assert shown.xpath("//*[@role='alert']")
    assert "JSON" in shown.xpath("//*[@role='alert']")[0].text_content()


def test_the_status_page_leads_to_the_import(browser, cast, begun):
    identity = begun()
    page = html.fromstring(browser(cast.olivia).get("/status").text)
    (link,) = page.xpath(f"//a[@href='/imports/{identity}']")
    assert link.text_content() == "Import"
