"""The package as a whole: small modules, nothing but the standard library, Python 3.9."""

from __future__ import annotations

import ast
import json
import os
import pickle
import shutil
import subprocess
import sys
from datetime import date
from decimal import Decimal

import pytest
import rowsmith
from rowsmith import Field, Template, error, fields
from rowsmith.wire import address
from rowsmith.wire.bodies import Form

from tests.sdk.conftest import PACKAGE
from webapp.row_templates.services import catalogue

SOURCE = PACKAGE / "src" / "rowsmith"
MODULES = sorted(SOURCE.rglob("*.py"))
OPTIONAL = {
    "pandas",
    "pyarrow",
    "typing_extensions",
}  # asked for by methods that need them, or by type checkers


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_is_python_39_and_imports_only_the_standard_library(path):
    text = path.read_text("utf-8")
    tree = ast.parse(text, feature_version=(3, 9))
    for node in ast.walk(tree):
        names = (
            [item.name for item in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
        for name in names:
            top = name.partition(".")[0]
            assert top == "rowsmith" or top in sys.stdlib_module_names | OPTIONAL, name


def test_importing_it_opens_nothing_and_needs_no_other_package():
    code = (
        "import sys, rowsmith; sys.exit(any(one in sys.modules for one in ('requests', 'pandas', 'pyarrow')))"
    )
    command = [
        sys.executable,
        "-I",
        "-S",
        "-W",
        "error",
        "-c",
        f"import sys; sys.path[:0] = [{str(SOURCE.parent)!r}]; {code}",
    ]
    assert subprocess.run(command, check=False).returncode == 0


OLDEST = """
import io, json, sys
import rowsmith
from rowsmith import Template, error, fields

api, client = rowsmith.Api(), rowsmith.Client()
made = api.templates.create(Template("T", fields=[fields.RowNumberField("id"), fields.EmailField("mail")]))
rows = client.generate_from_template_id(made["id"], 3)
stream = list(api.templates.rows(made["id"], count=500, seed="s"))
api.templates.save(made["id"], "rows.csv", count=500, seed="s")
file = api.files.upload(io.BytesIO(b"bytes"), "a/b.bin")
back = api.files.download("a/b.bin", "back.bin").read_bytes()
try:
    api.templates.get("tpl_00000000000000000000000000")
except error.NotFound as failure:
    code = failure.code
scenario = api.scenarios.create(name="S", code="print()")
run = api.runs.start(scenario["id"])
api.runs.cancel(scenario["id"], run["id"])
end = api.runs.follow_log(scenario["id"], run["id"], timeout=30).wait()["status"]
api.close()
print(json.dumps([sys.version_info[:2], len(rows), len(stream), back.decode(), code, end]))
"""


def test_it_works_on_the_oldest_python_it_promises(client, tmp_path):
    found = os.environ.get("TEST_PYTHON_39") or shutil.which("python3.9")
    if not found or subprocess.run([found, "-c", ""], check=False, capture_output=True).returncode:
        pytest.skip("no Python 3.9: name one in TEST_PYTHON_39")
    command = [found, "-W", "error", "-c", f"import sys; sys.path[:0] = [{str(SOURCE.parent)!r}]\n{OLDEST}"]
    text = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert text.returncode == 0, text.stderr
    assert json.loads(text.stdout) == [[3, 9], 3, 500, "bytes", "not_found", "cancelled"]


def test_generated_modules_are_what_the_catalogue_and_the_routes_give_now(generate, described):
    stale = generate.changed(described)
    assert not stale, f"run {generate.__file__}"


def test_there_is_a_class_for_every_type_of_the_catalogue():
    assert set(fields.BY_TYPE) == {entry["name"] for entry in catalogue.entries()}
    assert fields.FirstNameField is fields.BY_TYPE["first_name"]
    for name, kind in fields.BY_TYPE.items():
        assert kind.__doc__, name
        assert issubclass(kind, Field)


def test_options_have_the_names_of_the_catalogue_next_to_the_common_keys():
    result = fields.NumberField("n", min=1, max=None, lambda_=2, percent_blank=5, unique="key", prefix="#")
    assert result.to_dict() == {
        "name": "n",
        "type": "number",
        "percent_blank": 5,
        "unique": "key",
        "prefix": "#",
        "options": {"min": 1, "max": None, "lambda": 2},
    }
    assert fields.IBANField("i", country_code="DE").options == {"countryCode": "DE"}
    with pytest.raises(TypeError, match="colour"):
        fields.NumberField("n", colour="red")


def test_fields_can_be_nested():
    inner = fields.NestedField(
        "address", fields=[fields.CityField("city"), {"name": "zip", "type": "zip_code"}]
    )
    result = Template("T", fields=[inner, Field("mail", "E-Mail", sensitive=True)]).to_dict()
    assert result == {
        "name": "T",
        "fields": [
            {
                "name": "address",
                "type": "nested",
                "options": {
                    "fields": [{"name": "city", "type": "city"}, {"name": "zip", "type": "zip_code"}]
                },
            },
            {"name": "mail", "type": "E-Mail", "sensitive": True},
        ],
    }


def test_the_service_takes_every_class_of_fields(client):
    """What has no required options is sent as it is; the rest is known to the type checker."""
    result = []
    for name, kind in fields.BY_TYPE.items():
        try:
            result.append(kind(name))
        except TypeError:
            continue
    ours = [item for item in result if item.type in EASY]
    rows = client.generate(Template("all", quantity=2, fields=ours))
    assert set(rows[0]) == {item.name for item in ours}


EASY = {
    "first_name",
    "last_name",
    "email",
    "city",
    "country",
    "number",
    "float",
    "boolean",
    "uuid",
    "date",
    "iban",
}


def test_errors_survive_being_sent_to_another_process():
    result = error.ValidationError("validation_error", 422, {"fields": [{"path": "a"}]}, "req_1", "No.", 3.0)
    again = pickle.loads(pickle.dumps(result))
    assert type(again) is error.ValidationError
    assert (again.fields, again.request_id, again.retry_after) == ([{"path": "a"}], "req_1", 3.0)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "rowsmith.example.com",
        "ftp://a",
        "https://u:p@a",
        "https://a?b=c",
        "https://a:port",
        "https://a/#x",
    ],
)
def test_an_invalid_address_is_rejected(url):
    with pytest.raises(error.ServiceError) as found:
        address.parse(url)
    assert found.value.code == "not_configured"


def test_an_address_may_have_a_path_and_a_port():
    assert str(address.parse("https://a.example:8443/rowsmith/")) == "https://a.example:8443/rowsmith"
    assert str(address.parse("http://[::1]:80")) == "http://[::1]"
    assert address.parse("http://[::1]:80").loopback


@pytest.mark.parametrize("name", ["", ".", "..", "a/../b", "a//b", "/a"])
def test_a_name_never_leads_to_another_path(name):
    with pytest.raises(error.NotFound):
        address.path_of("/workspace/files/{name:path}", {"name": name})


def test_parts_of_a_path_are_encoded():
    assert address.path_of("/secrets/{name}", {"name": "a/b c"}) == "/secrets/a%2Fb%20c"
    assert (
        address.path_of("/workspace/files/{name:path}", {"name": "a/ü?#"})
        == "/workspace/files/a/%C3%BC%3F%23"
    )


def test_a_form_cannot_be_broken_out_of():
    form = Form({"na\r\nme": "v"}, b"x", file_name='a"\r\nX-Evil: 1')
    result = b"".join(form.pieces())
    assert b"X-Evil: 1\r\n" not in result.replace(b'%0D%0AX-Evil: 1"\r\n', b"")
    assert int(form.headers["Content-Length"]) == len(result)
    with pytest.raises(ValueError, match="content type"):
        Form({}, b"", content_type="text/plain\r\nX-Evil: 1")


def test_dates_and_decimals_are_sent_as_the_service_takes_them(far, target):
    far.pushes.to_database(connection_id="con_1", rows=[{"on": date(2026, 1, 2), "amount": Decimal("1.50")}])
    far.pushes.to_database(connection_id="con_1", rows=[{"amount": Decimal("12345678901234567.89")}])
    assert target.calls("/export/db")[0].json["rows"] == [{"on": "2026-01-02", "amount": 1.5}]
    assert target.calls("/export/db")[1].json["rows"] == [{"amount": "12345678901234567.89"}]


def test_the_version_is_that_of_the_package():
    assert rowsmith.__version__ in (SOURCE / "_version.py").read_text()
