"""Carry ids and groups of fields over from the previous version.

The id, not the name, seeds a column, so a field that is renamed, moved or edited keeps its values only if it keeps its
id. For clients that send no ids, fields are matched by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from webapp import ids
from webapp.engine import groups
from webapp.engine.spec import ELEMENT, FieldSpec, TemplateSpec, with_ids
from webapp.engine.types.registry import find

StoredField = Mapping[str, Any]
"""A stored field: `FieldSpec.to_json()`."""


def assign_ids_and_groups(spec: TemplateSpec, previous_fields: Sequence[StoredField] = ()) -> TemplateSpec:
    """Return `spec` as saved: every field with an id and, if its type supports groups, a group.

    `previous_fields` are the stored fields of the previous version; empty for a new template.
    """
    carried = carry_over(spec, previous_fields) if previous_fields else spec
    return groups.assign(with_ids(carried, lambda: ids.new("fld")), ungrouped_ids(previous_fields))


def ungrouped_ids(previous_fields: Sequence[StoredField]) -> frozenset[str]:
    """Return the ids of fields that were in no group before: they are not grouped with fields added later."""
    return frozenset(field["id"] for field in walk(previous_fields) if not field["group"])


def carry_over(spec: TemplateSpec, previous_fields: Sequence[StoredField]) -> TemplateSpec:
    """Return `spec` with the ids and groups that its fields had `previous_fields`.

    A field with an id is matched with the earlier field of that id, on any level. A field without an id is matched with
    the earlier field of the same name on its level, unless another field in the request has that id. A group is kept if
    the field in the request does not name one and still shares the same kind of thing.
    """
    by_id = {field["id"]: field for field in walk(previous_fields)}
    sent = {field.id for field in spec.walk() if field.id}
    return replace(spec, fields=_carry_over_level(spec.fields, previous_fields, by_id, sent))


def walk(fields: Sequence[StoredField]) -> Iterator[StoredField]:
    """Yield every stored field, including nested ones, parents before children."""
    for field in fields:
        yield field
        yield from walk(children(field))


def children(field: StoredField) -> Sequence[StoredField]:
    """Return the fields inside a stored field."""
    element = field["options"].get(ELEMENT)
    return [element] if isinstance(element, Mapping) else field["options"].get("fields") or ()


def _carry_over_level(
    fields: tuple[FieldSpec, ...],
    previous_fields: Sequence[StoredField],
    by_id: Mapping[str, StoredField],
    sent: set[str],
) -> tuple[FieldSpec, ...]:
    by_name = {field["name"]: field for field in previous_fields if field["id"] not in sent}
    result = []
    for field in fields:
        old = by_id.get(field.id) if field.id else by_name.get(field.name)
        if old is not None:
            update: dict[str, Any] = {"id": old["id"]}
            kind = find(old["type"])
            if (
                not field.group
                and old["group"]
                and kind is not None
                and kind.group_kind == field.type.group_kind
            ):
                update["group"] = old["group"]
            field = replace(field, common=field.common.model_copy(update=update))
        inner = _carry_over_level(field.children, children(old) if old is not None else (), by_id, sent)
        result.append(replace(field, children=inner))
    return tuple(result)
