"""Relations between templates: references, totals of children, earlier rows, and nested templates.

The fields of a group of references show the same row of another template. Which row that is depends only on the row
number, so nothing of the other template is stored: a field's values of it are generated again from its row number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import AliasChoices, Field, model_validator

from webapp import limits
from webapp.engine import budget, distributions, form_hints, postprocess, random, text
from webapp.engine.errors import SpecError
from webapp.engine.random import Rows
from webapp.engine.record_counts import RecordCounts
from webapp.engine.relations import RELATION
from webapp.engine.relations import totals as relations_totals
from webapp.engine.relations.cardinality import BoundCardinality, ChildCounts, ChildDistribution
from webapp.engine.relations.related_plans import RowCountError
from webapp.engine.types.base import FieldType, GroupKind, OptionsModel
from webapp.engine.types.structure import Count
from webapp.errors import Fault, did_you_mean

if TYPE_CHECKING:
    from webapp.engine.blocks import Block, BoundPlan, ColumnContext, GenerationContext
    from webapp.engine.budget import MemoryMeter
    from webapp.engine.compiler import Compiler
    from webapp.engine.layers import Column
    from webapp.engine.random import RandomStream
    from webapp.engine.spec import FieldSpec

# Choosing a parent row for a child: free references, one to one, unique pairs, and rows that refer to their own
# table.

Distribution = Literal["uniform", "zipf", "normal"]

_RANK_SALT, _MANAGER_SALT, _PARTNER_SALT = 11, 12, 13


class ParentPicker(ABC):
    """A way to draw one of ``parents`` rows, independent of the key."""

    parents: int

    @abstractmethod
    def draw(self, key: np.uint64, rows: Rows, salt: int = 0) -> Rows:
        """``uint64[n]`` below ``parents``. Draws with another ``salt`` have nothing to do with each other, except
        that zipf's popular parents are the same."""


def create_picker(distribution: Distribution, parents: int, exponent: Fraction = Fraction(1)) -> ParentPicker:
    """Return the picker that chooses parents by ``distribution``.

    - ``uniform``: all with the same probability.
    - ``zipf``: the k-th most popular with weight k ** -``exponent``; which ones are popular is up to the key.
    - ``normal``: a bell around the middle row, with a sixth of the number of parents as standard deviation, cut to
      the rows there are: the outer sixths on both sides get 2.2 % each.

    Raises `ValueError` unless 1 <= parents <= `limits.MAX_PARENTS` (zipf: `limits.MAX_RANKS`).
    """
    maximum = limits.MAX_RANKS if distribution == "zipf" else limits.MAX_PARENTS
    if not 1 <= parents <= maximum:
        raise ValueError(f"1 to {maximum} rows")
    if distribution == "zipf":
        return _Zipf(parents, distributions.zipf(exponent, parents))
    return _uniform(parents) if distribution == "uniform" else _normal(parents)


@dataclass(frozen=True, slots=True)
class _Uniform(ParentPicker):
    parents: int

    def draw(self, key: np.uint64, rows: Rows, salt: int = 0) -> Rows:
        return random.below(_bits(key, rows, salt), self.parents)


@dataclass(frozen=True, slots=True)
class _Zipf(ParentPicker):
    parents: int
    ranks: distributions.Discrete

    def draw(self, key: np.uint64, rows: Rows, salt: int = 0) -> Rows:
        ranks = self.ranks.draw(_bits(key, rows, salt)).view(np.uint64)
        return random.permutation(random.derive(key, _RANK_SALT), ranks, self.parents)


@dataclass(frozen=True, slots=True)
class _Normal(ParentPicker):
    parents: int
    bell: distributions.Sampler

    def draw(self, key: np.uint64, rows: Rows, salt: int = 0) -> Rows:
        return self.bell.draw(_bits(key, rows, salt)).view(np.uint64)


@lru_cache(maxsize=256)
def _uniform(parents: int) -> ParentPicker:
    return _Uniform(parents)


@lru_cache(maxsize=256)
def _normal(parents: int) -> ParentPicker:
    # Values are rounded, so row r represents everything within half a row of it: the middle is (N - 1) / 2.
    bell = distributions.normal(Fraction(parents - 1, 2), Fraction(parents, 6))
    return _Normal(parents, bell.within(0, parents - 1))


def _bits(key: np.uint64, rows: Rows, salt: int) -> Rows:
    return random.bits(random.derive(key, salt) if salt else key, rows)


def self_reference_parents(key: np.uint64, rows: Rows, roots: int = 1) -> tuple[Rows, np.ndarray]:
    """For a table that refers to itself: each row's parent, any earlier row with the same probability (``uint64[n]``),
    and whether it has one (``bool[n]``): the first ``roots`` rows have none (and 0 in the first array). ``roots`` is
    at least 1.

    Parents come before their children, so there are no cycles, and rows can be inserted in order.
    """
    has_parent = rows >= np.uint64(roots)
    parents = random.below_each(random.bits(random.derive(key, _MANAGER_SALT), rows), rows)
    parents[~has_parent] = 0
    return parents, has_parent


def one_to_one_parents(key: np.uint64, rows: Rows, parents: int) -> Rows:
    """One to one: child row r has parent perm(r). All ``rows`` are below ``parents``.

    With a share of blanks, hand in `random.filled_rank` of the rows that are not blank instead of the rows.
    """
    return random.permutation(key, rows, parents)


def one_to_one_children(key: np.uint64, parent_rows: Rows, parents: int) -> Rows:
    """The child row (or rank among the rows that are not blank) of each parent; the inverse of `one_to_one_parents`. It
    may be beyond the last child: that parent has none."""
    return random.permutation_inverse(key, parent_rows, parents)


def unique_pairs(key: np.uint64, rows: Rows, na: int, nb: int) -> tuple[Rows, Rows]:
    """Rows of two parents, no pair twice; all ``rows`` are below ``na`` * ``nb``, which is below 2**63."""
    a, b = np.divmod(random.permutation(key, rows, na * nb), np.uint64(nb))
    return a, b


def distinct_partners(key: np.uint64, parents: Rows, positions: np.ndarray, nb: int) -> Rows:
    """The other end (below ``nb``) of a child that is the ``positions``-th of its parent
    (`BoundCardinality.owners`): no parent has the same partner twice. All positions are below ``nb``."""
    keys = random.bits(random.derive(key, _PARTNER_SALT), parents)
    return random.permutation_by(keys, positions.astype(np.uint64, copy=False), nb)


_BLANK_SALT, _CHOICE_SALT = -100, -101
_PAIR = 2  # two references that differ need as many rows
_PARAMETER_DISTRIBUTIONS = {
    "mean": ("uniform", "poisson", "geometric", "zipf"),
    "exponent": ("zipf",),
    "weights": ("weights",),
}


class Cardinality(OptionsModel):
    "Number of children per parent."

    min: int = Field(1, ge=0, le=limits.MAX_ARRAY_PRODUCT)
    max: int = Field(3, ge=1, le=limits.MAX_ARRAY_PRODUCT)
    distribution: Literal["uniform", "poisson", "geometric", "zipf", "weights"] = "uniform"
    mean: Decimal | None = Field(
        None, gt=0, le=limits.MAX_ARRAY_PRODUCT, description="Mean, for poisson and geometric."
    )
    exponent: Decimal | None = Field(None, gt=0, le=10, description="Exponent, for zipf.")
    weights: tuple[int, ...] | None = Field(
        None, description="For weights: one integer for each count from min to max."
    )

    @model_validator(mode="after")
    def _check_parameters(self) -> Cardinality:
        if self.min > self.max:
            raise ValueError(f"min ({self.min}) is larger than max ({self.max})")
        parameters = {"mean": self.mean, "exponent": self.exponent, "weights": self.weights}
        for name, value in parameters.items():
            if value is not None and self.distribution not in _PARAMETER_DISTRIBUTIONS[name]:
                raise ValueError(f"{name} is not available for the distribution {self.distribution}")
        self.spread()
        return self

    def spread(self) -> ChildDistribution:
        """Return the distribution of children that the engine uses."""
        mean = None if self.mean is None else Fraction(self.mean)
        exponent = Fraction(1 if self.exponent is None else self.exponent)
        return ChildDistribution(self.min, self.max, self.distribution, mean, self.weights, exponent)


class ReferenceOptions(OptionsModel):
    """Which template a reference leads to, and how its rows are chosen."""

    parameters: ClassVar[dict[str, dict[str, tuple[str, ...]]]] = {"distribution": {"zipf": ("exponent",)}}

    template_id: str = Field(
        max_length=limits.MAX_NAME_CHARS, description="The referenced template, or self.",
        json_schema_extra=form_hints.template("parent"),
    )  # fmt: skip
    field: str | None = Field(
        None, max_length=limits.MAX_NAME_CHARS, description="Field of the referenced row. Default: its key.",
        json_schema_extra=form_hints.field_of("template_id", "its key"),
    )  # fmt: skip
    cardinality: Cardinality | None = Field(
        None, description="Number of rows of this template per row of the referenced template.",
        json_schema_extra=form_hints.RANGE,
    )  # fmt: skip
    layout: Literal["together", "mixed"] = Field(
        "together", description="With cardinality: whether the children of a parent are consecutive rows."
    )
    distribution: Literal["uniform", "zipf", "normal"] = Field(
        "uniform",
        description=("How rows are chosen: uniform, zipf (a few often) or normal (around the middle)."),
    )
    exponent: Decimal | None = Field(None, gt=0, le=10, description="Exponent of zipf. Default: 1.")
    roots: int = Field(
        1,
        ge=1,
        le=limits.MAX_INTEGER,
        description=("For self: number of root rows (the first rows, without a parent)."),
    )

    differs_from: str | None = Field(
        None, max_length=limits.MAX_NAME_CHARS,
        description="Another reference to the same template, whose row this one never takes.",
    )  # fmt: skip

    @model_validator(mode="before")
    @classmethod
    def _expand_integer(cls, value: Any) -> Any:
        if isinstance(value, dict) and type(value.get("cardinality")) is int:
            count = value["cardinality"]
            return {**value, "cardinality": {"min": count, "max": count}}
        return value


@dataclass(frozen=True, slots=True)
class ParentRows:
    """The rows of the other template that a block's rows take.

    ``rows`` is ``uint64[n]``; ``valid`` is ``bool[n]``, false for rows without one (None: all have one); ``position``
    is ``int64[n]``, the place among the parent's children from 0, for children by cardinality.
    """

    rows: np.ndarray
    valid: np.ndarray | None
    position: np.ndarray | None = None
    among: int = 0
    """The number of rows that they were drawn from in random order; 0 if neighbours stay next to each other."""


class RelationKind(GroupKind):
    """The one row of another template that the references of a group take."""

    kind = RELATION

    def __init__(self, fields: tuple[FieldSpec, ...], compiler: Compiler) -> None:
        super().__init__(fields, compiler)
        first = fields[0]
        template_id = _template_of(first)
        self.address = compiler.related_plans.address(template_id, compiler.address)
        self.counts: ChildCounts | None = None
        self.rows = 0
        self.differs_from: str | None = None
        """The group of references whose row this reference never uses."""
        self._cardinalities: dict[int, BoundCardinality] = {}
        self._picker: ParentPicker | None = None
        self._blank: tuple[int, int] | None = None
        if self.address is None:
            text = (
                f'There is no template "{template_id}".' if template_id else "A reference needs a template."
            )
            compiler.fault(
                first, "options.template_id", "unknown_template", text, "Use the ID of a template, or self."
            )
            return
        for field in fields[1:]:
            if compiler.related_plans.address(_template_of(field), compiler.address) != self.address:
                text = f'The group "{first.group}" already references another template.'
                compiler.fault(field, "group", "two_templates", text, "Use another group for this field.")
        choice = self._choice_options(fields, compiler)
        self.layout, self.roots = choice["layout"] or "together", choice["roots"] or 1
        self._self = self.address == compiler.address and not compiler.is_nested
        self._unique = next((field for field in fields if field.common.unique), None)
        self._owner = choice["cardinality"] is not None
        self._check_options(fields, choice, compiler)
        self.differs_from = self._other_group(fields, choice["differs_from"], compiler)
        self._blank = self._blank_share(fields, compiler)
        try:
            self.counts = compiler.related_plans.child_counts(compiler.address) if self._owner else None
            self.rows = compiler.related_plans.row_count(self.address)
        except RowCountError as error:
            option = "options.cardinality" if self._owner else "options.template_id"
            text = str(error)
            compiler.fault(first, option, "unrelated", text, "Change the cardinality or the number of rows.")
            return
        if self.differs_from is not None and self.rows < _PAIR:
            text = f"There are only {self.rows:,} rows to choose from, so two references cannot differ."
            compiler.fault(
                first,
                "options.differs_from",
                "out_of_range",
                text,
                "Generate more rows of the referenced template.",
            )
        if not (self._owner or self._unique or self._self):
            self._even = choice["distribution"] in (None, "uniform")
            exponent = Fraction(1 if choice["exponent"] is None else choice["exponent"])
            try:
                self._picker = create_picker(
                    choice["distribution"] or "uniform", max(1, self.choice_count), exponent
                )
            except ValueError as error:
                text = f"There are {self.rows:,} rows to choose from; the distribution supports {error}."
                compiler.fault(
                    first, "options.distribution", "out_of_range", text, "Set the distribution to uniform."
                )

    def _choice_options(self, fields: tuple[FieldSpec, ...], compiler: Compiler) -> dict[str, Any]:
        """Return the group's options for choosing rows; options that are set twice must be equal."""
        choice: dict[str, Any] = {}
        for name in ("cardinality", "layout", "distribution", "exponent", "roots", "differs_from"):
            values = [
                (field, getattr(field.options, name))
                for field in fields
                if name in field.options.model_fields_set
            ]
            choice[name] = values[0][1] if values else None
            for field, value in values[1:]:
                if value != values[0][1]:
                    text = f'"{values[0][0].name}" of the same group has a different value.'
                    compiler.fault(
                        field,
                        f"options.{name}",
                        "contradiction",
                        text,
                        "Set the option on only one field of the group.",
                    )
        return choice

    @property
    def choice_count(self) -> int:
        """Return the number of rows that one row may choose from."""
        return self.rows if self.differs_from is None else max(0, self.rows - 1)

    def _other_group(self, fields: tuple[FieldSpec, ...], name: str | None, compiler: Compiler) -> str | None:
        """Return the group of the reference `name`, or None after an error."""
        if name is None:
            return None
        spec = next(field for field in fields if field.options.differs_from == name)  # type: ignore[attr-defined]
        other = compiler.sibling(name)
        reference = (
            None if other is None or not isinstance(other.options, ReferenceOptions) else other.options
        )
        group = None if other is None else other.group or RELATION
        if reference is None or group == (spec.group or RELATION):
            text = f'"{name}" is not another reference of this template.'
            compiler.fault(
                spec, "options.differs_from", "unknown_field", text, "Use a reference of another group."
            )
        elif compiler.related_plans.address(reference.template_id, compiler.address) != self.address:
            text = f'"{name}" references another template, so the two always differ.'
            compiler.fault(spec, "options.differs_from", "two_templates", text, "Remove differs_from.")
        elif reference.differs_from is not None:
            text = f'"{name}" also has differs_from.'
            compiler.fault(
                spec,
                "options.differs_from",
                "contradiction",
                text,
                "Set differs_from on only one of the two references.",
            )
        elif self._owner or self._self or self._unique is not None:
            text = "References with cardinality, to self or with unique do not choose their rows freely."
            compiler.fault(
                spec,
                "options.differs_from",
                "not_for_this_type",
                text,
                "Set differs_from on the other reference.",
            )
        else:
            return group
        return None

    def exclude_other_rows(self, chosen: ParentRows, other: ParentRows) -> ParentRows:
        """Return rows that are never those of the other group: numbers from the other's row on move up by one."""
        moved = chosen.rows + (chosen.rows >= other.rows).astype(np.uint64)
        return ParentRows(moved, chosen.valid, chosen.position, chosen.among)

    def _check_options(
        self, fields: tuple[FieldSpec, ...], choice: dict[str, Any], compiler: Compiler
    ) -> None:
        """Reject contradicting options."""

        def reject(option: str, text: str, hint: str) -> None:
            stated = [field for field in fields if option in field.options.model_fields_set]
            compiler.fault((stated or fields)[0], f"options.{option}", "not_for_this_type", text, hint)

        if self._owner:
            if compiler.is_nested:
                reject(
                    "cardinality",
                    "Elements of an array cannot be assigned to parents.",
                    "Move the field out of the array.",
                )
            own_group = fields[0].group
            others = [
                field
                for field in compiler.related_plans.parent_fields(compiler.address)
                if field.group != own_group
            ]
            if others and others[0].path < fields[0].path:
                reject(
                    "cardinality",
                    f'"{others[0].name}" already determines the parents of the rows.',
                    "Remove one.",
                )
            if self._self:
                reject(
                    "cardinality",
                    "A template cannot be its own parent by cardinality.",
                    "Use a reference without cardinality.",
                )
        elif choice["layout"] is not None:
            reject(
                "layout", "layout is only available with cardinality.", "Set cardinality, or remove layout."
            )
        if choice["exponent"] is not None and choice["distribution"] != "zipf":
            reject("exponent", "exponent is only available for the distribution zipf.", "Remove exponent.")
        if choice["roots"] is not None and not self._self:
            reject("roots", "roots is only available for references to the template itself.", "Remove roots.")
        if choice["distribution"] not in (None, "uniform"):
            without_choice = ((self._owner, "cardinality"), (self._self, "template_id self"))
            for applies, name in without_choice:
                if applies:
                    reject(
                        "distribution",
                        f"{name} cannot be combined with distribution.",
                        "Remove distribution.",
                    )
            if self._unique is not None:
                text = "unique cannot be combined with distribution."
                compiler.fault(self._unique, "unique", "not_unique", text, "Remove unique, or distribution.")
        if self._unique is not None and (self._owner or self._self):
            text = (
                "Several children have the same parent."
                if self._owner
                else "A row cannot be its own one-to-one partner."
            )
            compiler.fault(self._unique, "unique", "not_unique", text, "Remove unique.")

    def _blank_share(self, fields: tuple[FieldSpec, ...], compiler: Compiler) -> tuple[int, int] | None:
        shares = {field.common.percent_blank: field for field in fields if field.common.percent_blank}
        if len(shares) > 1:
            text = (
                "The references of a group are blank in the same rows, but two of them have different "
                "values for percent_blank."
            )
            compiler.fault(
                list(shares.values())[1],
                "percent_blank",
                "contradiction",
                text,
                "Use the same percent_blank for all of them.",
            )
        if shares and self._owner:
            text = "A reference with cardinality cannot be blank."
            blank = next(iter(shares.values()))
            compiler.fault(blank, "percent_blank", "not_for_this_type", text, "Remove percent_blank.")
        share = Fraction(max(shares, default=0))
        return (share.numerator, share.denominator) if share and not self._owner else None

    @property
    def is_uniform(self) -> bool:
        """Return whether any row may get any row with the same probability."""
        return self._picker is not None and self._even and self._blank is None

    @property
    def parents(self) -> int:
        """Rows of the other template that may be read; 0 for the template's own, of which only earlier ones are."""
        return 0 if self._self else self.rows

    def select_rows(self, rows: np.ndarray) -> ParentRows:
        """Return the rows of the other template that were chosen elsewhere (see ``unique_together.py``)."""
        return ParentRows(rows, None)

    def prepare(self, env: GenerationContext, fixed: dict[str, Any]) -> tuple[Any, list[Fault]]:
        text = "The value is fixed, but the other references of its group still use the generated row."
        return None, [
            Fault(f"overrides.{name}", "override_alone", text, "") for name in fixed if len(self.fields) > 1
        ]

    def max_rows(self) -> int | None:
        """Return the number of children, which the cardinality decides."""
        return None if self.counts is None else self.counts.total

    def space(self) -> int | None:
        """Return how many rows can each get a different parent; more than the number of parents if some are null."""
        if self._unique is None:
            return None
        if self._blank is None:
            return self.rows
        return max_rows_for(self.rows, *self._blank)

    def bound_cardinality(self, key: np.uint64) -> BoundCardinality:
        """The assignment of children with the group's key."""
        cardinality = self._cardinalities.get(int(key))
        if cardinality is None:
            if len(self._cardinalities) >= limits.CACHED_RELATION_KEYS:
                self._cardinalities.clear()
            assert self.counts is not None  # only children with cardinality are assigned
            cardinality = self._cardinalities[int(key)] = self.counts.bind(key, self.layout == "mixed")
        return cardinality

    def draw(self, draws: RandomStream, state: Any) -> ParentRows:
        if self.counts is not None:
            rows, position = self.bound_cardinality(draws.key).owners(draws.rows)
            return ParentRows(rows, None, position)
        valid = None
        if self._blank is not None:
            valid = ~random.blank_mask(self._blank_key(draws), draws.rows, *self._blank)
        if self.rows == 0:
            return ParentRows(np.zeros(draws.n, np.uint64), np.zeros(draws.n, np.bool_))
        key = random.derive(draws.key, _CHOICE_SALT)
        if self._self:
            rows, has_parent = self_reference_parents(key, draws.rows, self.roots)
            return ParentRows(rows, has_parent if valid is None else valid & has_parent)
        if self._unique is None:
            assert self._picker is not None
            return ParentRows(self._picker.draw(key, draws.rows), valid, among=self.choice_count)
        rank = draws.rows
        if self._blank is not None:
            rank = random.filled_rank(self._blank_key(draws), draws.rows, *self._blank)
            rank = np.maximum(rank, 0).view(np.uint64)
        return ParentRows(one_to_one_parents(key, rank, self.rows), valid)

    def _blank_key(self, draws: RandomStream) -> np.uint64:
        return random.derive(draws.key, _BLANK_SALT)


def _template_of(field: FieldSpec) -> str:
    assert isinstance(field.options, ReferenceOptions)  # no other type is in a group of references
    return field.options.template_id


def max_rows_for(filled: int, numerator: int, denominator: int) -> int:
    """Return the largest number of rows of which at most ``filled`` are not blank, if numerator / denominator percent
    are blank."""
    if numerator >= 100 * denominator:
        return limits.MAX_PARENTS
    low, high = filled, (filled + 1) * 100 * denominator // (100 * denominator - numerator) + 200
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (
            (middle, high)
            if random.filled_count(middle, numerator, denominator) <= filled
            else (low, middle - 1)
        )
    return low


KEY_TYPES = ("row_number", "sequence", "uuid", "ulid", "mongodb_objectid")


class Reference(FieldType):
    """A field of a row of another template."""

    name = "reference"
    label = "Reference"
    category = "identity"
    description = (
        "A field of a row in another template: a foreign key, or any other field of the referenced row."
    )
    aliases = ("foreign key to template", "relation", "parent", "parent field")
    example = 4711
    group_kind = RELATION
    blank_together = True

    class Options(ReferenceOptions):
        pass

    options: Options

    @classmethod
    def parent_and_cardinality(cls, options: Options) -> tuple[str, Cardinality] | None:
        return None if options.cardinality is None else (options.template_id, options.cardinality)

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._kind: RelationKind = compiler.group_kind_of(field)
        self.dtype = pa.null()
        self._column: Column | None = None
        if self._kind.address is None:
            return
        self._field_name = options.field or key_field_name(
            compiler.related_plans.template(self._kind.address).spec.fields, field.name
        )
        column = self._column = compiler.related_column(
            field, "options.field", self._kind.address, self._field_name
        )
        if column is not None:
            self.dtype, self.is_json_text = (
                column.dtype,
                column.type.is_json_text and column.text_transform is None,
            )
            length = column.type.max_length
            self.max_length = (
                column.text_transform.longest(length)
                if column.text_transform and length is not None
                else length
            )
            is_key = column.type.is_primary_key or column.type.name in KEY_TYPES
            never_repeats = column.spec.common.unique or (is_key and column.formula is None)
            if field.common.unique and not never_repeats:
                text = (
                    f'"{self._field_name}" may have the same value in several rows, '
                    "although each references a different row."
                )
                hint = "Make it unique in that template, or set unique on a reference to its key in the same group."
                compiler.fault(field, "unique", "not_unique", text, hint)

    def fill(self, context: ColumnContext) -> pa.Array:
        return context.related_rows().column(self._field_name)

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        return self.fill(context)

    def distinct_count(self) -> int | None:
        return self._kind.space() if self.field.common.unique else None

    def bounds(self, rows: int) -> tuple[int, int] | None:
        column = self._column
        return (
            None
            if column is None or column.formula is not None
            else column.type.bounds(max(1, self._kind.rows))
        )

    @property
    def shown_column(self) -> Column | None:
        """Return the column of the other template that the field shows."""
        return self._column

    @property
    def parent_rows(self) -> int:
        """Rows that the other template has."""
        return self._kind.rows

    @property
    def address(self) -> str | None:
        """Which template that is; see ``relations/related_plans.py``."""
        return self._kind.address

    @classmethod
    def group_attribute(cls, options: Options) -> str:
        return f"{cls.name}:{options.field}"

    @classmethod
    def group_constraint(cls, options: Options) -> str:
        return options.template_id


def key_field_name(fields: tuple[FieldSpec, ...], reader: str) -> str:
    """Return the field that identifies a template's rows: one that is called ``reader`` or ``id``, else a unique one,
    else one whose type never repeats, else the first."""
    names = [field.name for field in fields]
    for name in (reader, "id"):
        if name in names:
            return name
    unique = [field.name for field in fields if field.common.unique]
    numbered = [field.name for field in fields if field.type.name in KEY_TYPES]
    return (unique or numbered or names)[0]


class Position(FieldType):
    """The place of a row among the children of its parent."""

    name = "position_in_parent"
    label = "Position in parent"
    category = "identity"
    description = (
        "Position of a row among its parent's children (1, 2, 3 ...). Requires a reference with cardinality."
    )
    aliases = ("child position", "line number", "child number", "position among siblings")
    example = 1
    dtype = pa.int64()

    class Options(OptionsModel):
        start: int = Field(
            1, ge=-limits.MAX_INTEGER, le=limits.MAX_INTEGER, description="Value of the first child."
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        owner = compiler.related_plans.parent_field(compiler.address)
        self._group = RELATION
        if owner is None or compiler.is_nested:
            text = "Only rows with a parent by cardinality have a position."
            compiler.fault(
                field, "type", "no_parent", text, "Add a reference with cardinality to this template."
            )
        else:
            self._group = owner[0].group or RELATION
            compiler.relation_of(compiler.address, self._group)

    def fill(self, context: ColumnContext) -> pa.Array:
        position = context.group_value(ParentRows, self._group, RELATION).position
        assert position is not None  # the group has a cardinality
        return pa.array(position + self.options.start)


AggregateFunction = Literal["sum", "count", "min", "max", "avg", "first", "any", "span"]
_LARGEST = 2**63 - 1


def find_child_template(
    field: FieldSpec, template_id: str, compiler: Compiler
) -> tuple[str, FieldSpec] | None:
    """Return the address of the template ``template_id``, which ``field`` names, and its field that makes its rows
    children of this template's; None after an error."""
    address = compiler.related_plans.address(template_id, compiler.address)
    if address is None:
        text = f'There is no template "{template_id}".'
        compiler.fault(field, "options.template_id", "unknown_template", text, "Use the ID of a template.")
        return None
    owner = compiler.related_plans.child_field(address, compiler.address)
    if owner is None:
        text = f'"{compiler.related_plans.template(address).name}" has no reference with cardinality to this template.'
        hint = "Set cardinality on its reference. Without it, Rowsmith would have to search all rows."
        compiler.fault(field, "options.template_id", "no_cardinality", text, hint)
        return None
    return address, owner


def first_child_count(counts: ChildCounts, mixed: bool, parents: int) -> int:
    """Return how many of the first rows of a child the first ``parents`` rows of its parent may have."""
    if mixed:
        return counts.total
    blocks = -(-parents // limits.PARENT_BLOCK)
    in_blocks = counts.first_slot(blocks) if blocks <= counts.whole_blocks else counts.total
    return min(in_blocks, parents * counts.max)


class Aggregate(FieldType):
    """The sum, count or another aggregate of a row's children."""

    name = "aggregate"
    label = "Total of children"
    category = "logic"
    description = (
        "The sum, count, minimum, maximum, average or first value over the rows of a child template."
    )
    aliases = ("rollup", "roll up", "sum of children", "child total", "children total", "summary")
    example = 3

    class Options(OptionsModel):
        template_id: str = Field(
            max_length=limits.MAX_NAME_CHARS,
            description="The child template. It must have a reference with cardinality to this template.",
            json_schema_extra=form_hints.template("child"),
        )
        function: AggregateFunction = Field(
            "sum", description="Aggregate function for the children's values."
        )
        field: str | None = Field(
            None, max_length=limits.MAX_NAME_CHARS, description="Field of the child template. Not needed for count.",
            json_schema_extra=form_hints.field_of("template_id", "none"),
        )  # fmt: skip
        decimals: int | None = Field(
            None, ge=0, le=18, description="Decimal places of an average. Default: two more than the values."
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.dtype = pa.int64()
        self._rows = limits.MAX_PARENTS
        self._value_bounds: tuple[int, int] | None = None
        if compiler.is_nested:
            text = "Elements of an array cannot have children."
            compiler.fault(field, "type", "not_for_this_type", text, "Move the field out of the array.")
            return
        found = find_child_template(field, options.template_id, compiler)
        if found is None:
            return
        self._address, owner = found
        self._group = owner.group or RELATION
        try:
            self._rows = compiler.related_plans.row_count(compiler.address)
            counts = compiler.related_plans.child_counts(self._address)
        except RowCountError as error:
            compiler.fault(
                field,
                "options.template_id",
                "unrelated",
                str(error),
                "Change the cardinality of the reference.",
            )
            return
        assert counts is not None  # the child has an owner
        self._counts, self._mixed = counts, compiler.relation_of(self._address, self._group).layout == "mixed"
        if options.function != "avg" and options.decimals is not None:
            text = "decimals is only available for avg."
            compiler.fault(field, "options.decimals", "not_for_this_type", text, "Remove decimals.")
        column: Column | None = None
        if options.field is not None:
            column = compiler.related_column(field, "options.field", self._address, options.field)
        elif options.function != "count":
            text = f"field is required for {options.function}."
            compiler.fault(field, "options.field", "required", text, "Use one of the child's fields.")
        self.expansion = max(1, counts.max)
        if column is not None:
            self._set_result_type(column, counts.max, compiler)

    def _set_result_type(self, column: Column, maximum: int, compiler: Compiler) -> None:
        """Set the type of the result; reject functions that do not support the child's values."""
        dtype, function = column.dtype, self.options.function
        if function == "count":
            return
        is_number = pa.types.is_integer(dtype) or pa.types.is_decimal(dtype)
        is_temporal = pa.types.is_date(dtype) or pa.types.is_timestamp(dtype)
        supported = {
            "sum": is_number,
            "avg": is_number,
            "min": is_number or is_temporal,
            "max": is_number or is_temporal,
        }
        supported |= {
            "span": is_number or pa.types.is_date(dtype),
            "any": pa.types.is_boolean(dtype),
            "first": True,
        }
        if not supported[function]:
            text = f'"{column.name}" contains {type_name(dtype)}, which {function} does not support.'
            hint = (
                "Use another field: sum and avg support numbers, min and max also dates, any booleans, "
                "first all types."
            )
            if pa.types.is_floating(dtype):
                hint = "Floating point numbers cannot be added exactly: set decimals for that field."
            compiler.fault(self.field, "options.field", "wrong_type", text, hint)
        self._scale = dtype.scale if pa.types.is_decimal(dtype) else 0
        self.dtype = dtype
        if function == "avg":
            places = self.options.decimals if self.options.decimals is not None else min(18, self._scale + 2)
            self.dtype = pa.decimal128(38, places)
        elif function == "span" and pa.types.is_date(dtype):
            self.dtype = pa.int64()
        if function in ("sum", "avg"):
            self._check_overflow(column, maximum, compiler)

    def _check_overflow(self, column: Column, maximum: int, compiler: Compiler) -> None:
        """Reject sums that may exceed 64 bits, if the range of the values is known."""
        known = None if column.formula is not None else column.type.bounds(self._counts.total)
        if known is None:
            return
        shift = max(0, self.dtype.scale - self._scale) if self.options.function == "avg" else 0
        self._value_bounds = min(0, known[0] * maximum), max(0, known[1] * maximum)
        if max(-self._value_bounds[0], self._value_bounds[1]) * 10**shift > (
            _LARGEST if shift == 0 else 2**62 - 1
        ):
            text = (
                f'The {self.options.function} of "{column.name}" over {maximum:,} children '
                "can be too large for 64 bits."
            )
            compiler.fault(
                self.field,
                "options.field",
                "overflow",
                text,
                "Lower the max of the field, or the cardinality.",
            )

    def bounds(self, rows: int) -> tuple[int, int] | None:
        if self.options.function == "count":
            return 0, self._counts.max
        return self._value_bounds if self.options.function == "sum" else None

    def available_rows(self, state: Any) -> int | None:
        return self._rows

    def related_rows_read(self, rows: int) -> tuple[str, int] | None:
        return self._address, first_child_count(self._counts, self._mixed, rows)

    def too_many_rows_hint(self) -> str:
        return "Request earlier rows, or raise the template's quantity, which is the number of parents."

    def fill(self, context: ColumnContext) -> pa.Array:
        children = ChildRows(context, self._address, self._group)
        if self.options.function == "count" and self.options.field is None:
            return pa.array(children.counts)
        if self.options.function == "first":
            return children.first(self._child_field, self.dtype)
        pieces = [self._aggregate(*piece) for piece in children.pieces(self._child_field)]
        return pa.concat_arrays(pieces) if len(pieces) > 1 else pieces[0]

    @property
    def _child_field(self) -> str:
        assert self.options.field is not None  # only count does without
        return self.options.field

    def _aggregate(self, column: pa.Array, starts: np.ndarray, counts: np.ndarray) -> pa.Array:
        """Return one value for each parent whose children are in ``column`` at ``starts``."""
        column = text.decode_dictionary(column)
        valid = None if not column.null_count else column.is_valid().to_numpy(zero_copy_only=False)
        function = self.options.function
        if function == "count":
            return pa.array(relations_totals.counts(valid, starts, counts))
        children = (column_units(column), valid, starts, counts)
        try:
            if function == "span":
                largest, has_value = relations_totals.maxima(*children)
                totals = np.where(has_value, largest - relations_totals.minima(*children)[0], 0)
            else:
                totals, has_value = _AGGREGATES[function](*children)
            if function == "avg":
                totals = self._average(totals, relations_totals.counts(valid, starts, counts))
        except relations_totals.SumOverflowError:
            message = f'The {function} of "{self.options.field}" is too large for 64 bits.'
            raise SpecError([Fault(self.field.path, "overflow", message, "Use smaller values.")]) from None
        result = (
            pa.array(totals.astype(np.bool_)) if function == "any" else column_from_units(totals, self.dtype)
        )
        return (
            result if function == "sum" or has_value.all() else postprocess.apply_blanks(result, ~has_value)
        )

    def _average(self, totals: np.ndarray, value_counts: np.ndarray) -> np.ndarray:
        shift = self.dtype.scale - self._scale
        if shift > 0 and totals.size and int(np.abs(totals).max()) >= 2**62 // 10**shift:
            raise relations_totals.SumOverflowError
        return relations_totals.half_even(
            totals * 10 ** max(0, shift), np.maximum(value_counts, 1) * 10 ** max(0, -shift)
        )


_AGGREGATES = {
    "sum": relations_totals.sums,
    "avg": relations_totals.sums,
    "min": relations_totals.minima,
    "max": relations_totals.maxima,
    "any": relations_totals.anys,
}


def cardinality_in(bound: BoundPlan, group: str) -> BoundCardinality:
    """Return the assignment of children, if the rows of ``bound`` are children by the group of references ``group``."""
    relation = bound.layer.groups[group, RELATION].kind
    assert isinstance(relation, RelationKind)
    return relation.bound_cardinality(bound.keys[f"group:{group}:{RELATION}"])


class ChildRows:
    """The children of a block's rows."""

    def __init__(self, context: ColumnContext, address: str, group: str) -> None:
        self._bound_plan = context.related_plan(address)
        self._cardinality = cardinality_in(self._bound_plan, group)
        self._rows = context.rows
        self.counts = self._cardinality.counts(context.rows)

    def block(self, meter: MemoryMeter) -> Block:
        """The children of the rows, parent by parent, counted with the block that keeps them."""
        return self._bound_plan.block_at(self._cardinality.children(self._rows)[0], meter)

    def _at(self, rows: np.ndarray) -> Block:
        return self._bound_plan.block_at(rows)

    def pieces(self, name: str) -> Iterator[tuple[pa.Array, np.ndarray, np.ndarray]]:
        """Yield the children's column ``name`` in pieces of bounded length, with the position of each parent's first
        child in the piece and the number of its children."""
        for piece in slices_of_parents(self.counts):
            counts = self.counts[piece]
            children = self._cardinality.children(self._rows[piece])[0]
            column = budget.generate_in_chunks(lambda rows: self._at(rows).column(name), children)
            yield column, np.cumsum(counts) - counts, counts

    def first(self, name: str, dtype: pa.DataType) -> pa.Array:
        """Return the children's column ``name`` of each row's first child; null without children."""
        none = self.counts == 0
        if none.all():
            return pa.nulls(none.size, dtype)
        slots = np.where(none, 0, self._cardinality.starts(self._rows))
        column = self._at(self._cardinality.slots_to_children(slots)).column(name)
        return postprocess.apply_blanks(column, none) if none.any() else column


def slices_of_parents(counts: np.ndarray) -> list[slice]:
    """Return slices of the parents, each with at most `limits.BLOCK_LEAVES` children in total (or with one parent)."""
    ends = np.cumsum(counts)
    slices, first, done = [], 0, 0
    while first < counts.size:
        last = max(first + 1, int(np.searchsorted(ends, done + limits.BLOCK_LEAVES, side="right")))
        slices.append(slice(first, last))
        first, done = last, int(ends[last - 1])
    return slices or [slice(0, 0)]


def column_units(column: pa.Array) -> np.ndarray:
    """``int64[n]`` of a column of integers, decimals (in units of the last digit), booleans, dates or timestamps;
    undefined for nulls."""
    if pa.types.is_decimal(column.type):
        return text.decimal_units(column)
    if pa.types.is_boolean(column.type):
        return column.fill_null(False).to_numpy(zero_copy_only=False).astype(np.int64)
    stored = pa.int32() if pa.types.is_date32(column.type) else pa.int64()
    plain = column if pa.types.is_integer(column.type) else column.view(stored)
    return plain.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)


def column_from_units(units: np.ndarray, dtype: pa.DataType) -> pa.Array:
    """The reverse of `units`."""
    if pa.types.is_decimal(dtype):
        return text.decimal_array(units.astype(np.int64), dtype.scale)
    if pa.types.is_date32(dtype):
        return pa.array(units.astype(np.int32)).view(dtype)
    plain = pa.array(units.astype(np.int64))
    return plain.view(dtype) if pa.types.is_timestamp(dtype) else plain.cast(dtype)


def type_name(dtype: pa.DataType) -> str:
    """Return the name of a type for users."""
    names = {"is_string": "text", "is_boolean": "booleans", "is_floating": "floating point numbers"}
    names |= {"is_date": "dates", "is_timestamp": "moments", "is_struct": "objects", "is_list": "arrays"}
    return next((name for test, name in names.items() if getattr(pa.types, test)(dtype)), str(dtype))


_SOURCES = AliasChoices("field", "source", "source_field")


class SourceFieldOptions(OptionsModel):
    """Which field is read."""

    field: str


class EarlierRowsType(FieldType):
    """A column that reads another one in earlier rows. Reaching itself is a circular reference, which the compiler
    rejects."""

    category = "logic"
    options: SourceFieldOptions
    _source_type: pa.DataType

    def __init__(self, field: FieldSpec, options: SourceFieldOptions, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.dtype = pa.null()
        if compiler.in_array:
            message = (
                f"{self.label} depends on row numbers, but elements of an array do not have row numbers."
            )
            hint = (
                "Put the field next to the array, or use a dataset with a separate template for the elements."
            )
            compiler.fault(field, "", "not_for_this_type", message, hint)
        source = compiler.require_column(field, "options.field", options.field)
        self.required_fields = (options.field,)
        if source is not None:
            self.dtype = source.dtype
            self.read_source(source, compiler)

    @abstractmethod
    def read_source(self, source: Column, compiler: Compiler) -> None:
        """Read the required properties of the column that it reads."""

    def override_error(self, name: str, fixed: pa.Array) -> str:
        if name == self.options.field and fixed.type != self._source_type:
            return f'"{self.field.name}" reads this field as {_type_text(self._source_type)}.'
        return ""

    def unique_hint(self) -> str:
        return "Make the field it reads unique instead."


def _type_text(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind):
        return "whole numbers"
    if pa.types.is_decimal(kind):
        return f"numbers with {kind.scale} decimal places"
    return "objects or arrays" if pa.types.is_nested(kind) else f"values of type {kind}"


class Previous(EarlierRowsType):
    """Another field of the row ``step`` rows before; ``default`` in the first rows, which have none."""

    name = "previous"
    label = "Previous row"
    description = "Another field's value in the previous row, or in an earlier row."
    aliases = ("previous value", "prev", "lag", "previous row value", "row before")
    example = 417

    class Options(SourceFieldOptions):
        field: str = Field(
            min_length=1,
            max_length=limits.MAX_NAME_CHARS,
            validation_alias=_SOURCES,
            description="Name of the field to read.",
        )
        step: int = Field(1, ge=1, le=limits.MAX_INTEGER, description="Number of rows to go back.")
        default: Any = Field(
            None, description="Value for the first rows, which have no earlier row. Default: blank."
        )

    options: Options

    def read_source(self, source: Column, compiler: Compiler) -> None:
        self._source, self._source_type = source, source.dtype
        metadata = source.arrow_field().metadata or {}
        self.is_json_text = b"json" in metadata
        default = self.options.default
        self._default = postprocess.override_pool(default, self.dtype)
        if default is not None and self._default.type != self.dtype:
            message = f'"{self.options.field}" contains {_type_text(self.dtype)}, but the default does not.'
            compiler.fault(
                self.field, "options.default", "wrong_type", message, "Use a default of the same type."
            )
        if b"max_length" in metadata:
            self.max_length = max(
                int(metadata[b"max_length"]), len(default) if isinstance(default, str) else 0
            )
        # Reject templates whose blocks would need too many columns of earlier rows.
        pending = [(self.options.field, self.options.step)]
        while pending and len(compiler.lookbacks) <= limits.MAX_LOOKBACK_COLUMNS:
            name, back = pending.pop()
            place = (f"{self.field.path.rpartition('[')[0]}.{name}", back)
            column = (
                None
                if place in compiler.lookbacks
                else compiler.require_column(self.field, "options.field", name)
            )
            if column is not None:
                compiler.lookbacks.add(place)
                further = back + (column.type.options.step if isinstance(column.type, Previous) else 0)
                own = () if column.formula is None else column.formula.required_fields
                pending.extend((needed, further) for needed in (*column.type.required_fields, *own))
        if len(compiler.lookbacks) > limits.MAX_LOOKBACK_COLUMNS:
            maximum = limits.MAX_LOOKBACK_COLUMNS
            message = f"Fields that read earlier rows need more than {maximum:,} additional columns."
            compiler.fault(self.field, "options.step", "too_many_cells", message, "Use a smaller step.")

    def fill(self, context: ColumnContext) -> pa.Array:
        step = np.uint64(self.options.step)
        missing = context.rows < step
        if not missing.any():
            return context.at_rows(context.rows - step).column(self.options.field)
        earlier = np.where(missing, np.uint64(0), context.rows - step)
        values = context.at_rows(earlier).column(self.options.field)
        if self.options.default is None:
            return postprocess.apply_blanks(values, missing)
        if pa.types.is_nested(self.dtype):
            both = pa.concat_arrays([values, self._default])
            return both.take(pa.array(np.where(missing, len(values), np.arange(len(values)))))
        return pc.if_else(pa.array(missing), self._default[0], text.decode_dictionary(values))

    def bounds(self, rows: int) -> tuple[int, int] | None:
        source = self._source.bounds(rows)
        default = _units(self._default)
        if source is None or default is None:
            return source
        return min(source[0], int(default[0])), max(source[1], int(default[0]))


class RunningTotal(EarlierRowsType):
    """The sum of another field from row 0 to this row, exact; blanks count as nothing."""

    name = "running_total"
    label = "Running total"
    description = "Running total: the sum of another field from the first row to this one."
    aliases = ("cumulative sum", "cumulative total", "running sum", "balance")
    example = 1042

    class Options(SourceFieldOptions):
        field: str = Field(
            min_length=1,
            max_length=limits.MAX_NAME_CHARS,
            validation_alias=_SOURCES,
            description=(
                "Name of the field to sum up: integers, or decimals with a fixed number of decimal places."
            ),
        )
        within: Literal["table", "parent"] = Field(
            "table",
            description="Where the total starts: at the first row, or at the first child of each parent.",
        )

    options: Options

    def read_source(self, source: Column, compiler: Compiler) -> None:
        self._source_type = source.dtype
        self._bounds: tuple[int, int] | None = None
        self._length = limits.TOTAL_ROWS
        self._owner: str | None = None
        if self.options.within == "parent":
            self._find_owner(compiler)
        name = self.options.field
        if not (pa.types.is_integer(source.dtype) or pa.types.is_decimal(source.dtype)):
            message = f'"{name}" contains {_type_text(source.dtype)}, which cannot be added exactly.'
            hint = "Use a number field without stringify, prefix, suffix and text_case."
            compiler.fault(self.field, "options.field", "wrong_type", message, hint)
            return
        bounds = source.bounds(limits.TOTAL_ROWS)
        if bounds is None:
            message = f'The range of "{name}" is not known, so the sum might be too large for 64 bits.'
            hint = "Use a field of type number, or another field with a minimum and a maximum."
            compiler.fault(self.field, "options.field", "unbounded", message, hint)
            return
        self._bounds = min(0, bounds[0]) * self._length, max(0, bounds[1]) * self._length
        if max(map(abs, self._bounds)) > _LARGEST:
            message = f'The sum of "{name}" over {self._length:,} rows can be too large for 64 bits.'
            compiler.fault(
                self.field,
                "options.field",
                "out_of_range",
                message,
                "Lower the max of the field, or its decimals.",
            )
        self.dtype = (
            pa.decimal128(38, source.dtype.scale) if pa.types.is_decimal(source.dtype) else pa.int64()
        )

    def prepare(self, env: GenerationContext) -> list[relations_totals.Totals]:
        return []

    def _find_owner(self, compiler: Compiler) -> None:
        """Find the parent reference of the rows."""
        owner = compiler.related_plans.parent_field(compiler.address)
        try:
            counts = compiler.related_plans.child_counts(compiler.address)
        except RowCountError:
            return  # the reference says so
        if owner is None or counts is None:
            text_ = "Only rows with a parent by cardinality have a total within their parent."
            compiler.fault(
                self.field, "options.within", "no_parent", text_, "Add a reference with cardinality."
            )
            return
        self._owner = owner[0].group or RELATION
        self._length = self.expansion = max(1, counts.max)
        compiler.relation_of(compiler.address, self._owner)

    def available_rows(self, state: Any) -> int | None:
        return limits.TOTAL_ROWS if self._owner is None else None

    def bounds(self, rows: int) -> tuple[int, int] | None:
        return self._bounds

    def _totals_within_parents(self, context: ColumnContext, owner: str) -> np.ndarray:
        """Return ``int64[n]``: the sum of each row and its earlier siblings."""
        things = context.group_value(ParentRows, owner, RELATION)
        assert things.position is not None  # the group has a cardinality
        cardinality = cardinality_in(context.bound, owner)
        parents, parent_index = np.unique(things.rows, return_inverse=True)
        counts = cardinality.counts(parents)
        totals = np.empty(context.n, np.int64)
        for piece in slices_of_parents(counts):
            indices = np.flatnonzero((parent_index >= piece.start) & (parent_index < piece.stop))
            rows, sizes = cardinality.children(parents[piece])
            values = _numbers(_column_at_rows(context, self.options.field, rows))
            running = np.cumsum(values)  # may wrap round; the differences below do not
            first = (np.cumsum(sizes) - sizes)[parent_index[indices] - piece.start]
            totals[indices] = running[first + things.position[indices]] - running[first] + values[first]
        return totals

    def override_error(self, name: str, fixed: pa.Array) -> str:
        units = _units(fixed)
        if units is not None and abs(int(units[0])) > _LARGEST // self._length:
            return f'"{self.field.name}" adds these values, and the sum can be too large for 64 bits.'
        return super().override_error(name, fixed)

    def fill(self, context: ColumnContext) -> pa.Array:
        if self._owner is not None:
            return self._to_column(self._totals_within_parents(context, self._owner))
        # The request's own list stores the totals, so that the key is built once.
        if not context.state:
            bound = context.bound
            fixed = tuple(
                sorted(
                    (name, str(pool.type), repr(pool[0].as_py())) for name, pool in bound.overrides.items()
                )
            )
            key = id(bound.layer), bound.env, fixed, context.path
            context.state.append(relations_totals.cached_totals(key, bound.layer))
        name = self.options.field

        def units(start: int, count: int) -> np.ndarray:
            end = start + count
            return np.concatenate(
                [
                    _numbers(
                        _column_at_rows(
                            context, name, np.arange(at, min(at + limits.BLOCK_ROWS, end), dtype=np.uint64)
                        )
                    )
                    for at in range(start, end, limits.BLOCK_ROWS)
                ]
            )

        sums = context.state[0].running_sums(context.rows, lambda: _numbers(context.column(name)), units)
        return self._to_column(sums)

    def _to_column(self, sums: np.ndarray) -> pa.Array:
        return (
            text.decimal_array(sums, self.dtype.scale) if pa.types.is_decimal(self.dtype) else pa.array(sums)
        )


def _column_at_rows(context: ColumnContext, name: str, rows: np.ndarray) -> pa.Array:
    return budget.generate_in_chunks(lambda part: context.at_rows(part, keep=False).column(name), rows)


def _numbers(column: pa.Array) -> np.ndarray:
    numbers = _units(column)
    assert numbers is not None  # `read_source` rejects what is no number
    return numbers


def _units(column: pa.Array) -> np.ndarray | None:
    """``int64[n]`` of units of the last decimal, 0 where blank; None for what is no number."""
    plain = text.decode_dictionary(column)
    kind = plain.type
    if pa.types.is_decimal(kind):
        units = text.decimal_units(plain)
        return np.where(plain.is_valid().to_numpy(False), units, 0) if plain.null_count else units
    if not pa.types.is_integer(kind):
        return None
    plain = pc.fill_null(plain, 0) if plain.null_count else plain
    return plain.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)


_DEAL_SALT = -110


class Template(FieldType):
    """Rows of another template inside this one's."""

    name = "template"
    label = "Rows of a template"
    category = "structure"
    description = (
        "Rows of another template nested in each row. If that template refers to this one with "
        "cardinality, these are the row's children."
    )
    aliases = ("child template", "nested template", "sub template", "children")
    example: ClassVar[Any] = [{"sku": "A-17", "quantity": 2}]

    class Options(OptionsModel):
        template_id: str = Field(
            max_length=limits.MAX_NAME_CHARS, description="The nested template, or self.",
            json_schema_extra=form_hints.template("inside"),
        )  # fmt: skip
        foreign_key: str | None = Field(
            None, max_length=limits.MAX_NAME_CHARS,
            description="The nested template's reference to this template, which is not included in the output.",
            json_schema_extra=form_hints.field_of("template_id", "none"),
        )  # fmt: skip
        array: bool = Field(True, description="Whether to output an array of rows or a single row.")
        quantity: int | None = Field(
            None, ge=0, le=limits.MAX_ARRAY_PRODUCT, description="Number of rows in the array."
        )
        count: Count | None = Field(
            None, description=("Number of rows in the array, if it varies: min and max.")
        )
        max_depth: int = Field(
            3, ge=1, le=limits.MAX_NESTING, description="Maximum nesting depth of templates."
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.dtype = pa.null()
        self._field_names: tuple[str, ...] = ()
        self._counts: ChildCounts | None = None
        self._cardinalities: dict[int, BoundCardinality] = {}
        self._group: str | None = None
        self._mixed = False
        related_plans = compiler.related_plans
        address = related_plans.address(options.template_id, compiler.address)
        if address is None:
            text_ = f'There is no template "{options.template_id}".'
            compiler.fault(
                field, "options.template_id", "unknown_template", text_, "Use the ID of a template."
            )
            return
        level = related_plans.nesting_level(compiler.address) + 1
        if level > options.max_depth:
            return  # null: the nesting ends here
        owner = None if compiler.is_nested else related_plans.child_field(address, compiler.address)
        self._group = None if owner is None else owner.group or RELATION
        self._address = related_plans.nested_address(address, level, compiler.address, field.id or field.path)
        if related_plans.nested_fields > limits.MAX_NESTED_FIELDS:
            text_ = f"Nested templates have more than {limits.MAX_NESTED_FIELDS:,} fields in total."
            compiler.fault(field, "options.max_depth", "too_many_cells", text_, "Lower max_depth.")
            return
        maximum = self._maximum_elements(field, options, compiler, owner)
        compiler.add_expansion(self._address, maximum)
        left_out = options.foreign_key or (owner.name if owner else None)
        columns = [
            c
            for c in compiler.related_visible_columns(field, "options.template_id", self._address)
            if c.name != left_out
        ]
        if options.foreign_key and options.foreign_key not in related_plans.template(address).field_names():
            text_ = f'"{related_plans.template(address).name}" has no field "{options.foreign_key}".'
            hint = did_you_mean(options.foreign_key, related_plans.template(address).field_names())
            compiler.fault(field, "options.foreign_key", "unknown_field", text_, hint)
        if self._group is not None:
            self._mixed = compiler.relation_of(self._address, self._group).layout == "mixed"
        if not columns:
            text_ = f'"{related_plans.template(address).name}" has no other visible field.'
            compiler.fault(
                field, "options.template_id", "all_hidden", text_, "Add a visible field to that template."
            )
        self._field_names = tuple(column.name for column in columns)
        self._struct = pa.struct([column.arrow_field() for column in columns])
        element = pa.field("item", self._struct, metadata={b"max_items": str(maximum).encode()})
        self.dtype = pa.list_(element) if options.array else self._struct

    def _maximum_elements(
        self, field: FieldSpec, options: Options, compiler: Compiler, owner: FieldSpec | None
    ) -> int:
        """Return the maximum number of elements."""
        option = (
            "quantity" if options.quantity is not None else "count" if options.count is not None else None
        )
        if option and not options.array:
            text_ = f"{option} is only available for arrays."
            compiler.fault(
                field, f"options.{option}", "not_for_this_type", text_, "Set array to true, or remove it."
            )
        if options.quantity is not None and options.count is not None:
            compiler.fault(
                field,
                "options.count",
                "contradiction",
                "quantity and count cannot be combined.",
                "Remove one.",
            )
        if owner is not None:
            if option or not options.array:
                text_ = f'"{owner.name}" of the child template determines the number of rows per row of this template.'
                hint = "Remove quantity and count, and keep array set to true."
                compiler.fault(field, f"options.{option or 'array'}", "contradiction", text_, hint)
            try:
                self._rows = compiler.related_plans.row_count(compiler.address)
                self._counts = compiler.related_plans.child_counts(self._address)
                return max(1, self._child_counts.max)
            except RowCountError as error:
                compiler.fault(
                    field,
                    "options.template_id",
                    "unrelated",
                    str(error),
                    "Change the cardinality of the reference.",
                )
                return 1
        if not options.array:
            return 1
        count = options.count or Count()
        low, high = (options.quantity,) * 2 if options.quantity is not None else (count.min, count.max)
        self._counts = ChildCounts(limits.MAX_PARENTS // max(1, high), ChildDistribution(low, high))
        return max(1, high)

    @property
    def _child_counts(self) -> ChildCounts:
        assert self._counts is not None  # an array has them
        return self._counts

    def available_rows(self, state: Any) -> int | None:
        return self._rows if self._group is not None else None

    def related_rows_read(self, rows: int) -> tuple[str, int] | None:
        if not self._field_names:
            return None
        return self._address, rows if self._counts is None else first_child_count(
            self._counts, self._mixed, rows
        )

    def record_counts(self) -> RecordCounts | None:
        if not self._field_names:
            return None
        if not self.options.array:
            return RecordCounts(1, False, address=self._address)
        return RecordCounts(self._child_counts.max, True, address=self._address, counts=self._element_counts)

    def _element_counts(self, bound: BoundPlan, key: np.uint64, rows: np.ndarray) -> np.ndarray:
        if self._group is None:
            return self._cardinality(key).counts(rows)
        other = bound.related_plans[self._address]
        return cardinality_in(other, self._group).counts(rows)

    def fill(self, context: ColumnContext) -> pa.Array:
        if not self._field_names:
            return pa.nulls(context.n)
        bound = context.related_plan(self._address)
        if not self.options.array:
            return self._objects(bound.block_at(context.rows, context.meter))
        if self._group is not None:
            child_rows = ChildRows(context, self._address, self._group)
            counts, block = child_rows.counts, child_rows.block(context.meter)
        else:
            children, counts = self._cardinality(context.key).children(context.rows)
            block = bound.block_at(children, context.meter)
        offsets = np.zeros(context.n + 1, np.int32)
        np.cumsum(counts, out=offsets[1:])
        return pa.ListArray.from_arrays(pa.array(offsets), self._objects(block), type=self.dtype)

    def _cardinality(self, key: np.uint64) -> BoundCardinality:
        cardinality = self._cardinalities.get(int(key))
        if cardinality is None:
            if len(self._cardinalities) >= limits.CACHED_RELATION_KEYS:
                self._cardinalities.clear()
            cardinality = self._cardinalities[int(key)] = self._child_counts.bind(
                random.derive(key, _DEAL_SALT)
            )
        return cardinality

    def _objects(self, block: Block) -> pa.Array:
        columns = [text.decode_dictionary(block.column(name)) for name in self._field_names]
        return pa.StructArray.from_arrays(columns, fields=list(self._struct))
