"""A call of every operation as people copy it: curl, Python, TypeScript.

The texts carry marks in place of what differs from reader to reader: `ORIGIN` for the address of the service, and
those of `examples`. The key is only ever a variable of the environment.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from webapp.services.actors import PROJECT_SCOPES
from webapp.views import snippets
from webapp.views.docs_api import calls, examples
from webapp.views.docs_api.reference import JSON, Operation

ORIGIN: Final = "http://origin.invalid"
LANGUAGES: Final = ("curl", "python", "typescript")
NAMES: Final = {"curl": "curl", "python": "Python", "typescript": "TypeScript"}
_WIDE: Final = 88  # characters of a line
_SAVED: Final = frozenset({"files.download", "exports.download", "exports.part"})
"""Methods whose answer goes into a file; in TypeScript, and `exports.part` in Python, it is a stream."""
_STREAMED: Final = "exports.part"
_FILE: Final = "customers.csv"
_UPLOADED: Final = "metadata.xml"


def of(operation: Operation, *, signed_in: bool) -> dict[str, str]:
    """The sample of each language, those of somebody signed in with their project."""
    project = signed_in and operation.scope in PROJECT_SCOPES
    return {
        "curl": curl(operation, project),
        "python": python(operation, project),
        "typescript": typescript(operation, project),
    }


def address(operation: Operation) -> str:
    """The path with its parts filled in."""
    path = re.sub(r"\{(\w+)\}", lambda m: examples.part(operation.key, m[1]), operation.path)
    asked = "&".join(f"{name}={value}" for name, value in examples.QUERIES.get(operation.key, {}).items())
    return f"{path}?{asked}" if asked else path


def curl(operation: Operation, project: bool) -> str:
    """One command. Its words are those of a shell."""
    words = ["curl -sS"]
    if operation.method not in ("GET", "POST") or (
        operation.method == "POST" and not (operation.body_kind or examples.BODIES.get(operation.key))
    ):
        words[0] += f" -X {operation.method}"
    words[0] += f" {shlex.quote(ORIGIN + address(operation))}"
    if operation.scope != "public":
        words.append(f'-H "Authorization: Bearer {snippets.KEY}"')
    if project:
        words.append("-H 'X-Project-Id: OWN_PROJECT_ID'")
    body = examples.BODIES.get(operation.key)
    if body is not None:
        words += [f"-H 'Content-Type: {JSON}'", f"-d {shlex.quote(_AS_JSON.text(body))}"]
    elif operation.body_kind == "multipart/form-data":
        words += [f"-F 'name={examples.FILE_NAME}'", f"-F 'file=@{_FILE}'"]
    elif operation.key in _RAW:
        words += ["-H 'Content-Type: application/octet-stream'", f"--data-binary @{_UPLOADED}"]
    elif calls.METHODS.get(operation.key) in _SAVED:
        words.append(f"-o {_FILE}")
    elif _events(operation):
        words[0] = words[0].replace("curl -sS", "curl -sSN")
    return " \\\n  ".join(words)


def python(operation: Operation, project: bool) -> str:
    """A program for the package `rowsmith`."""
    name = calls.METHODS.get(operation.key)
    where = ', "OWN_PROJECT_ID"' if project else ""
    lines = ["import os"]
    if operation.key in _WITH_PATH or name == _STREAMED:
        lines.append("from pathlib import Path")
    lines += ["", "import rowsmith", ""]
    lines.append(f'api = rowsmith.Api(os.environ["ROWSMITH_KEY"], "{ORIGIN}"{where})')
    if name is None:
        placed = [_quoted(operation.method), _quoted(address(operation))]
        call = _python_call("api.request", placed, _named_json(operation))
    else:
        call = _python_call(f"api.{name}", *_python_arguments(operation))
    if name == _STREAMED:
        lines.append(f'Path("{_FILE}").write_bytes({call}.read())')
    elif _gone_through(operation):
        lines.append(f"for one in {call}:\n    print(one)")
    else:
        lines.append(f"answer = {call}\nprint(answer)")
    return "\n".join(lines)


def typescript(operation: Operation, project: bool) -> str:
    """A module for the package `@rowsmith/sdk`."""
    name = calls.METHODS.get(operation.key, "request")
    where = ', project: "OWN_PROJECT_ID"' if project else ""
    lines = []
    if operation.key in _RAW:
        lines.append('import { readFileSync } from "node:fs";')
    if name in _SAVED:
        lines.append('import { createWriteStream } from "node:fs";')
        lines.append('import { pipeline } from "node:stream/promises";')
    lines += ['import { Rowsmith } from "@rowsmith/sdk";', ""]
    lines.append(f'const client = new Rowsmith({{ key: process.env.ROWSMITH_KEY, url: "{ORIGIN}"{where} }});')
    called = "client." + ".".join(_camel(part) for part in name.split("."))
    if name in _SAVED:
        stream = _ts_call(called.replace("download", "stream"), [_quoted(one) for one in _parts(operation)])
        lines.append(f'await pipeline(await {stream}, createWriteStream("{_FILE}"));')
        return "\n".join(lines)
    call = _ts_call(called, _ts_arguments(operation))
    if _gone_through(operation):
        lines.append(f"for await (const one of {call}) console.log(one);")
    else:
        lines += [f"const answer = await {call};", "console.log(answer);"]
    return "\n".join(lines)


# --- Arguments --------------------------------------------------------------------------------------------------

_RAW: Final = frozenset({"PUT /connections/{connection_id}/metadata-document"})
_UPLOAD: Final = "POST /workspace/files"
_WITH_PATH: Final = _RAW | {_UPLOAD}


def _events(operation: Operation) -> bool:
    return all(one.kinds == ("text/event-stream",) for one in operation.answers)


def _gone_through(operation: Operation) -> bool:
    """Whether the packages answer one thing after the other."""
    name = calls.METHODS.get(operation.key)
    return name in calls.FOLLOWED or (operation.paged and name is not None)


def _parts(operation: Operation) -> list[str]:
    """Of the address, and what its query must have."""
    parts = [examples.part(operation.key, one) for one in re.findall(r"\{(\w+)\}", operation.path)]
    return [*parts, *examples.QUERIES.get(operation.key, {}).values()]


def _quoted(text: str) -> str:
    """A string of all three languages; numbers stay numbers."""
    return text if text.isdigit() else json.dumps(text, ensure_ascii=False)


def _named_json(operation: Operation) -> dict[str, Any]:
    body = examples.BODIES.get(operation.key)
    return {} if body is None else {"json": body}


def _python_arguments(operation: Operation) -> tuple[list[Any], dict[str, Any]]:
    """What goes by place, as text or object, and what goes by name."""
    placed = [_quoted(one) for one in _parts(operation)]
    key, body = operation.key, dict(examples.BODIES.get(operation.key) or {})
    if key == _UPLOAD:
        return [f'Path("{_FILE}")', _quoted(examples.FILE_NAME)], {}
    if key in _RAW:
        return [*placed, f'Path("{_UPLOADED}")'], {}
    if calls.METHODS[key].endswith(".download"):
        return [*placed, f'"{_FILE}"'], {}
    if key in calls.FIRST:
        first = {name: body.pop(name) for name in calls.FIRST[key] or tuple(body)}
        return [*placed, first], body
    if calls.METHODS[key] == "runs.start":
        body.pop("wait")
    return placed, body


def _ts_arguments(operation: Operation) -> list[Any]:
    """The arguments, as text or object."""
    key, parts = operation.key, _parts(operation)
    placed, body = [_quoted(one) for one in parts], examples.BODIES.get(operation.key)
    name = calls.METHODS.get(key)
    if name is None:
        given = [_quoted(operation.method), _quoted(address(operation))]
        return [*given, {"json": body}] if body is not None else given
    if key == _UPLOAD:
        return [_quoted(examples.FILE_NAME), _quoted("id,email\n1,ada@example.org\n")]
    if key in _RAW:
        return [*placed, f'readFileSync("{_UPLOADED}")']
    if name == "secrets.put":
        return [*placed, _quoted(str((body or {})["value"]))]
    if name == "workspace.delete":
        return [_quoted(str((body or {})["confirm"]))]
    if name == "runs.start":
        return [*placed, (body or {})["params"]]
    if name == "runs.list" and parts:
        return [f"{{ scenario_id: {placed[0]} }}"]
    if name.endswith(".get") and len(placed) == 2 and operation.path.endswith("@v{number}"):
        return [placed[0], f"{{ version: {placed[1]} }}"]
    if key in ("POST /generate", "POST /preview"):
        rest = {k: v for k, v in (body or {}).items() if k != "fields"}
        return [{"fields": (body or {})["fields"]}, rest]
    return placed if body is None else [*placed, body]


def _camel(name: str) -> str:
    return re.sub(r"_(\w)", lambda m: m[1].upper(), name)


# --- Text -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Style:
    """How a language writes a value: what is before and after the parts of an object, a key, a value that is no
    object or list, the last comma of several lines, and how far they are set in."""

    pad: str
    key: Callable[[str], str]
    plain: Callable[[Any], str]
    last: str
    step: str

    def flat(self, value: Any) -> str:
        """On one line."""
        if isinstance(value, dict):
            inner = ", ".join(f"{self.key(k)}: {self.flat(v)}" for k, v in value.items())
            return f"{{{self.pad}{inner}{self.pad}}}" if inner else "{}"
        if isinstance(value, list):
            return f"[{', '.join(map(self.flat, value))}]"
        return self.plain(value)

    def text(self, value: Any, indent: str = "", room: int = _WIDE) -> str:
        """On one line where it fits into `room` characters, else its parts on lines of their own."""
        short = self.flat(value)
        if len(short) <= room - len(indent) or not isinstance(value, dict | list) or not value:
            return short
        deeper = indent + self.step
        if isinstance(value, dict):
            inner = [f"{deeper}{self.key(k)}: {self.text(v, deeper)}" for k, v in value.items()]
        else:
            inner = [deeper + self.text(v, deeper) for v in value]
        begin, end = "{}" if isinstance(value, dict) else "[]"
        return f"{begin}\n" + ",\n".join(inner) + f"{self.last}\n{indent}{end}"


def _string(text: Any) -> str:
    return json.dumps(text, ensure_ascii=False)


def _python_plain(value: Any) -> str:
    return _string(value) if isinstance(value, str) else repr(value)


def _ts_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z_]\w*", key) else _string(key)


_AS_JSON: Final = _Style("", _string, _string, "", "  ")
_AS_PYTHON: Final = _Style("", _string, _python_plain, ",", "    ")
_AS_TS: Final = _Style(" ", _ts_key, _string, ",", "  ")


def _python_call(name: str, placed: list[Any], named: dict[str, Any]) -> str:
    """`placed`: texts as they are, or objects."""
    style = _AS_PYTHON

    def written(indent: str) -> list[str]:
        by_place = [one if isinstance(one, str) else style.text(one, indent) for one in placed]
        return by_place + [f"{key}={style.text(value, indent)}" for key, value in named.items()]

    flat = f"{name}({', '.join(written(''))})"
    if len(flat) <= _WIDE and "\n" not in flat:
        return flat
    if len(placed) == 1 and not named:  # an object alone stands in the brackets
        return f"{name}({written('')[0]})"
    return f"{name}(\n" + "".join(f"    {one},\n" for one in written("    ")) + ")"


def _ts_call(name: str, given: list[Any]) -> str:
    flat = f"{name}({', '.join(one if isinstance(one, str) else _AS_TS.flat(one) for one in given)})"
    if len(flat) <= _WIDE:
        return flat
    longest = max(
        (one for one in given if not isinstance(one, str)), key=lambda one: len(_AS_TS.flat(one)), default=""
    )
    written = [
        one if isinstance(one, str) else _AS_TS.text(one, room=0 if one is longest else _WIDE)
        for one in given
    ]
    return f"{name}({', '.join(written)})"
