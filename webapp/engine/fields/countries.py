"""Countries in options: checked against those a type knows, or taken from the locale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from webapp.errors import did_you_mean

if TYPE_CHECKING:
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec


def of_locale(locale: str | None, known: Sequence[str]) -> tuple[str, ...]:
    """The country of ``de_DE``, if it is known; else nothing."""
    country = (locale or "").replace("-", "_").partition("_")[2].upper()
    return (country,) if country in known else ()


def listed(
    field: FieldSpec,
    given: str | Sequence[str],
    known: Sequence[str],
    option: str,
    what: str,
    compiler: Compiler,
) -> tuple[str, ...]:
    """The countries of an option in capitals, each once; a fault for each that has no ``what``."""
    wanted = [given] if isinstance(given, str) else list(given)
    if not wanted:
        compiler.fault(field, f"options.{option}", "too_few", "Name at least one country, or leave it out.")
    chosen: dict[str, None] = {}
    for place, code in enumerate(wanted):
        upper = code.strip().upper()
        if upper in known:
            chosen[upper] = None
            continue
        path = f"options.{option}" if isinstance(given, str) else f"options.{option}[{place}]"
        hint = did_you_mean(code, known) or f"Known: {', '.join(known)}."
        compiler.fault(field, path, "unknown_country", f'There is no country "{code}" with {what}.', hint)
    return tuple(chosen)
