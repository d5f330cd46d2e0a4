"""Rows of a saved or an unsaved template."""

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
"""The ID of a saved template, or a template itself."""
DEFAULT_ROWS = 10
"""Number of rows of a template without a quantity."""


class Generation(Resource):
    """The methods of `api.templates` that generate rows."""

    def preview(self, template: Which, **request: Unpack[types.PreviewIn]) -> types.PreviewOut:
        """Return the first three rows. They do not count toward the quota."""
        path, parts, body = _request("preview", template, request)
        return self._ask(path, body, **parts)

    def generate(
        self, template: Which, **request: Unpack[types.GenerateInput]
    ) -> builtins.list[dict[str, Any]]:
        """Return `count` rows as a list. For many rows use `rows`."""
        path, parts, body = _request("generate", template, {**request, "format": "json"})
        return self._ask(path, body, **parts)

    def answers(
        self, template_id: str, **request: Unpack[types.GenerateInput]
    ) -> builtins.list[dict[str, Any]]:
        """Return the injected invalid cells in the rows of a saved template: their kinds and the original
        values. The arguments are those of `generate`, including its `seed`."""
        path, parts, body = _request("answers", template_id, {**request, "format": "json"})
        return self._ask(path, body, **parts)

    def rows(self, template: Which, **request: Unpack[types.GenerateInput]) -> RowStream:
        """Iterate over rows in constant memory. Continues automatically after a broken connection."""
        path, parts, body = _request("generate", template, {**request, "format": "ndjson"})

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
        """Stream the bytes of a file in any `format` as they are generated."""
        return ByteStream(self._bytes(template, request, {}))

    def save(self, template: Which, path: PathLike, **request: Unpack[types.GenerateInput]) -> Path:
        """Write the rows to a file. The default format is that of the file name extension.

        The file is written atomically. After a broken connection the download starts again.
        """
        asked = {"format": format_of(path), **request} if "format" not in request else dict(request)
        return saved(lambda headers: self._bytes(template, asked, headers), path, self._caller.retries)

    def arrow(self, template: Which, **request: Unpack[types.GenerateInput]) -> Any:
        """Return the rows as a `pyarrow.Table`. Requires pyarrow."""
        import pyarrow.parquet  # noqa: F401  # fails before rows are counted

        return arrow_table(self._parquet(template, request))

    def dataframe(self, template: Which, **request: Unpack[types.GenerateInput]) -> Any:
        """Return the rows as a `pandas.DataFrame`. Requires pandas. With pyarrow, columns have the types of
        the Parquet file; without it, the types that pandas infers from the JSON."""
        import pandas

        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError:
            return pandas.DataFrame(self.generate(template, **request))
        return arrow_table(self._parquet(template, request)).to_pandas()

    def _parquet(self, template: Which, request: Mapping[str, Any]) -> bytes:
        return self._bytes(template, {**request, "format": "parquet"}, {}).read()

    def _bytes(self, template: Which, request: Mapping[str, Any], headers: Mapping[str, str]) -> Answer:
        path, parts, body = _request("generate", template, request)
        return self._caller.open("POST", path, parts=parts, json=body, headers=headers, repeatable=True)


def _request(
    what: str, template: Which, request: Mapping[str, Any]
) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Return the path, its parts, and the body of a request."""
    if isinstance(template, str):
        return "/templates/{template_id}/" + what, {"template_id": template}, plain(request)
    return f"/{what}", {}, {**as_dict(template), **plain(request)}
