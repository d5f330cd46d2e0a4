"""How the tests of masking make maskers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp.engine.data import vocabulary
from webapp.engine.errors import SpecError
from webapp.engine.masking import KeyRing, Masker, create_masker
from webapp.engine.masking.replace import reveals
from webapp.engine.plan import bind_fields
from webapp.engine.spec import FieldSpec, parse

KEYS = KeyRing(2, {1: b"1" * 32, 2: b"2" * 32})


def field(kind: str, masking: dict[str, Any] | None = None, **more: Any) -> FieldSpec:
    """Return a sensitive field. The template also has a field that identifies the row."""
    text = {"name": "x", "type": kind, "sensitive": True, **({"masking": masking} if masking else {}), **more}
    return parse([text, {"name": "who", "type": "uuid"}]).fields[0]


def masker(
    kind: str, strategy: str | None = None, *, keys: KeyRing = KEYS, run: str = "run", **more: Any
) -> Masker:
    own = {key: more.pop(key) for key in ("consistent", "domain", "key_version", "person") if key in more}
    masking = {"strategy": strategy, **own} if strategy else None
    return create_masker(
        field(kind, masking, **more), vocabulary.open_default(), keys, bind_fields, run_id=run
    )


def masked(kind: str, strategy: str, values: list[Any] | pa.Array, **more: Any) -> list[Any]:
    column = values if isinstance(values, pa.Array) else pa.array(values)
    return masker(kind, strategy, **more).mask(column).to_pylist()


def faults(*fields: dict[str, Any]) -> dict[str, str]:
    """Paths and codes of what is refused when fields are read."""
    try:
        parse(list(fields))
    except SpecError as error:
        return {fault.path: fault.code for fault in error.faults}
    return {}


def collisions(column: pa.Array) -> int:
    return len(column) - pc.count_distinct(column).as_py()


def survivors(real: pa.Array, made: pa.Array) -> int:
    """Values that still tell the real one of their row: equal but for case, in their digits, or inside."""
    return int(np.count_nonzero(reveals(real.cast(pa.string()), made.cast(pa.string()))))


def texts(pattern: str, count: int) -> pa.Array:
    return pa.array([pattern % at for at in range(count)])


_SOURCES = {
    "email": lambda count: texts("anna.b%d@mail.org", count),
    "code": lambda count: texts("C-%08d", count),
    "card": lambda count: texts("411111%010d", count),
    "phone": lambda count: texts("+49 170 %07d", count),
    "number": lambda count: pa.array(np.arange(count)),
}
APART = [
    ("email", "email", "format_preserve"), ("credit_card_number", "card", "format_preserve"),
    ("phone_number", "phone", "format_preserve"), ("number", "number", "format_preserve"),
    ("words", "code", "format_preserve"), ("email", "email", "tokenize"), ("email", "email", "hash"),
    ("email", "email", "replace"), ("username", "code", "replace"), ("uuid", "code", "replace"),
    ("ulid", "code", "replace"), ("nanoid", "code", "replace"), ("mongodb_objectid", "code", "replace"),
]  # fmt: skip
"""Type, kind of values, strategy: no two values may meet, and none may stay itself."""


def check_apart(kind: str, source: str, strategy: str, count: int) -> None:
    real, result = _SOURCES[source](count), masker(kind, strategy)
    assert result.collision_free
    masked = result.mask(real)
    assert collisions(masked) == 0
    assert survivors(real, masked) == 0
    if result.disjoint:
        assert pc.sum(pc.is_in(masked.cast(pa.string()), value_set=real.cast(pa.string()))).as_py() == 0
