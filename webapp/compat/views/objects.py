"""Saved sets, custom data types, masking policies, folders, and templates.

A set is rows under a name. A custom data type stands for a field definition: a field whose type is its name becomes a
field of that definition. A masking policy names fields with strategies, which are those of `masking` (see
`routing.STRATEGIES`); a template that is sent with `maskingPolicyId` gets them.

A folder is a prefix of names: a template "Customers" in the folder "HR" is named "HR/Customers" in the application and
in the ordinary API. The clients see the name without the folder, and the folder's id separately. Endpoints and
connections have folders as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Annotated, Any, Final

from flask import Response
from pydantic import Field

from webapp import clock, limits
from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.accounts.views.projects import Description, Name
from webapp.builder.inputs import TemplateIn, TemplatePatch
from webapp.builder.views.templates import more_faults_of_template
from webapp.compat import services
from webapp.compat.views.routing import (
    ROOT,
    STRATEGIES,
    CamelCaseInput,
    PassThroughInput,
    ProjectQuery,
    actor_from_body,
    actor_in_project,
    call,
    camelize_keys,
    fields_to_compat,
    fields_to_native,
    list_all,
    parse_native,
)
from webapp.connections.services import connections
from webapp.endpoints import services as endpoints
from webapp.engine.types import registry
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db
from webapp.files.models import CompatObject
from webapp.generation.services import generate
from webapp.generation.views import DraftIn, more_faults_of_draft
from webapp.row_templates.models import Template
from webapp.row_templates.services import templates
from webapp.versioning.views import get_matching_head
from webapp.web.responses import reply

SET: Final = f"{ROOT}/sets/<set_id>"
TYPE: Final = f"{ROOT}/customDataTypes/<type_id>"
POLICY: Final = f"{ROOT}/masking-policies/<policy_id>"


def common_out(row: CompatObject) -> dict[str, Any]:
    """Return the attributes that all these objects have in the compatible format."""
    return {
        "id": row.id,
        "name": row.name,
        "createdAt": clock.to_text(row.created_at),
        "updatedAt": clock.to_text(row.updated_at),
        "createdBy": row.created_by,
        "projectId": row.project_id,
        "teamId": row.team_id,
    }


class NewObjectInput(CamelCaseInput):
    """A new object: its name and location."""

    name: Name
    project_id: str | None = None
    team_id: str | None = None


class ObjectPatch(CamelCaseInput):
    """A change. The project and team of an object never change; the clients send them back as they read them."""

    read_only = CamelCaseInput.read_only | {"projectId", "teamId"}


# --- Sets ---------------------------------------------------------------------------------------------------

RowCount = Annotated[int, Field(ge=0, le=2**31 - 1)]


class SetIn(NewObjectInput):
    """A new set. `data` is any JSON, usually a list of rows; `rowCount` is their number if left out."""

    data: Any = None
    description: Description | None = None
    row_count: RowCount | None = None
    locked: bool = False


class SetPatch(ObjectPatch):
    """Changes to a set; missing attributes are unchanged."""

    name: Name | None = None
    data: Any = None
    description: Description | None = None
    row_count: RowCount | None = None
    locked: bool | None = None


def set_out(row: CompatObject, *, data: bool) -> dict[str, Any]:
    """Return a set in the compatible format; lists leave `data` out."""
    summary = {
        **common_out(row),
        "description": row.document["description"],
        "rowCount": row.document["row_count"],
        "locked": row.document["locked"],
    }
    return {**summary, "data": row.rows} if data else summary


def _check_unlocked(row: CompatObject) -> None:
    if row.document["locked"]:
        raise ApiError("conflict", "This set is locked. Unlock it first.", {"id": row.id, "locked": True})


def _row_count(data: Any) -> int:
    return len(data) if isinstance(data, list) else 0


@call(f"{ROOT}/sets", scope="read")
def sets_list(actor: Actor, query: ProjectQuery) -> Response:
    """List the sets of the project, newest first, without their rows."""
    project_actor = actor_in_project(actor, "read", query.projectId, query.teamId)
    return reply([set_out(row, data=False) for row in services.listing(project_actor, "set")])


@call(f"{ROOT}/sets", ["POST"], scope="write", body=SetIn, idempotent=True)
def set_create(actor: Actor, body: SetIn) -> Response:
    """Save rows as a set."""
    project_actor = actor_in_project(actor, "write", body.project_id, body.team_id)
    count = _row_count(body.data) if body.row_count is None else body.row_count
    document = {"description": body.description, "row_count": count, "locked": body.locked}
    return reply(set_out(services.create(project_actor, "set", body.name, document, body.data), data=True))


@call(SET, scope="read")
def set_show(actor: Actor, set_id: str) -> Response:
    """Read a set with its rows."""
    row = services.get(actor, "set", set_id)
    return reply({**set_out(row, data=True), "createdByName": services.creator_name(row)}, send_etag=True)


@call(SET, ["PATCH"], scope="write", body=SetPatch)
def set_change(actor: Actor, set_id: str, body: SetPatch) -> Response:
    """Change a set. While it is locked only `locked` can change."""
    row = services.get(actor, "set", set_id, "write", lock=True)
    values = body.model_dump(exclude_unset=True)
    if values.keys() - {"locked"}:
        _check_unlocked(row)
    changes: dict[str, Any] = {key: values[key] for key in ("description", "row_count") if key in values}
    if values.get("locked") is not None:
        changes["locked"] = values["locked"]
    rows = {"rows": values["data"]} if "data" in values else {}
    if "data" in values and values.get("row_count") is None:
        changes["row_count"] = _row_count(values["data"])
    changed = services.change(actor, row, name=body.name, document=changes, **rows)
    return reply(set_out(changed, data=True))


@call(SET, ["DELETE"], scope="write")
def set_delete(actor: Actor, set_id: str) -> Response:
    """Delete a set."""
    row = services.get(actor, "set", set_id, "write", lock=True)
    _check_unlocked(row)
    name = row.name
    services.delete_object(actor, row)
    return reply({"message": f"Set {name} deleted"})


# --- Custom data types --------------------------------------------------------------------------------------


class TypeIn(NewObjectInput):
    """A new custom data type. `fieldConfig` is stored unchanged; if it contains a `type`, fields can use this type."""

    field_config: Any = None


class TypeChange(ObjectPatch):
    """Changes to a custom data type; missing attributes are unchanged."""

    name: Name | None = None
    field_config: Any = None


def type_out(row: CompatObject) -> dict[str, Any]:
    """Return a custom data type in the compatible format."""
    return {**common_out(row), "createdBy": row.created_by or "", "fieldConfig": row.document["field_config"]}


def _check_type_name(actor: Actor, name: str, current: CompatObject | None = None) -> None:
    """Check that neither the catalogue nor the project has another type of that name."""
    catalogue_type = registry.find(name)
    if catalogue_type is not None:
        text = f"`{name}` is already a field type of the catalogue ({catalogue_type.name})."
        raise validation_error([Fault("name", "reserved", text, "Choose another name.")])
    services.lock(actor)
    other = services.find_by_name(actor, "custom_data_type", name)
    if other is not None and other is not current:
        raise ApiError("conflict", f"A custom data type of the project is named `{name}`.", {"id": other.id})


@call(f"{ROOT}/customDataTypes", scope="read")
def types_list(actor: Actor, query: ProjectQuery) -> Response:
    """List the custom data types of the project, newest first."""
    project_actor = actor_in_project(actor, "read", query.projectId, query.teamId)
    return reply([type_out(row) for row in services.listing(project_actor, "custom_data_type")])


@call(f"{ROOT}/customDataTypes", ["POST"], scope="write", body=TypeIn, idempotent=True)
def type_create(actor: Actor, body: TypeIn) -> Response:
    """Create a custom data type."""
    project_actor = actor_in_project(actor, "write", body.project_id, body.team_id)
    _check_type_name(project_actor, body.name)
    document = {"field_config": body.field_config}
    return reply(type_out(services.create(project_actor, "custom_data_type", body.name, document)))


@call(TYPE, ["PUT"], scope="write", body=TypeChange)
def type_change(actor: Actor, type_id: str, body: TypeChange) -> Response:
    """Change a custom data type. Templates that were saved with it keep the fields that they got."""
    row = services.get(actor, "custom_data_type", type_id, "write", lock=True)
    if body.name is not None and body.name != row.name:
        _check_type_name(actor_in_project(actor, "write", row.project_id), body.name, row)
    values = body.model_dump(exclude_unset=True)
    changes = {"field_config": values["field_config"]} if "field_config" in values else {}
    return reply(type_out(services.change(actor, row, name=body.name, document=changes)))


@call(TYPE, ["DELETE"], scope="write")
def type_delete(actor: Actor, type_id: str) -> Response:
    """Delete a custom data type. Templates that were saved with it keep the fields that they got."""
    row = services.get(actor, "custom_data_type", type_id, "write", lock=True)
    name = row.name
    services.delete_object(actor, row)
    return reply({"message": f"Custom data type {name} deleted"})


# --- Masking policies ---------------------------------------------------------------------------------------


class Rule(CamelCaseInput):
    """The masking of a field. `consistent` and `reversible` override those of the policy."""

    read_only = frozenset()

    field: Annotated[str, Field(min_length=1, max_length=limits.MAX_NAME_CHARS)]
    strategy: Annotated[str, Field(pattern=f"^({'|'.join(STRATEGIES)})$")]
    consistent: bool | None = None
    reversible: bool | None = None
    detected_as: Annotated[str, Field(max_length=limits.MAX_NAME_CHARS)] | None = None
    note: Description | None = None


Rules = Annotated[list[Rule], Field(max_length=limits.MAX_FIELDS)]


class PolicyIn(NewObjectInput):
    """A new masking policy."""

    description: Description | None = None
    fields: Rules | None = None
    consistent: bool = True
    reversible: bool = False
    key_map_name: Name | None = None


class PolicyPatch(ObjectPatch):
    """Changes to a masking policy; missing attributes are unchanged."""

    name: Name | None = None
    description: Description | None = None
    fields: Rules | None = None
    consistent: bool | None = None
    reversible: bool | None = None
    key_map_name: Name | None = None


def _rules_json(fields: list[Rule] | None) -> list[dict[str, Any]]:
    return [rule.model_dump(by_alias=True, exclude_none=True) for rule in fields or []]


def policy_out(row: CompatObject) -> dict[str, Any]:
    """Return a masking policy in the compatible format."""
    document = row.document
    return {
        **common_out(row),
        "description": document["description"],
        "fields": document["fields"],
        "consistent": document["consistent"],
        "reversible": document["reversible"],
        "keyMapName": document["key_map_name"],
    }


@call(f"{ROOT}/masking-policies", scope="read")
def policies_list(actor: Actor, query: ProjectQuery) -> Response:
    """List the masking policies of the project, newest first."""
    project_actor = actor_in_project(actor, "read", query.projectId, query.teamId)
    return reply([policy_out(row) for row in services.listing(project_actor, "masking_policy")])


@call(f"{ROOT}/masking-policies", ["POST"], scope="write", body=PolicyIn, idempotent=True)
def policy_create(actor: Actor, body: PolicyIn) -> Response:
    """Create a masking policy."""
    project_actor = actor_in_project(actor, "write", body.project_id, body.team_id)
    document = {
        "description": body.description,
        "fields": _rules_json(body.fields),
        "consistent": body.consistent,
        "reversible": body.reversible,
        "key_map_name": body.key_map_name,
    }
    return reply(policy_out(services.create(project_actor, "masking_policy", body.name, document)))


@call(POLICY, scope="read")
def policy_show(actor: Actor, policy_id: str) -> Response:
    """Read a masking policy."""
    return reply(policy_out(services.get(actor, "masking_policy", policy_id)), send_etag=True)


@call(POLICY, ["PATCH"], scope="write", body=PolicyPatch)
def policy_change(actor: Actor, policy_id: str, body: PolicyPatch) -> Response:
    """Change a masking policy. Templates that were saved with it keep the masking that they got."""
    row = services.get(actor, "masking_policy", policy_id, "write", lock=True)
    values = body.model_dump(exclude_unset=True)
    changes: dict[str, Any] = {key: values[key] for key in ("description", "key_map_name") if key in values}
    changes |= {key: values[key] for key in ("consistent", "reversible") if values.get(key) is not None}
    if body.fields is not None:
        changes["fields"] = _rules_json(body.fields)
    return reply(policy_out(services.change(actor, row, name=body.name, document=changes)))


@call(POLICY, ["DELETE"], scope="write")
def policy_delete(actor: Actor, policy_id: str) -> Response:
    """Delete a masking policy. Templates that were saved with it keep the masking that they got."""
    row = services.get(actor, "masking_policy", policy_id, "write", lock=True)
    name = row.name
    services.delete_object(actor, row)
    return reply({"message": f"Masking policy {name} deleted"})


def apply_masking_policy(actor: Actor, policy_id: str, fields: Any) -> Any:
    """Return field definitions with the masking of a policy for the fields that it names; other fields are unchanged.

    Errors: not_found, validation_error for a policy with reversible masking, which no strategy supports.
    """
    policy = services.get(actor, "masking_policy", policy_id).document
    rules = {rule["field"].casefold(): rule for rule in policy["fields"]}
    if any(rule.get("reversible", policy["reversible"]) for rule in rules.values()):
        text = "This policy is reversible, but reversible masking is not supported."
        raise validation_error([Fault("maskingPolicyId", "not_allowed", text, "Set `reversible` to false.")])
    if not isinstance(fields, list):
        return fields
    return [_masked_field(field, rules, policy) for field in fields]


def _masked_field(field: Any, rules: Mapping[str, Mapping[str, Any]], policy: Mapping[str, Any]) -> Any:
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


# --- Folders ------------------------------------------------------------------------------------------------

TEMPLATES: Final = "template_folder"
ENDPOINTS: Final = "endpoint_folder"
_FOLDER_ID_KEYS: Final = {TEMPLATES: "templateFolderId", ENDPOINTS: "endpointFolderId"}


class Folders:
    """The folders of one kind in a project."""

    def __init__(self, kind: str, project_id: str) -> None:
        self.kind = kind
        # The longest first: of "HR" and "HR/Germany" the second is the folder of "HR/Germany/Customers".
        names = services.names_by_id(project_id, kind).items()
        self.names_by_id = dict(sorted(names, key=lambda name: -len(name[1])))

    def client_names(self, name: str) -> dict[str, str | None]:
        """Return the keys `name` and folder id of an object, as the clients know it."""
        folder_id, rest = self.split_name(name)
        return {"name": rest, _FOLDER_ID_KEYS[self.kind]: folder_id}

    def split_name(self, name: str) -> tuple[str | None, str]:
        """Return the id of the folder that a name is in, and the rest of the name."""
        for folder_id, folder in self.names_by_id.items():
            if name.startswith(f"{folder}/") and len(name) > len(folder) + 1:
                return folder_id, name[len(folder) + 1 :]
        return None, name

    def full_name(self, folder_id: Any, name: str) -> str:
        """Return the full name of an object in a folder. Error: validation_error for an unknown folder."""
        if not folder_id:
            return name
        folder = self.names_by_id.get(folder_id) if isinstance(folder_id, str) else None
        if folder is None:
            text = "There is no such folder in the project."
            raise validation_error([Fault(_FOLDER_ID_KEYS[self.kind], "unknown", text)])
        return f"{folder}/{name}"

    def set_full_name(self, values: dict[str, Any], body: PassThroughInput, name: str | None = None) -> None:
        """Replace the name in the request with the full name. `name`: that of the object to change, which stays in its
        folder unless the request names another one."""
        key = _FOLDER_ID_KEYS[self.kind]
        extra = body.model_extra or {}
        folder_id, rest = self.split_name(name) if name is not None else (None, "")
        if key not in extra and "name" not in values:
            return
        short_name = values.get("name", rest)
        if isinstance(short_name, str):
            values["name"] = self.full_name(extra.get(key, folder_id), short_name)


# --- The folders themselves -----------------------------------------------------------------------------------


class FolderIn(NewObjectInput):
    """A new folder."""

    is_database: bool | None = None


class FolderChange(ObjectPatch):
    """Changes to a folder; missing attributes are unchanged."""

    name: Name | None = None
    is_database: bool | None = None


def folder_out(row: CompatObject) -> dict[str, Any]:
    """Return a folder in the compatible format."""
    result = {
        "id": row.id,
        "name": row.name,
        "createdAt": clock.to_text(row.created_at),
        "createdBy": row.created_by,
        "projectId": row.project_id,
        "teamId": row.team_id,
    }
    return {**result, "isDatabase": row.document["is_database"]} if row.kind == TEMPLATES else result


def _check_folder_name(actor: Actor, kind: str, name: str, current: CompatObject | None = None) -> None:
    if name.strip("/ ") != name:
        text = "The name of a folder must not begin or end with a slash or a space."
        raise validation_error([Fault("name", "wrong_form", text)])
    services.lock(actor)
    other = services.find_by_name(actor, kind, name)
    if other is not None and other is not current:
        # The hosted service's document has 400 here.
        raise ApiError("invalid_request", f"The folder name `{name}` is already in use.", {"id": other.id})


def _list_folders(actor: Actor, kind: str, query: ProjectQuery) -> Response:
    project_actor = actor_in_project(actor, "read", query.projectId, query.teamId)
    return reply([folder_out(row) for row in services.listing(project_actor, kind)])


def _create_folder(actor: Actor, kind: str, body: FolderIn, status: int) -> Response:
    project_actor = actor_in_project(actor, "write", body.project_id, body.team_id)
    _check_folder_name(project_actor, kind, body.name)
    document = {"is_database": bool(body.is_database)}
    return reply(folder_out(services.create(project_actor, kind, body.name, document)), status=status)


def _change_folder(actor: Actor, kind: str, folder_id: str, body: FolderChange) -> Response:
    row = services.get(actor, kind, folder_id, "write", lock=True)
    if body.name is not None and body.name != row.name:
        project_actor = actor_in_project(actor, "write", row.project_id)
        _check_folder_name(project_actor, kind, body.name, row)
        # Each rename commits by itself, the folder's own last: a call that is cut short can be repeated.
        old_name = row.name
        db.session.commit()
        for object_id, rename in _objects_in_folder(project_actor, kind, old_name):
            rename(object_id, old_name, body.name)
        row = services.get(actor, kind, folder_id, "write", lock=True)
    document = {} if body.is_database is None else {"is_database": body.is_database}
    return reply(folder_out(services.change(actor, row, name=body.name, document=document)))


Rename = Callable[[str, str, str], None]


def _objects_in_folder(actor: Actor, kind: str, folder: str) -> Iterable[tuple[str, Rename]]:
    """Return the ids of the objects in a folder, each with the function that renames it."""

    def inside(listing: Any, name_of: Callable[[Any], tuple[str, str]]) -> list[str]:
        found = [name_of(item) for item in list_all(listing, actor)]
        return [object_id for object_id, name in found if name.startswith(f"{folder}/")]

    def template(object_id: str, before: str, after: str) -> None:
        head = templates.get(actor, object_id, "write", lock=True)
        templates.change(actor, head, {"name": after + head.name.removeprefix(before)})

    def endpoint(object_id: str, before: str, after: str) -> None:
        row = connections.get_endpoint(actor, object_id, "write", lock=True)
        endpoints.change(actor, row, {"name": after + row.name.removeprefix(before)})

    def connection(object_id: str, before: str, after: str) -> None:
        row = connections.get(actor, object_id, "write", lock=True)
        connections.change(actor, row, {"name": after + row.name.removeprefix(before)})

    def of_row(row: Any) -> tuple[str, str]:
        return row.id, row.name

    if kind == TEMPLATES:
        statement = tenancy.listing(actor, Template).with_only_columns(Template.id, Template.name)
        template_rows = db.session.execute(statement.order_by(Template.id.desc()))
        return [(row.id, template) for row in template_rows if row.name.startswith(f"{folder}/")]
    endpoint_renames = [(item, endpoint) for item in inside(connections.list_endpoints, of_row)]
    return [*endpoint_renames, *((item, connection) for item in inside(connections.listing, of_row))]


@call(f"{ROOT}/templateFolders", scope="read")
def template_folders_list(actor: Actor, query: ProjectQuery) -> Response:
    """List the folders of templates of the project, newest first."""
    return _list_folders(actor, TEMPLATES, query)


@call(f"{ROOT}/templateFolders", ["POST"], scope="write", body=FolderIn, idempotent=True)
def template_folder_create(actor: Actor, body: FolderIn) -> Response:
    """Create a folder of templates."""
    return _create_folder(actor, TEMPLATES, body, 200)


@call(f"{ROOT}/templateFolders/<folder_id>", ["PUT"], scope="write", body=FolderChange)
def template_folder_change(actor: Actor, folder_id: str, body: FolderChange) -> Response:
    """Rename a folder of templates, and with it the templates in it, each of which gets a new version."""
    return _change_folder(actor, TEMPLATES, folder_id, body)


@call(f"{ROOT}/templateFolders/<folder_id>", ["DELETE"], scope="write")
def template_folder_delete(actor: Actor, folder_id: str) -> Response:
    """Delete a folder of templates. Its templates stay, and keep the folder in their names."""
    row = services.get(actor, TEMPLATES, folder_id, "write", lock=True)
    name = row.name
    services.delete_object(actor, row)
    return reply({"message": f"Folder {name} deleted"})


@call(f"{ROOT}/endpointFolders", scope="read")
def endpoint_folders_list(actor: Actor, query: ProjectQuery) -> Response:
    """List the folders of endpoints and connections of the project, newest first."""
    return _list_folders(actor, ENDPOINTS, query)


@call(f"{ROOT}/endpointFolders", ["POST"], scope="write", body=FolderIn, status=201, idempotent=True)
def endpoint_folder_create(actor: Actor, body: FolderIn) -> Response:
    """Create a folder of endpoints and connections."""
    return _create_folder(actor, ENDPOINTS, body, 201)


@call(f"{ROOT}/endpointFolders/<folder_id>", ["PUT"], scope="write", body=FolderChange)
def endpoint_folder_change(actor: Actor, folder_id: str, body: FolderChange) -> Response:
    """Rename a folder of endpoints and connections, and with it what is in it."""
    return _change_folder(actor, ENDPOINTS, folder_id, body)


@call(f"{ROOT}/endpointFolders/<folder_id>", ["DELETE"], scope="write")
def endpoint_folder_delete(actor: Actor, folder_id: str) -> Response:
    """Delete a folder of endpoints and connections. The objects in it stay, and their names keep the folder."""
    row = services.get(actor, ENDPOINTS, folder_id, "write", lock=True)
    deleted = folder_out(row)
    services.delete_object(actor, row)
    return reply(deleted)


# --- Templates ----------------------------------------------------------------------------------------------

ONE = f"{ROOT}/templates/<template_id>"
_NATIVE_KEYS = frozenset({"seed", "warnings", "references", "version", "deleted_at", "label"})


def template_out(template: dict[str, Any], folders: Folders | None = None) -> dict[str, Any]:
    """Return a template in the compatible format. `folders`: the folders of its project, if they are loaded already."""
    folders = folders or Folders(TEMPLATES, template["project_id"])
    values = {
        key: value for key, value in template.items() if key not in ("fields", "deleted_at", "references")
    }
    return {
        **camelize_keys(values),
        "fields": fields_to_compat(template["fields"]),
        "seed": None,
        "simulationConfig": None,
        "dbOrderIdx": 0,
        **folders.client_names(template["name"]),
    }


def _body_values(body: PassThroughInput, *dropped: str) -> dict[str, Any]:
    return {key: value for key, value in body.native_values().items() if key not in dropped}


def _convert_fields(actor: Actor, values: dict[str, Any], stored_fields: Any = None) -> None:
    """Convert the fields of the request to those of the native API, with the masking of the named policy.
    `stored_fields`: the fields that a template has, which are masked if the request has none."""
    policy_id = values.pop("masking_policy_id", None)
    if "fields" in values:
        values["fields"] = fields_to_native(actor, values["fields"])
    if policy_id is not None:
        values["fields"] = apply_masking_policy(actor, str(policy_id), values.get("fields", stored_fields))


@call(f"{ROOT}/templates", scope="read")
def templates_list(actor: Actor, query: ProjectQuery) -> Response:
    """List the templates of the project."""
    project_actor = actor_in_project(actor, "read", query.projectId)
    folders = Folders(TEMPLATES, project_actor.project_id or "")
    return reply([template_out(item, folders) for item in list_all(templates.listing, project_actor)])


@call(f"{ROOT}/templates", ["POST"], scope="write", body=PassThroughInput, idempotent=True)
def template_create(actor: Actor, body: PassThroughInput) -> Response:
    """Create a template."""
    values = _body_values(body, *_NATIVE_KEYS)
    project_actor = actor_from_body(actor, "write", values)
    _convert_fields(project_actor, values)
    Folders(TEMPLATES, project_actor.project_id or "").set_full_name(values, body)
    parsed = parse_native(TemplateIn, values, partial(more_faults_of_template, project_actor))
    return reply(template_out(templates.create(project_actor, **parsed.model_dump())))


@call(ONE, scope="read")
def template_show(actor: Actor, template_id: str) -> Response:
    """Get a template."""
    return reply(template_out(templates.show(templates.get(actor, template_id))), send_etag=True)


@call(ONE, ["PUT"], scope="write", body=PassThroughInput)
def template_change(actor: Actor, template_id: str, body: PassThroughInput) -> Response:
    """Change a template, which creates its next version."""
    template = get_matching_head(actor, templates.KIND, template_id)
    values = _body_values(body, *_NATIVE_KEYS, "project_id", "team_id")
    _convert_fields(
        actor_in_project(actor, "write", template.project_id), values, templates.show(template)["fields"]
    )
    Folders(TEMPLATES, template.project_id).set_full_name(values, body, template.name)
    more = partial(more_faults_of_template, actor, template_id=template_id)
    changes = parse_native(TemplatePatch, values, more).model_dump(exclude_unset=True)
    return reply(template_out(templates.change(actor, template, changes)))


@call(ONE, ["DELETE"], scope="write")
def template_delete(actor: Actor, template_id: str) -> Response:
    """Delete a template."""
    deleted = templates.delete(actor, get_matching_head(actor, templates.KIND, template_id))
    return reply({"message": f"Template {deleted['name']} deleted"})


@call(f"{ROOT}/datamaker", ["POST"], scope="generate", body=PassThroughInput, reads=True)
def rows(actor: Actor, body: PassThroughInput) -> Response:
    """Rows of the definition in the body, as one bare array."""
    values = _body_values(body, "format", "warnings", "references", "label")
    _convert_fields(actor, values)
    if isinstance(values.get("seed"), int | float):
        values["seed"] = str(values["seed"])
    draft = generate.generate_draft(
        actor, parse_native(DraftIn, values, partial(more_faults_of_draft, actor)), "json"
    )
    headers = {**draft.recipe.headers(), "X-Accel-Buffering": "no"}
    return Response(draft.body, headers=headers, content_type=draft.recipe.content_type)
