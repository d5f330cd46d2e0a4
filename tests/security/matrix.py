"""The access matrix: for every route, who may, who may not, and what the others see.

A module `cases_<area>.py` next to this file has `CASES` (a list of `Case`) and, if its routes need objects,
`prepare(app, cast) -> dict`, which creates them in Acme's project Main and returns the values for `url` and `body`.
The matrix test walks every route of the application and fails for one that no case names.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

# Least role -> who of the cast may. Each of these is of the whole workspace Acme.
ROLES = ("victor", "edith", "adam", "olivia")
_NAMED = re.compile(r"\{([a-z_]+)\}")
LEAST = {"anyone": 0, "viewer": 0, "editor": 1, "admin": 2, "owner": 3}


@dataclass(frozen=True)
class Case:
    """One way to call a route.

    `least`: public, anyone (whoever is recognised), viewer, editor, admin, owner. `url` gives the address of an
    object of Acme's (`{name}` from the world); a rule without parts needs none. A value of `body` may be such a
    `{name}` too. `scope` is the key scope the route takes. `ok` is the status for those who may. `expect` names
    exceptions by person. `person`: called by a browser's form or page instead of a key.
    """

    method: str
    rule: str
    least: str
    url: str = ""
    body: Mapping[str, Any] | None = None
    scope: str | None = None
    ok: int = 200
    expect: Mapping[str, int] = field(default_factory=dict)
    person: bool = False

    @property
    def route(self) -> tuple[str, str]:
        return self.method, self.rule

    @property
    def names_an_object(self) -> bool:
        """Whether the address or a value of the body is an object of Acme's."""
        return "{" in self.url or any(
            _NAMED.fullmatch(v) for v in (self.body or {}).values() if isinstance(v, str)
        )

    def address(self, world: Mapping[str, Any]) -> str:
        return (self.url or self.rule).format(**world)

    def sent(self, world: Mapping[str, Any]) -> dict[str, Any]:
        """The body; a value such as "{project}", however deep, is that object."""

        def filled(value: Any) -> Any:
            if isinstance(value, str):
                found = _NAMED.fullmatch(value)
                return world[found[1]] if found else value
            if isinstance(value, dict):
                return {key: filled(item) for key, item in value.items()}
            return [filled(item) for item in value] if isinstance(value, list) else value

        return filled(dict(self.body or {}))

    def status_for(self, name: str) -> int:
        if name in self.expect:
            return self.expect[name]
        return self.ok if ROLES.index(name) >= LEAST[self.least] else 403

    def __str__(self) -> str:
        return f"{self.method} {self.rule}{' as a person' if self.person else ''} ({self.least})"


def _modules() -> list[Any]:
    folder = __file__.rsplit("/", 1)[0]
    names = sorted(m.name for m in pkgutil.iter_modules([folder]) if m.name.startswith("cases_"))
    return [importlib.import_module(f"tests.security.{name}") for name in names]


def cases() -> list[Case]:
    """Every case of every area."""
    return [case for module in _modules() for case in module.CASES]


def prepares() -> list[Callable[..., dict[str, Any]]]:
    """What makes the objects."""
    return [module.prepare for module in _modules() if hasattr(module, "prepare")]
