"""The API equivalent of a page as code samples in curl and Python, with the user's own ids."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any, Final

from flask import current_app, request

KEY: Final = "$ROWSMITH_KEY"
_MAX_LINE_CHARS: Final = 120  # characters of JSON up to which it stays on one line
_PYTHON_HEAD: Final = (
    "import os, requests\n\n"
    "api = requests.Session()\n"
    'api.headers["Authorization"] = "Bearer " + os.environ["ROWSMITH_KEY"]\n'
)


def origin() -> str:
    """Return the URL of the service, as configured or as in this request."""
    return current_app.config["SETTINGS"].public_url or request.host_url.rstrip("/")


def curl(method: str, url: str, body: Mapping[str, Any] | None = None, *, more: str = "") -> str:
    """Return a request as a curl command. A short body is on one line."""
    parts = [
        "curl -sS"
        + (f" -X {method}" if method not in ("GET", "POST") or (body is None and method != "GET") else "")
    ]
    parts.append(f'-H "Authorization: Bearer {KEY}"')
    if body is not None:
        parts += ["-H 'Content-Type: application/json'", f"-d {shlex.quote(_json(body))}"]
    if more:
        parts.append(more)
    return " \\\n  ".join([f"{parts[0]} {shlex.quote(url)}", *parts[1:]])


def python(
    method: str, url: str, body: Mapping[str, Any] | None = None, *, then: str = "print(answer.json())"
) -> str:
    """Return a request in Python with `requests`; `then` is the code that uses its `answer`."""
    sent = f", json={_python(body)}" if body is not None else ""
    head = _PYTHON_HEAD.replace("os, ", "os, time, ") if "time." in then else _PYTHON_HEAD
    return f'{head}answer = api.{method.lower()}("{url}"{sent})\nanswer.raise_for_status()\n{then}'


def _json(body: Any) -> str:
    text = json.dumps(body, ensure_ascii=False)
    return text if len(text) <= _MAX_LINE_CHARS else json.dumps(body, ensure_ascii=False, indent=2)


def _python(value: Any, indent: str = "") -> str:
    """Return a JSON value as a Python literal, wrapped if it is long."""
    flat = repr(value)
    if len(flat) <= 88 or not isinstance(value, dict | list):
        return flat
    deeper = indent + "    "
    if isinstance(value, dict):
        inner = [f"{deeper}{key!r}: {_python(item, deeper)}" for key, item in value.items()]
        return "{\n" + ",\n".join(inner) + f",\n{indent}}}"
    inner = [f"{deeper}{_python(item, deeper)}" for item in value]
    return "[\n" + ",\n".join(inner) + f",\n{indent}]"


def of_template(
    base: str, template_id: str, form_values: Mapping[str, Any], seed: str
) -> list[dict[str, Any]]:
    """Return the code samples of the builder: `[{title, text, code: [(language, text)]}]`."""
    request_body: dict[str, Any] = {"count": 1000, "format": "csv"} | ({"seed": seed} if seed else {})
    draft = {key: value for key, value in form_values.items() if value not in ("", None) and key != "anchor"}
    parts = []
    if template_id:
        url = f"{base}/templates/{template_id}"
        parts += [
            _part(
                "Rows of this template",
                "As a stream. The same seed returns the same rows in every format.",
                "POST",
                f"{url}/generate",
                request_body,
                "-o rows.csv",
                'open("rows.csv", "wb").write(answer.content)',
            ),
            _part(
                "Preview",
                "Doesn't count toward your limit.",
                "POST",
                f"{url}/preview",
                {"seed": seed or "sample"},
            ),
            _part(
                "A file created in the background",
                "For many rows: progress by events, and a download that can be resumed.",
                "POST",
                f"{url}/exports",
                {**request_body, "count": 100_000, "format": "xlsx"},
            ),
            _part(
                "This template, read and changed",
                "Every change creates a version.",
                "PATCH",
                url,
                {"fields": draft["fields"]},
            ),
        ]
    else:
        parts += [
            _part("Save this template", "The same as the Save button.", "POST", f"{base}/templates", draft),
            _part(
                "Rows without saving",
                "Fields and request in one call.",
                "POST",
                f"{base}/generate",
                {**draft, **request_body},
                "-o rows.csv",
                'open("rows.csv", "wb").write(answer.content)',
            ),
        ]
    return parts


def of_dataset(base: str, dataset_id: str, dataset: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the code samples of a dataset, in the form of `of_template`."""
    url = f"{base}/datasets/{dataset_id}"
    seed = dataset["seed"]
    tables = [{key: table[key] for key in ("template_id", "count")} for table in dataset["templates"]]
    follow = (
        "export = answer.json()\n"
        'while export["status"] in ("queued", "running"):\n'
        "    time.sleep(1)\n"
        f'    export = api.get("{base}/exports/" + export["id"]).json()\n'
        'open(export["file_name"], "wb").write(api.get(export["download_url"]).content)'
    )
    return [
        _part(
            "All tables in one file",
            "A worker creates it: a workbook (xlsx), a script (sql), or a ZIP archive of files (other formats).",
            "POST",
            f"{url}/exports",
            {"format": "xlsx", "seed": seed},
            then=follow,
        ),
        _part(
            "Three rows of each table",
            "Doesn't count toward your limit.",
            "POST",
            f"{url}/preview",
            {"seed": seed},
        ),
        _part(
            "This dataset, read and changed",
            "Every change creates a version, with the newest versions of its templates.",
            "PATCH",
            url,
            {"templates": tables},
        ),
    ]


def _part(
    title: str,
    text: str,
    method: str,
    url: str,
    body: Mapping[str, Any],
    more: str = "",
    then: str = "print(answer.json())",
) -> dict[str, Any]:
    code = [("curl", curl(method, url, body, more=more)), ("Python", python(method, url, body, then=then))]
    return {"title": title, "text": text, "code": code}


def first_call(base: str) -> dict[str, Any]:
    """Return the first API request of a new user; a part as in `of_template`."""
    fields = [{"name": "name", "type": "Name"}, {"name": "email", "type": "E-Mail"}]
    return _part(
        "Rows without saving anything",
        "Fields and request in one call; the answer streams.",
        "POST",
        f"{base}/generate",
        {"fields": fields, "count": 3, "seed": "first"},
    )
