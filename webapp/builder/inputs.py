"""Inputs of the routes of templates."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from webapp import limits
from webapp.engine.invalid_data.settings import Invalid
from webapp.engine.source_data import SourceSpec
from webapp.row_templates.schemas import READ_ONLY, Fields, Locale, Name
from webapp.timestamps import Timestamp
from webapp.versioning.views import Description
from webapp.web.inputs import Input

Quantity = Annotated[int, Field(ge=limits.MIN_ROWS, le=limits.ENTERPRISE_MAX.rows_per_generation)]


class TemplateIn(Input):
    """A new template."""

    read_only = READ_ONLY

    name: Name
    fields: Fields
    description: Description = ""
    quantity: Quantity = limits.DEFAULT_QUANTITY
    locale: Locale | None = None
    anchor: Timestamp | None = None
    source: SourceSpec | None = None
    invalid: Invalid | None = None


class TemplatePatch(Input):
    """The properties of a template that can be changed; keys that are left out keep their values."""

    read_only = READ_ONLY

    name: Name = ""
    fields: Fields = Field(default_factory=list)
    description: Description = ""
    quantity: Quantity = limits.DEFAULT_QUANTITY
    locale: Locale | None = None
    anchor: Timestamp | None = None
    source: SourceSpec | None = None
    invalid: Invalid | None = None
