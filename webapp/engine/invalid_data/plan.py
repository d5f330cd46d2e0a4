"""Compile the settings for invalid data: the kinds that each field supports, and errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from webapp.engine.invalid_data.abilities import Make, injectors_of, join_kinds
from webapp.engine.invalid_data.settings import KINDS, Invalid, Kind
from webapp.engine.mixed_columns import MixedType
from webapp.errors import Fault

if TYPE_CHECKING:
    from webapp.engine.layers import Column, Layer
    from webapp.engine.spec import TemplateSpec

_OF_VALUES = frozenset({"missing", "duplicate", "orphan", "out_of_range"})
"""Kinds whose invalid values have the column's own type."""


@dataclass(frozen=True, slots=True)
class InvalidField:
    """A field that may have invalid values: its kinds, each with the function that creates values."""

    column: Column
    makes: Mapping[Kind, Make]
    share: tuple[int, int] | None
    """Invalid cells per hundred rows, as a fraction; None if the template's share applies."""

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def mixed(self) -> bool:
        """Whether some of its cells are text while others are not."""
        dtype = self.column.dtype
        alike = pa.types.is_string(dtype) or pa.types.is_nested(dtype)
        return not alike and any(kind not in _OF_VALUES for kind in self.makes)


@dataclass(frozen=True, slots=True)
class InvalidDataPlan:
    """The settings for invalid data of a template."""

    fields: Mapping[str, InvalidField]
    share: tuple[int, int] | None
    """Rows with one invalid cell in every hundred, among the fields that set no share."""

    def kinds(self) -> dict[Kind, list[str]]:
        """The names of the fields that the template's share may touch, by kind."""
        among = [one for one in self.fields.values() if one.share is None]
        found = {kind: [one.name for one in among if kind in one.makes] for kind in KINDS}
        return {kind: names for kind, names in found.items() if names}

    def schema(self, clean: pa.Schema) -> pa.Schema:
        """Return ``clean`` with the types that columns have after injecting invalid values."""
        return pa.schema(
            [
                field.with_type(MixedType(field.type)) if self._is_mixed(field.name) else field
                for field in clean
            ]
        )

    def _is_mixed(self, name: str) -> bool:
        return name in self.fields and self.fields[name].mixed


def compiled(spec: TemplateSpec, layer: Layer, faults: list[Fault]) -> InvalidDataPlan | None:
    """Compile the settings for invalid data of the template and its fields; None without any. ``layer`` is the
    template's top level; errors are appended to ``faults``."""
    fields: dict[str, InvalidField] = {}
    for field in spec.fields:
        column, asked = layer.columns[field.name], field.common.invalid
        if asked is None:
            continue
        can = injectors_of(column)
        kinds = asked.kinds or ()
        refused = [kind for kind in kinds if kind not in can]
        for kind in refused:
            place = f"{field.path}.invalid.kinds[{kinds.index(kind)}]"
            text = f"{field.type.label} with these options does not support {kind}."
            faults.append(Fault(place, "not_for_this_type", text, f"It can have: {join_kinds(list(can))}."))
        if not can and not refused:
            text = f"{field.type.label} does not support invalid data."
            faults.append(Fault(f"{field.path}.invalid", "not_for_this_type", text, "Take invalid away."))
        _check_duplicates(asked, f"{field.path}.invalid", faults)
        fields[field.name] = InvalidField(column, _chosen(can, asked), asked.share)
    if spec.invalid is not None:
        fields |= _of_template(spec, spec.invalid, layer, set(fields), faults)
    visible = {name: one for name, one in fields.items() if name in layer.visible}
    share = spec.invalid.share if spec.invalid is not None else None
    return InvalidDataPlan(visible, share) if visible else None


def _of_template(
    spec: TemplateSpec, asked: Invalid, layer: Layer, own: set[str], faults: list[Fault]
) -> dict[str, InvalidField]:
    can = {
        field.name: injectors_of(layer.columns[field.name]) for field in spec.fields if field.name not in own
    }
    can = {name: makes for name, makes in can.items() if name in layer.visible}
    anywhere = [kind for kind in KINDS if any(kind in makes for makes in can.values())]
    for place, kind in enumerate(asked.kinds or ()):
        if kind not in anywhere:
            text = f"No field of this template can have {kind}."
            hint = f"They can have: {join_kinds(anywhere)}."
            faults.append(Fault(f"invalid.kinds[{place}]", "not_for_these_fields", text, hint))
    if not anywhere and not asked.kinds:
        text = "No field of this template supports invalid data."
        faults.append(Fault("invalid", "not_for_these_fields", text, "Take invalid away."))
    _check_duplicates(asked, "invalid", faults)
    found = {
        name: InvalidField(layer.columns[name], _chosen(makes, asked), None) for name, makes in can.items()
    }
    return {name: one for name, one in found.items() if one.makes}


def _chosen(can: Mapping[Kind, Make], asked: Invalid) -> dict[Kind, Make]:
    wanted = asked.kinds or tuple(can)
    if asked.rate == 1 and asked.kinds is None:
        wanted = tuple(kind for kind in wanted if kind != "duplicate")
    return {kind: make for kind, make in can.items() if kind in wanted}


def _check_duplicates(asked: Invalid, path: str, faults: list[Fault]) -> None:
    """A duplicate repeats the value of a row that is not bad."""
    if asked.rate == 1 and "duplicate" in (asked.kinds or ()):
        text = "If every row is invalid, there is no valid value for a duplicate to repeat."
        faults.append(Fault(f"{path}.rate", "out_of_range", text, "Write a rate below 1, such as 0.5."))
