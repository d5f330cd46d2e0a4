"""Whatever else Faker can make: any method of its providers, from a pool."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from webapp import limits
from webapp.engine.faker_pools import pools
from webapp.engine.fields.base import FieldType, OptionsModel, longest

if TYPE_CHECKING:
    from webapp.engine.block import Cells, Env
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec


class FakerType(FieldType):
    """Values out of a pool that one of Faker's methods has drawn.

    The pool hangs on locale, method and arguments, and on ``now`` for methods that ask for the time; which of its
    values a row takes hangs on the request's seed.
    """

    name = "faker"
    label = "Faker"
    category = "misc"
    description = "Any method of Faker's providers, from a pool of 10,000 values that it draws."
    aliases = ("faker method", "python faker", "faker provider", "fake")
    example = "Optimized multi-state portal"
    localised = True
    dtype = pa.string()

    class Options(OptionsModel):
        method: str = Field(
            min_length=1,
            max_length=limits.MAX_NAME_CHARS,
            description="The name of the method, such as company_suffix or bothify.",
            examples=["catch_phrase", "pyint", "date_of_birth", "pybool", "currency"],
        )
        arguments: dict[str, Any] = Field(
            {},
            description='What it is called with, as a JSON object: {"nb_words": 3}.',
            examples=[{"nb_words": 3}],
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        arguments = json.dumps(options.arguments, sort_keys=True)
        if len(arguments) > limits.FAKER_ARGUMENT_CHARS:
            text = f"The arguments are longer than {limits.FAKER_ARGUMENT_CHARS:,} characters."
            compiler.fault(
                field, "options.arguments", "too_long", text, "Give the method less to choose from."
            )
            return
        locale = compiler.locale_of(field) or pools.DEFAULT_LOCALE
        pinned = compiler.vocabulary.versions.get("faker")
        if pinned != pools.faker_version():
            text = f"This was saved with Faker {pinned}; {pools.faker_version()} is installed and draws other values."
            compiler.fault(field, "options.method", "library_moved", text, "Save the template again.")
            return
        self._asked = pools.Asked(locale, options.method, arguments)
        try:
            self._take(pools.drawn(self._asked), compiler, locale)
        except pools.Refused as error:
            compiler.fault(field, f"options.{error.option}", error.code, error.message, error.hint)

    def _take(self, drawn: pools.Drawn, compiler: Compiler, locale: str) -> None:
        if not len(drawn.pool.values):
            text = "The method answers nothing."
            compiler.fault(self.field, "options.method", "method_failed", text, "Name another one.")
            return
        own = pools.FAKER_LOCALES.get(locale, locale)
        if self.field.common.locale and drawn.language not in (None, own):
            text = (
                f'Faker has no "{self.options.method}" for {own}; it would answer that of {drawn.language}.'
            )
            compiler.fault(
                self.field, "locale", "no_such_locale", text, "Take the locale away, or name another method."
            )
            return
        self._pool = drawn
        self.dtype, self.json_text = drawn.pool.values.type, drawn.pool.json_text
        if pa.types.is_string(self.dtype) and not drawn.clocked:
            self.max_length = longest(drawn.pool.values)

    @classmethod
    def capacity(cls) -> int:
        return limits.FAKER_POOL

    def prepare(self, env: Env) -> pools.Drawn:
        """The pool of the request: one for each now where the method asks for the time."""
        if not self._pool.clocked:
            return self._pool
        asked = pools.Asked(
            self._asked.locale, self._asked.method, self._asked.arguments, int(env.now.timestamp())
        )
        return pools.drawn(asked)

    def space(self) -> int | None:
        pool = self._pool.pool
        return None if pool.has_null else len(pool.distinct)

    def space_in(self, state: pools.Drawn) -> int | None:
        return len(state.pool.distinct)

    def bounds(self, rows: int) -> tuple[int, int] | None:
        return None if self._pool.clocked else self._pool.pool.bounds

    def unique_hint(self) -> str:
        return "The method leaves some values blank; blank cells are not unique."

    def fill(self, cells: Cells) -> pa.Array:
        pool = cells.state.pool
        return self._at(pool.place[cells.below(pool.place.size).view(np.int64)], pool.values)

    def fill_unique(self, cells: Cells) -> pa.Array:
        pool = cells.state.pool
        return self._at(pool.distinct[cells.permuted(len(pool.distinct)).view(np.int64)], pool.values)

    def _at(self, place: np.ndarray, values: pa.Array) -> pa.Array:
        if values.type != self.dtype:
            values = pc.cast(values, self.dtype, safe=False)
        index = (
            pa.array(place.astype(np.int32), mask=place < 0) if place.min(initial=0) < 0 else pa.array(place)
        )
        return pa.DictionaryArray.from_arrays(index, values, safe=False)
