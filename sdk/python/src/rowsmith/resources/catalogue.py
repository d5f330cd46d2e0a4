"""The catalogue of field types, help with choosing, and the state of the service."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any, Optional

from rowsmith.pages import Pages
from rowsmith.resources.base import Key, Resource

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from rowsmith import types


class Fields(Resource):
    """`api.fields`."""

    def list(self, *, q: Optional[str] = None) -> Pages[types.FieldTypeOut]:
        """The catalogue, or the types that fit `q`, best first."""
        return self._list("/field-types", {"q": q})

    def functions(self, *, q: Optional[str] = None) -> builtins.list[dict[str, Any]]:
        """The functions of formulas."""
        found: builtins.list[dict[str, Any]] = self._get("/field-types", {"q": q, "limit": 1})["functions"]
        return found

    def suggest(self, **about: Unpack[types.SuggestIn]) -> types.SuggestOut:
        """Types for a field of that `name`, with that `description`, with values such as `sample`."""
        return self._ask("/fields/suggest", about)  # type: ignore[no-any-return]

    def describe(
        self, *, idempotency_key: Key = None, **request: Unpack[types.DescribeIn]
    ) -> types.DescribedOut:
        """A template from a `description` in words, by a model; with `save` it is kept."""
        return self._create("/describe", request, idempotency_key)  # type: ignore[no-any-return]


class Masking(Resource):
    """`api.masking`."""

    def classify(self, **sample: Unpack[types.ClassifyIn]) -> types.ClassifyOut:
        """Which columns of a sample are personal: its `rows`, a workspace `file`, or a `connection_id` and `table`."""
        return self._ask("/classify", sample)  # type: ignore[no-any-return]

    def keys(self) -> types.MaskingKeysOut:
        """The versions of the masking key, newest first, without the keys."""
        return self._get("/masking/keys")  # type: ignore[no-any-return]

    def rotate(self, *, idempotency_key: Key = None) -> types.MaskingKeyOut:
        """A new version of the masking key, which masks from now on."""
        return self._create("/masking/keys/rotate", None, idempotency_key)  # type: ignore[no-any-return]


class Service(Resource):
    """`api.service`."""

    def live(self) -> types.Live:
        """Whether the service answers."""
        return self._get("/health/live")  # type: ignore[no-any-return]

    def ready(self) -> types.ReadyOut:
        """Whether all it needs is there. ServerError where not."""
        return self._get("/health/ready")  # type: ignore[no-any-return]

    def openapi(self) -> dict[str, Any]:
        """The description of every route."""
        return self._get("/openapi.json")  # type: ignore[no-any-return]
