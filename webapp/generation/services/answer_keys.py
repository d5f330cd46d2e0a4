"""Answer keys: which cells of an output are bad on purpose, of which kind, and the good value behind each.

A key is made from the same recipe as the rows, for any window of them, and keeps nothing: of the rows only those that
are bad are made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from webapp.accounts.actors import Actor
from webapp.datasets.services.rows import Bundle
from webapp.engine.bad.answers import AnswerKey
from webapp.engine.formats import FORMATS, write
from webapp.engine.formats.base import Format
from webapp.errors import Fault, validation_error
from webapp.generation.services import exports, external_values, generate
from webapp.generation.services.pins import Pins
from webapp.generation.services.rows import attachment, content_type
from webapp.real_data.services import sources
from webapp.row_templates.schemas import GenerateInput
from webapp.usage.services import quotas

KeyFormat = Literal["ndjson", "csv", "json"]
"""What a key may be written in."""


@dataclass(frozen=True, slots=True)
class Written:
    """A key on its way to a client: `pieces` are made as they are asked for. `pins` are those of the rows."""

    pieces: Iterator[bytes]
    file_name: str
    content_type: str
    pins: Pins | None = None

    def headers(self) -> dict[str, str]:
        """The headers that describe it."""
        told = self.pins.headers() if self.pins is not None else {}
        return {**told, "Content-Disposition": attachment(self.file_name), "X-Accel-Buffering": "no"}


def of_export(export_id: str, file_name: str, kind: KeyFormat) -> Written:
    """The key of an export's file, from its pins; rows count from 1 in the file, or in each of its tables.

    Errors: those of `exports.order`.
    """
    recipe = exports.order(export_id).recipe
    if isinstance(recipe, Bundle):
        pairs = zip(recipe.members, recipe.recipes, strict=True)
        keys = [one.answers(member.name) for member, one in pairs]
    else:
        keys = [recipe.answers()]
    options = FORMATS[kind].Options()
    return _written(keys, FORMATS[kind], options, file_name.rpartition(".")[0])


def of_template(actor: Actor, template_id: str, ask: GenerateInput, format: str | None = None) -> Written:
    """The key of the rows that `generate.saved` makes for the same `ask`, which must name a seed; spends no rows.

    Errors: not_found, forbidden, row_limit_exceeded, validation_error.
    """
    if ask.seed is None:
        hint = "generate tells it in the header X-Seed."
        fault = Fault(
            "seed", "required", "An answer key is that of rows that were made: say their seed.", hint
        )
        raise validation_error([fault])
    found = generate.of(actor, template_id, "generate")
    source = generate.saved_source(found, ask.locale, rows_of=ask.rows)
    source = sources.opened(actor, source)
    count = source.count(ask.count)
    quotas.check_rows(actor, count)
    recipe = external_values.recipe(actor, source, ask.model_copy(update={"count": count}), format=format)
    made = _written([recipe.answers()], recipe.format, recipe.options, recipe.file_name.rpartition(".")[0])
    return Written(made.pieces, made.file_name, made.content_type, recipe.pins)


def _written(keys: Sequence[AnswerKey], kind: type[Format], options: Format.Options, stem: str) -> Written:
    as_json = kind.name in ("json", "ndjson")
    writer = kind(keys[0].schema(json=as_json), options, title=f"{stem}_answers")
    blocks = chain.from_iterable(key.blocks(json=as_json) for key in keys)
    name = f"{stem}-answers.{kind.extension}"
    return Written(write(writer, blocks), name, content_type(kind, options))
