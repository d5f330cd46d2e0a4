"""From a compiled template and a request to bytes: the one way that generate, previews and exports take.

Nothing here knows of the web or the database. What can go wrong with a template or a request goes wrong in
`recipe` or `Recipe.open`, before the first byte has left.
"""

from __future__ import annotations

import os
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote

import orjson

from webapp import limits, memory
from webapp.engine import records
from webapp.engine.bad.answers import AnswerKey
from webapp.engine.block import Bound, Env
from webapp.engine.budget import megabytes
from webapp.engine.errors import SpecError
from webapp.engine.formats import FORMATS, write
from webapp.engine.formats.base import Format
from webapp.engine.outside import Recorder
from webapp.errors import ApiError, Fault, validation_error
from webapp.generation.services.pins import Pins
from webapp.row_templates.schemas import GenerateInput
from webapp.row_templates.services.compiled_plans import Source

_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9]+")


def new_seed(random: Callable[[int], bytes] = os.urandom) -> str:
    """A seed for a request that brings none."""
    return random(limits.SEED_BYTES).hex()


def pins_for(
    source: Source, *, seed: str | None, now: datetime | None, locale: str | None, present: datetime
) -> Pins:
    """The pins of a request. `now` when none was sent: with a seed the template's anchor, else the present (in
    whole seconds)."""
    if now is None:
        now = source.anchor if seed is not None else None
    return Pins(
        seed=seed if seed is not None else new_seed(),
        now=now if now is not None else present.replace(microsecond=0),
        vocabulary=source.plan.vocabulary.id,
        template_id=source.template_id,
        version=source.version,
        locale=locale,
        related=source.related,
    )


@dataclass(frozen=True, slots=True)
class Recipe:
    """One output, determined to the last byte: which rows, from which bound plan, in which format."""

    source: Source
    bound: Bound
    pins: Pins
    offset: int
    count: int
    format: type[Format]
    options: Format.Options
    first: bool = True
    """Whether the file begins with these rows; else other recipes' rows stand before them."""
    last: bool = True
    """Whether the file ends with these rows."""

    @property
    def title(self) -> str:
        """What names the table or sheet where no option does."""
        return slug(self.source.name)

    @property
    def file_name(self) -> str:
        """The name a download has: the template's, as far as file systems take it."""
        return f"{file_stem(self.source.name)}.{self.format.extension}"

    @property
    def content_type(self) -> str:
        """The Content-Type of the bytes."""
        return content_type(self.format, self.options)

    def headers(self) -> dict[str, str]:
        """The headers that describe the bytes and say how to have them again."""
        return {**self.pins.headers(), "Content-Disposition": attachment(self.file_name)}

    def records(self, done: int = 0) -> int:
        """The objects in arrays of its rows, or of those after the first `done`: they count as rows."""
        return records.charged(self.bound, self.offset + done, self.count - done)

    def answers(self, table: str | None = None) -> AnswerKey:
        """Which of its cells are bad on purpose; `table` names it among others."""
        return AnswerKey(self.bound, self.offset, self.count, table)

    def bad_cells(self) -> list[dict[str, Any]]:
        """The same of few rows: `{row, field, kind, good}`, rows counted from 1."""
        kind, key = FORMATS["ndjson"], self.answers()
        writer = kind(key.schema(json=True), kind.Options(), title="answers")
        return [orjson.loads(line) for line in b"".join(write(writer, key.blocks(json=True))).splitlines()]

    def writer(self) -> Format:
        """What turns the rows into bytes."""
        return self.format(self.bound.schema, self.options, title=self.title)

    def part(self, offset: int, count: int) -> Recipe:
        """The recipe of `count` of these rows, from `offset` of the template on. The bytes of the parts, one after
        another, are those of the whole; where the format cannot be so continued, each part is a file of its own."""
        if not self.format.continues:
            return replace(self, offset=offset, count=count)
        last = offset + count == self.offset + self.count
        return replace(self, offset=offset, count=count, first=offset == self.offset, last=last)

    def open(self) -> Output:
        """The first block, made; the rest follows as it is asked for. `validation_error` for what this format
        cannot hold."""
        output = Output(self)
        output.prime()
        return output


def recipe(
    source: Source,
    ask: GenerateInput,
    *,
    present: datetime,
    format: str | None = None,
    pins: Pins | None = None,
    anchored: bool | None = None,
) -> Recipe:
    """`ask` on `source`. `format` wins over the request's own; `pins` are those of an earlier attempt. `anchored` says
    whether related templates hang on their own anchors; None: where the request hangs on the template's.

    Errors: validation_error, for overrides, uniqueness, format options, rows that cannot be numbered.
    """
    pinned = pins or pins_for(source, seed=ask.seed, now=ask.now, locale=ask.locale, present=present)
    count = source.count(ask.count)
    kind = FORMATS[format or ask.format]
    options = ask.options_for(kind)
    own = pinned.now == source.anchor if anchored is None else anchored
    bound = bind(source, pinned, ask.overrides, ask.offset, count, own)
    return Recipe(source, bound, pinned, ask.offset, count, kind, options)


def bind(
    source: Source,
    pins: Pins,
    overrides: dict[str, Any],
    offset: int,
    count: int,
    anchored: bool = False,
    recorder: Recorder | None = None,
) -> Bound:
    """The plan bound to seed and now, checked for these rows. `validation_error` with every fault."""
    try:
        bound = Bound(source.plan, Env(pins.seed, pins.now, pins.locale, anchored, recorder), overrides)
        bound.check(offset, count)
    except SpecError as error:
        raise validation_error(error.faults) from None
    last = offset + count
    if last * source.plan.leaves >= 1 << 63:  # addresses of nested elements are 63-bit numbers
        text = f"Row {last:,} of a template with {source.plan.leaves:,} elements a row cannot be numbered."
        raise validation_error([Fault("offset", "out_of_range", text, "Ask for a smaller offset.")])
    return bound


class Stream(ABC):
    """Bytes in pieces, made as they are asked for, of one table or of several. Used once.

    `rows_made` counts the rows of the blocks made so far, `rows_sent` those whose bytes were all taken. `leaks`: what
    the leak check saw of the tables that have ended; None where nothing was to be looked for.
    """

    def __init__(self) -> None:
        self.rows_made = 0
        self.rows_sent = 0
        self.leaks: list[dict[str, Any]] | None = None
        self._pieces = self._make()
        self._first: list[bytes] = []
        self._size = 0

    @abstractmethod
    def _make(self) -> Iterator[bytes]:
        """Every piece."""

    def prime(self) -> None:
        """Make the first block, so that what is wrong with it is known before anything is sent."""
        try:
            while not self.rows_made and (piece := next(self._pieces, None)) is not None:
                self._first.append(piece)
        except SpecError as error:
            raise validation_error(error.faults) from None

    @property
    def primed(self) -> int:
        """Bytes of the first block, while they wait to be taken."""
        return sum(map(len, self._first))

    def _rows(self, recipe: Recipe, writer: Format) -> Iterator[bytes]:
        """The pieces of one table."""
        start = writer.start() if recipe.first else writer.resume()
        if start:
            yield start
        for block in recipe.bound.blocks(recipe.offset, recipe.count):
            pieces = writer.block(block)
            first = next(pieces, None)
            self.rows_made += len(block[0])
            if first is not None:
                yield first
            yield from pieces
            self.rows_sent = self.rows_made
        yield from writer.finish() if recipe.last else writer.pause()
        if recipe.bound.watch is not None:
            looked = {"table": recipe.title, "columns": recipe.bound.watch.report()}
            self.leaks = [*(self.leaks or ()), looked]

    def __iter__(self) -> Iterator[bytes]:
        """Every piece in order, those of the first block included."""
        if self._first:
            head, self._first = self._first, []
            yield from [b"".join(head)] if sum(map(len, head)) <= limits.MB else head
            del head
        for piece in self._pieces:
            self._size += len(piece)
            yield piece
        self._trim()

    def whole(self, most: int = limits.PREVIEW_BYTES) -> bytes:
        """All of it at once, for outputs of few rows. Error: validation_error where it exceeds `most` bytes."""
        pieces, size = [], 0
        try:
            for piece in self:
                pieces.append(piece)
                size += len(piece)
                if size > most:
                    raise self._too_long(size)
        except SpecError as error:
            raise validation_error(error.faults) from None
        return b"".join(pieces)

    def _too_long(self, size: int) -> ApiError:
        most = megabytes(limits.PREVIEW_BYTES)
        text = f"The first {self.rows_made:,} rows take at least {megabytes(size)}; the limit of a preview is {most}."
        hint = (
            "Use shorter texts or arrays with fewer elements, or generate the rows, which are then streamed."
        )
        return validation_error([Fault("fields", "row_too_large", text, hint)])

    def close(self) -> None:
        """Stop the work."""
        self._first.clear()
        self._pieces.close()  # type: ignore[attr-defined]
        self._trim()

    def _trim(self) -> None:
        if self._size > limits.TRIM_BYTES:
            self._size = 0
            memory.trim()


class Output(Stream):
    """The bytes of a recipe."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        super().__init__()

    def _make(self) -> Iterator[bytes]:
        yield from self._rows(self.recipe, self.recipe.writer())


def content_type(kind: type[Format], options: Format.Options) -> str:
    """The Content-Type of a format's bytes; CSV says whether its first line is a header (RFC 4180, section 3)."""
    if kind.name == "csv":
        header = "present" if getattr(options, "header", True) else "absent"
        return f"{kind.media_type}; charset=utf-8; header={header}"
    return f"{kind.media_type}; charset=utf-8" if kind.name == "sql" else kind.media_type


def slug(name: str, default: str = "rows") -> str:
    """A name as tables and files can bear it: ASCII letters, digits and `_`, not beginning with a digit."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    made = _NOT_IN_NAMES.sub("_", plain).strip("_")[:60].strip("_")
    return f"t_{made}" if made[:1].isdigit() else made or default


def file_stem(name: str) -> str:
    """A name as a file can bear it on any system: the letters stay, what file systems refuse becomes `_`."""
    kept = "".join(ch if ch.isprintable() and ch not in '\\/:*?"<>|' else "_" for ch in name)
    return kept.strip(" ._")[:100].strip(" .") or "rows"


def attachment(file_name: str) -> str:
    """A Content-Disposition that saves under `file_name` (RFC 6266; other letters by RFC 8187)."""
    if file_name.isascii() and '"' not in file_name:
        return f'attachment; filename="{file_name}"'
    stem, dot, extension = file_name.rpartition(".")
    plain = (
        f"{slug(stem)}.{extension}"
        if dot and extension.isalnum() and extension.isascii()
        else slug(file_name)
    )
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(file_name, safe='')}"
