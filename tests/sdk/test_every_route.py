"""Everything the service's OpenAPI document has can be done with `rowsmith.Api`, and nothing else is tried."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any, ClassVar

import pytest
import rowsmith
from rowsmith import types
from rowsmith.follow import Follower
from rowsmith.record import Record
from rowsmith.resources.base import Resource

from tests.sdk.conftest import KEY

# The same under another name.
ALIASES = {
    ("GET", "/fields"): ("GET", "/field-types"),
    ("PUT", "/templates/{}"): ("PATCH", "/templates/{}"),
    ("PUT", "/datasets/{}"): ("PATCH", "/datasets/{}"),
}
DRAFT: dict[str, Any] = {"fields": []}
GIVEN: dict[str, Any] = {
    "template": "tpl_1",
    "version": 1,
    "params": {"A": "b"},
    "content": b"bytes",
    "document": b"bytes",
    "code": "print()",
    "name": "n",
    "value": "v",
    "role": "viewer",
}
SKIPPED_PARAMETERS = {"idempotency_key", "if_match", "only_new", "timeout", "content_type"}


class Anything(Record):
    """A response that has every attribute that a method reads."""

    def __missing__(self, key: str) -> Any:
        return {"items": [], "next_cursor": None, "total": 0, "functions": [], "sha256": None}.get(key, "x_1")


class Ended:
    """A stream that ends immediately."""

    status = 200
    headers: ClassVar[dict[str, str]] = {}

    def pieces(self) -> Any:
        return iter([])

    def read(self) -> bytes:
        return b""

    def close(self) -> None:
        pass

    def __enter__(self) -> Ended:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class EndEvent(Ended):
    def pieces(self) -> Any:
        return iter([b"event: end\ndata: {}\n\n"])


class Recorder:
    """Replaces the caller of an `Api` and records requests."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, dict[str, Any]]] = []

    def json(self, method: str, path: str, **how: Any) -> Any:
        self._note(method, path, how)
        return Anything({})

    def text(self, method: str, path: str, **how: Any) -> str:
        self._note(method, path, how)
        return ""

    def open(self, method: str, path: str, **how: Any) -> Any:
        self._note(method, path, how)
        events = (how.get("headers") or {}).get("Accept") == "text/event-stream"
        return EndEvent() if events else Ended()

    def _note(self, method: str, path: str, how: dict[str, Any]) -> None:
        self.calls.append((method, re.sub(r"\{[^}]*\}", "{}", path), how))


def resources(api: rowsmith.Api) -> dict[str, Resource]:
    return {name: variable for name, variable in vars(api).items() if isinstance(variable, Resource)}


def call(
    api: rowsmith.Api, resource: Resource, name: str, tmp_path: Path, other: dict[str, Any], **extra: Any
) -> list[Any]:
    """Call a method with something for everything it takes (`other` first), and read what it gives to its end."""
    recorder = Recorder()
    for attribute in ("json", "text", "open"):
        setattr(api._caller, attribute, getattr(recorder, attribute))
    known = {**GIVEN, "path": tmp_path / "rows.csv", **other}
    value = {
        parameter.name: known.get(parameter.name, "x_1")
        for parameter in inspect.signature(getattr(resource, name)).parameters.values()
        if parameter.name not in SKIPPED_PARAMETERS and parameter.kind is not parameter.VAR_KEYWORD
    }
    found = getattr(resource, name)(**value, **extra)
    if isinstance(found, rowsmith.Pages):
        found.all()
    elif isinstance(found, Follower):
        found.wait()
    elif hasattr(found, "__next__"):
        list(found)
    return recorder.calls


def ways(resource: Resource, name: str) -> list[dict[str, Any]]:
    """The ways to call a method that may lead to different routes."""
    taken = inspect.signature(getattr(resource, name)).parameters
    if name == "create" and "template" in taken:
        return [{"template": DRAFT}]
    found: list[dict[str, Any]] = [{}]
    if "template" in taken:
        found.append({"template": DRAFT})
    if name == "get" and "version" in taken:
        found.append({"version": None})
    if name == "list" and "scenario_id" in taken:
        found.append({"scenario_id": None})
    return found


def methods(resource: Resource) -> list[str]:
    return [name for name, _ in inspect.getmembers(resource, inspect.ismethod) if not name.startswith("_")]


@pytest.fixture(scope="module")
def tries(
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[tuple[str, str], list[tuple[str, dict[str, Any]]]]:
    """What each method asks for, by method and path."""
    pytest.importorskip("pyarrow")
    api = rowsmith.Api(KEY, "http://127.0.0.1:1")
    folder = tmp_path_factory.mktemp("saved")
    found: dict[tuple[str, str], list[tuple[str, dict[str, Any]]]] = {}
    for label, resource in resources(api).items():
        for name in methods(resource):
            if name in ("arrow", "dataframe"):
                continue  # generate again, read by libraries
            for other in ways(resource, name):
                for method, path, how in call(api, resource, name, folder, other):
                    found.setdefault((method, path), []).append((f"{label}.{name}", how))
    return found


@pytest.fixture(scope="module")
def document(described: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """Every operation of the service."""
    return {
        (method.upper(), re.sub(r"\{[^}]*\}", "{}", path)): operation
        for path, operations in described["paths"].items()
        for method, operation in operations.items()
    }


def test_every_operation_can_be_reached(document, tries):
    missing = [item for item in document if ALIASES.get(item, item) not in tries]
    assert not missing, f"no method of rowsmith.Api for {missing}"


def test_no_method_asks_for_a_route_that_is_not_there(document, tries):
    invented = {key: [name for name, _ in who] for key, who in tries.items() if key not in document}
    assert not invented


def test_every_parameter_of_a_query_can_be_given(document, tries):
    for key, operation in document.items():
        expected = {p["name"] for p in operation["parameters"] if p["in"] == "query"} - {"cursor", "limit"}
        result = {name for _, how in tries[ALIASES.get(key, key)] for name in (how.get("query") or {})}
        accepts_any = any(
            key == ("GET", "/audit") and name.endswith("audit_stream")
            for name, _ in tries[ALIASES.get(key, key)]
        )
        assert expected <= result | ({"format"} if accepts_any else set()), key


def test_a_creating_call_always_carries_an_idempotency_key(document, tries):
    for key, calls in tries.items():
        taken = document[key].get("x-idempotency-key", False)
        for name, how in calls:
            assert bool(how.get("idempotency_key")) is taken, (name, key)


def test_a_body_has_the_shape_that_the_document_names(document):
    api = rowsmith.Api(KEY, "http://127.0.0.1:1")
    wrong = []
    for label, resource in resources(api).items():
        for name in methods(resource):
            for parameter in inspect.signature(getattr(resource, name)).parameters.values():
                found = re.search(r"Unpack\[types\.(\w+)\]", str(parameter.annotation))
                if found is None:
                    continue
                shapes = {
                    operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[
                        2
                    ]
                    for operation in document.values()
                    if "application/json" in operation.get("requestBody", {}).get("content", {})
                }
                if found[1] not in shapes:
                    wrong.append((label, name, found[1]))
    assert not wrong


def test_every_shape_that_a_method_names_exists():
    api = rowsmith.Api(KEY, "http://127.0.0.1:1")
    for label, resource in resources(api).items():
        for name in methods(resource):
            signature = inspect.signature(getattr(resource, name))
            result = [str(parameter.annotation) for parameter in signature.parameters.values()] + [
                str(signature.return_annotation)
            ]
            for shape in re.findall(r"\btypes\.(\w+)", " ".join(result)):
                assert hasattr(types, shape), f"{label}.{name}: {shape}"


def test_if_match_is_supported_by_all_methods_for_which_the_service_supports_it(document, tmp_path):
    api = rowsmith.Api(KEY, "http://127.0.0.1:1")
    taking = set()
    for resource in resources(api).values():
        for name in methods(resource):
            if "if_match" in inspect.signature(getattr(resource, name)).parameters:
                for method, path, how in call(api, resource, name, tmp_path, {}, if_match='"tag"'):
                    if (how.get("headers") or {}).get("If-Match") == '"tag"':
                        taking.add((method, path))
    expected = {key for key, operation in document.items() if operation.get("x-if-match")}
    assert expected - {("PUT", "/templates/{}"), ("PUT", "/datasets/{}")} <= taking
