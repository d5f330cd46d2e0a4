"""Saved sets, custom data types and masking policies.

A set is rows under a name. A custom data type stands for a field definition: a field whose type is its name becomes a
field of that definition. A masking policy names fields with strategies, which are those of `masking` (see
`words.STRATEGIES`); a template that is sent with `maskingPolicyId` gets them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from flask import Response
from pydantic import Field

from webapp import clock, limits
from webapp.access.actors import Actor
from webapp.accounts.views.projects import Description, Name
from webapp.compat.services import objects
from webapp.compat.views.routing import ROOT, call
from webapp.compat.views.words import STRATEGIES, Anything, Wire, placed
from webapp.engine.types import registry as catalogue
from webapp.errors import ApiError, Fault, validation_error
from webapp.files.models import CompatObject
from webapp.web.responses import reply

SET: Final = f"{ROOT}/sets/<set_id>"
TYPE: Final = f"{ROOT}/customDataTypes/<type_id>"
POLICY: Final = f"{ROOT}/masking-policies/<policy_id>"


def out(row: CompatObject) -> dict[str, Any]:
    """Attributes that all objects of this kind have in the compatible format."""
    return {
        "id": row.id,
        "name": row.name,
        "createdAt": clock.to_text(row.created_at),
        "updatedAt": clock.to_text(row.updated_at),
        "createdBy": row.created_by,
        "projectId": row.project_id,
        "teamId": row.team_id,
    }


class Placed(Wire):
    """A new object: its name and location."""

    name: Name
    project_id: str | None = None
    team_id: str | None = None


class Patch(Wire):
    """A change. Where an object is never changes; the clients send it back with what they read."""

    read_only = Wire.read_only | {"projectId", "teamId"}


# --- Sets ---------------------------------------------------------------------------------------------------

RowCount = Annotated[int, Field(ge=0, le=2**31 - 1)]


class SetIn(Placed):
    """A new set. `data` is any JSON, usually a list of rows; `rowCount` is their number if left out."""

    data: Any = None
    description: Description | None = None
    row_count: RowCount | None = None
    locked: bool = False


class SetPatch(Patch):
    """Changes to a set; missing attributes are unchanged."""

    name: Name | None = None
    data: Any = None
    description: Description | None = None
    row_count: RowCount | None = None
    locked: bool | None = None


def set_out(row: CompatObject, *, data: bool) -> dict[str, Any]:
    """A set as the clients know it; lists leave `data` out."""
    shown = {
        **out(row),
        "description": row.document["description"],
        "rowCount": row.document["row_count"],
        "locked": row.document["locked"],
    }
    return {**shown, "data": row.rows} if data else shown


def _unlocked(row: CompatObject) -> None:
    if row.document["locked"]:
        raise ApiError("conflict", "This set is locked. Unlock it first.", {"id": row.id, "locked": True})


def _count(data: Any) -> int:
    return len(data) if isinstance(data, list) else 0


@call(f"{ROOT}/sets", scope="read")
def sets_list(actor: Actor, query: Anything) -> Response:
    """List the sets of the project, newest first, without their rows."""
    here = placed(actor, "read", query.projectId, query.teamId)
    return reply([set_out(row, data=False) for row in objects.listing(here, "set")])


@call(f"{ROOT}/sets", ["POST"], scope="write", body=SetIn, idempotent=True)
def set_create(actor: Actor, body: SetIn) -> Response:
    """Save rows as a set."""
    here = placed(actor, "write", body.project_id, body.team_id)
    count = _count(body.data) if body.row_count is None else body.row_count
    document = {"description": body.description, "row_count": count, "locked": body.locked}
    return reply(set_out(objects.create(here, "set", body.name, document, body.data), data=True))


@call(SET, scope="read")
def set_show(actor: Actor, set_id: str) -> Response:
    """Read a set with its rows."""
    row = objects.get(actor, "set", set_id)
    return reply({**set_out(row, data=True), "createdByName": objects.creator(row)}, tag=True)


@call(SET, ["PATCH"], scope="write", body=SetPatch)
def set_change(actor: Actor, set_id: str, body: SetPatch) -> Response:
    """Change a set. While it is locked only `locked` can change."""
    row = objects.get(actor, "set", set_id, "write", lock=True)
    given = body.model_dump(exclude_unset=True)
    if given.keys() - {"locked"}:
        _unlocked(row)
    changes: dict[str, Any] = {key: given[key] for key in ("description", "row_count") if key in given}
    if given.get("locked") is not None:
        changes["locked"] = given["locked"]
    rows = {"rows": given["data"]} if "data" in given else {}
    if "data" in given and given.get("row_count") is None:
        changes["row_count"] = _count(given["data"])
    changed = objects.change(actor, row, name=body.name, document=changes, **rows)
    return reply(set_out(changed, data=True))


@call(SET, ["DELETE"], scope="write")
def set_delete(actor: Actor, set_id: str) -> Response:
    """Delete a set."""
    row = objects.get(actor, "set", set_id, "write", lock=True)
    _unlocked(row)
    name = row.name
    objects.delete(actor, row)
    return reply({"message": f"Set {name} deleted"})


# --- Custom data types --------------------------------------------------------------------------------------


class TypeIn(Placed):
    """A new custom data type. `fieldConfig` is stored unchanged; if it contains a `type`, fields can use this type."""

    field_config: Any = None


class TypeChange(Patch):
    """Changes to a custom data type; missing attributes are unchanged."""

    name: Name | None = None
    field_config: Any = None


def type_out(row: CompatObject) -> dict[str, Any]:
    """A custom data type as the clients know it."""
    return {**out(row), "createdBy": row.created_by or "", "fieldConfig": row.document["field_config"]}


def _check_type_name(actor: Actor, name: str, own: CompatObject | None = None) -> None:
    """Check that fields can name a type so: not as one of the catalogue, and not as another of the project."""
    known = catalogue.find(name)
    if known is not None:
        text = f"`{name}` is a field type of the catalogue ({known.name}), which fields of this name get."
        raise validation_error([Fault("name", "reserved", text, "Choose another name.")])
    objects.lock(actor)
    other = objects.named(actor, "custom_data_type", name)
    if other is not None and other is not own:
        raise ApiError("conflict", f"A custom data type of the project is named `{name}`.", {"id": other.id})


@call(f"{ROOT}/customDataTypes", scope="read")
def types_list(actor: Actor, query: Anything) -> Response:
    """List the custom data types of the project, newest first."""
    here = placed(actor, "read", query.projectId, query.teamId)
    return reply([type_out(row) for row in objects.listing(here, "custom_data_type")])


@call(f"{ROOT}/customDataTypes", ["POST"], scope="write", body=TypeIn, idempotent=True)
def type_create(actor: Actor, body: TypeIn) -> Response:
    """Create a custom data type."""
    here = placed(actor, "write", body.project_id, body.team_id)
    _check_type_name(here, body.name)
    document = {"field_config": body.field_config}
    return reply(type_out(objects.create(here, "custom_data_type", body.name, document)))


@call(TYPE, ["PUT"], scope="write", body=TypeChange)
def type_change(actor: Actor, type_id: str, body: TypeChange) -> Response:
    """Change a custom data type. Templates that were saved with it keep the fields that they got."""
    row = objects.get(actor, "custom_data_type", type_id, "write", lock=True)
    if body.name is not None and body.name != row.name:
        _check_type_name(placed(actor, "write", row.project_id), body.name, row)
    given = body.model_dump(exclude_unset=True)
    changes = {"field_config": given["field_config"]} if "field_config" in given else {}
    return reply(type_out(objects.change(actor, row, name=body.name, document=changes)))


@call(TYPE, ["DELETE"], scope="write")
def type_delete(actor: Actor, type_id: str) -> Response:
    """Delete a custom data type. Templates that were saved with it keep the fields that they got."""
    row = objects.get(actor, "custom_data_type", type_id, "write", lock=True)
    name = row.name
    objects.delete(actor, row)
    return reply({"message": f"Custom data type {name} deleted"})


# --- Masking policies ---------------------------------------------------------------------------------------


class Rule(Wire):
    """The masking of a field. `consistent` and `reversible` override those of the policy."""

    read_only = frozenset()

    field: Annotated[str, Field(min_length=1, max_length=limits.MAX_NAME_CHARS)]
    strategy: Annotated[str, Field(pattern=f"^({'|'.join(STRATEGIES)})$")]
    consistent: bool | None = None
    reversible: bool | None = None
    detected_as: Annotated[str, Field(max_length=limits.MAX_NAME_CHARS)] | None = None
    note: Description | None = None


Rules = Annotated[list[Rule], Field(max_length=limits.MAX_FIELDS)]


class PolicyIn(Placed):
    """A new masking policy."""

    description: Description | None = None
    fields: Rules | None = None
    consistent: bool = True
    reversible: bool = False
    key_map_name: Name | None = None


class PolicyPatch(Patch):
    """Changes to a masking policy; missing attributes are unchanged."""

    name: Name | None = None
    description: Description | None = None
    fields: Rules | None = None
    consistent: bool | None = None
    reversible: bool | None = None
    key_map_name: Name | None = None


def _rules(fields: list[Rule] | None) -> list[dict[str, Any]]:
    return [rule.model_dump(by_alias=True, exclude_none=True) for rule in fields or []]


def policy_out(row: CompatObject) -> dict[str, Any]:
    """A masking policy as the clients know it."""
    document = row.document
    return {
        **out(row),
        "description": document["description"],
        "fields": document["fields"],
        "consistent": document["consistent"],
        "reversible": document["reversible"],
        "keyMapName": document["key_map_name"],
    }


@call(f"{ROOT}/masking-policies", scope="read")
def policies_list(actor: Actor, query: Anything) -> Response:
    """List the masking policies of the project, newest first."""
    here = placed(actor, "read", query.projectId, query.teamId)
    return reply([policy_out(row) for row in objects.listing(here, "masking_policy")])


@call(f"{ROOT}/masking-policies", ["POST"], scope="write", body=PolicyIn, idempotent=True)
def policy_create(actor: Actor, body: PolicyIn) -> Response:
    """Create a masking policy."""
    here = placed(actor, "write", body.project_id, body.team_id)
    document = {
        "description": body.description,
        "fields": _rules(body.fields),
        "consistent": body.consistent,
        "reversible": body.reversible,
        "key_map_name": body.key_map_name,
    }
    return reply(policy_out(objects.create(here, "masking_policy", body.name, document)))


@call(POLICY, scope="read")
def policy_show(actor: Actor, policy_id: str) -> Response:
    """Read a masking policy."""
    return reply(policy_out(objects.get(actor, "masking_policy", policy_id)), tag=True)


@call(POLICY, ["PATCH"], scope="write", body=PolicyPatch)
def policy_change(actor: Actor, policy_id: str, body: PolicyPatch) -> Response:
    """Change a masking policy. Templates that were saved with it keep the masking that they got."""
    row = objects.get(actor, "masking_policy", policy_id, "write", lock=True)
    given = body.model_dump(exclude_unset=True)
    changes: dict[str, Any] = {key: given[key] for key in ("description", "key_map_name") if key in given}
    changes |= {key: given[key] for key in ("consistent", "reversible") if given.get(key) is not None}
    if body.fields is not None:
        changes["fields"] = _rules(body.fields)
    return reply(policy_out(objects.change(actor, row, name=body.name, document=changes)))


@call(POLICY, ["DELETE"], scope="write")
def policy_delete(actor: Actor, policy_id: str) -> Response:
    """Delete a masking policy. Templates that were saved with it keep the masking that they got."""
    row = objects.get(actor, "masking_policy", policy_id, "write", lock=True)
    name = row.name
    objects.delete(actor, row)
    return reply({"message": f"Masking policy {name} deleted"})


def masked(actor: Actor, policy_id: str, fields: Any) -> Any:
    """Return field definitions with the masking of a policy for the fields that it names; other fields are unchanged.

    Errors: not_found, validation_error for a policy with reversible masking, which no strategy supports.
    """
    policy = objects.get(actor, "masking_policy", policy_id).document
    rules = {rule["field"].casefold(): rule for rule in policy["fields"]}
    if any(rule.get("reversible", policy["reversible"]) for rule in rules.values()):
        text = "This policy is reversible. Masking cannot be reversed here."
        raise validation_error([Fault("maskingPolicyId", "not_allowed", text, "Set `reversible` to false.")])
    if not isinstance(fields, list):
        return fields
    return [_masked(field, rules, policy) for field in fields]


def _masked(field: Any, rules: Mapping[str, Mapping[str, Any]], policy: Mapping[str, Any]) -> Any:
    rule = rules.get(str(field.get("name")).casefold()) if isinstance(field, Mapping) else None
    if rule is None:
        return field
    masking = {
        "strategy": STRATEGIES[rule["strategy"]],
        "consistent": rule.get("consistent", policy["consistent"]),
    }
    if policy["key_map_name"] and masking["consistent"]:
        masking["domain"] = policy["key_map_name"]  # fields of one key map mask equal values equally
    return {**field, "sensitive": True, "masking": masking}
