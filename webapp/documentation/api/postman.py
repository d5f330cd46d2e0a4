"""Convert the OpenAPI document of the API to a Postman collection, format 2.1.

A collection has `info` with `name` and `schema` (the URL of the format), and `item`: a list of folders, each with a
name and an `item` list of requests. A request has `method`, `url` (`raw` and its parts `host`, `path`, `query`,
`variable`), `header`, and optionally a `body` with a `mode`. Variables are written in double braces; `:name` is a path
parameter. Source: the collection format's published JSON Schema, v2.1.0.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from webapp.documentation.api import samples
from webapp.documentation.api.reference import JSON, Group, Operation

FORMAT: Final = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"
_OWN: Final = re.compile(r"\bOWN_(\w+_ID)\b")
_VARIABLE: Final = re.compile(r"\{\{(\w+)\}\}")


def collection(groups: Mapping[str, Group], version: str, base_url: str) -> dict[str, Any]:
    """The whole collection. Its variables are `base_url`, `api_key`, which is empty, parts of addresses that share a
    segment with others (`dataset_id` of `/datasets/{dataset_id}@v{number}`), and the ids that requests have in common:
    one that is put in once counts in all of them, except in those that change or delete what is there."""
    folders = [
        {"name": group.title, "item": [_item(one) for one in group.operations]} for group in groups.values()
    ]
    inside = {name for group in groups.values() for one in group.operations for name in _inside(one)}
    shared = sorted(inside.union(_VARIABLE.findall(json.dumps(folders))) - {"base_url", "api_key"})
    return {
        "info": {
            "name": "Rowsmith",
            "description": f"Every operation of the API, version {version}. Put an API key into `api_key`, and ids of "
            "your own into the other variables. Requests that change or delete something want their id in their own "
            "address.",
            "schema": FORMAT,
        },
        "auth": {"type": "bearer", "bearer": [{"key": "token", "value": "{{api_key}}", "type": "string"}]},
        "variable": [
            {"key": "base_url", "value": base_url, "type": "string"},
            {"key": "api_key", "value": "", "type": "string"},
            *(
                {"key": name, "value": samples.PARTS.get(name, name.upper()), "type": "string"}
                for name in shared
            ),
        ],
        "item": folders,
    }


def _item(operation: Operation) -> dict[str, Any]:
    request: dict[str, Any] = {
        "method": operation.method,
        "header": _headers(operation),
        "url": _url(operation),
        "description": "\n\n".join([operation.summary + ".", *operation.told]),
    }
    body = _body(operation)
    if body is not None:
        request["body"] = body
    if operation.scope == "public":
        request["auth"] = {"type": "noauth"}
    return {"name": operation.summary, "request": request, "response": []}


def _inside(operation: Operation) -> list[str]:
    shared = [one for one in operation.path.split("/") if not re.fullmatch(r"\{\w+\}", one)]
    return re.findall(r"\{(\w+)\}", "/".join(shared))


def _url(operation: Operation) -> dict[str, Any]:
    """Postman knows `:name` as the whole of a segment; parts inside one (`@v{number}`) become variables in braces."""
    segments = [
        f":{found[1]}" if (found := re.fullmatch(r"\{(\w+)\}", one)) else re.sub(r"\{(\w+)\}", r"{{\1}}", one)
        for one in operation.path.removeprefix("/").split("/")
    ]
    url: dict[str, Any] = {
        "raw": "{{base_url}}/" + "/".join(segments),
        "host": ["{{base_url}}"],
        "path": segments,
    }
    query = [row for place, row in operation.parameters if place == "query"]
    if query:
        url["query"] = [
            {"key": row.name, "value": "", "description": _about(row.text, row.limits), "disabled": True}
            for row in query
        ]
    parts = [one[1:] for one in segments if one.startswith(":")]
    if parts:
        url["variable"] = [
            {"key": one, "value": _shown(samples.example_part(operation.key, one))} for one in parts
        ]
    return url


def _headers(operation: Operation) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if operation.body_kind == JSON:
        found.append({"key": "Content-Type", "value": JSON})
    if operation.idempotent:
        found.append({"key": "Idempotency-Key", "value": "{{$guid}}", "disabled": True})
    if operation.if_match:
        found.append({"key": "If-Match", "value": "", "disabled": True})
    return found


def _body(operation: Operation) -> dict[str, Any] | None:
    example = samples.BODIES.get(operation.key)
    if example is not None:
        text = _shown(json.dumps(example, ensure_ascii=False, indent=2))
        return {"mode": "raw", "raw": text, "options": {"raw": {"language": "json"}}}
    if operation.body_kind == "multipart/form-data":
        parts: list[dict[str, Any]] = [
            {"key": row.name, "type": "file" if row.kind == "file" else "text", "description": row.text}
            for row in operation.body_rows
        ]
        given = {"name": samples.FILE_NAME}
        for one in parts:
            one |= {"src": ""} if one["type"] == "file" else {"value": given.get(one["key"], "")}
            if one["type"] == "text" and not one["value"]:
                one["disabled"] = True
        return {"mode": "formdata", "formdata": parts}
    if operation.method == "PUT":  # the document itself
        return {"mode": "file", "file": {}}
    return None


def _shown(text: str) -> str:
    """A text of the samples; where these name an object of the reader's, a variable."""
    return _OWN.sub(lambda found: "{{" + found[1].lower() + "}}", text)


def _about(*parts: str) -> str:
    return " ".join(filter(None, parts))
