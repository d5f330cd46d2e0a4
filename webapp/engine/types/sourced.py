"""Fields whose values are taken from the template's source, masked where they are sensitive.

Any type can be taken from a column: it then says how the values are read, and what stands for them where they are
masked. A field takes the column it names (``column``), else the one with its name; a field for which the source has
none is made as in any template.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from webapp.engine import digests, masking
from webapp.engine.errors import SpecError
from webapp.engine.relations import EXISTING, RELATION
from webapp.engine.source_data import read
from webapp.engine.types.base import FieldType, OptionsModel, pooled
from webapp.errors import Fault, did_you_mean

if TYPE_CHECKING:
    from webapp.engine.blocks import ColumnContext, GenerationContext
    from webapp.engine.compiler import Compiler
    from webapp.engine.external_values import ReadSource
    from webapp.engine.spec import FieldSpec


_EXAMPLE: Final = pa.array(["example"])


class SourceColumn(FieldType):
    """An unchanged value of the source's row, for columns that no other type fits."""

    name = "source_column"
    label = "Source column"
    category = "external"
    description = "An unchanged value from the template's source: text, number, date or boolean."
    aliases = ("column of the source", "real value", "original value", "passthrough")
    example = "example"
    dtype = pa.string()
    max_length = len("example")

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        if compiler.source is None:
            text = "There is no source here to take it from: an example stands for it."
            compiler.warn(field, "no_source", text, "Give the template a source, or choose another type.")

    def fill(self, context: ColumnContext) -> pa.Array:
        return pooled(_EXAMPLE, np.zeros(context.n, np.int64))


class Sourced(FieldType):
    """A column of the source in place of what the field's type would make."""

    category = "external"
    measures = True

    def __init__(self, inner: FieldType, column: str, taken: ReadSource, compiler: Compiler) -> None:
        field = inner.field
        super().__init__(field, inner.options, compiler)
        self.inner, self.column, self.real = inner, column, taken.real
        self.name, self.label = inner.name, inner.label
        self.keys = taken.keys
        self.sensitive = field.common.sensitive
        self._vocabulary, self._locale = compiler.vocabulary, compiler.locale_of(field)
        self._bind_fields = compiler.bind_fields
        self._take(inner)
        self.person: str | None = None
        """The source's column that says whose value it is, where the mask asks for one."""
        self.probe: masking.Masker | None = None
        fields_from_source = [
            one for one in compiler.group_of(field) if column_of(one, self.real.columns) is not None
        ]
        self.replaced_with = masking.joined(fields_from_source, field) if self.sensitive else ()
        """The fields of its place that are replaced as one with it."""
        if self.sensitive:
            self._mask(compiler)
        if field.common.unique and self.space() is not None and not self.distinct():
            text = f'The source has values twice in "{column}".'
            compiler.fault(field, "unique", "not_unique", text, "Remove unique, or choose another column.")

    def _take(self, inner: FieldType) -> None:
        kind = self.real.table.schema.field(self.column).type
        self._reads_as: pa.DataType | None = None
        self.dtype = kind
        if (
            pa.types.is_string(kind)
            and not pa.types.is_string(inner.dtype)
            and self.real.fits(self.column, inner.dtype)
        ):
            self.dtype = self._reads_as = inner.dtype
        if pa.types.is_string(self.dtype):
            self.max_length = self.real.longest(self.column)
            self.json_text = (self.real.table.schema.field(self.column).metadata or {}).get(b"json") == b"1"

    def _mask(self, compiler: Compiler) -> None:
        try:
            probe = self.masker("", None)
            empty = pa.array([], self.dtype)
            others = {one.name: pa.array([], pa.string()) for one in self.replaced_with}
            beside = others or (pa.array([], pa.string()) if probe.needs else None)
            self.dtype = probe.mask(empty, beside).type
        except SpecError as error:
            compiler.faults.extend(error.faults)
            return
        except masking.MaskingError as error:
            compiler.fault(self.field, "masking", error.code, error.message, "Choose another strategy.")
            return
        if pa.types.is_dictionary(self.dtype):
            self.dtype = self.dtype.value_type
        self.probe = probe
        self.json_text = False
        if not pa.types.is_string(self.dtype):
            self.max_length = None
        elif probe.strategy == "replace":
            self.max_length = self.inner.max_length if pa.types.is_string(self.inner.dtype) else None
        elif probe.strategy not in ("format_preserve", "shift"):
            self.max_length = {"tokenize": 30, "hash": 32}.get(probe.strategy, len("[redacted]"))
        if probe.needs is not None:
            self.person = compiler.source_column(probe.needs)
            if (
                self.person is None
                and compiler.require(self.field, "masking.person", probe.needs) is not None
            ):
                self.needs = (probe.needs,)

    def masker(self, run: str, env: GenerationContext | None) -> masking.Masker:
        """Who masks the column. Raises `SpecError`."""
        now = env.now if env is not None else None
        made_here = replace(self.field, common=self.field.common.model_copy(update={"column": None}))
        return masking.masker_of(
            made_here,
            self._vocabulary,
            self.keys,
            self._bind_fields,
            run=run,
            locale=self._locale,
            now=now,
            beside=self.replaced_with,
        )

    def prepare(self, env: GenerationContext) -> Any:
        """The masker of the request."""
        return self.masker(f"{env.seed}\0{self.real.snapshot}", env) if self.sensitive else None

    def raw(self, rows: np.ndarray) -> pa.Array:
        """The real values of some rows (``uint64[n]``), as they are read."""
        found = self.real.at(self.column, rows)
        return found if self._reads_as is None else read(found, self._reads_as)

    def fill(self, context: ColumnContext) -> pa.Array:
        found = self.raw(context.rows)
        if not self.sensitive:
            return found
        person: Any = None
        if self.replaced_with:
            person = {
                one.name: self.real.at(str(column_of(one, self.real.columns)), context.rows)
                for one in self.replaced_with
            }
        elif self.person is not None:
            person = self.real.at(self.person, context.rows)
        elif self.needs:
            person = context.column(self.needs[0])
        try:
            made = context.state.mask(found, person)
        except masking.MaskingError as error:
            raise SpecError([Fault(error.path or self.field.path, error.code, error.message, None)]) from None
        return made

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        return self.fill(context)

    def space(self) -> int | None:
        return self.real.rows if self.probe is None or self.probe.collision_free else None

    def unique_hint(self) -> str:
        return "With this masking two values may become the same: choose format_preserve, tokenize or hash."

    def distinct(self) -> bool:
        """Whether every value occurs only once in the column."""
        return digests.all_distinct(self.real, self.column)


def column_of(field: FieldSpec, known: list[str]) -> str | None:
    """The column of a source that a field takes: the one it names, else the one with its name, ignoring case if only
    one matches; None if there is no such column."""
    wanted = field.common.column or field.name
    if wanted in known:
        return wanted
    close = [name for name in known if name.casefold() == wanted.casefold()]
    return close[0] if len(close) == 1 else None


def take(inner: FieldType, taken: ReadSource, compiler: Compiler) -> FieldType:
    """What fills a field of a template that has a source: the source's column, where it has one, else ``inner``."""
    field = inner.field
    asked, known = field.common.column, taken.real.columns
    found = column_of(field, known)
    if found is None:
        if asked is not None or isinstance(inner, SourceColumn):
            wanted = asked or field.name
            text = f'The source has no column "{wanted}".'
            hint = did_you_mean(wanted, known) or f"It has {', '.join(known[:20])}."
            compiler.fault(field, "column", "unknown_column", text, hint)
        return inner
    if inner.expansion > 1 or field.children or field.type.group_kind in (RELATION, EXISTING):
        if asked is not None:
            text = f"{field.type.label} cannot be taken from a source: a column holds single values."
            hint = "Choose source_column, or a type of single values."
            compiler.fault(field, "column", "not_for_this_type", text, hint)
        return inner
    return Sourced(inner, found, taken, compiler)
