"""What an endpoint would send for the first row of a template, before it is saved. Nothing is sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from webapp import ids, limits
from webapp.models import Template
from webapp.services import endpoints, fetched, generate, heads, http_look, push_plan, push_targets, tenancy
from webapp.services.actors import Actor
from webapp.services.connection_strings import MASK
from webapp.services.mapping import Asked
from webapp.services.push_plan import Wanted
from webapp.services.push_targets import Destination, Places
from webapp.services.row_makers import TemplateRows
from webapp.services.row_requests import GenerateInput

_SEED: Final = "example"
_STAND_IN: Final = (
    "a-stored-secret"  # of a mask: the secret itself is not read, and would be shown as its mask
)


def requests(actor: Actor, given: Mapping[str, Any], template_id: str) -> list[str]:
    """The exact HTTP of a template's first row, credentials masked; in batch mode of its first three. `given` are the
    words of `endpoints.as_json`.

    Errors: forbidden, not_found, validation_error with every fault of the endpoint, target_failed (reason
    unknown_field: a `{{field}}` that the rows have not), what the template's own values from outside raise.
    """
    connection, settings, _ = endpoints.thought_of(actor, unmasked(given))
    destination = Destination(connection, None, settings)
    template = tenancy.get(actor, Template, template_id, "read")
    found = heads.Head(template.id, template.version, template.project_id, template.team_id)
    source = generate.saved_source(found, None)
    count = limits.PREVIEW_ROWS if given.get("push_mode") == "batch" else 1
    recipe = fetched.recipe(actor, source, GenerateInput(count=count, seed=_SEED))
    entity = Places(destination).fitting(source.name)
    assert entity is not None  # any path is a place
    wanted = Wanted(source.name, entity.name, TemplateRows(recipe.bound), count, Asked({}, {}), entity)
    push_id = ids.new("psh")
    planned = push_plan.table(wanted, destination.can, push_id, 0)
    with push_targets.channel_of(destination) as channel:
        return http_look.requests(push_id, channel, 0, planned)


def unmasked(value: Any) -> Any:
    """What a form says, with a stand-in where a secret is masked: it can be checked like one that was typed."""
    if isinstance(value, Mapping):
        return {name: unmasked(one) for name, one in value.items()}
    return _STAND_IN if value == MASK else value
