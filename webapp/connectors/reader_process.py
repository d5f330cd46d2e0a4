"""Read from a database in a separate process, so that a query cannot use up the memory of the calling
process.

Drivers hold a whole row, and many of them the whole result, before they return any of it. The process that
runs the driver is therefore limited to `limits.QUERY_MEMORY_BYTES`, and returns rows in pieces of at most
`limits.QUERY_ROW_BYTES`. It is forked from a server process that has already imported the driver
(`webapp.fork_server`), keeps one session open, and exits when the calling process exits.

Requests are pickled tuples `(method, arguments)`. A response is a series of frames: a letter, four bytes of
length, then an Arrow stream of one batch (`B`), JSON (`J`), an error as JSON (`E`), or nothing at the end
(`Z`). Data from the process with the driver is never unpickled.
"""

from __future__ import annotations

import importlib
import logging
import os
import pickle
import select
import signal
import socket
import struct
import sys
import threading
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Final, NoReturn

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from webapp import limits
from webapp.connectors import driver_process
from webapp.connectors.base import Connector, ConnectorError, Session, TableReader
from webapp.connectors.metadata_json import entity_from_json, entity_to_json, from_json, to_json
from webapp.connectors.schema import Entity, Metadata
from webapp.fork_server import ForkServer, die_with_parent, serve

log = logging.getLogger(__name__)

_HEAD: Final = struct.Struct(">cI")
_server: Final = ForkServer("webapp.connectors.reader_process")
_slots = threading.BoundedSemaphore(limits.QUERY_PROCESSES)


def _reset_slots() -> None:
    """Reset the semaphore in a forked process: its slots belong to the parent."""
    global _slots
    _slots = threading.BoundedSemaphore(limits.QUERY_PROCESSES)


os.register_at_fork(after_in_child=_reset_slots)


def too_large_error(text: str) -> ConnectorError:
    """Return the error for a query whose values, rows or result exceed the limits."""
    return ConnectorError(text, reason="too_large", hint="Read fewer rows or shorter values.")


class ReaderProcess(TableReader):
    """A session of `connector` in a separate process. Raises the errors of `Connector.open`."""

    def __init__(self, connector: Connector, timeout: float | None = None) -> None:
        self._connector, self._timeout = connector, timeout
        self._process: _Process | None = _Process(connector, timeout)

    def close(self) -> None:
        """See `Link.close`."""
        process, self._process = self._process, None
        if process is not None:
            process.close()

    def cancel(self) -> None:
        """See `Link.cancel`."""
        process = self._process
        if process is not None:
            process.cancel()

    def _frames(self, method: str, *arguments: Any) -> Iterator[tuple[bytes, bytes | bytearray]]:
        """Yield the frames of an answer. If an answer is not read to its end, the next request replaces the process."""
        if self._process is None:
            self._process = _Process(self._connector, self._timeout)
        process = self._process
        is_complete = False
        try:
            for letter, payload in process.request(method, arguments):
                if letter == b"E":
                    error = _error(payload)
                    is_complete = error.reason not in (
                        "too_large",
                        "lost",
                    )  # the driver may still be receiving data
                    raise error
                yield letter, payload
            is_complete = True
        finally:
            if not is_complete:
                self._process = None
                process.cancel()
                process.close()

    def _json(self, method: str, *arguments: Any) -> Any:
        (result,) = [orjson.loads(payload) for _, payload in self._frames(method, *arguments)]
        return result

    def _batches(self, method: str, *arguments: Any) -> Iterator[pa.RecordBatch]:
        for _, payload in self._frames(method, *arguments):
            yield _read_batch(payload)

    def _batch(self, method: str, *arguments: Any) -> pa.RecordBatch:
        batches = list(self._batches(method, *arguments))
        if len(batches) == 1:
            return batches[0]
        columns = [
            pa.concat_arrays(list(pieces))
            for pieces in zip(*(batch.columns for batch in batches), strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, batches[0].schema.names)

    def metadata(self) -> Metadata:
        """See `Link.metadata`."""
        return from_json(self._json("metadata"))

    def entity(self, name: str) -> Entity | None:
        """See `Link.entity`."""
        stored = self._json("entity", name)
        return None if stored is None else entity_from_json(stored)

    def sample(self, entity: Entity, limit: int) -> pa.RecordBatch:
        """See `TableReader.sample`."""
        return self._batch("sample", entity, limit)

    def keys(
        self, entity: Entity, columns: Sequence[str], where: str = "", order: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """See `TableReader.keys`."""
        return self._batches("keys", entity, list(columns), where, None if order is None else list(order))

    def contains(self, entity: Entity, columns: Sequence[str], candidates: pa.RecordBatch) -> pa.BooleanArray:
        """See `TableReader.contains`."""
        return self._batch("contains", entity, list(columns), candidates).column(0)

    def query(self, text: str, values: Mapping[str, Any], limit: int) -> pa.RecordBatch:
        """See `TableReader.query`. All rows together may take `limits.QUERY_RESULT_BYTES`."""
        return self._batch("query", text, dict(values), limit)

    def stream(self, text: str) -> Iterator[pa.RecordBatch]:
        """See `TableReader.stream`."""
        return self._batches("stream", text)

    def execute(self, statement: str) -> None:
        """See `Session.execute`."""
        for _ in self._frames("execute", statement):
            pass


class _Process:
    """The process with the session, as the calling process sees it."""

    def __init__(self, connector: Connector, timeout: float | None) -> None:
        self._channel, child_socket = socket.socketpair()
        self._end_lock = threading.Lock()
        self._slot: threading.BoundedSemaphore | None = None
        self._pid, self._descriptor, self._cancelled = 0, -1, False
        try:
            slots = _slots
            if not slots.acquire(timeout=limits.CHILD_QUEUE_SECONDS):
                raise ConnectorError(
                    "Too many queries are running at the moment.",
                    reason="busy",
                    hint="Try again.",
                    transient=True,
                )
            self._slot = slots
            with child_socket:
                if not _server.fork(
                    f"{type(connector).__module__.rpartition('.')[0]}.session", [child_socket.fileno()]
                ):
                    raise ConnectorError(
                        "The process that reads from databases could not be started.",
                        reason="busy",
                        transient=True,
                    )
            self._channel.settimeout(limits.DOCUMENT_START_SECONDS)
            self._pid = orjson.loads(next(self._frames())[1])
            self._channel.settimeout(None)
            if sys.platform.startswith("linux"):
                self._descriptor = os.pidfd_open(self._pid)
            for letter, payload in self.request("open", (driver_process.describe(connector), timeout)):
                if letter == b"E":
                    raise _error(payload)
        except BaseException:
            self.close()
            raise

    def request(self, method: str, arguments: Sequence[Any]) -> Iterator[tuple[bytes, bytes | bytearray]]:
        """Send a request, and yield the frames of its answer."""
        data = pickle.dumps((method, arguments))
        with suppress(OSError):  # the process has ended, which reading detects
            self._channel.sendall(struct.pack(">I", len(data)) + data)
        for letter, payload in self._frames():
            if letter == b"Z":
                return
            yield letter, payload
            if letter == b"E":
                return

    def _frames(self) -> Iterator[tuple[bytes, bytes | bytearray]]:
        while True:
            try:
                head = _receive(self._channel, _HEAD.size)
                letter, size = _HEAD.unpack(head) if head else (b"", 0)
                payload = _receive(self._channel, size) if size else b""
            except OSError:
                letter = b""
            if not letter or payload is None:
                mb = limits.QUERY_MEMORY_BYTES // limits.MB
                raise too_large_error(
                    f"The query was stopped: it was cancelled, or needed more than {mb:,} MB of memory."
                )
            yield letter, payload

    def cancel(self) -> None:
        """Cancel the running operation. If the driver does not react, its process is killed."""
        with suppress(OSError):
            self._channel.shutdown(socket.SHUT_WR)
        self._end(limits.QUERY_STOP_SECONDS)

    def close(self) -> None:
        """End the process, if it is still running."""
        with suppress(OSError):
            self._channel.shutdown(socket.SHUT_RDWR)
        if self._pid:
            self._end(limits.QUERY_STOP_SECONDS)
        self._channel.close()
        with self._end_lock:  # `cancel` in another thread may be waiting for the process
            descriptor, self._descriptor = self._descriptor, -1
            if descriptor != -1:
                os.close(descriptor)
        slot, self._slot = self._slot, None
        if slot is not None:
            slot.release()

    def _end(self, seconds: float) -> None:
        """Wait for the process to exit, then kill it."""
        with self._end_lock:
            if self._descriptor != -1:
                waiter = select.poll()
                waiter.register(self._descriptor, select.POLLIN)
                if not waiter.poll(int(seconds * 1000)):
                    with suppress(ProcessLookupError):
                        signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)
                return
        until = time.monotonic() + seconds
        with suppress(ProcessLookupError):
            while time.monotonic() < until:
                os.kill(self._pid, 0)
                time.sleep(limits.PROBE_PAUSE_SECONDS)
            os.kill(self._pid, signal.SIGKILL)


def _error(payload: bytes | bytearray) -> ConnectorError:
    fields = orjson.loads(payload)
    trace = fields["details"].pop("trace", None)
    if trace is not None:
        log.error("reader: a request failed\n%s", trace)
    return ConnectorError(fields.pop("message"), **fields)


def _receive(channel: socket.socket, size: int) -> bytearray | None:
    """Receive exactly `size` bytes; None if the other side closes first."""
    data = bytearray(size)
    view, position = memoryview(data), 0
    while position < size:
        count = channel.recv_into(view[position:])
        if not count:
            return None
        position += count
    return data


def _read_batch(payload: bytes | bytearray) -> pa.RecordBatch:
    with pa.ipc.open_stream(payload) as stream:
        return stream.read_next_batch()


# --- In the process with the driver -------------------------------------------------------------------------


class _Worker:
    """Handles the requests of one session."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._requests: SimpleQueue[bytearray | None] = SimpleQueue()
        self._session: Session | None = None
        self._busy = False
        self._closed = threading.Event()

    def listen(self) -> None:
        """Receive requests until the other side closes the socket, then exit, even while a request is
        running."""
        with suppress(OSError):
            while (head := _receive(self._channel, 4)) and (
                request := _receive(self._channel, struct.unpack(">I", head)[0])
            ):
                self._requests.put(request)
        self._requests.put(None)
        if self._busy and self._session is not None:
            with suppress(Exception):
                self._session.cancel()
        self._closed.wait(limits.QUERY_STOP_SECONDS / 2)
        os._exit(0)

    def run(self) -> None:
        """Answer requests."""
        self._send_frame(b"J", orjson.dumps(os.getpid()))
        while (request := self._requests.get()) is not None:
            self._busy = True
            method, arguments = pickle.loads(request)  # noqa: S301 - of the process that started this one
            self._answer(method, arguments)
            self._busy = False
        if self._session is not None:
            with suppress(Exception):
                self._session.close()
        self._closed.set()

    def _answer(self, method: str, arguments: Sequence[Any]) -> None:
        failure: ConnectorError | None = None
        try:
            self._handle(method, arguments)
        except MemoryError:
            pass  # leave this block first, so that the frames release their memory
        except ConnectorError as error:
            failure = error
        except Exception:
            failure = ConnectorError(
                "The query failed because of an internal error in Rowsmith.",
                reason="driver_failed",
                hint="Report it to your administrator.",
                details={"trace": traceback.format_exc()[-limits.LOG_TRACE_CHARS :]},
            )
        else:
            self._send_frame(b"Z")
            return
        if failure is None:
            mb = limits.QUERY_MEMORY_BYTES // limits.MB
            failure = too_large_error(f"The query needs more than {mb:,} MB of memory.")
        self._send_frame(b"E", orjson.dumps(failure.to_json()))

    def _handle(self, method: str, arguments: Sequence[Any]) -> None:
        if method == "open":
            session = driver_process.create_connector(arguments[0]).open(arguments[1])
            assert isinstance(session, Session)
            self._session = session
            return
        assert self._session is not None
        result = getattr(self._session, method)(*arguments)
        if method == "metadata":
            self._send_frame(b"J", orjson.dumps(to_json(result)))
        elif method == "entity":
            self._send_frame(b"J", orjson.dumps(None if result is None else entity_to_json(result)))
        elif method == "contains":
            self._send([pa.RecordBatch.from_arrays([result], ["contains"])])
        elif method == "query":
            self._send([result], limits.QUERY_RESULT_BYTES)
        elif method == "sample":
            self._send([result])
        elif method in ("keys", "stream"):
            self._send(result)

    def _send(self, batches: Iterable[pa.RecordBatch], limit: int | None = None) -> None:
        """Send batches in pieces. Raises `ConnectorError` if a value, a row or the total exceeds its limit."""
        total = 0
        for batch in batches:
            total += batch.nbytes
            if limit is not None and total > limit:
                raise too_large_error(f"The result is larger than {limit // limits.MB:,} MB.")
            for piece in split_batch(batch):
                sink = pa.BufferOutputStream()
                with pa.ipc.new_stream(sink, piece.schema) as stream:
                    stream.write_batch(piece)
                self._send_frame(b"B", sink.getvalue())

    def _send_frame(self, letter: bytes, payload: Any = b"") -> None:
        try:
            self._channel.sendall(_HEAD.pack(letter, len(payload)))
            self._channel.sendall(payload)
        except OSError:  # the caller is no longer waiting
            self._busy = False
            raise SystemExit from None


def split_batch(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Split a batch into pieces of at most `limits.QUERY_ROW_BYTES`. Raises `ConnectorError` if a row or
    value is larger."""
    for column in batch.columns:
        if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
            longest = pc.max(pc.binary_length(column)).as_py() or 0
            if longest > limits.QUERY_VALUE_BYTES:
                raise too_large_error(
                    f"A value in the result is larger than {limits.QUERY_VALUE_BYTES // limits.MB:,} MB."
                )
    yield from _split(batch)


def _split(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if batch.nbytes <= limits.QUERY_ROW_BYTES:
        yield batch
    elif batch.num_rows == 1:
        raise too_large_error(
            f"A row in the result is larger than {limits.QUERY_ROW_BYTES // limits.MB:,} MB."
        )
    else:
        half = batch.num_rows // 2
        yield from _split(batch.slice(0, half))
        yield from _split(batch.slice(half))


def work(descriptor: int) -> NoReturn:
    """Handle the requests of one session that arrive on a socket. Never returns."""
    die_with_parent()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    driver_process.limit_memory()
    worker = _Worker(socket.socket(fileno=descriptor))
    threading.Thread(target=worker.listen, daemon=True).start()
    with suppress(BaseException):
        worker.run()
    worker._closed.set()
    os._exit(0)


if __name__ == "__main__":
    # Import the module by name, so that classes have the same identity everywhere.
    serve(socket.socket(fileno=0), importlib.import_module("webapp.connectors.reader_process").work)
