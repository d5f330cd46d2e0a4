"""The table of views that a block of rows is laid out in, and the literals that stand between its values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from webapp.engine.formats import views

_BINARY_VIEW = pa.binary_view()
_LARGE_BINARY = pa.large_binary()
_NOTHING = np.zeros(1, views.VIEW)


class Literals:
    """Texts that stand between values, each kept once; the long ones in one buffer."""

    def __init__(self) -> None:
        self._views: dict[str, np.ndarray] = {}
        self._data = bytearray()
        self._buffer: pa.Buffer | None = None

    def view(self, text: str) -> np.ndarray:
        """``view[1]`` of ``text``."""
        found = self._views.get(text)
        if found is None:
            spelled = text.encode()
            if len(spelled) <= views.INLINE_BYTES:
                found = views.inline((spelled,))
            else:
                found = views.outline(spelled, views.LITERAL_BUFFER, len(self._data))
                self._data += spelled
                self._buffer = None
            self._views[text] = found
        return found

    def table(self, texts: Sequence[str]) -> np.ndarray:
        """``view[len(texts)]``."""
        return np.concatenate([self.view(text) for text in texts])

    @property
    def buffer(self) -> pa.Buffer:
        """All long literals."""
        if self._buffer is None:
            self._buffer = pa.py_buffer(bytes(self._data))
        return self._buffer


class Pieces:
    """``view[n, width]``, reused from block to block so that what stays the same is written once."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._flat = np.zeros(1, views.VIEW)
        self._all = np.zeros((0, width), views.VIEW)
        self._fixed: list[np.ndarray | None] = [None] * width
        self.now = self._all

    def begin(self, rows: int) -> None:
        """Make room for ``rows`` rows."""
        if rows > len(self._all):
            self._flat = np.zeros(rows * self.width + 1, views.VIEW)
            self._all = self._flat[:-1].reshape(rows, self.width)
            self._fixed = [_NOTHING] * self.width
        self.now = self._all[:rows]

    def put(self, piece: int, found: np.ndarray) -> None:
        """``view[n]`` into ``piece`` of each row."""
        self.now[:, piece] = found
        self._fixed[piece] = None

    def fix(self, piece: int, found: np.ndarray) -> None:
        """``view[1]`` into ``piece`` of each row, until something else is put there."""
        if self._fixed[piece] is not found:
            self._all[:, piece] = found
            self._fixed[piece] = found

    def punch(self, piece: int, rows: np.ndarray) -> None:
        """Nothing into ``piece`` of the rows where ``rows`` (``bool[n]``) holds."""
        if self._fixed[piece] is not _NOTHING:
            self.now[rows, piece] = 0
            self._fixed[piece] = None

    def blank(self, piece: int) -> None:
        """Nothing into ``piece`` of each row."""
        self.fix(piece, _NOTHING)

    def joined(self, buffers: list[pa.Buffer], last: np.ndarray | None) -> pa.Array:
        """All pieces, and behind the last row one more, as a large binary array."""
        count = len(self.now) * self.width + (last is not None)
        kept = self._flat[count - 1 : count].copy()
        if last is not None:
            self._flat[count - 1 : count] = last
        laid = pa.py_buffer(self._flat[:count])
        text = copied(pa.Array.from_buffers(_BINARY_VIEW, count, [None, laid, *buffers], null_count=0))
        self._flat[count - 1 : count] = kept  # it may be the first piece of a row not used this time
        return text


def copied(pieces: pa.Array) -> pa.Array:
    """A binary view array as large binary: all texts in one buffer. Views must be right: nothing checks them."""
    return pieces.cast(_LARGE_BINARY)
