"""The context of every command: its arguments, the console and the API client."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Optional

import rowsmith
from rowsmith.cli import profiles
from rowsmith.cli.console import Console
from rowsmith.cli.problems import CLASH, NOT_FOUND, Problem, usage
from rowsmith.pages import Pages

_ID: Final = re.compile(r"[a-z]{2,4}_[0-9A-HJKMNP-TV-Z]{26}")  # a prefix and a ULID


class Work:
    """A running command."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.console = Console(as_json=args.json, quiet=args.quiet)
        self._api: Optional[rowsmith.Api] = None

    @property
    def api(self) -> rowsmith.Api:
        """Return the API client, which is created at first use."""
        if self._api is None:
            found = profiles.find_access(self.args.profile, self.args.project)
            if self.args.profile and found.source == "the environment":
                self.console.note(f"The environment variables take precedence over the profile {self.args.profile}.")
            self._api = rowsmith.Api(found.key, found.url, found.project)
        return self._api

    def close(self) -> None:
        """Close the connections."""
        if self._api is not None:
            self._api.close()

    def template(self, which: str) -> Mapping[str, Any]:
        """Return a template by ID or name."""
        return self._one("template", "tpl", which, self.api.templates)

    def scenario(self, which: str) -> Mapping[str, Any]:
        """Return a scenario by ID or name."""
        return self._one("scenario", "scn", which, self.api.scenarios)

    def connection(self, which: str) -> Mapping[str, Any]:
        """Return a connection by ID or name."""
        return self._one("connection", "con", which, self.api.connections)

    def endpoint(self, which: str) -> Mapping[str, Any]:
        """Return an endpoint by ID or name."""
        return self._one("endpoint", "end", which, self.api.endpoints)

    def _one(self, kind: str, prefix: str, which: str, resource: Any) -> Mapping[str, Any]:
        if is_id(which, prefix):
            found: Mapping[str, Any] = resource.get(which)
            return found
        return find_by_name(kind, which, resource.list(q=which), resource.list)


def is_id(text: str, prefix: str = "") -> bool:
    """Return whether a text is an ID (of that kind)."""
    return _ID.fullmatch(text) is not None and text.startswith(prefix)


def find_by_name(kind: str, name: str, near: Pages[Any], every: Any) -> Mapping[str, Any]:
    """Return the object with exactly this name. Raise Problem if there is none or more than one."""
    found = [item for item in near if item["name"] == name]
    if len(found) == 1:
        one: Mapping[str, Any] = found[0]
        return one
    if found:
        hints = [f"{item['id']}  {item['name']}" for item in found]
        raise Problem(
            "ambiguous", f'{len(found)} {kind}s have the name "{name}". Use the ID of one of them:', CLASH, hints
        )
    known = [item["name"] for item in every()]
    raise Problem(
        "not_found", f'There is no {kind} "{name}" in this project.{_resolve(name, known)}', NOT_FOUND
    )


def _resolve(name: str, known: Iterable[str]) -> str:
    by_fold = {item.casefold(): item for item in known}
    close = difflib.get_close_matches(name.casefold(), by_fold, n=1, cutoff=0.6)
    return f' Did you mean "{by_fold[close[0]]}"?' if close else ""


def parse_assignments(texts: Optional[Iterable[str]], option: str) -> dict[str, str]:
    """Parse `["A=b"]` as a dictionary. Raise Problem for an entry without `=`."""
    made = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise usage(f"{option} requires NAME=VALUE, not {text!r}.")
        made[name] = value
    return made
