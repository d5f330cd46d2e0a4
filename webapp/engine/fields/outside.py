"""Values that lie outside: what types that fetch share, and what a query answers.

They are made of answers that the caller has handed in; see ``engine/outside.py``. Where there is none yet, every row
has the stand-in of the kind that the field says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from webapp import limits
from webapp.engine import budget, outside, picks, placeholders, postprocess
from webapp.engine import cells as cellular
from webapp.engine.fields.base import FieldType, GroupKind, OptionsModel, pooled
from webapp.engine.outside import Answer, Kind, Question
from webapp.errors import did_you_mean

if TYPE_CHECKING:
    from webapp.engine.block import Cells, Draws
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec

ANSWER = "answer"
REDACTED = "[redacted]"
_POOLED = 65_536  # a pool is escaped whole, so a larger one is not shared by the blocks


class Fetched(OptionsModel):
    """What every type says of its answer."""

    on_empty: Literal["error", "blank", "default"] = Field(
        "error", description="What to do where the answer has no rows."
    )
    default: str | int | float | bool | None = Field(
        None, description="The value where the answer has no rows and on_empty is default."
    )
    kind: Kind | None = Field(
        None, description="What the values are taken as; as the target has them, if not said."
    )
    decimals: int = Field(
        2, ge=0, le=limits.MAX_DECIMALS, description="Places after the point, where kind is decimal."
    )

    @property
    def falls_back(self) -> bool:
        """Whether the default may come to be used."""
        return self.on_empty == "default"


class Answered(Protocol):
    """What `Outside` reads of the options of a type."""

    @property
    def on_empty(self) -> str: ...
    @property
    def default(self) -> str | int | float | bool | None: ...
    @property
    def kind(self) -> Kind | None: ...
    @property
    def decimals(self) -> int: ...
    @property
    def falls_back(self) -> bool: ...


class Outside(FieldType):
    """A column out of an answer: ``use`` makes it ready, `picked` takes values by their number."""

    category = "external"
    measures = True
    _kind: Kind = "text"

    def __init__(self, field: FieldSpec, options: Answered, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._answered = options
        self.redacted = field.common.sensitive
        self._default: pa.Array | None = None
        self._pool = outside.stand_in(options.kind or self._kind, options.decimals)
        self.dtype = self._pool.type
        masking = field.common.masking
        if masking is not None and masking.strategy != "redact":
            text = f"Values of this type are masked by redacting them; {masking.strategy} is not available for them."
            compiler.fault(
                field, "masking", "not_available", text, 'Write {"strategy": "redact"}, or nothing.'
            )
        if not options.falls_back and options.default is not None:
            text = f"default is not used where on_empty is {options.on_empty}."
            compiler.fault(
                field, "options.default", "contradiction", text, "Write on_empty: default, or remove it."
            )

    def use(self, answer: Answer, name: str | None, compiler: Compiler) -> None:
        """Takes column ``name`` (None: the first) of an answer as the values."""
        options, columns = self._answered, answer.table.column_names
        if name is not None and name not in columns:
            text = f'The answer has no column "{name}"; it has {", ".join(columns)}.'
            compiler.fault(self.field, "options.column", "unknown_column", text, did_you_mean(name, columns))
            return
        settled = answer.keys is None
        column = answer.table.column(name) if name is not None else answer.table.column(0)
        try:
            made = outside.values_of(column, options.kind, options.decimals, settled)
        except outside.NotOfKind as error:
            reason = "It is sensitive, and not shown." if self.redacted else str(error)
            text = f"A value cannot be taken as {options.kind}: {reason}"
            compiler.fault(self.field, "options.kind", "wrong_type", text, "Leave kind out, or write text.")
            return
        self._pool, self.json_text = made
        self.dtype = self._pool.type
        if options.falls_back and options.default is not None:
            self._default = postprocess.fixed(options.default, self.dtype)
            if not len(self._pool):
                self.dtype = self._default.type
            elif self._default.type != self.dtype:
                text = f"The default is of another kind than the answer's values ({self.dtype})."
                compiler.fault(self.field, "options.default", "wrong_type", text, "Write one of their kind.")
        if self.redacted and pa.types.is_string(self.dtype):
            self.max_length, self.json_text = len(REDACTED), False
        elif pa.types.is_string(self.dtype):
            pools = [one for one in (self._pool, self._default) if one is not None and one.type == self.dtype]
            self.max_length = max((pc.max(pc.utf8_length(pool)).as_py() or 0 for pool in pools), default=0)

    def empty(self, compiler: Compiler, text: str) -> None:
        """Refuses an answer without rows, unless the field says what to do."""
        if self._answered.on_empty == "error":
            hint = "Write on_empty: blank, or on_empty: default and a default."
            compiler.fault(self.field, "", "empty_answer", text, hint)

    def picked(self, index: np.ndarray, there: np.ndarray | None) -> pa.Array:
        """Values number ``index``; where ``there`` is false, what stands for an answer without rows."""
        if there is not None and not there.any():
            return self._masked(self._instead(index.size))
        if len(self._pool) <= _POOLED:
            made: pa.Array = pooled(self._pool, index)
        else:
            made = budget.taken(self._pool, pa.array(index))
        if there is not None and not there.all():
            made = postprocess.blanked(made, ~there)
            if self._default is not None:
                made = made.dictionary_decode() if pa.types.is_dictionary(made.type) else made
                made = pc.if_else(pa.array(there), made, self._default[0])
        return self._masked(made)

    def stood_in(self, n: int) -> pa.Array:
        """The stand-in, in every row."""
        return self._masked(pooled(self._pool, np.zeros(n, np.int64)))

    def _instead(self, n: int) -> pa.Array:
        if self._default is None:
            return pa.nulls(n, self.dtype)
        return pooled(self._default, np.zeros(n, np.int64))

    def _masked(self, made: pa.Array) -> pa.Array:
        """A sensitive value is replaced here already, so that no field that reads it comes to know it."""
        if not self.redacted:
            return made
        if not pa.types.is_string(self.dtype):
            return pa.nulls(len(made), self.dtype)
        indices = pa.array(np.zeros(len(made), np.int32), mask=made.is_null().to_numpy(zero_copy_only=False))
        return pa.DictionaryArray.from_arrays(indices, _REDACTED)


_REDACTED = pa.array([REDACTED])


class DbResponse(Outside):
    """A value out of what a query answers."""

    name = "db_response"
    label = "Database value"
    description = "A value that a query answers; with {{field}} in it, asked once for each set of values."
    aliases = ("database response", "db query", "sql query", "query result", "lookup in database")
    example = "example"
    group_kind = ANSWER

    class Options(Fetched):
        connection_id: str = Field(
            max_length=limits.MAX_NAME_CHARS, description="The connection to the database.",
            json_schema_extra=picks.connection("sql"),
        )  # fmt: skip
        query: str = Field(
            min_length=1, max_length=limits.MAX_FORMULA_CHARS,
            description="A query in the target's own language. Values for {{field}} are handed to the driver, never "
            "pasted in.",
            json_schema_extra=picks.PATTERN,
        )  # fmt: skip
        column: str | None = Field(
            None, max_length=limits.MAX_NAME_CHARS,
            description="Which column of the answer is shown; the first, if not said.",
        )  # fmt: skip

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._answer: Answer | None = None
        self._counts: np.ndarray | None = None
        self._quiet = False
        query = self._read(compiler)
        if query is None:
            return
        self._question = Question(options.connection_id, "query", (("of", self.needs), ("query", query)))
        self._key = self._question.key
        self._answer = answer = compiler.ask(field, self._question, keyed=bool(self.needs))
        if answer is None:
            return
        self.use(answer, options.column, compiler)
        if answer.keys is None:
            if not answer.table.num_rows:
                self.empty(compiler, "The query answers no rows.")
            return
        self._counts = np.diff(answer.starts)
        without = np.flatnonzero(self._counts == 0)
        if without.size:
            shown = (
                "" if self._quiet else f", such as {outside.shown_key(answer.keys[int(without[0])].as_py())}"
            )
            text = f"The query answers no rows for {without.size:,} of {len(answer.keys):,} sets of values{shown}."
            self.empty(compiler, text)

    def _read(self, compiler: Compiler) -> str | None:
        """The query with ``{{p0}}`` and so on for its fields, which are then `needs`; None after a fault."""
        field, options = self.field, self.options
        try:
            pattern = placeholders.parse(options.query)
        except placeholders.PlaceholderError as error:
            where = f"At character {error.position + 1}."
            compiler.fault(field, "options.query", "bad_placeholder", str(error), where)
            return None
        before, names = len(compiler.faults), [hole.name for hole in pattern.holes]
        self.needs = tuple(dict.fromkeys(names))
        for hole in pattern.holes:
            if hole.filters:
                text = f'"{hole.name}" has a filter, and values go into a query as they are.'
                hint = "Make the value in a hidden field of type derived, and name that."
                compiler.fault(field, "options.query", "not_for_this_type", text, hint)
        for name in self.needs:
            column = compiler.require(field, "options.query", name)
            self._quiet |= column is None or column.spec.common.sensitive
            if column is not None and pa.types.is_nested(column.dtype):
                text = f'"{name}" holds objects or arrays, which no query takes.'
                compiler.fault(field, "options.query", "wrong_type", text, "Name a field with single values.")
        if len(compiler.faults) > before:
            return None
        parts = (
            part if isinstance(part, str) else f"{{{{p{self.needs.index(part.name)}}}}}"
            for part in pattern.parts
        )
        return "".join(parts)

    def fill(self, cells: Cells) -> pa.Array:
        answer = self._answer
        if not self.needs:
            if answer is None:
                return self.stood_in(cells.n)
            rows = answer.table.num_rows
            if not rows:
                return self.picked(np.zeros(cells.n, np.int64), np.zeros(cells.n, np.bool_))
            return self.picked(cellular.below(cells.group(), rows).view(np.int64), None)
        columns = [cells.column(name) for name in self.needs]
        keys = outside.keys_of(columns)
        if answer is None:
            if cells.env.recorder is not None:
                cells.env.recorder.note(self._key, self.field.path, keys, columns)
            return self.stood_in(cells.n)
        place = pc.index_in(keys, value_set=answer.keys)
        if place.null_count:
            return self._partly(cells, answer, place)
        return self._of_sets(cells, answer, place.to_numpy())

    def _of_sets(self, cells: Cells, answer: Answer, place: np.ndarray) -> pa.Array:
        assert self._counts is not None  # an answer to a query with fields in it has them
        counts = self._counts[place]
        drawn = cellular.below_each(cells.group(), counts.astype(np.uint64)).view(np.int64)
        there = counts > 0
        index = np.where(there, answer.starts[place] + drawn, 0)
        return self.picked(index, None if there.all() else there)

    def _partly(self, cells: Cells, answer: Answer, place: pa.Array) -> pa.Array:
        """Rows whose set of values nobody has asked for are blank: a look that calls nobody."""
        unknown = place.is_null().to_numpy(zero_copy_only=False)
        if unknown.all():
            return pa.nulls(cells.n, self.dtype)
        made = self._of_sets(cells, answer, pc.fill_null(place, 0).to_numpy())
        return postprocess.blanked(made, unknown)

    def unique_hint(self) -> str:
        return "What is fetched may repeat. Keys of a table can be unique: use the type foreign_key."

    @classmethod
    def part(cls, options: Options) -> str:
        return f"{cls.name}:{options.column or ''}"

    @classmethod
    def subject(cls, options: Options) -> str:
        return f"{options.connection_id}\0{options.query}"


class SameAnswer(GroupKind):
    """The draw that fields with the same query share: they show the same row of its answer."""

    kind = ANSWER

    def __init__(self, fields: tuple[FieldSpec, ...], compiler: Compiler) -> None:
        super().__init__(fields, compiler)
        first = fields[0]
        for field in fields[1:]:
            if field.type.subject(field.options) != first.type.subject(first.options):
                text = f'The group "{first.group}" already shows the answer of another query.'
                compiler.fault(field, "group", "two_queries", text, "Give this field another group.")

    def draw(self, draws: Draws, state: Any) -> np.ndarray:
        return draws.bits()
