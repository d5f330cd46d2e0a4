"""Where rows come from: a service, or the engine of this machine. Either gives windows of rows as Parquet."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import unquote

from rowsmith import Api
from rowsmith.api import wanted
from rowsmith.cli.problems import Problem
from rowsmith.error import ConnectionFailed, ServiceError
from rowsmith.wire.retry import Retries

DEFAULT_ROWS: Final = 10
"""What a template gives that says no quantity."""


@dataclass(frozen=True)
class Made:
    """Rows as a Parquet file, and the pins that were told with them (`X-Seed`, `X-Now`, `X-Template-Version`...)."""

    parquet: bytes
    headers: Mapping[str, str]

    @property
    def seed(self) -> str:
        """The seed, as a request says it."""
        return unquote(self.headers["X-Seed"])

    @property
    def pins(self) -> dict[str, str]:
        """All that must be equal for two answers to be of one table."""
        names = ("Seed", "Now", "Template-Version", "References", "Snapshot", "Vocabulary", "Engine", "Files")
        return {name: self.headers[f"X-{name}"] for name in names if f"X-{name}" in self.headers}


class Origin(Protocol):
    """Makes rows. It goes to the executors, so it can be pickled."""

    def quantity(self) -> int:
        """How many rows the template gives by itself."""
        ...

    def made(self, request: Mapping[str, Any]) -> Made:
        """The rows of one call of generate. ServiceError in words."""
        ...


@dataclass(frozen=True)
class Service:
    """A saved template of a running service. What failed is tried again by the Python package's own rules."""

    template: str
    url: str
    key: str = field(repr=False)
    project: str | None = None

    def quantity(self) -> int:
        with self._api() as api:
            return int(api.templates.get(self.template)["quantity"])

    def made(self, request: Mapping[str, Any]) -> Made:
        retries, attempt = Retries(), 0
        while True:
            try:
                return self._made(request)
            except ConnectionFailed as error:
                # The call is repeated until an answer begins; an answer that breaks off is asked for anew here.
                wait = retries.wait(attempt, error, repeatable=True)
                if wait is None:
                    raise
            retries.sleep(wait)
            attempt += 1

    def _made(self, request: Mapping[str, Any]) -> Made:
        with self._api() as api, api.templates.stream(self.template, **request, format="parquet") as stream:
            return Made(stream.read(), stream.headers)

    def _api(self) -> Api:
        return Api(self.key, self.url, self.project)


@dataclass(frozen=True)
class Local:
    """A template's file, made into rows by the server's package beside this one; no service is asked."""

    path: str

    def quantity(self) -> int:
        from rowsmith.cli import template_files

        with _in_words():
            return int(template_files.read(Path(self.path)).body.get("quantity") or DEFAULT_ROWS)

    def made(self, request: Mapping[str, Any]) -> Made:
        from rowsmith.cli import offline

        with _in_words():
            rows = offline.rows(Path(self.path), {**request, "format": "parquet"})
            return Made(b"".join(rows.pieces), {**rows.headers, "X-Files": self._digest()})

    def _digest(self) -> str:
        """Of all templates of the folder, since one may refer to others."""
        found = hashlib.sha256()
        for path in sorted(Path(self.path).parent.glob("*.json")):
            found.update(repr((path.name, path.read_bytes())).encode())
        return found.hexdigest()


@contextmanager
def _in_words() -> Iterator[None]:
    """What the command tells a person at a terminal is told here as an error like all others."""
    try:
        yield
    except Problem as problem:
        text = " ".join([problem.message, *problem.hints])
        raise ServiceError(problem.code, message=text) from None


def origin(
    template: str | None, file: str | None, url: str | None, key: str | None, project: str | None
) -> Origin:
    """The one that the options name. Address and key are those of this process's environment where they are not
    given: of the driver's, so that executors need none."""
    if file is not None:
        return Local(str(Path(file).absolute()))
    return Service(
        str(template), wanted("url", url, "SERVICE_API_URL"), wanted("key", key, "SERVICE_API_KEY"), project
    )
