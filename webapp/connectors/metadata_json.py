"""Convert metadata and verification stages to JSON, for the API, the database and child processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from webapp.connectors.base import Stage
from webapp.connectors.schema import Column, Entity, Metadata, Relation, UniqueIndex


def to_json(metadata: Metadata) -> dict[str, Any]:
    """Return metadata as the API returns it. `from_json` is the inverse."""
    return {
        "kind": metadata.kind,
        "version": metadata.version,
        "base_url": metadata.base_url,
        "entities": [entity_to_json(entity) for entity in metadata.entities],
    }


def entity_to_json(entity: Entity) -> dict[str, Any]:
    """Return a table as JSON. Foreign keys are in `relations`."""
    return asdict(entity)


def from_json(stored: Mapping[str, Any]) -> Metadata:
    """Return the metadata that `to_json` converted."""
    return Metadata(
        stored["kind"],
        stored["version"],
        tuple(entity_from_json(entity) for entity in stored["entities"]),
        stored.get("base_url", ""),
    )


def entity_from_json(stored: Mapping[str, Any]) -> Entity:
    """Return the table that `entity_to_json` converted."""
    known = {key: value for key, value in stored.items() if key in _ENTITY}
    return Entity(
        **{
            **known,
            "parts": tuple(stored["parts"]),
            "keys": tuple(stored["keys"]),
            "uniques": tuple(tuple(item) for item in stored["uniques"]),
            "checks": tuple(stored["checks"]),
            "fields": tuple(_column(field) for field in stored["fields"]),
            "relations": tuple(
                Relation(
                    relation["name"],
                    tuple(relation["columns"]),
                    relation["entity"],
                    tuple(relation["entity_columns"]),
                )
                for relation in stored["relations"]
            ),
            "unique_indexes": tuple(
                UniqueIndex(tuple(index["columns"]), index["condition"])
                for index in stored.get("unique_indexes", ())
            ),
        }
    )


# Metadata that a newer version stored may have keys that this one does not know.
_ENTITY = frozenset(field.name for field in fields(Entity))
_COLUMN = frozenset(field.name for field in fields(Column))


def _column(stored: Mapping[str, Any]) -> Column:
    known = {key: value for key, value in stored.items() if key in _COLUMN}
    return Column(**{**known, "choices": tuple(stored.get("choices", ()))})


def stage_to_json(stage: Stage) -> dict[str, Any]:
    """Return a stage as the API returns it."""
    return asdict(stage)
