"""Inputs of the routes of datasets."""

from __future__ import annotations

from typing import Any

from flask import g
from pydantic import Field

from webapp import limits
from webapp.datasets.schemas import Tables
from webapp.datasets.services import datasets
from webapp.errors import Fault
from webapp.row_templates.schemas import READ_ONLY, Name, Seed
from webapp.timestamps import Timestamp
from webapp.versioning.views import Description
from webapp.web.inputs import Input


class DatasetInput(Input):
    """Reports faults of the tables together with those of the other keys."""

    read_only = READ_ONLY

    @classmethod
    def more_faults(cls, body: dict[str, Any]) -> list[Fault]:
        """Return a fault for each template that is missing or named twice."""
        tables = body.get("templates")
        if not isinstance(tables, list) or len(tables) > limits.MAX_DATASET_TABLES:
            return []
        template_ids = [table.get("template_id") if isinstance(table, dict) else None for table in tables]
        return datasets.look_up_templates(g.actor, template_ids)[1]


class DatasetIn(DatasetInput):
    """A new dataset."""

    name: Name
    templates: Tables
    description: Description = ""
    seed: Seed | None = Field(None, description="If left out, a new one is created.")
    anchor: Timestamp | None = Field(
        None, description="Reference time for relative dates; null: each template's own anchor."
    )


class DatasetPatch(DatasetInput):
    """The properties of a dataset that can be changed; keys that are left out keep their values."""

    name: Name = ""
    templates: Tables = Field(default_factory=list)
    description: Description = ""
    seed: Seed | None = None
    anchor: Timestamp | None = None
