"""Generate the rows of one long file on all processors, in order and in constant memory.

A cell depends only on its seed, field and row number, so any process can generate any rows. The rows are divided into
parts of about `limits.PARALLEL_PART_BYTES`; process k of n generates parts k, k + n, k + 2n and so on. It writes their
bytes to a few slots of memory that it shares with the reader, who empties them in the order of the parts. A process
that is ahead waits until a slot is free. The bytes are those of a single process, since parts of such formats can be
concatenated (`Recipe.part`).

Only for background work in processes with a single thread: the processes are forked.
"""

from __future__ import annotations

import mmap
import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from webapp import fork_server, limits
from webapp.engine.errors import SpecError
from webapp.errors import ApiError

if TYPE_CHECKING:
    from webapp.generation.services.rows import Recipe

_SLOTS: Final = 2  # one that is filled while the reader empties the other


def processes_for(recipe: Recipe) -> int:
    """Return how many processes generate the rows of a recipe: 1 if that is not worthwhile or not possible."""
    bound = recipe.bound
    alone = (
        not recipe.format.continues
        or recipe.count < limits.PARALLEL_FROM_ROWS
        or bound.watch is not None  # the leak check counts what it has seen
        or bound.env.recorder is not None
    )
    return 1 if alone else len(os.sched_getaffinity(0))


def part_rows(recipe: Recipe) -> int:
    """Return the number of rows in a part, from the bytes of the first rows."""
    sample = min(recipe.count, limits.FIRST_BLOCK_ROWS)
    size = sum(map(len, recipe.part(recipe.offset, sample).open()))
    return max(1, min(limits.PARALLEL_PART_BYTES * sample // max(size, 1), limits.PARALLEL_PART_ROWS))


def pieces(recipe: Recipe, processes: int, made: Callable[[int], None]) -> Generator[bytes]:
    """Yield the bytes of a recipe, and call `made` with the number of rows after each part.

    Raises the error that a process raised; RuntimeError if one ended without an error, for example because the system
    has no memory left.
    """
    rows = part_rows(recipe)
    parts = [
        recipe.part(start, min(rows, recipe.offset + recipe.count - start))
        for start in range(recipe.offset, recipe.offset + recipe.count, rows)
    ]
    workers: list[_Worker] = []
    try:
        for number in range(min(processes, len(parts))):
            workers.append(_Worker(parts[number::processes]))  # noqa: PERF401 - each is stopped if the next fails
        for number, part in enumerate(parts):
            yield from workers[number % processes].received(part)
            made(part.count)
    finally:
        for worker in workers:
            worker.stop()


class _Worker:
    """A process that generates parts, and the memory and the socket that it shares with the reader.

    The process sends the number of bytes in a slot; 0 is the end of a part. The reader answers with an empty message
    when the slot is free again.
    """

    def __init__(self, parts: list[Recipe]) -> None:
        self._memory = mmap.mmap(-1, _SLOTS * limits.PARALLEL_PART_BYTES)
        self._reader, self._writer = multiprocessing.Pipe()
        self._slot = self._used = 0
        self._free = _SLOTS
        self._process = multiprocessing.get_context("fork").Process(
            target=self._run, args=(parts,), daemon=True
        )
        self._process.start()
        self._writer.close()

    def received(self, part: Recipe) -> Iterator[bytes]:
        """Yield the bytes of the next part."""
        with suppress(EOFError, ConnectionResetError):
            while size := int.from_bytes(self._reader.recv_bytes()):
                start = self._slot * limits.PARALLEL_PART_BYTES
                piece = self._memory[start : start + size]
                self._slot = (self._slot + 1) % _SLOTS
                with suppress(BrokenPipeError):  # it has sent all that it had
                    self._reader.send_bytes(b"")
                yield piece
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

    def _run(self, parts: list[Recipe]) -> None:
        """The process: generate the parts."""
        fork_server.die_with_parent()
        self._reader.close()
        with suppress(ApiError, SpecError, ConnectionError):
            for part in parts:
                for piece in _bytes_of(part):
                    self._write(memoryview(piece))
                if self._used:
                    self._pass_on()
                self._writer.send_bytes(_number(0))

    def _write(self, piece: memoryview) -> None:
        """Append bytes to the slot, and pass on each slot that is full."""
        while piece:
            if not self._used:
                self._take()
            room = limits.PARALLEL_PART_BYTES - self._used
            start = self._slot * limits.PARALLEL_PART_BYTES + self._used
            taken, piece = piece[:room], piece[room:]
            self._memory[start : start + len(taken)] = taken
            self._used += len(taken)
            if self._used == limits.PARALLEL_PART_BYTES:
                self._pass_on()

    def _take(self) -> None:
        """Wait until the next slot is free."""
        if self._free:
            self._free -= 1
        else:
            self._writer.recv_bytes()

    def _pass_on(self) -> None:
        self._writer.send_bytes(_number(self._used))
        self._slot, self._used = (self._slot + 1) % _SLOTS, 0


def _bytes_of(part: Recipe) -> Iterator[bytes]:
    """Yield the bytes of a part. Unlike a stream, this keeps freed memory, which the next part needs."""
    writer = part.writer()
    yield writer.start() if part.first else writer.resume()
    for block in part.bound.blocks_for(writer, part.offset, part.count):
        yield from writer.block(block)
    yield from writer.finish() if part.last else writer.pause()


def _number(size: int) -> bytes:
    return size.to_bytes(8)
