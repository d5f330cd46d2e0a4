from __future__ import annotations

import pyarrow as pa
import pytest

from webapp.engine.formats import pieces


@pytest.fixture(autouse=True)
def every_view_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """No view may point outside its buffer: Arrow copies what it is told to, without looking."""
    copied = pieces.copied

    def checked(laid: pa.Array) -> pa.Array:
        laid.validate(full=True)
        return copied(laid)

    monkeypatch.setattr(pieces, "copied", checked)
