"""Datasets: templates that belong together."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from rowsmith_mcp.bounds import PAGE
from rowsmith_mcp.box import Box, Work
from rowsmith_mcp.shapes import Dataset, DatasetPreview, Listing
from rowsmith_mcp.tools.parts import Cursor, DatasetId, Limit, Query, Seed, given, listing, some

box = Box()
BRIEF = ("id", "name", "description", "version", "updated_at")
WHOLE = ("id", "name", "description", "templates", "seed", "version", "warnings")


@box.reads("List datasets")
def list_datasets(work: Work, q: Query = "", cursor: Cursor = "", limit: Limit = PAGE) -> Listing:
    """The datasets of the project: several templates with one seed, whose keys fit together."""
    return listing(work, "/datasets", BRIEF, q=q, cursor=cursor, limit=limit)


@box.reads("Read a dataset")
def get_dataset(work: Work, dataset_id: DatasetId) -> Dataset:
    """A dataset: which templates, how many rows of each."""
    return some(work.api.datasets.get(dataset_id), WHOLE)  # type: ignore[return-value]


@box.reads("Preview a dataset")
def preview_dataset(work: Work, dataset_id: DatasetId, seed: Seed = "") -> DatasetPreview:
    """The first three rows of each table, as they fit together. Spends no rows."""
    found: Any = work.api.datasets.preview(dataset_id, **given(seed=seed))
    return {"tables": found["tables"], "seed": found["seed"], "warnings": found["warnings"]}


@box.makes("Create a dataset")
def create_dataset(
    work: Work,
    name: Annotated[str, Field(description="What it is called.")],
    templates: Annotated[
        list[dict[str, Any]],
        Field(description="Each {template_id, count?, name?}; parents need not come first."),
    ],
    description: str = "",
    seed: Seed = "",
) -> Dataset:
    """Save templates that belong together; fields of type foreign key find rows of the others."""
    made = work.api.datasets.create(
        name=name,
        templates=templates,  # type: ignore[typeddict-item]
        **given(description=description, seed=seed),
    )
    return some(made, WHOLE)  # type: ignore[return-value]
