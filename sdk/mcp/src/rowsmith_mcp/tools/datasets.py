"""Datasets: related templates."""

from __future__ import annotations

from typing import Annotated, Any, cast

from pydantic import Field

from rowsmith_mcp.limits import PAGE
from rowsmith_mcp.registry import Registry, Work
from rowsmith_mcp.shapes import Dataset, DatasetPreview, Listing
from rowsmith_mcp.tools.parts import Cursor, DatasetId, Limit, Query, Seed, given, listing, some

registry = Registry()
BRIEF = ("id", "name", "description", "version", "updated_at")
WHOLE = ("id", "name", "description", "templates", "seed", "version", "warnings")


@registry.reads("List datasets")
def list_datasets(work: Work, q: Query = "", cursor: Cursor = "", limit: Limit = PAGE) -> Listing:
    """List the datasets of the project: several templates with one seed and matching keys."""
    return listing(work, "/datasets", BRIEF, q=q, cursor=cursor, limit=limit)


@registry.reads("Read a dataset")
def get_dataset(work: Work, dataset_id: DatasetId) -> Dataset:
    """Return a dataset: its templates and their row counts."""
    return some(work.api.datasets.get(dataset_id), WHOLE)  # type: ignore[return-value]


@registry.reads("Preview a dataset")
def preview_dataset(work: Work, dataset_id: DatasetId, seed: Seed = "") -> DatasetPreview:
    """Return the first three rows of each table, with matching references. They do not count toward the
    quota."""
    found: Any = work.api.datasets.preview(dataset_id, **given(seed=seed))
    return {"tables": found["tables"], "seed": found["seed"], "warnings": found["warnings"]}


@registry.makes("Create a dataset")
def create_dataset(
    work: Work,
    name: Annotated[str, Field(description="Name of the dataset.")],
    templates: Annotated[
        list[dict[str, Any]],
        Field(description="List of {template_id, count?, name?}, in any order."),
    ],
    description: str = "",
    seed: Seed = "",
) -> Dataset:
    """Save related templates as a dataset. Foreign key fields use rows of the other templates."""
    result = work.api.datasets.create(
        name=name,
        templates=cast(Any, templates),
        **given(description=description, seed=seed),
    )
    return some(result, WHOLE)  # type: ignore[return-value]
