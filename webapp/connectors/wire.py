"""Metadata and stages as JSON: what the API shows, what the storage keeps, what a child process answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from webapp.connectors.base import Stage
from webapp.connectors.shape import Column, Entity, Metadata, Relation


def to_json(metadata: Metadata) -> dict[str, Any]:
    """Metadata as the contract shows it; `from_json` takes it back."""
    return {
        "kind": metadata.kind,
        "version": metadata.version,
        "base_url": metadata.base_url,
        "entities": [entity_to_json(one) for one in metadata.entities],
    }


def entity_to_json(entity: Entity) -> dict[str, Any]:
    """A table; the foreign keys stand under `relations`."""
    return asdict(entity)


def from_json(stored: Mapping[str, Any]) -> Metadata:
    """Metadata from `to_json`."""
    return Metadata(
        stored["kind"],
        stored["version"],
        tuple(entity_from_json(one) for one in stored["entities"]),
        stored.get("base_url", ""),
    )


def entity_from_json(stored: Mapping[str, Any]) -> Entity:
    """A table from `entity_to_json`."""
    return Entity(
        **{
            **stored,
            "parts": tuple(stored["parts"]),
            "keys": tuple(stored["keys"]),
            "uniques": tuple(tuple(one) for one in stored["uniques"]),
            "checks": tuple(stored["checks"]),
            "fields": tuple(_column(one) for one in stored["fields"]),
            "relations": tuple(_relation(one) for one in stored["relations"]),
        }
    )


_COLUMN = frozenset(one.name for one in fields(Column))


def _column(stored: Mapping[str, Any]) -> Column:
    known = {key: value for key, value in stored.items() if key in _COLUMN}
    return Column(**{**known, "choices": tuple(stored.get("choices", ()))})


def _relation(stored: Mapping[str, Any]) -> Relation:
    return Relation(
        stored["name"], tuple(stored["columns"]), stored["entity"], tuple(stored["entity_columns"])
    )


def stage_to_json(stage: Stage) -> dict[str, Any]:
    """A stage as the API shows it."""
    return asdict(stage)
