"""The file of a vocabulary: an Arrow IPC file whose only batch has one row and a list column for each list.

A list of words is a ``list<string>`` column, a table a ``list<struct<...>>`` column; reading either is a view into
the mapped file. The id is a digest of names, types and values, not of the file's bytes, so that a newer Arrow that
lays out the same content otherwise gives the same id.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc

ID_BYTES = 16
FORMAT_VERSION = "1"
"""Rises when the meaning of a column's name changes."""

_WORDS, _TABLE = "words", "table"


def word_column_name(name: str, locale: str) -> str:
    """Column that holds the list ``name`` of ``locale`` (``""``: of no locale)."""
    return f"{_WORDS}:{name}:{locale}"


def table_column_name(name: str) -> str:
    """Column that holds the table ``name``."""
    return f"{_TABLE}:{name}"


def parse_column_name(column: str) -> tuple[str, str, str]:
    """(``words`` or ``table``, name, locale) of a column's name."""
    kind, name, *locale = column.split(":")
    return kind, name, locale[0] if locale else ""


def digest(contents: Mapping[str, pa.Array]) -> str:
    """The id of some contents: 32 hexadecimal digits."""
    hashed = blake2b(FORMAT_VERSION.encode(), digest_size=ID_BYTES)
    for name in sorted(contents):
        values = contents[name]
        for part in (name, str(values.type), str(len(values))):
            hashed.update(len(part).to_bytes(4, "little") + part.encode())
        _feed(hashed, values)
    return hashed.hexdigest()


def _feed(hashed: blake2b, values: pa.Array) -> None:
    if pa.types.is_struct(values.type):
        for i in range(values.type.num_fields):
            _feed(hashed, values.field(i))
        return
    if values.null_count or values.offset:
        raise ValueError("a vocabulary's columns are whole and without blanks")
    for buffer, width in zip(values.buffers()[1:], _widths(values), strict=True):
        hashed.update(memoryview(buffer)[:width])


def _widths(values: pa.Array) -> tuple[int, ...]:
    """Number of bytes of each buffer without the padding at its end."""
    kind = values.type
    if pa.types.is_string(kind):
        ends = 4 * len(values)
        return ends + 4, int.from_bytes(memoryview(values.buffers()[1])[ends : ends + 4], sys.byteorder)
    if pa.types.is_integer(kind):
        return (kind.bit_width // 8 * len(values),)
    raise ValueError(f"a vocabulary holds texts and integers, not {kind}")


def write(path: Path, contents: Mapping[str, pa.Array], metadata: Mapping[str, str]) -> None:
    """Writes ``contents`` to ``path`` whole or not at all; readers of an older file there are not disturbed."""
    names = sorted(contents)
    columns = [  # in one row
        pa.ListArray.from_arrays(pa.array([0, len(contents[name])], pa.int32()), contents[name])
        for name in names
    ]
    fields = [
        pa.field(name, column.type, nullable=False) for name, column in zip(names, columns, strict=True)
    ]
    schema = pa.schema(fields, metadata={key: metadata[key] for key in sorted(metadata)})
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as sink:
            with pa.ipc.new_file(sink, schema) as writer:
                writer.write_batch(pa.record_batch(columns, schema=schema))
            sink.flush()
            os.fsync(sink.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read(path: Path) -> tuple[dict[str, pa.Array], dict[str, str]]:
    """Contents and metadata of a file, mapped into memory. Raises `FileNotFoundError`, or `pa.ArrowInvalid`
    where it is no such file."""
    with pa.ipc.open_file(pa.memory_map(str(path))) as reader:
        schema = reader.schema
        batch = reader.get_batch(0)
    contents = {name: column.values for name, column in zip(schema.names, batch.columns, strict=True)}
    return contents, {key.decode(): value.decode() for key, value in (schema.metadata or {}).items()}
