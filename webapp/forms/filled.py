"""What a browser's form means to a model: an input left empty was not filled in, and one value of a list is a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from webapp.engine.fields import find
from webapp.forms import controls

_TRIES = 4  # an object inside an object shows its own faults once those around it are gone


def filled(model: type[BaseModel], values: dict[str, Any]) -> dict[str, Any]:
    """`values` of a form (texts, nested as their names say) as `model` can read them.

    Empty texts go where the model cannot take them, and only there: an empty description stays one. A text where
    a list is wanted becomes a list of it, and digits where only a whole number will do become that. Everything else
    is left to the model to judge.
    """
    _fill_options(values.get("fields"))
    for _ in range(_TRIES):
        try:
            model.model_validate(values, strict=False)
        except ValidationError as error:
            errors = error.errors(include_url=False)
            if sum(_mend(values, item["loc"], item["type"]) for item in errors) == 0:
                break
        else:
            break
    return values


def _fill_options(fields: Any) -> None:
    """Likewise the options of field definitions, each by the model of its field's type."""
    for field in fields if isinstance(fields, list) else ():
        options = field.get("options") if isinstance(field, dict) else None
        kind = (
            find(field["type"]) if isinstance(options, dict) and isinstance(field.get("type"), str) else None
        )
        if kind is not None and options:
            filled(kind.Options, options)


def _mend(values: Any, path: Sequence[str | int], kind: str) -> bool:
    """Whether what stands at `path`, or at the nearest place above it that the form sent, could be mended."""
    held, key = None, None
    here: Any = values
    for step in path:
        if not isinstance(here, dict | list) or (isinstance(here, dict) and step not in here):
            continue  # a step that pydantic put in: the branch of a union
        if isinstance(here, list) and not (isinstance(step, int) and step < len(here)):
            continue
        held, key, here = here, step, here[step]  # type: ignore[index]
    if not isinstance(here, str) or held is None:
        return False
    if not here:
        del held[key]
        return True
    if kind == "int_type" and isinstance(number := controls.integer(here), int):
        held[key] = number
        return True
    if "list" in kind:
        held[key] = [here]
        return True
    return False
