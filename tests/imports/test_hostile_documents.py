"""Documents that were made to end, fill or occupy a web process, sent to the API: each is an error that says why."""

from __future__ import annotations

import io
import json
import os
import time
import zipfile

import pytest
from openpyxl import Workbook

from webapp import document_process, limits

OPENAPI = "openapi: 3.0.0\ninfo: {title: x, version: '1'}\npaths: {}\n"


@pytest.fixture
def refused(edith):
    """The only fault of a document that is imported."""

    def of(content: str, form: str, **more):
        answer = edith.post("/import", json={"content": content, "format": form, "save": False, **more})
        assert answer.status_code == 422, answer.text[:500]
        (fault,) = answer.json["error"]["details"]["fields"]
        assert (fault["path"], fault["code"]) == ("content", "unreadable")
        return fault["message"]

    return of


@pytest.fixture
def imported(edith):
    """What becomes of a document, and the seconds that it took."""

    def of(content: str, form: str, **more):
        began = time.monotonic()
        answer = edith.post("/import", json={"content": content, "format": form, "save": False, **more})
        assert answer.status_code == 200, answer.text[:500]
        return answer.json, time.monotonic() - began

    return of


def openapi_connection(edith) -> str:
    """The id of a connection whose document can be uploaded; its target is never reached."""
    settings = {"base_url": "http://127.0.0.1:9/"}
    return edith.post("/connections", json={"name": "x", "type": "openapi", "settings": settings}).json["id"]


@pytest.mark.parametrize("levels", [101, 40_000, 400_000])
@pytest.mark.parametrize("sign", ["[", "{a: "])
def test_yaml_nested_40000_levels_deep_is_rejected_and_the_process_survives(refused, levels, sign):
    process = os.getpid()
    assert (
        refused(f"{OPENAPI}x: {sign * levels}", "openapi")
        == "The document is nested more than 100 levels deep."
    )
    assert os.getpid() == process


def test_yaml_of_100_levels_is_read(imported):
    inner = "[" * 98 + "]" * 98
    schema = "components: {schemas: {A: {properties: {b: {type: string}}}}}"
    assert imported(f"{OPENAPI}{schema}\nx: {inner}", "openapi")[0]["templates"][0]["name"] == "A"


def test_deeply_indented_block_yaml_is_rejected(refused):
    text = "".join(f"{' ' * level}a:\n" for level in range(1_000))
    assert "100 levels" in refused(OPENAPI + text, "openapi")


@pytest.mark.parametrize("form", ["json", "openapi", "json_schema", "avro", "mockaroo"])
@pytest.mark.parametrize("levels", [200, 100_000])
def test_deeply_nested_json_is_rejected_with_a_message(edith, form, levels):
    content = '{"openapi": "3.0.0", "a": ' + "[" * levels + "]" * levels + "}"
    answer = edith.post("/import", json={"content": content, "format": form, "save": False})
    assert answer.status_code == 422
    assert "internal" not in answer.text


def test_yaml_aliases_that_double_20_times_are_rejected(refused):
    lines = ["a0: &a0 [x, x]"] + [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40)]
    assert "its aliases expanded" in refused(OPENAPI + "\n".join(lines), "openapi")


def test_yaml_merge_keys_of_many_large_mappings_are_rejected(refused):
    base = "base: &b {" + ", ".join(f"k{n}: 1" for n in range(2_000)) + "}\n"
    lines = "".join(f"m{n}: {{<<: [*b, *b, *b, *b]}}\n" for n in range(3_000))
    assert "its aliases expanded" in refused(OPENAPI + base + lines, "openapi")


def test_self_referencing_yaml_is_rejected(refused):
    assert "alias" in refused(OPENAPI + "x: &x {y: *x}", "openapi")


def test_server_variables_that_refer_to_each_other_are_not_expanded_again(edith):
    names = [f"v{n}" for n in range(10)]
    defaults = {
        name: {"default": f"{{{next_name}}}" * 9}
        for name, next_name in zip(names, [*names[1:], "v0"], strict=True)
    }
    document = {
        "openapi": "3.0.0",
        "info": {"title": "x", "version": "1"},
        "servers": [{"url": "https://{v0}.example.org", "variables": defaults}],
        "paths": {},
    }
    at = f"/connections/{openapi_connection(edith)}/metadata-document"
    answer = edith.put(at, data=json.dumps(document).encode(), content_type="application/json")
    assert answer.status_code == 200, answer.text


def test_a_metadata_document_nested_40000_levels_deep_is_rejected(edith):
    at = f"/connections/{openapi_connection(edith)}/metadata-document"
    answer = edith.put(at, data=(OPENAPI + "x: " + "[" * 40_000).encode(), content_type="application/yaml")
    assert answer.status_code == 422
    (fault,) = answer.json["error"]["details"]["fields"]
    assert (fault["path"], fault["code"]) == ("document", "bad_document")
    assert "100 levels deep" in fault["message"]


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ("a" + ".a" * 99_999 + " = 1", "longer than 65,536 characters"),
        ("a" + ".a" * 20_000 + " = 1", "more than 20 dotted parts"),
        ('"a"' + " . 'a'" * 5_000 + " = 1", "more than 20 dotted parts"),
        ("dependencies = " + "[" * 5_000, "nested too deeply"),
        ("dependencies = " + "{a=" * 5_000, "nested too deeply"),
    ],
)
def test_a_pep_723_block_that_exhausts_memory_or_stack_is_an_error_of_the_program(edith, block, expected):
    code = f"# /// script\n# {block}\n# ///\nprint(1)\n"
    answer = edith.post("/scenarios/check", json={"code": code})
    assert answer.status_code == 200, answer.text[:500]
    (fault,) = answer.json["faults"]
    assert fault["code"] == "invalid_requirement"
    assert expected in fault["message"]


def test_a_schema_whose_references_branch_does_not_occupy_the_import(edith):
    schemas = {
        f"M{n}": {"properties": {f"p{k}": {"$ref": f"#/$defs/M{(n * 7 + k) % 90}"} for k in range(20)}}
        for n in range(90)
    }
    content = json.dumps({"$defs": schemas})
    answer = edith.post("/import", json={"content": content, "format": "json_schema", "save": False})
    assert answer.status_code in (200, 422), answer.text[:500]
    assert answer.status_code == 200 or answer.json["error"]["code"] == "validation_error"


def test_proto_messages_that_refer_to_one_another_do_not_occupy_the_import(edith):
    text = "".join(
        f"message M{n} {{ {' '.join(f'M{(n + k) % 90} f{k} = {k + 1};' for k in range(20))} }}\n"
        for n in range(90)
    )
    answer = edith.post("/import", json={"content": text, "format": "protobuf", "save": False})
    assert answer.status_code in (200, 422), answer.text[:500]
    assert answer.status_code == 200 or answer.json["error"]["code"] == "validation_error"


def test_all_of_that_doubles_is_a_column_or_a_table_left_out(edith):
    defs = {f"A{n}": {"allOf": [{"$ref": f"#/$defs/A{n + 1}"}] * 2} for n in range(60)}
    defs["A60"] = {"type": "object", "properties": {"x": {"type": "string"}}}
    content = json.dumps(
        {"$defs": defs, "properties": {"a": {"$ref": "#/$defs/A0"}, "b": {"type": "string"}}}
    )
    answer = edith.post("/import", json={"content": content, "format": "json_schema", "save": False})
    assert answer.status_code == 200, answer.text
    states = {row["column"]: row["state"] for row in answer.json["report"]}
    assert states == {"a": "yellow", "b": "yellow"}


def test_a_table_of_200000_columns_is_left_out_with_its_reason(edith):
    text = (
        "CREATE TABLE wide ("
        + ", ".join(f"c{n} INT" for n in range(200_000))
        + ");\nCREATE TABLE b (id INT);"
    )
    found = edith.post("/import", json={"content": text, "format": "sql", "save": False})
    assert [template["name"] for template in found.json["templates"]] == ["b"]
    assert "longer than 1,000,000 characters" in found.json["report"][-1]["reason"]


def test_a_check_of_50000_conditions_is_reported_as_not_understood(edith):
    check = " AND ".join(f"a <> {n}" for n in range(50_000))
    text = f"CREATE TABLE t (a INT CHECK ({check}), b INT);\nCREATE TABLE u (id INT);"
    found = edith.post("/import", json={"content": text, "format": "sql", "save": False}).json
    assert "u" in [template["name"] for template in found["templates"]]


@pytest.mark.parametrize(
    "text", ["CREATE TABLE t (a INT CHECK (" + "(" * 20_000, "SELECT '" + "x" * 100_000, "/*" * 50_000]
)
def test_unterminated_sql_is_rejected(edith, text):
    answer = edith.post("/import", json={"content": text, "format": "sql", "save": False})
    assert answer.status_code in (200, 422)


def test_blank_lines_by_the_thousand_do_not_slow_down_finding_the_format(imported):
    assert imported("a,b\n" + "\n" * 90_000 + "1,2\n", "auto")[1] < 30
    assert imported("CREATE TABLE t (a INT);" + "\n" * 300_000 + ";", "sql")[1] < 30


def test_a_head_of_100000_equal_names_is_read(imported):
    found, seconds = imported(",".join(["a"] * 100_000) + "\n", "csv")
    assert len(found["templates"][0]["fields"]) == limits.MAX_FIELDS
    assert seconds < 30


def workbook(parts: dict[str, bytes]) -> bytes:
    book = Workbook()
    book.active.append(["a", "b"])
    book.active.append(["x", "y"])
    out = io.BytesIO()
    book.save(out)
    result = io.BytesIO()
    with zipfile.ZipFile(out) as old, zipfile.ZipFile(result, "w", zipfile.ZIP_DEFLATED) as new:
        for item in old.namelist():
            new.writestr(item, parts.get(item, old.read(item)))
    return result.getvalue()


def test_a_workbook_with_3_million_shared_texts_is_rejected(edith):
    main = b"http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    strings = b'<sst xmlns="' + main + b'">' + b"<si><t>x</t></si>" * 3_000_000 + b"</sst>"
    sent = {"file": (io.BytesIO(workbook({"xl/sharedStrings.xml": strings})), "x.xlsx"), "save": "false"}
    answer = edith.post("/import", data=sent, content_type="multipart/form-data")
    assert answer.status_code in (200, 422), answer.text


def test_a_workbook_that_claims_a_sheet_of_a_million_columns_is_read(edith):
    sheet = (
        b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><dimension ref="A1:XFD1048576"/>'
        b'<sheetData><row r="1"><c r="A1" t="inlineStr"><is><t>a</t></is></c></row>'
        + b"".join(b'<row r="%d"><c r="A%d"><v>1</v></c></row>' % (n, n) for n in range(2, 9_000))
        + b"</sheetData></worksheet>"
    )
    sent = {"file": (io.BytesIO(workbook({"xl/worksheets/sheet1.xml": sheet})), "x.xlsx"), "save": "false"}
    answer = edith.post("/import", data=sent, content_type="multipart/form-data")
    assert answer.status_code == 200, answer.text
    assert [field["name"] for field in answer.json["templates"][0]["fields"]] == ["a"]


# --- The process itself -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("crash", "crashes the parser"),
        ("fill", "takes more than 1024 MB of memory"),
        ("recurse", "nested too deeply"),
        ("fail", "because of an internal error, which has been logged"),
    ],
)
def test_a_crashed_worker_is_an_error_with_its_status(function, expected, caplog):
    with pytest.raises(document_process.DocumentError, match=expected):
        document_process.run(f"tests.fakes.bad_parsers:{function}", b"x")
    assert document_process.run("tests.fakes.bad_parsers:size", b"abc") == 3
    assert ("KeyError" in caplog.text) == (function == "fail")


def test_a_worker_that_does_not_end_is_killed_by_its_processor_time():
    with pytest.raises(document_process.DocumentError, match="more than 1 s of CPU time"):
        document_process.run("tests.fakes.bad_parsers:spin", b"x", seconds=1)


def test_too_many_concurrent_documents_get_a_retry_after(edith, monkeypatch):
    import threading

    taken = threading.BoundedSemaphore(1)
    taken.acquire()
    monkeypatch.setattr(document_process, "_slots", taken)
    monkeypatch.setattr(limits, "DOCUMENT_TURN_SECONDS", 0.01)
    answer = edith.post("/import", json={"content": "a\n1\n", "save": False})
    assert answer.status_code == 503
    assert answer.json["error"]["code"] == "unavailable"
    assert int(answer.headers["Retry-After"]) > 0
    taken.release()


def test_a_server_that_was_killed_is_replaced():
    document_process.run("tests.fakes.bad_parsers:size", b"x")
    document_process._server.process.kill()
    document_process._server.process.wait()
    assert document_process.run("tests.fakes.bad_parsers:size", b"abcd") == 4


def test_the_result_of_a_document_is_remembered(monkeypatch):
    calls = []
    run = document_process.run
    monkeypatch.setattr(document_process, "run", lambda *one, **more: calls.append(one) or run(*one, **more))
    for document in (b"first", b"the second", b"first"):
        assert document_process.run_cached("tests.fakes.bad_parsers:size", document) == len(document)
    assert [document for _, document in calls] == [b"first", b"the second"]


def test_reading_ends_when_its_caller_gives_up(tmp_path):
    pid_file = tmp_path / "pid"

    def give_up():
        if pid_file.exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        document_process.run(
            "tests.imports.slow_document:read", b"", {"pid_file": str(pid_file)}, tick=give_up
        )
    pid = int(pid_file.read_text())
    for _ in range(100):
        if not os.path.exists(f"/proc/{pid}"):
            return
        time.sleep(0.05)
    raise AssertionError("the process goes on")


def test_the_time_limit_is_that_of_the_caller(tmp_path):
    with pytest.raises(document_process.DocumentError, match=r"takes more than 0\.5 s"):
        document_process.run(
            "tests.imports.slow_document:read", b"", {"pid_file": str(tmp_path / "pid")}, elapsed=0.5
        )
