"""The catalogue of field types, type suggestions, and the state of the service."""

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

    def list(self, *, q: Optional[str] = None, locale: Optional[str] = None) -> Pages[types.FieldTypeOut]:
        """Return the catalogue, or the types that match `q`, best match first. With a locale, `lacks` says what it
        has no values for."""
        return self._list("/field-types", {"q": q, "locale": locale})

    def functions(self, *, q: Optional[str] = None) -> builtins.list[dict[str, Any]]:
        """Return the functions of formulas."""
        found: builtins.list[dict[str, Any]] = self._get("/field-types", {"q": q, "limit": 1})["functions"]
        return found

    def suggest(self, **about: Unpack[types.SuggestIn]) -> types.SuggestOut:
        """Suggest types for a field with this `name`, `description` and `sample` values."""
        return self._ask("/fields/suggest", about)

    def describe(
        self, *, idempotency_key: Key = None, **request: Unpack[types.DescribeIn]
    ) -> types.DescribedOut:
        """Generate a template from a `description` with an AI model. `save` stores it."""
        return self._create("/describe", request, idempotency_key)


class Masking(Resource):
    """`api.masking`."""

    def classify(self, **sample: Unpack[types.ClassifyIn]) -> types.ClassifyOut:
        """Detect personal data in the columns of a sample: its `rows`, a workspace `file`, or a
        `connection_id` and `table`."""
        return self._ask("/classify", sample)

    def keys(self) -> types.MaskingKeysOut:
        """List the versions of the masking key, newest first, without the keys."""
        return self._get("/masking/keys")

    def rotate(self, *, idempotency_key: Key = None) -> types.MaskingKeyOut:
        """Create a new version of the masking key, which is used from now on."""
        return self._create("/masking/keys/rotate", None, idempotency_key)


class Service(Resource):
    """`api.service`."""

    def live(self) -> types.Live:
        """Return whether the service responds."""
        return self._get("/health/live")

    def ready(self) -> types.ReadyOut:
        """Return whether all required components are available. Raises ServerError if not."""
        return self._get("/health/ready")

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI description of all routes."""
        return self._get("/openapi.json")
