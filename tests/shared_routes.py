"""One compiled table of routes for all applications that have the same ones.

Thousands of tests make an application each, with hundreds of routes, of which they use a handful. What matches an
address is the same for all of them, so the first compiles it and the others take that.
"""

from __future__ import annotations

from typing import Any, ClassVar

from werkzeug.routing import Map, Rule


class SharedMap(Map):
    """Rules are bound when they are first needed, and then only by the first map that has these rules in this order.
    One that gets a further rule, or other converters, has a table of its own again."""

    _compiled: ClassVar[dict[tuple[object, ...], tuple[Any, dict[Any, list[Rule]]]]] = {}

    def __init__(self, *given: Any, **options: Any) -> None:
        self._waiting: list[Rule] = []
        self._taken = 0
        super().__init__(*given, **options)
        self._empty = (self._matcher, self._rules_by_endpoint)

    def add(self, rulefactory: Any) -> None:
        self._waiting.append(rulefactory)

    def update(self) -> None:
        if self._taken != len(self._waiting):
            key = (tuple(self.converters.items()), *map(_spelled, self._waiting))
            if key not in self._compiled:
                self._compiled[key] = self._compile()
            self._matcher, self._rules_by_endpoint = self._compiled[key]
            self._taken = len(self._waiting)
            self._remap = True
        super().update()

    def _compile(self) -> tuple[Any, dict[Any, list[Rule]]]:
        fresh = Map(
            strict_slashes=self.strict_slashes, converters=self.converters, host_matching=self.host_matching
        )
        for waiting in self._waiting:
            # It stays unbound, so that a longer table can be made of it.
            rule = waiting.empty()
            rule.provide_automatic_options = waiting.provide_automatic_options  # Flask's own mark
            fresh.add(rule)
        fresh.update()
        return fresh._matcher, fresh._rules_by_endpoint


def _spelled(rule: Rule) -> tuple[object, ...]:
    methods = frozenset(rule.methods or ())
    return (
        rule.rule,
        rule.endpoint,
        methods,
        rule.strict_slashes,
        rule.build_only,
        repr(rule.defaults),
        rule.provide_automatic_options,
    )
