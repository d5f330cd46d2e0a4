"""Convert a compiled template and a request to bytes: used by generate, previews and exports.

This module knows neither web nor database. Faults of a template or request are raised in `recipe` or
`Recipe.open`, before the first byte is sent.

The rows of one long file are generated on all processors, in order and in constant memory. A cell depends only on its
seed, field and row number, so any process can generate any rows. The rows are divided into parts of about
`limits.PARALLEL_PART_BYTES`. This process, the reader, starts one process for each further processor and assigns parts
to it, a few at a time. Such a process writes the bytes to slots of memory that it shares with the reader, who empties
them in the order of the parts; a process that is ahead waits until a slot is free. Instead of waiting for the others,
the reader generates a part itself. The bytes are those of a single process, since parts of such formats can be
concatenated (`Recipe.part`). This is only for background work in processes with a single thread: the processes are
forked.
"""

from __future__ import annotations

import mmap
import multiprocessing
import os
import re
import unicodedata
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote

import orjson

from webapp import fork_server, limits
from webapp.engine import processor_time, record_counts
from webapp.engine.blocks import BoundPlan, GenerationContext
from webapp.engine.budget import format_megabytes
from webapp.engine.errors import SpecError
from webapp.engine.external_values import RequestRecorder
from webapp.engine.formats import FORMATS, Piece, write
from webapp.engine.formats.base import Format
from webapp.engine.invalid_data.answer_key import AnswerKey
from webapp.errors import ApiError, Fault, validation_error
from webapp.generation.services.pins import Pins
from webapp.row_templates.schemas import GenerateInput
from webapp.row_templates.services.compiled_plans import CompiledTemplate

_SLOTS: Final = 2  # one that is filled while the reader empties the other
# A copy of this size stays in the cache of the processor, that of a whole slot does not.
_PIECE_BYTES: Final = limits.MB // 4


def processes_for(recipe: Recipe) -> int:
    """Return how many processes generate the rows of a recipe: 1 if that is not worthwhile or not possible."""
    bound = recipe.bound
    is_sequential = (
        not recipe.format.is_resumable
        or recipe.count < limits.PARALLEL_FROM_ROWS
        or bound.leak_checker is not None  # the leak check counts what it has seen
        or bound.env.recorder is not None
    )
    return 1 if is_sequential else len(os.sched_getaffinity(0))


def rows_per_part(recipe: Recipe) -> int:
    """Return the number of rows in a part, estimated from the bytes of the first rows.

    A part consists of whole blocks if at least one fits, and of whole SQL statements: otherwise the bytes would depend
    on the number of processes."""
    sample = min(recipe.count, limits.FIRST_BLOCK_ROWS)
    size = sum(map(len, recipe.part(recipe.offset, sample).open()))
    maximum = max(1, min(limits.PARALLEL_PART_BYTES * sample // max(size, 1), limits.PARALLEL_PART_ROWS))
    blocks, statement = recipe.bound.block_rows, recipe.writer().rows_per_split
    maximum = maximum // blocks * blocks or maximum
    return max(1, maximum // statement) * statement


def generate_parallel(recipe: Recipe, processes: int, report_rows: Callable[[int], None]) -> Generator[Piece]:
    """Yield the bytes of a recipe, and call `report_rows` with the number of rows after each part.

    Raises the error that a process raised; RuntimeError if one ended without an error, for example because the system
    has no memory left.
    """
    rows = rows_per_part(recipe)
    parts = [
        recipe.part(start, min(rows, recipe.offset + recipe.count - start))
        for start in range(recipe.offset, recipe.offset + recipe.count, rows)
    ]
    unassigned = iter(range(len(parts)))
    pieces_ahead: dict[int, Iterator[Piece]] = {}  # parts of this process
    senders: dict[int, _Worker] = {}
    workers: list[_Worker] = []
    writer = recipe.writer()  # shared by all parts: a layout takes megabytes
    try:
        for _ in range(min(processes, len(parts)) - 1):
            workers.append(_Worker(parts, writer))  # noqa: PERF401 - each is stopped if the next fails
        first = next(unassigned)
        for worker in workers * _SLOTS:
            _assign(worker, unassigned, senders)
        pieces_ahead[first] = _encode_part(parts[first], writer)
        for number, part in enumerate(parts):
            if number not in pieces_ahead:
                sender = senders.pop(number)
                while (
                    len(pieces_ahead) < _SLOTS
                    and not sender.is_ready
                    and (next_number := next(unassigned, None)) is not None
                ):
                    pieces_ahead[next_number] = _generate_ahead(parts[next_number], writer)
                yield from sender.receive(part)
                _assign(sender, unassigned, senders)
            else:
                yield from pieces_ahead.pop(number)
            report_rows(part.count)
    finally:
        for worker in workers:
            worker.stop()


def _assign(worker: _Worker, unassigned: Iterator[int], senders: dict[int, _Worker]) -> None:
    """Let a worker generate the next part, if there is one."""
    if (number := next(unassigned, None)) is not None:
        senders[number] = worker
        worker.generate(number)


def _generate_ahead(part: Recipe, writer: Format) -> Iterator[Piece]:
    """Return the bytes of a part, generated now. One that is larger than expected, or has an error, is generated when
    it is its turn."""
    pieces, size = [], 0
    with suppress(ApiError, SpecError, ConnectionError):
        for piece in _encode_part(part, writer):
            pieces.append(piece)
            size += len(piece)
            if size > _SLOTS * limits.PARALLEL_PART_BYTES:
                break
        else:
            return iter(pieces)
    return _encode_part(part, writer)


class _Worker:
    """A process that generates parts, and the memory and the socket that it shares with the reader.

    The reader sends the numbers of parts. The process answers with the number of bytes in a slot; 0 is the end of a
    part. The reader sends an empty message when a slot is free again.
    """

    def __init__(self, parts: list[Recipe], writer: Format) -> None:
        self._memory = mmap.mmap(-1, _SLOTS * limits.PARALLEL_PART_BYTES)
        self._reader, self._writer = multiprocessing.Pipe()
        self._slot = self._slot_bytes = 0
        self._free_slots = _SLOTS
        self._numbers: deque[int] = deque()
        self._process = multiprocessing.get_context("fork").Process(
            target=self._run, args=(parts, writer), daemon=True
        )
        self._process.start()
        self._writer.close()

    def generate(self, number: int) -> None:
        """Make the process generate a part after those that were requested before."""
        with suppress(BrokenPipeError):  # it has ended: noticed when its bytes are received
            self._reader.send_bytes(_encode_number(number))

    @property
    def is_ready(self) -> bool:
        """Whether bytes can be received without waiting, or the process has ended."""
        return self._reader.poll()

    def receive(self, part: Recipe) -> Iterator[Piece]:
        """Yield the bytes of the next part."""
        with suppress(EOFError, ConnectionResetError):
            while size := int.from_bytes(self._reader.recv_bytes()):
                start = self._slot * limits.PARALLEL_PART_BYTES
                self._slot = (self._slot + 1) % _SLOTS
                for begin in range(start, start + size, _PIECE_BYTES):
                    yield self._memory[begin : min(begin + _PIECE_BYTES, start + size)]
                with suppress(BrokenPipeError):  # it has sent all that it had
                    self._reader.send_bytes(b"")
            return
        # The process has ended. An error of the template is raised here again, because rows depend on nothing else.
        deque(part.open(), maxlen=0)
        raise RuntimeError("A process that generates rows ended unexpectedly.")

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()
        self._reader.close()
        self._memory.close()

    def _run(self, parts: list[Recipe], writer: Format) -> None:
        """Generate parts until the process is stopped. Runs in the process."""
        fork_server.die_with_parent()
        self._reader.close()
        with suppress(ApiError, SpecError, ConnectionError, EOFError):
            while True:
                while not self._numbers:
                    self._receive()
                for piece in _encode_part(parts[self._numbers.popleft()], writer):
                    self._write(memoryview(piece))
                if self._slot_bytes:
                    self._send_slot()
                self._writer.send_bytes(_encode_number(0))

    def _write(self, piece: memoryview) -> None:
        """Append bytes to the slot, and pass on each slot that is full."""
        while piece:
            if not self._slot_bytes:
                self._wait_for_slot()
            room = limits.PARALLEL_PART_BYTES - self._slot_bytes
            start = self._slot * limits.PARALLEL_PART_BYTES + self._slot_bytes
            taken, piece = piece[:room], piece[room:]
            self._memory[start : start + len(taken)] = taken
            self._slot_bytes += len(taken)
            if self._slot_bytes == limits.PARALLEL_PART_BYTES:
                self._send_slot()

    def _wait_for_slot(self) -> None:
        """Wait until the next slot is free."""
        while not self._free_slots:
            self._receive()
        self._free_slots -= 1

    def _receive(self) -> None:
        """Wait for a message of the reader."""
        if message := self._writer.recv_bytes():
            self._numbers.append(int.from_bytes(message))
        else:
            self._free_slots += 1

    def _send_slot(self) -> None:
        self._writer.send_bytes(_encode_number(self._slot_bytes))
        self._slot, self._slot_bytes = (self._slot + 1) % _SLOTS, 0


def _encode_part(part: Recipe, writer: Format) -> Iterator[Piece]:
    """Yield the bytes of a part. The first block is a full one, because no client waits for it."""
    yield writer.start() if part.first else writer.resume()
    for block in part.bound.blocks_for(writer, part.offset, part.count, small_first=False):
        yield from writer.write_block(block)
    yield from writer.finish() if part.last else writer.pause()


def _encode_number(number: int) -> bytes:
    return number.to_bytes(8)


# --- Rows ---------------------------------------------------------------------------------------------------

_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9]+")


def new_seed(random: Callable[[int], bytes] = os.urandom) -> str:
    """Return a random seed for a request without one."""
    return random(limits.SEED_BYTES).hex()


def pins_for(
    source: CompiledTemplate,
    *,
    seed: str | None,
    now: datetime | None,
    locale: str | None,
    current_time: datetime,
) -> Pins:
    """Return the pins of a request. Default of `now`: with a seed the template's anchor, else the present (in
    whole seconds)."""
    if now is None:
        now = source.anchor if seed is not None else None
    return Pins(
        seed=seed if seed is not None else new_seed(),
        now=now if now is not None else current_time.replace(microsecond=0),
        vocabulary=source.plan.vocabulary.id,
        template_id=source.template_id,
        version=source.version,
        locale=locale,
        engine=source.plan.vocabulary.engine,
        related=source.related,
    )


@dataclass(frozen=True, slots=True)
class Recipe:
    """One output, determined to the last byte: which rows of which bound plan in which format."""

    source: CompiledTemplate
    bound: BoundPlan
    pins: Pins
    offset: int
    count: int
    format: type[Format]
    options: Format.Options
    first: bool = True
    """Whether the file begins with these rows."""
    last: bool = True
    """Whether the file ends with these rows."""

    @property
    def title(self) -> str:
        """The name of the table or sheet if no option sets it."""
        return slug(self.source.name)

    @property
    def file_name(self) -> str:
        """The name of a download: the template's, with characters that file systems allow."""
        return f"{file_stem(self.source.name)}.{self.format.extension}"

    @property
    def content_type(self) -> str:
        """The Content-Type of the bytes."""
        return content_type(self.format, self.options)

    def headers(self) -> dict[str, str]:
        """Return the headers that describe the content and how to reproduce it."""
        return {**self.pins.headers(), "Content-Disposition": content_disposition(self.file_name)}

    def count_records(self, skip: int = 0) -> int:
        """Count the objects in arrays of its rows, or of those after the first `skip`: they count as rows."""
        return record_counts.count_records(self.bound, self.offset + skip, self.count - skip)

    def answer_key(self, table: str | None = None) -> AnswerKey:
        """Return which cells are injected invalid values. `table` is its name among several."""
        return AnswerKey(self.bound, self.offset, self.count, table)

    def invalid_cells(self) -> list[dict[str, Any]]:
        """Return the invalid cells of a few rows: `{row, field, kind, good}`, rows counted from 1."""
        kind, key = FORMATS["ndjson"], self.answer_key()
        writer = kind(key.schema(json=True), kind.Options(), title="answers")
        return [orjson.loads(line) for line in b"".join(write(writer, key.blocks(json=True))).splitlines()]

    def writer(self) -> Format:
        """Return the encoder of the format."""
        return self.format(self.bound.schema, self.options, title=self.title)

    def part(self, offset: int, count: int) -> Recipe:
        """Return the recipe of `count` rows from `offset` on. The concatenated bytes of all parts equal those
        of the whole; if the format does not allow that, each part is a separate file."""
        if not self.format.is_resumable:
            return replace(self, offset=offset, count=count)
        last = offset + count == self.offset + self.count
        return replace(self, offset=offset, count=count, first=offset == self.offset, last=last)

    def open(self, processes: int = 1) -> RecipeStream:
        """Generate the first block. The rest follows on demand, by several processes if there are more than one
        (see `pieces`). Raises `validation_error` for values that the format cannot represent."""
        output = RecipeStream(self, processes)
        output.generate_first_block()
        return output


def build_recipe(
    source: CompiledTemplate,
    request: GenerateInput,
    *,
    current_time: datetime,
    format: str | None = None,
    pins: Pins | None = None,
    anchored: bool | None = None,
) -> Recipe:
    """Combine a request and a source. `format` overrides the request's; `pins` are those of an earlier
    attempt. `anchored`: whether related templates use their own anchors; None: if the request uses the
    template's.

    Raises validation_error for overrides, uniqueness, format options and row numbers that are too large.
    """
    pinned = pins or pins_for(
        source, seed=request.seed, now=request.now, locale=request.locale, current_time=current_time
    )
    count = source.row_count(request.count)
    kind = FORMATS[format or request.format]
    options = request.options_for(kind)
    uses_own_anchors = pinned.now == source.anchor if anchored is None else anchored
    bound = bind(source, pinned, request.overrides, request.offset, count, uses_own_anchors)
    return Recipe(source, bound, pinned, request.offset, count, kind, options)


def bind(
    source: CompiledTemplate,
    pins: Pins,
    overrides: dict[str, Any],
    offset: int,
    count: int,
    anchored: bool = False,
    recorder: RequestRecorder | None = None,
) -> BoundPlan:
    """Bind the plan to seed and now, and check it for these rows. Raises `validation_error` with all faults."""
    processor_time.raise_limit(count)
    try:
        bound = BoundPlan(
            source.plan, GenerationContext(pins.seed, pins.now, pins.locale, anchored, recorder), overrides
        )
        bound.check(offset, count)
    except SpecError as error:
        raise validation_error(error.faults) from None
    last = offset + count
    if last * source.plan.max_cells_per_row >= 1 << 63:  # addresses of nested elements are 63-bit numbers
        text = (
            f"Row {last:,} is not available: the template has {source.plan.max_cells_per_row:,} elements per "
            "row, so the row number is too large."
        )
        raise validation_error([Fault("offset", "out_of_range", text, "Use a smaller offset.")])
    return bound


class Stream(ABC):
    """Bytes in pieces, generated on demand, of one table or several. Can be read once.

    `rows_generated` counts the rows of the generated blocks, `rows_sent` those whose bytes were all read. `leaks`:
    the result of the leak check of completed tables; None if there was nothing to check.
    """

    def __init__(self) -> None:
        self.rows_generated = 0
        self.rows_sent = 0
        self.leaks: list[dict[str, Any]] | None = None
        self._pieces = self._generate()
        self._buffered: list[Piece] = []

    @abstractmethod
    def _generate(self) -> Generator[Piece]:
        """Yield all pieces."""

    def generate_first_block(self) -> None:
        """Generate the first block, so that errors are raised before anything is sent."""
        try:
            while not self.rows_generated and (piece := next(self._pieces, None)) is not None:
                self._buffered.append(piece)
        except SpecError as error:
            raise validation_error(error.faults) from None

    @property
    def buffered_bytes(self) -> int:
        """Return the bytes of the first block that are not read yet."""
        return sum(map(len, self._buffered))

    def _encode_rows(self, recipe: Recipe, writer: Format) -> Iterator[Piece]:
        """Yield the pieces of one table."""
        start = writer.start() if recipe.first else writer.resume()
        if start:
            yield start
        for block in recipe.bound.blocks_for(writer, recipe.offset, recipe.count):
            count, pieces = len(block[0]), writer.write_block(block)
            del block  # what is not used any more is free while the next block is made
            first = next(pieces, None)
            self.rows_generated += count
            if first is not None:
                yield first
            del first
            yield from pieces
            self.rows_sent = self.rows_generated
        yield from writer.finish() if recipe.last else writer.pause()
        if recipe.bound.leak_checker is not None:
            watch = recipe.bound.leak_checker
            report = {"table": recipe.title, "columns": watch.report(), "unmasked": list(watch.unmasked)}
            self.leaks = [*(self.leaks or ()), report]

    def __iter__(self) -> Iterator[Piece]:
        """Yield all pieces in order, including those of the first block."""
        if self._buffered:
            buffered, self._buffered = self._buffered, []
            yield from [b"".join(buffered)] if sum(map(len, buffered)) <= limits.MB else buffered
            del buffered
        yield from self._pieces

    def read(self, max_bytes: int = limits.PREVIEW_BYTES) -> bytes:
        """Return all bytes, for small outputs. Raises validation_error if they exceed `max_bytes` bytes."""
        pieces, size = [], 0
        try:
            for piece in self:
                pieces.append(piece)
                size += len(piece)
                if size > max_bytes:
                    limit = format_megabytes(limits.PREVIEW_BYTES)
                    text = (
                        f"The first {self.rows_generated:,} rows take at least {format_megabytes(size)}; "
                        f"the limit of a preview is {limit}."
                    )
                    hint = (
                        "Use shorter texts or arrays with fewer elements, or generate the rows, which are then "
                        "streamed."
                    )
                    raise validation_error([Fault("fields", "row_too_large", text, hint)])
        except SpecError as error:
            raise validation_error(error.faults) from None
        finally:
            self.close()  # the generator refers to this object, so the rows of one that is left would stay in memory
        return b"".join(pieces)

    def close(self) -> None:
        """Stop the work."""
        self._buffered.clear()
        self._pieces.close()


class RecipeStream(Stream):
    """Return the bytes of a recipe."""

    def __init__(self, recipe: Recipe, processes: int = 1) -> None:
        self.recipe, self.processes = recipe, processes
        super().__init__()

    def _generate(self) -> Generator[Piece]:
        if self.processes > 1:
            yield from generate_parallel(self.recipe, self.processes, self._count_rows)
        else:
            yield from self._encode_rows(self.recipe, self.recipe.writer())

    def _count_rows(self, rows: int) -> None:
        """Count rows whose bytes were all read."""
        self.rows_generated += rows
        self.rows_sent = self.rows_generated


def content_type(kind: type[Format], options: Format.Options) -> str:
    """Return the Content-Type of a format. CSV states whether its first line is a header (RFC 4180, section
    3)."""
    if kind.name == "csv":
        header = "present" if getattr(options, "header", True) else "absent"
        return f"{kind.media_type}; charset=utf-8; header={header}"
    return f"{kind.media_type}; charset=utf-8" if kind.name == "sql" else kind.media_type


def slug(name: str, default: str = "rows") -> str:
    """Convert a name to one that is valid for tables and files: ASCII letters, digits and `_`, not starting
    with a digit."""
    ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    result = _NOT_IN_NAMES.sub("_", ascii_name).strip("_")[:60].strip("_")
    return f"t_{result}" if result[:1].isdigit() else result or default


def file_stem(name: str) -> str:
    """Convert a name to a file name for any system: letters are kept, invalid characters become `_`."""
    cleaned = "".join(char if char.isprintable() and char not in '\\/:*?"<>|' else "_" for char in name)
    return cleaned.strip(" ._")[:100].strip(" .") or "rows"


def content_disposition(file_name: str) -> str:
    """Return a Content-Disposition header for `file_name` (RFC 6266; other letters by RFC 8187)."""
    if file_name.isascii() and '"' not in file_name:
        return f'attachment; filename="{file_name}"'
    stem, dot, extension = file_name.rpartition(".")
    ascii_name = (
        f"{slug(stem)}.{extension}"
        if dot and extension.isalnum() and extension.isascii()
        else slug(file_name)
    )
    return f"attachment; filename=\"{ascii_name}\"; filename*=UTF-8''{quote(file_name, safe='')}"
