"""Report all errors of a body together: those that the model of its keys finds, and those of what remains."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic import BaseModel, create_model

from webapp.errors import ApiError, Fault, faults_of, validation_error
from webapp.web.inputs import parse


def with_more(
    error: ApiError, said: Any, model: type[BaseModel], check: Callable[[Any], Iterable[Fault] | None]
) -> ApiError:
    """Return the error of a body together with what is wrong with the rest of it.

    `error` is the `validation_error` for `said`. `check` gets the keys without errors as `model`, in which required
    keys may be None, and returns or raises the faults of these. Errors: not_found (what the address names), forbidden.
    """
    told = [Fault(**one) for one in error.details["fields"]]
    wrong = {_key_of(one.path) for one in told}
    if not isinstance(said, Mapping) or "" in wrong:
        return error
    rest = {key: value for key, value in said.items() if key not in wrong and key in model.model_fields}
    try:
        more = list(check(parse(_without_required(model), rest, strict=False)) or ())
    except ApiError as other:
        if other.code == "forbidden" or (other.code == "not_found" and not other.path):
            raise
        if other.code != "validation_error" and not other.path:  # the target's trouble
            return error
        more = faults_of(other)
    return validation_error(dict.fromkeys([*told, *(one for one in more if _key_of(one.path) not in wrong)]))


@functools.cache
def _without_required(model: type[BaseModel]) -> type[BaseModel]:
    """Return a model whose keys may all be missing."""
    required = {name: info.annotation for name, info in model.model_fields.items() if info.is_required()}
    keys: dict[str, Any] = {name: (kind | None, None) for name, kind in required.items()}  # type: ignore[operator]  # a type
    return create_model(model.__name__, __base__=model, **keys) if keys else model


def _key_of(path: str) -> str:
    """The key of the body that a fault's path begins with."""
    return re.split(r"[.\[]", path, maxsplit=1)[0]
