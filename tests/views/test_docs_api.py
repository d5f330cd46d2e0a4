"""The API reference tells what the OpenAPI document has, all of it; the Postman collection the same."""

from __future__ import annotations

import gzip
import html
import json
import re
import shutil
from dataclasses import dataclass
from typing import Any

import pytest
from werkzeug.test import TestResponse

from tests.cast import Browser, Program
from tests.conftest import close_app, settings_for
from tests.views.samples import LANGUAGES, Shown, addresses, shown, slugs
from tests.views.samples import read as operation
from tests.views.speak import make
from webapp import create_app
from webapp.documentation.api import samples
from webapp.extensions import redis_client
from webapp.web import openapi

MOST_BYTES = 60_000  # compressed


@dataclass
class Read:
    """What a stranger reads: the operations of all pages, the pages, the document, the collection. And the operations
    as Edith reads them, who has a template."""

    found: list[Shown]
    pages: dict[str, str]
    document: dict[str, Any]
    collection: TestResponse
    ediths: list[Shown]
    template_id: str


@pytest.fixture(scope="module")
def read(peopled, shared_redis, tmp_path_factory) -> Read:
    """Read once for the module: nothing changes it."""
    folder = tmp_path_factory.mktemp("docs_api")
    shutil.copyfile(peopled[0], folder / "docs.db")
    app = create_app(settings_for(f"sqlite:///{folder}/docs.db", shared_redis, folder))
    with app.app_context():
        redis_client().flushdb()
    stranger, program = Browser(app), Program(app, "")
    edith = peopled[1].edith
    operations = addresses(stranger)
    listed = ("/docs/api", *(f"/docs/api/{slug}" for slug in slugs(stranger)), *operations)
    pages = {address: stranger.get(address).text for address in listed}
    template_id = make(Program(app, edith.key))["id"]
    result = Read(
        [operation(address, pages[address]) for address in operations],
        pages,
        program.get("/openapi.json").json,
        program.get("/docs/postman.json"),
        shown(Browser(app, edith)),
        template_id,
    )
    close_app(app)
    return result


@pytest.fixture
def document(read) -> dict[str, Any]:
    return read.document


def operations(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        f"{method.upper()} {path}": result
        for path, methods in document["paths"].items()
        for method, result in methods.items()
    }


# --- Pages ------------------------------------------------------------------------------------------------------


def test_every_operation_is_on_one_page_with_everything_in_the_document(read, document):
    found = read.found
    expected = operations(document)
    assert sorted(item.key for item in found) == sorted(expected)
    for item in found:
        result, text = expected[item.key], html.unescape(item.section)
        plain = re.sub(r"<[^>]+>", "", text)
        assert item.id == result["operationId"]
        assert item.slug == result["tags"][0].replace("_", "-")
        assert result["summary"].replace("`", "") in plain, item.key
        for parameter in result["parameters"]:
            assert f"<code>{parameter['name']}</code>" in text, (item.key, parameter["name"])
        for status, answer in result["responses"].items():
            assert status in plain, (item.key, status)
            for code in re.findall(r"`(\w+)`: ", answer["description"]) if int(status) >= 400 else ():
                assert f'<a href="/docs/errors#{code}">{code}</a>' in text, (item.key, code)
            for kind in answer.get("content", {}):
                assert int(status) >= 400 or kind in text, (item.key, kind)
            for header in answer["headers"]:
                assert header in text, (item.key, header)
        if result["x-scope"] not in ("public", "self", "member"):
            assert f"Scope <code>{result['x-scope']}</code>" in text, item.key
        assert ('"/docs/api#idempotency"' in text) is result.get("x-idempotency-key", False), item.key
        assert ('"/docs/api#changes"' in text) is result.get("x-if-match", False), item.key
        assert tuple(item.samples) == LANGUAGES


def test_the_keys_of_a_body_are_reported_at_any_depth(read, document):
    schemas = document["components"]["schemas"]
    for item in read.found:
        content = operations(document)[item.key].get("requestBody", {}).get("content", {})
        for result in content.values():
            schema = result["schema"]
            schema = schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
            for name, part in schema["properties"].items():
                assert f"<code>{name}</code>" in item.section, (item.key, name)
                if name in schema.get("required", ()):
                    assert f'<code>{name}</code> <span class="badge">required</span>' in item.section
                for choice in [part, *part.get("anyOf", ())]:
                    inner = schemas.get(choice.get("$ref", "").rpartition("/")[2], {})
                    for deeper in inner.get("properties", {}):
                        assert f"<code>{name}.{deeper}</code>" in item.section, (item.key, name, deeper)
    page = read.pages["/docs/api/templates/post-templates"]
    assert "<code>fields[].percent_blank</code>" in page


def test_limits_defaults_and_choices_are_shown(read):
    generate = next(item for item in read.found if item.key == "POST /generate").section
    row = re.search(r"<tr>(?:(?!</tr>).)*<code>offset</code>.*?</tr>", generate, re.S)[0]
    assert "<code>0</code>" in row
    assert "0 to 9,007,199,254,740,992" in row
    assert "<code>parquet</code>" in generate
    lists = next(item for item in read.found if item.key == "GET /templates").section
    assert "1 to 100" in lists


def test_an_object_in_a_response_is_shown_on_the_page(read):
    page = read.pages["/docs/api/pushes/get-pushes-push-id"]
    assert '<a href="#o-PushOut">PushOut</a>' in page
    assert '<h2 id="o-PushOut">' in page
    assert "<code>counts.delivered</code>" in page


def test_no_page_is_heavy(read):
    for address, page in read.pages.items():
        assert len(gzip.compress(page.encode())) < MOST_BYTES, address


def test_a_program_and_a_stranger_read_the_same_pages(api, browser):
    for address in ("/docs/api", "/docs/api/templates", "/docs/api/templates/get-templates"):
        for answer in (api().get(address), browser().get(address)):
            assert answer.status_code == 200
            assert answer.mimetype == "text/html"


def test_a_group_or_operation_that_is_not_there_is_not_found(api):
    for address in ("/docs/api/nothing", "/docs/api/templates/nothing", "/docs/api/nothing/get-templates"):
        assert api().get(address).status_code == 404, address


def test_anchors_and_ids_of_a_page_are_unique(read):
    for address, page in read.pages.items():
        ids = re.findall(r'\sid="([^"]+)"', page)
        assert len(ids) == len(set(ids)), address
        for anchor in re.findall(r'href="#([^"]+)"', page):
            assert anchor in ids, (address, anchor)


def test_links_within_the_reference_lead_to_what_is_there(read):
    for address, page in read.pages.items():
        for target, anchor in re.findall(r'href="(/docs/api[a-z0-9/.-]*)(?:#([^"]+))?"', page):
            assert target in read.pages, (address, target)
            assert not anchor or f' id="{anchor}"' in read.pages[target], (address, target, anchor)


# --- Whose samples they are -------------------------------------------------------------------------------------


def test_a_strangers_samples_name_no_project_and_no_key(read):
    for item in read.found:
        for text in item.samples.values():
            assert "OWN_" not in text
            assert "X-Project-Id" not in text
            assert "rws_" not in text
            assert "http://localhost" in text


def test_a_readers_samples_carry_her_project_and_objects_and_no_key(read, cast):
    template = read.template_id
    found = {edith.key: edith.samples for edith in read.ediths}
    for text in found["GET /templates/{template_id}"].values():
        assert template in text
        assert cast.main in text
    assert f'"template_id": "{template}"' in found["POST /datasets"]["curl"]
    for texts in found.values():
        for text in texts.values():
            assert cast.edith.key not in text
            assert "OWN_" not in text


def test_samples_that_change_or_delete_name_nothing_of_the_readers(read):
    assert len(read.ediths) == len(read.found)
    for edith in read.ediths:
        if not edith.key.startswith(("GET ", "POST ")) or edith.key.startswith("POST /export"):
            for text in edith.samples.values():
                assert read.template_id not in text, edith.key
                assert re.search(r"\bOWN_", text) is None


def test_objects_of_other_workspaces_are_not_used_in_samples(browser, api, cast):
    theirs = make(api(cast.edith))["id"]
    for item in shown(browser(cast.mallory), "templates", "datasets", "generate"):
        assert all(theirs not in text for text in item.samples.values())


def test_a_member_of_one_team_is_shown_nothing_of_the_others(browser, api, cast):
    hidden = make(api(cast.olivia, **{"X-Project-Id": cast.red_project}))["id"]
    reader = browser(cast.tessa)
    template = reader.get("/docs/api/templates/get-templates-template-id").text
    assert "/templates/TEMPLATE_ID" in template
    assert hidden not in template
    teams = "".join(item.section for item in shown(reader, "projects"))
    assert cast.red not in teams
    assert cast.blue in teams


def test_the_language_of_a_browser_is_remembered(browser):
    reader = browser()
    reader.client.set_cookie("language", "typescript")
    page = reader.get("/docs/api/audit/get-audit").text
    assert 'id="t-typescript" aria-controls="p-typescript" aria-selected="true"' in page
    assert re.search(r'id="p-curl"[^>]* hidden>', page)
    assert not re.search(r'id="p-typescript"[^>]* hidden>', page)
    reader.client.set_cookie("language", '"><script>')
    assert (
        'id="t-curl" aria-controls="p-curl" aria-selected="true"'
        in reader.get("/docs/api/audit/get-audit").text
    )


# --- Examples ---------------------------------------------------------------------------------------------------


def test_every_body_has_a_valid_example(app):
    left = dict(samples.BODIES)
    for rule, declaration in openapi.declared_routes(app):
        for method in declaration.methods if declaration.body and not declaration.hidden else ():
            body = left.pop(f"{method} {openapi.path_of(rule)}")
            declaration.body.model_validate(body)
    assert not left, "examples of operations that are not there"


# --- Postman ----------------------------------------------------------------------------------------------------


def requests_of(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [entry for item in items for entry in (requests_of(item["item"]) if "item" in item else [item])]


@pytest.fixture
def postman(read) -> dict[str, Any]:
    assert read.collection.status_code == 200
    assert "attachment" in read.collection.headers["Content-Disposition"]
    return read.collection.json


def test_the_collection_keeps_to_the_rules_of_its_format(postman):
    assert set(postman) <= {"info", "item", "event", "variable", "auth", "protocolProfileBehavior"}
    info = postman["info"]
    assert info["name"]
    assert info["schema"] == "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"
    for variable in postman["variable"]:
        assert variable["type"] in ("string", "boolean", "any", "number")
        assert variable["key"]
    known = {entry["key"] for entry in postman["variable"]}
    assert {"base_url", "api_key"} <= known
    assert set(re.findall(r"\{\{(\w+)\}\}", json.dumps(postman))) <= known
    auth = postman["auth"]
    assert auth["type"] == "bearer"
    assert auth["bearer"] == [{"key": "token", "value": "{{api_key}}", "type": "string"}]
    for folder in postman["item"]:
        assert folder["name"]
        assert isinstance(folder["item"], list)
    for item in requests_of(postman["item"]):
        assert set(item) <= {"id", "name", "description", "variable", "event", "request", "response"}
        request = item["request"]
        assert set(request) <= {
            "url",
            "auth",
            "proxy",
            "certificate",
            "method",
            "description",
            "header",
            "body",
        }
        assert request["method"] in ("GET", "POST", "PUT", "PATCH", "DELETE")
        for header in request["header"]:
            assert isinstance(header["key"], str)
            assert isinstance(header["value"], str)
        url = request["url"]
        assert isinstance(url["raw"], str)
        assert all(isinstance(entry, str) for entry in (*url["host"], *url["path"]))
        for variable in url.get("variable", ()):
            assert f":{variable['key']}" in url["path"]
        body = request.get("body")
        if body:
            assert body["mode"] in ("raw", "urlencoded", "formdata", "file", "graphql")
            assert body["mode"] in body
        if body and body["mode"] == "raw":
            assert body["options"] == {"raw": {"language": "json"}}
        if body and body["mode"] == "formdata":
            for part in body["formdata"]:
                assert part["type"] in ("text", "file")
                assert part["key"]


def test_the_collection_has_every_operation_of_the_document_and_no_other(postman, document):
    found = {}
    for item in requests_of(postman["item"]):
        request = item["request"]
        path = "/" + "/".join(re.sub(r"^:(\w+)$", r"{\1}", entry) for entry in request["url"]["path"])
        path = re.sub(r"\{\{(\w+)\}\}", r"{\1}", path)
        found[f"{request['method']} {path}"] = request
        assert request["url"]["raw"] == "{{base_url}}/" + "/".join(request["url"]["path"])
    expected = operations(document)
    assert sorted(found) == sorted(expected)
    for key, request in found.items():
        result = expected[key]
        query = {parameter["name"] for parameter in result["parameters"] if parameter["in"] == "query"}
        assert {entry["key"] for entry in request["url"].get("query", ())} == query
        assert (request.get("auth") == {"type": "noauth"}) is (result["x-scope"] == "public")
        kinds = set(result.get("requestBody", {}).get("content", {}))
        if "application/json" in kinds:
            body = json.loads(request["body"]["raw"])
            assert body.keys() == samples.BODIES[key].keys()
            assert "OWN_" not in request["body"]["raw"]


def test_the_collection_names_the_address_it_was_read_from_and_no_key(postman):
    values = {item["key"]: item["value"] for item in postman["variable"]}
    assert values["base_url"] == "http://localhost"
    assert values["api_key"] == ""


def test_an_id_that_is_put_in_once_counts_in_all_requests_that_only_read_or_make(postman):
    known = {entry["key"]: entry["value"] for entry in postman["variable"]}
    assert known["template_id"] == "TEMPLATE_ID"
    for item in requests_of(postman["item"]):
        request = item["request"]
        parts = {entry["key"]: entry["value"] for entry in request["url"].get("variable", ())}
        if request["method"] == "GET" and "template_id" in parts:
            assert parts["template_id"] == "{{template_id}}", item["name"]
        if request["method"] in ("PUT", "PATCH", "DELETE"):
            assert "{{" not in json.dumps(parts), item["name"]


def test_folders_are_the_groups_of_the_pages(postman, read):
    assert len(postman["item"]) == len({item.slug for item in read.found})
