"""The row of another template that a group of references takes, and how many children each parent has.

Which row that is follows from the row number alone; see ``relations.py`` for the fields that show it.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from webapp import limits
from webapp.engine import cells as cellular
from webapp.engine import parents, picks
from webapp.engine.cardinality import Cardinality as Dealt
from webapp.engine.cardinality import Counts, Spread
from webapp.engine.fields.base import RELATION, GroupKind, OptionsModel
from webapp.engine.kinship import Unrelated
from webapp.errors import Fault

if TYPE_CHECKING:
    from webapp.engine.block import Draws, Env
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec

_BLANK_SALT, _CHOICE_SALT = -100, -101
_TAKERS = {
    "mean": ("uniform", "poisson", "geometric", "zipf"),
    "exponent": ("zipf",),
    "weights": ("weights",),
}


class Cardinality(OptionsModel):
    """How many children each parent has."""

    min: int = Field(1, ge=0, le=limits.MAX_ARRAY_PRODUCT)
    max: int = Field(3, ge=1, le=limits.MAX_ARRAY_PRODUCT)
    distribution: Literal["uniform", "poisson", "geometric", "zipf", "weights"] = "uniform"
    mean: Decimal | None = Field(
        None, gt=0, le=limits.MAX_ARRAY_PRODUCT, description="For poisson and geometric."
    )
    exponent: Decimal | None = Field(None, gt=0, le=10, description="For zipf.")
    weights: tuple[int, ...] | None = Field(
        None, description="For weights: one whole number for each count from min to max."
    )

    @model_validator(mode="after")
    def _together(self) -> Cardinality:
        if self.min > self.max:
            raise ValueError(f"min ({self.min}) is larger than max ({self.max})")
        given = {"mean": self.mean, "exponent": self.exponent, "weights": self.weights}
        for name, value in given.items():
            if value is not None and self.distribution not in _TAKERS[name]:
                raise ValueError(f"{name} is not for the distribution {self.distribution}")
        self.spread()
        return self

    def spread(self) -> Spread:
        """As the engine deals children out."""
        mean = None if self.mean is None else Fraction(self.mean)
        exponent = Fraction(1 if self.exponent is None else self.exponent)
        return Spread(self.min, self.max, self.distribution, mean, self.weights, exponent)


class ReferenceOptions(OptionsModel):
    """Which template a reference leads to, and how its rows are chosen."""

    template_id: str = Field(
        max_length=limits.MAX_NAME_CHARS, description="The template whose rows are taken; self for its own.",
        json_schema_extra=picks.template("parent"),
    )  # fmt: skip
    field: str | None = Field(
        None, max_length=limits.MAX_NAME_CHARS, description="Which of its fields is shown; its key, if not said.",
        json_schema_extra=picks.field_of("template_id", "its key"),
    )  # fmt: skip
    cardinality: Cardinality | None = Field(
        None, description="How many rows of this template each row of the other one has.",
        json_schema_extra=picks.RANGE,
    )  # fmt: skip
    layout: Literal["together", "mixed"] = Field(
        "together", description="With cardinality: whether the children of a row lie beside each other."
    )
    distribution: Literal["uniform", "zipf", "normal"] = Field(
        "uniform", description="How rows are chosen: evenly, a few often, or around the middle."
    )
    exponent: Decimal | None = Field(None, gt=0, le=10, description="How steep zipf is; 1 if not said.")
    roots: int = Field(
        1, ge=1, le=limits.MAX_INTEGER, description="For self: how many first rows have none above."
    )

    @model_validator(mode="before")
    @classmethod
    def _plain_number(cls, value: Any) -> Any:
        if isinstance(value, dict) and type(value.get("cardinality")) is int:
            count = value["cardinality"]
            return {**value, "cardinality": {"min": count, "max": count}}
        return value


@dataclass(frozen=True, slots=True)
class ParentRows:
    """The rows of the other template that a block's rows take.

    ``rows`` is ``uint64[n]``; ``valid`` is ``bool[n]``, false where there is none (None: all have one); ``position``
    is ``int64[n]``, the place among the parent's children from 0, for children by cardinality.
    """

    rows: np.ndarray
    valid: np.ndarray | None
    position: np.ndarray | None = None
    among: int = 0
    """How many rows they were drawn from without order; 0 where neighbours lie beside each other."""


class Relation(GroupKind):
    """The one row of another template that the references of a group take."""

    kind = RELATION

    def __init__(self, fields: tuple[FieldSpec, ...], compiler: Compiler) -> None:
        super().__init__(fields, compiler)
        first = fields[0]
        asked = _template_of(first)
        self.address = compiler.kin.address(asked, compiler.address)
        self.counts: Counts | None = None
        self.rows = 0
        self._dealt: dict[int, Dealt] = {}
        self._picker: parents.Picker | None = None
        self._blank: tuple[int, int] | None = None
        if self.address is None:
            text = f'There is no template "{asked}".' if asked else "A reference names a template."
            compiler.fault(
                first, "options.template_id", "unknown_template", text, "Name one by its id, or write self."
            )
            return
        for field in fields[1:]:
            if compiler.kin.address(_template_of(field), compiler.address) != self.address:
                text = f'The group "{first.group}" already takes rows of another template.'
                compiler.fault(field, "group", "two_templates", text, "Give this field another group.")
        stated = self._stated(fields, compiler)
        self.layout, self.roots = stated["layout"] or "together", stated["roots"] or 1
        self._self = self.address == compiler.address and not compiler.nested_here
        self._unique = next((field for field in fields if field.common.unique), None)
        self._owner = stated["cardinality"] is not None
        self._check(fields, stated, compiler)
        self._blank = self._share(fields, compiler)
        try:
            self.counts = compiler.kin.counts(compiler.address) if self._owner else None
            self.rows = compiler.kin.rows(self.address)
        except Unrelated as error:
            option = "options.cardinality" if self._owner else "options.template_id"
            text = str(error)
            compiler.fault(
                first, option, "unrelated", text, "Change the cardinality, or how many rows there are."
            )
            return
        if not (self._owner or self._unique or self._self):
            self._even = stated["distribution"] in (None, "uniform")
            exponent = Fraction(1 if stated["exponent"] is None else stated["exponent"])
            try:
                self._picker = parents.picker(
                    stated["distribution"] or "uniform", max(1, self.rows), exponent
                )
            except ValueError as error:
                text = f"There are {self.rows:,} rows to choose from, and it takes {error}."
                compiler.fault(
                    first, "options.distribution", "out_of_range", text, "Let the distribution be uniform."
                )

    def _stated(self, fields: tuple[FieldSpec, ...], compiler: Compiler) -> dict[str, Any]:
        """What the fields of the group say of the choice; a thing said twice is said alike."""
        stated: dict[str, Any] = {}
        for name in ("cardinality", "layout", "distribution", "exponent", "roots"):
            said = [
                (field, getattr(field.options, name))
                for field in fields
                if name in field.options.model_fields_set
            ]
            stated[name] = said[0][1] if said else None
            for field, value in said[1:]:
                if value != said[0][1]:
                    text = f'"{said[0][0].name}" of the same group says otherwise.'
                    compiler.fault(
                        field, f"options.{name}", "contradiction", text, "Say it at one field of the group."
                    )
        return stated

    def _check(self, fields: tuple[FieldSpec, ...], stated: dict[str, Any], compiler: Compiler) -> None:
        """Refuses what does not go together."""

        def refuse(option: str, text: str, hint: str) -> None:
            said = [field for field in fields if option in field.options.model_fields_set]
            compiler.fault((said or fields)[0], f"options.{option}", "not_for_this_type", text, hint)

        if self._owner:
            if compiler.nested_here:
                refuse(
                    "cardinality",
                    "Elements of an array cannot be dealt out to parents.",
                    "Move the field outside.",
                )
            here = fields[0].group
            others = [field for field in compiler.kin.owners(compiler.address) if field.group != here]
            if others and others[0].path < fields[0].path:
                refuse(
                    "cardinality",
                    f'"{others[0].name}" says already whose children the rows are.',
                    "Remove one.",
                )
            if self._self:
                refuse(
                    "cardinality",
                    "Rows cannot be dealt out to themselves.",
                    "Use a reference without cardinality.",
                )
        elif stated["layout"] is not None:
            refuse("layout", "layout is for children by cardinality.", "State cardinality, or remove layout.")
        if stated["exponent"] is not None and stated["distribution"] != "zipf":
            refuse("exponent", "exponent is for the distribution zipf.", "Remove exponent.")
        if stated["roots"] is not None and not self._self:
            refuse("roots", "roots is for references to the template itself.", "Remove roots.")
        if stated["distribution"] not in (None, "uniform"):
            fixed = ((self._owner, "cardinality"), (self._self, "template_id self"))
            for there, name in fixed:
                if there:
                    refuse("distribution", f"{name} leaves nothing to choose.", "Remove distribution.")
            if self._unique is not None:
                text = "Rows that are each taken once leave nothing to choose."
                compiler.fault(self._unique, "unique", "not_unique", text, "Remove unique, or distribution.")
        if self._unique is not None and (self._owner or self._self):
            text = (
                "Children repeat their parent."
                if self._owner
                else "A row cannot be its own one-to-one partner."
            )
            compiler.fault(self._unique, "unique", "not_unique", text, "Remove unique.")

    def _share(self, fields: tuple[FieldSpec, ...], compiler: Compiler) -> tuple[int, int] | None:
        shares = {field.common.percent_blank: field for field in fields if field.common.percent_blank}
        if len(shares) > 1:
            text = "The references of a group are blank together, and two of them state different shares."
            compiler.fault(
                list(shares.values())[1], "percent_blank", "contradiction", text, "State one share."
            )
        if shares and self._owner:
            text = "A child by cardinality always has its parent."
            blank = next(iter(shares.values()))
            compiler.fault(blank, "percent_blank", "not_for_this_type", text, "Remove percent_blank.")
        share = Fraction(max(shares, default=0))
        return (share.numerator, share.denominator) if share and not self._owner else None

    @property
    def free(self) -> bool:
        """Whether any row may take any row, all alike."""
        return self._picker is not None and self._even and self._blank is None

    @property
    def parents(self) -> int:
        """Rows of the other template that may be read; 0 for the template's own, of which only earlier ones are."""
        return 0 if self._self else self.rows

    def taking(self, rows: np.ndarray) -> ParentRows:
        """The rows of the other template that are dealt out elsewhere (see ``together.py``)."""
        return ParentRows(rows, None)

    def prepare(self, env: Env, fixed: dict[str, Any]) -> tuple[Any, list[Fault]]:
        text = (
            "The value is fixed, but it does not choose the row that the other references of its group show."
        )
        return None, [
            Fault(f"overrides.{name}", "override_alone", text, "") for name in fixed if len(self.fields) > 1
        ]

    def most_rows(self) -> int | None:
        """Children by cardinality are as many as their parents bear."""
        return None if self.counts is None else self.counts.total

    def space(self) -> int | None:
        """Rows that may take a row of their own: more than there are parents where some are blank."""
        if self._unique is None:
            return None
        if self._blank is None:
            return self.rows
        return rows_for(self.rows, *self._blank)

    def dealt(self, key: np.uint64) -> Dealt:
        """Who has which child, under the group's key."""
        found = self._dealt.get(int(key))
        if found is None:
            if len(self._dealt) >= limits.KEYS_KEPT:
                self._dealt.clear()
            assert self.counts is not None  # only children by cardinality are dealt out
            found = self._dealt[int(key)] = self.counts.bind(key, self.layout == "mixed")
        return found

    def draw(self, draws: Draws, state: Any) -> ParentRows:
        if self.counts is not None:
            return ParentRows(*_swapped(self.dealt(draws.key).owners(draws.rows)))
        valid = self._valid(draws)
        if self.rows == 0:
            return ParentRows(np.zeros(draws.n, np.uint64), np.zeros(draws.n, np.bool_))
        key = cellular.derive(draws.key, _CHOICE_SALT)
        if self._self:
            rows, having = parents.manager(key, draws.rows, self.roots)
            return ParentRows(rows, having if valid is None else valid & having)
        if self._unique is None:
            assert self._picker is not None
            return ParentRows(self._picker.draw(key, draws.rows), valid, among=self.rows)
        rank = draws.rows
        if self._blank is not None:
            rank = cellular.filled_rank(self._blank_key(draws), draws.rows, *self._blank)
            rank = np.maximum(rank, 0).view(np.uint64)
        return ParentRows(parents.match(key, rank, self.rows), valid)

    def _valid(self, draws: Draws) -> np.ndarray | None:
        if self._blank is None:
            return None
        return ~cellular.blanks(self._blank_key(draws), draws.rows, *self._blank)

    def _blank_key(self, draws: Draws) -> np.uint64:
        return cellular.derive(draws.key, _BLANK_SALT)


def _template_of(field: FieldSpec) -> str:
    assert isinstance(field.options, ReferenceOptions)  # no other type is in a group of references
    return field.options.template_id


def rows_for(filled: int, numerator: int, denominator: int) -> int:
    """The most rows of which no more than ``filled`` are sure not to be blank, numerator / denominator of a hundred
    being so."""
    if numerator >= 100 * denominator:
        return limits.MAX_PARENTS
    low, high = filled, (filled + 1) * 100 * denominator // (100 * denominator - numerator) + 200
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (
            (middle, high) if cellular.filled(middle, numerator, denominator) <= filled else (low, middle - 1)
        )
    return low


def _swapped(owners: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, None, np.ndarray]:
    rows, position = owners
    return rows, None, position
