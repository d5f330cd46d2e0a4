"""What a template that is being compiled asks of the outside, and in which order it can be answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from webapp.engine.outside import Ask, Question
from webapp.engine.reads import Spot


class Asking:
    """The questions of one plan, with the columns that ask them."""

    def __init__(self) -> None:
        self._asks: dict[str, tuple[Ask, set[Spot]]] = {}

    def note(self, question: Question, path: str, keyed: bool, spot: Spot) -> str:
        """Takes a question down; answers its key."""
        key = question.key
        _, spots = self._asks.setdefault(key, (Ask(question, path, keyed), set()))
        spots.add(spot)
        return key

    def asks(self, own: Mapping[str, Spot], reached: Callable[[Spot], set[Spot]]) -> tuple[Ask, ...]:
        """Every question, those first that others wait for. ``own`` are the template's columns, ``reached`` says of
        what columns one is made."""
        if not self._asks:
            return ()
        made_of = {name: reached(spot) for name, spot in own.items()}
        needs = {key: set().union(*map(reached, spots)) for key, (_, spots) in self._asks.items()}
        below = {
            key: [other for other, (_, spots) in self._asks.items() if other != key and needs[key] & spots]
            for key in self._asks
        }
        levels: dict[str, int] = {}

        def level(key: str) -> int:
            if key not in levels:
                levels[key] = 0  # where questions of several columns wait for one another
                levels[key] = 1 + max(map(level, below[key]), default=-1)
            return levels[key]

        found = [
            replace(
                ask, level=level(key), columns=tuple(name for name, spot in made_of.items() if spot & spots)
            )
            for key, (ask, spots) in self._asks.items()
        ]
        return tuple(sorted(found, key=lambda ask: ask.level))
