"""Rows, of a template that is saved or of one that is not."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, Union

from rowsmith.resources.base import Resource
from rowsmith.streams import ByteStream, PathLike, RowStream, arrow_table, format_of, saved
from rowsmith.template import AnyTemplate, as_dict, plain
from rowsmith.wire.answer import Answer

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from rowsmith import types

Which = Union[str, AnyTemplate]
"""The id of a saved template, or a template itself."""
DEFAULT_ROWS = 10
"""What a template gives that says no quantity."""


class Generation(Resource):
    """What `api.templates` does to make rows."""

    def preview(self, template: Which, **request: Unpack[types.PreviewIn]) -> types.PreviewOut:
        """The first three rows; none are spent."""
        path, parts, body = _asked("preview", template, request)
        return self._ask(path, body, **parts)  # type: ignore[no-any-return]

    def generate(
        self, template: Which, **request: Unpack[types.GenerateInput]
    ) -> builtins.list[dict[str, Any]]:
        """Rows as a list; `count` of them. For very many use `rows`."""
        path, parts, body = _asked("generate", template, {**request, "format": "json"})
        return self._ask(path, body, **parts)  # type: ignore[no-any-return]

    def answers(
        self, template_id: str, **request: Unpack[types.GenerateInput]
    ) -> builtins.list[dict[str, Any]]:
        """Which cells are bad on purpose in the rows of a saved template, of which kind, and the good values. The
        request is that of `generate`, with its `seed`."""
        path, parts, body = _asked("answers", template_id, {**request, "format": "json"})
        return self._ask(path, body, **parts)  # type: ignore[no-any-return]

    def rows(self, template: Which, **request: Unpack[types.GenerateInput]) -> RowStream:
        """Rows one after the other, in constant memory; goes on by itself where the connection breaks."""
        path, parts, body = _asked("generate", template, {**request, "format": "ndjson"})

        def again(changes: Mapping[str, Any]) -> Answer:
            sent = {**body, **changes}
            return self._caller.open("POST", path, parts=parts, json=sent, repeatable=True)

        def total() -> Optional[int]:
            counted = body.get("count", body.get("quantity"))
            if counted is None:
                counted = (
                    self._get("/templates/{template_id}", **parts)["quantity"] if parts else DEFAULT_ROWS
                )
            return int(counted)

        return RowStream(again, self._caller.retries, offset=int(body.get("offset", 0)), total=total)

    def stream(self, template: Which, **request: Unpack[types.GenerateInput]) -> ByteStream:
        """The bytes of a file in any `format`, as they are made."""
        return ByteStream(self._bytes(template, request, {}))

    def save(self, template: Which, path: PathLike, **request: Unpack[types.GenerateInput]) -> Path:
        """Write the rows into a file; the format is that of the name's end, if not said.

        The file appears when it is whole. Where the connection breaks it is begun anew.
        """
        asked = {"format": format_of(path), **request} if "format" not in request else dict(request)
        return saved(lambda headers: self._bytes(template, asked, headers), path, self._caller.retries)

    def arrow(self, template: Which, **request: Unpack[types.GenerateInput]) -> Any:
        """The rows as a `pyarrow.Table`; needs pyarrow."""
        import pyarrow.parquet  # noqa: F401  # before rows are spent

        return arrow_table(self._parquet(template, request))

    def dataframe(self, template: Which, **request: Unpack[types.GenerateInput]) -> Any:
        """The rows as a `pandas.DataFrame`; needs pandas. With pyarrow, columns have the types of the Parquet file;
        without, those that pandas finds in the JSON."""
        import pandas

        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError:
            return pandas.DataFrame(self.generate(template, **request))
        return arrow_table(self._parquet(template, request)).to_pandas()

    def _parquet(self, template: Which, request: Mapping[str, Any]) -> bytes:
        return self._bytes(template, {**request, "format": "parquet"}, {}).read()

    def _bytes(self, template: Which, request: Mapping[str, Any], headers: Mapping[str, str]) -> Answer:
        path, parts, body = _asked("generate", template, request)
        return self._caller.open("POST", path, parts=parts, json=body, headers=headers, repeatable=True)


def _asked(
    what: str, template: Which, request: Mapping[str, Any]
) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Path, its parts, and body."""
    if isinstance(template, str):
        return "/templates/{template_id}/" + what, {"template_id": template}, plain(request)
    return f"/{what}", {}, {**as_dict(template), **plain(request)}
