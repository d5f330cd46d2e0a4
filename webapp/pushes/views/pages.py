"""The pages of a push before it is sent, and the actions on a finished one. For browsers only."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeVar

from flask import Blueprint, Response, g, render_template, request, url_for
from pydantic import ConfigDict, Field

from webapp import limits
from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.connections.services import connections, inspection
from webapp.datasets.services import datasets, rows
from webapp.errors import ApiError
from webapp.pushes.schemas import DatasetPushInput, PushInput, RetryInput, SendingInput
from webapp.pushes.services import preparation, pushes, retries
from webapp.pushes.services.preparation import PreparedPush
from webapp.pushes.views import form, presentation
from webapp.pushes.views.pushes import add_retry_faults
from webapp.row_templates.models import Template
from webapp.row_templates.services import compilation, templates
from webapp.web import snippets
from webapp.web.forms.page_form import PageForm
from webapp.web.forms.settings import SettingsForm, error_summary
from webapp.web.inputs import Query, form_values, merge_faults, parse
from webapp.web.responses import render_block, see_other
from webapp.web.routing import route

M = TypeVar("M", bound=SendingInput)

bp = Blueprint("push_pages", __name__)
PAGE: Final = "pushes/new.html"
_MAX_CHOICES: Final = 100  # chosen: tables up to which they are a plain choice; above, a box that searches


@dataclass(frozen=True, slots=True)
class PushSource:
    """The template or dataset whose rows are sent, and the function that prepares a push from its form."""

    kind: str
    id: str
    name: str
    names: list[str]
    """Of its tables."""
    seed: str
    count: int | None
    prepare: Callable[[dict[str, Any], bool], PreparedPush]
    """Takes the form's request, and whether it is to be sent."""
    body: Callable[[Mapping[str, Any]], dict[str, Any]]
    origin_table: str = ""
    """The table that it was created from, as `<connection>/<table>`."""

    @property
    def page(self) -> str:
        """Its page of pushes."""
        return f"/{self.kind}s/{self.id}/push"


class WhereQuery(Query):
    """The destination and the rows: initial values of the form, validated when it is submitted. The id of an endpoint
    can be used instead of a connection's, as in the form."""

    connection_id: Annotated[str, Field(max_length=2 * limits.MAX_NAME_CHARS)] = ""
    target: Annotated[str, Field(max_length=limits.MAX_NAME_CHARS)] = ""
    seed: Annotated[str, Field(max_length=limits.MAX_SEED_CHARS)] = ""
    count: Annotated[str, Field(max_length=limits.MAX_NAME_CHARS)] = ""
    locale: Annotated[str, Field(max_length=limits.MAX_NAME_CHARS)] = ""


class DestinationQuery(Query):
    """Search for connections, endpoints and tables. `connection_id` is the destination that is chosen now."""

    q: Annotated[str, Field(max_length=limits.MAX_QUERY_TEXT)] = ""
    connection_id: Annotated[str, Field(max_length=2 * limits.MAX_NAME_CHARS)] = ""


class TargetQuery(Query):
    """Which tables: those whose name has this text."""

    target: Annotated[str, Field(max_length=limits.MAX_NAME_CHARS)] = ""


def _parse_form(
    model: type[M], submitted: dict[str, Any], sends: bool, prepare: Callable[[M], PreparedPush]
) -> M:
    """Parse the form. Error: validation_error with all errors of the push."""
    body = {**submitted, "dry_run": not sends}
    try:
        return parse(model, body, strict=False)
    except ApiError as error:
        raise merge_faults(error, body, model, lambda ask: prepare(ask).faults()) from None


def _template_source(actor: Actor, template_id: str) -> PushSource:
    template = tenancy.get(actor, Template, template_id, "push")
    details = templates.show(template)

    def prepare(body: dict[str, Any], sends: bool) -> PreparedPush:
        ask = _parse_form(
            PushInput,
            body,
            sends,
            lambda item: preparation.prepare_template(actor, template_id, item, keep=False),
        )
        return preparation.prepare_template(actor, template_id, ask, keep=sends)

    return PushSource(
        "template",
        template_id,
        details["name"],
        [details["name"]],
        secrets.token_hex(4),
        details["quantity"],
        prepare,
        form.template_body,
        origin_table(actor, template),
    )


def origin_table(actor: Actor, template: Template) -> str:
    """Return the table that a template was created from, as `<connection>/<table>`; "" if no rows can go there."""
    destination = form.writable_destination(actor, template.made_from_id)
    return f"{destination['id']}/{template.made_from_entity or ''}" if destination is not None else ""


def _dataset_source(actor: Actor, dataset_id: str) -> PushSource:
    found = datasets.get(actor, dataset_id, "push")
    version = datasets.version_of(found)
    names = [member.name for member in rows.read_table_specs(version.spec, version.pins["templates"])]

    def prepare(body: dict[str, Any], sends: bool) -> PreparedPush:
        ask = _parse_form(
            DatasetPushInput, body, sends, lambda item: preparation.prepare_dataset(actor, dataset_id, item)
        )
        return preparation.prepare_dataset(actor, dataset_id, ask)

    return PushSource(
        "dataset", dataset_id, found.name, names, version.spec["seed"], None, prepare, form.dataset_body
    )


# --- Before it is sent ------------------------------------------------------------------------------------------


@route(
    bp, "/templates/<template_id>/push", scope="push", query=WhereQuery, allows_api_keys=False, hidden=True, reads=False
)  # fmt: skip
def of_template(actor: Actor, template_id: str, query: WhereQuery) -> Response:
    """The form of a push of a template."""
    return _show_form(actor, _template_source(actor, template_id), query)


@route(bp, "/templates/<template_id>/push/form", ["POST"], scope="push", allows_api_keys=False, hidden=True)
def template_form(actor: Actor, template_id: str) -> Response:
    """Handle the submitted form: show it again, start a dry run, or send the rows."""
    return _submit_form(actor, _template_source(actor, template_id))


@route(
    bp, "/datasets/<dataset_id>/push", scope="push", query=WhereQuery, allows_api_keys=False, hidden=True, reads=False
)  # fmt: skip
def of_dataset(actor: Actor, dataset_id: str, query: WhereQuery) -> Response:
    """The form of a push of a dataset."""
    return _show_form(actor, _dataset_source(actor, dataset_id), query)


@route(bp, "/datasets/<dataset_id>/push/form", ["POST"], scope="push", allows_api_keys=False, hidden=True)
def dataset_form(actor: Actor, dataset_id: str) -> Response:
    """Handle the submitted form: show it again, start a dry run, or send the rows."""
    return _submit_form(actor, _dataset_source(actor, dataset_id))


def _show_form(actor: Actor, source: PushSource, query: WhereQuery) -> Response:
    if "HX-Request" in request.headers:  # from the export dialog: open a separate page
        return Response(status=204, headers={"HX-Redirect": request.script_root + request.full_path})
    connection_id, _, table = (query.connection_id or source.origin_table).partition("/")
    values: dict[str, Any] = {
        "connection_id": connection_id,
        "was": connection_id,
        "seed": query.seed or source.seed,
        "count": query.count or str(source.count or ""),
        "locale": query.locale,
        "create_table": "yes",
        "t": [{"name": name, "target": query.target or table, "was": ""} for name in source.names[:1]],
    }
    return _render_form(actor, source, values, "")


def _submit_form(actor: Actor, source: PushSource) -> Response:
    values = form_values(request.form)
    action = request.form.get("do", "")
    if action != "send":
        return _render_form(actor, source, values, action)
    try:
        chosen = _chosen_destination(form.destinations(actor, str(values.get("connection_id", ""))), values)
        how = form.sending_settings(chosen, request.form)
        body = form.request_body(source.body(values), chosen, how)
        push = pushes.queue(actor, source.prepare(body, True), f"{source.kind}.push")
    except ApiError as error:
        return _render_form(actor, source, values, "", error)
    where = url_for("pushes.show", push_id=push.id)
    if "HX-Request" in request.headers:
        return Response(status=204, headers={"HX-Redirect": where})
    return see_other(where)


def _chosen_destination(known: list[dict[str, Any]], values: Mapping[str, Any]) -> dict[str, Any] | None:
    return next((item for item in known if item["id"] == values.get("connection_id")), None)


def _render_form(
    actor: Actor, source: PushSource, values: dict[str, Any], action: str, error: ApiError | None = None
) -> Response:
    """Render the page with the plan of the form's request; with `action` "dry", include the dry run."""
    known = form.destinations(actor, str(values.get("connection_id", "")))
    usable = [item for item in known if not item["read_only"]]
    if not values.get("connection_id") and len(usable) == 1:
        values = {**values, "connection_id": usable[0]["id"], "was": usable[0]["id"]}
    chosen = _chosen_destination(known, values)
    how = form.sending_settings(chosen, request.form if request.method == "POST" else None)
    entities: list[str] = []
    plan, dry = None, None
    body = form.request_body(source.body(values), chosen, how)
    try:
        if chosen is not None:
            entities = _table_names(actor, chosen["id"]) if chosen["lists"] and not chosen["endpoint"] else []
            prepared = source.prepare(body, False)
            plan = pushes.plan(prepared)
            if action == "dry":
                dry = pushes.dry_run(prepared)
    except ApiError as trouble:
        error = error or trouble
    tables = form.page_tables(plan, values, source.names)
    many = len(entities) > _MAX_CHOICES

    def draw(wrong: ApiError | None) -> PageForm:
        table = tables[0] if source.kind == "template" else None
        listed = [] if many else entities
        focuses = action == "dry" or error is not None
        return form.draw_controls(values, known, chosen, table, listed, plan, error=wrong, focuses=focuses)

    faults = form.draw_with_faults(draw, how, tables, error, plan)
    controls: list[PageForm | SettingsForm] = [faults.form]
    if how is not None:
        controls += [how.how, *([how.request] if how.request else [])]
    named = {field.name: " ".join(field.errors) for field in faults.form.wrong}
    context = {
        "source": source,
        "given": values,
        "connections": known,
        "chosen": chosen,
        "entities": entities[:_MAX_CHOICES],
        "many": many,
        "plan": plan,
        "tables": tables,
        "form": faults.form,
        "places": error_summary(controls, {**named, **faults.of_how}),
        "cell_faults": faults.of_cells,
        "dry": dry,
        "error": error,
        "faults": faults.other,
        "how": how,
        "how_faults": faults.of_how,
        "FORMULA": form.FORMULA,
        "code": _code_examples(source, body),
        "locales": compilation.vocabulary().locales,
        "is_admin": actor.can("admin"),
    }
    status = error.status if error is not None and request.method == "POST" and error.status < 500 else 200
    if "HX-Request" in request.headers:
        return Response(render_block(PAGE, "plan", **context))
    return Response(render_template(PAGE, **context), status, mimetype="text/html")


def destinations(actor: Actor, text: str = "", chosen: str = "") -> dict[str, Any]:
    """Return what `pushes/destinations.html` lists: search results, or all of them where `text` is empty.

    `chosen` is a connection or an endpoint, or `<connection>/<table>`.
    """
    if not actor.can("push"):
        return {"found": [], "tables": [], "more": 0, "chosen": ""}
    found, tables, more = form.search(actor, text.strip())
    connection_id, _, table = chosen.partition("/")
    destination = form.writable_destination(actor, connection_id) if not text.strip() else None
    if destination is not None and table:
        tables = [(destination, table), *tables]
    elif destination is not None and destination["id"] not in {item["id"] for item in found}:
        found = [destination, *found]
    values = [item["id"] for item in found] + [f"{connection['id']}/{table}" for connection, table in tables]
    return {
        "found": found,
        "tables": tables,
        "more": more,
        "chosen": chosen if chosen in values else next(iter(values), ""),
        "text": text,
    }


@route(
    bp, "/destinations", scope="push", query=DestinationQuery, allows_api_keys=False, hidden=True, reads=False
)  # fmt: skip
def search_destinations(actor: Actor, query: DestinationQuery) -> Response:
    """The options of the list of destinations that match a search."""
    context = destinations(actor, query.q, query.connection_id)
    return Response(render_template("pushes/destinations.html", **context), mimetype="text/html")


@route(
    bp, "/destinations/target", scope="push", query=DestinationQuery, allows_api_keys=False, hidden=True, reads=False
)  # fmt: skip
def destination_target(actor: Actor, query: DestinationQuery) -> Response:
    """The input for the table, path or entity set of a destination."""
    connection_id, _, table = query.connection_id.partition("/")
    chosen = None
    if connection_id:
        chosen = _chosen_destination(
            form.destinations(actor, connection_id), {"connection_id": connection_id}
        )
    names: list[str] = []
    error = None
    if chosen is not None and chosen["lists"] and not chosen["endpoint"]:
        try:
            names = _table_names(actor, connection_id)
        except ApiError as trouble:
            error = trouble
    context = {
        "chosen": chosen,
        "names": names[:_MAX_CHOICES],
        "many": len(names) > _MAX_CHOICES,
        "table": table,
        "error": error,
    }
    return Response(render_template("pushes/destination_target.html", **context), mimetype="text/html")


def _table_names(actor: Actor, connection_id: str, text: str = "") -> list[str]:
    metadata = inspection.metadata(actor, connections.get(actor, connection_id))
    query = text.strip().casefold()
    return [
        entity.name
        for entity in metadata.entities
        if entity.kind != "view" and query in entity.name.casefold()
    ]


@route(
    bp, "/connections/<connection_id>/targets", scope="read", query=TargetQuery, allows_api_keys=False, hidden=True,
    reads=False,
)  # fmt: skip
def targets(actor: Actor, connection_id: str, query: TargetQuery) -> Response:
    """Tables for a box that searches."""
    found = _table_names(actor, connection_id, query.target)[:_MAX_CHOICES]
    return Response(render_template("pushes/targets.html", entities=found), mimetype="text/html")


def _code_examples(source: PushSource, body: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the same request for the API, without defaults."""
    defaults = {"mode": "insert", "on_error": "continue"}
    changed = {key: value for key, value in body.items() if value and defaults.get(key) != value}
    if str(changed.get("count", "")).isdecimal():
        changed["count"] = int(changed["count"])
    at = f"{snippets.origin()}{source.page}"
    return [
        ("Dry run", snippets.curl("POST", at, {**changed, "dry_run": True})),
        ("Push", snippets.curl("POST", at, changed)),
    ]


# --- After the end ----------------------------------------------------------------------------------------------


class FailureQuery(Query):
    """One reason of a push's failures. `after`: only rows above this number. A fix whose result is shown is read by
    `form_values`."""

    model_config = ConfigDict(extra="ignore")

    table: int = Field(0, ge=0, le=limits.MAX_DATASET_TABLES)
    state: Literal["failed", "unknown"] = "failed"
    code: Annotated[str, Field(max_length=limits.MAX_NAME_CHARS)] = ""
    native: Annotated[str, Field(max_length=limits.MAX_NAME_CHARS)] = ""
    column: Annotated[str, Field(max_length=limits.MAX_NAME_CHARS)] = ""
    status: int = Field(0, ge=0, le=999)
    expected: bool = False
    after: int = Field(0, ge=0, le=2**62)

    def selection(self) -> retries.FailureSelection:
        """Return the group of failures that the query selects."""
        return retries.FailureSelection(
            self.table, self.state, self.code, self.native, self.column, self.status, self.expected
        )


_PAGE_ROWS: Final = 13  # chosen: rows of a reason on one page


@route(
    bp, "/pushes/<push_id>/failures", scope="read", query=FailureQuery, allows_api_keys=False, hidden=True, reads=False
)  # fmt: skip
def failure(actor: Actor, push_id: str, query: FailureQuery) -> Response:
    """Show the rows that failed for one reason, with their values before and after a fix."""
    push = pushes.get(actor, push_id)
    data = pushes.as_json(push)
    if query.table >= len(push.tables):
        raise tenancy.not_found("table", str(query.table))
    chosen = query.selection()
    ends = retries.rows_in_group(push, chosen, query.after, _PAGE_ROWS + 1)
    more, ends = len(ends) > _PAGE_ROWS, ends[:_PAGE_ROWS]
    values = form_values(request.args)
    lines = values.get("r")
    fix = lines[0] if isinstance(lines, list) and lines and isinstance(lines[0], dict) else {}
    found = [group for group in retries.failure_groups(push) if group.key == group_key(query)]
    can_retry = (
        actor.can("push") and push.has_ended and push.kind != "undo" and push.connection_id is not None
    )
    context = presentation.repair_context(push)
    before: list[dict[str, Any]] = [{} for _ in ends]
    after, problem = before, ""
    try:
        before = pushes.row_values(push, ends)
        if fix.get("column") and can_retry:
            confirmed = {**values, "confirm": context["needs"], "table": push.tables[query.table]["name"]}
            body = presentation.retry_body(push, {**confirmed, "states": query.state})
            ask = parse(RetryInput, {key: body[key] for key in body if key != "states"}, strict=False)
            tables = retries.prepare_retry_tables(actor, push_id, ask)
            push = pushes.get(actor, push_id)
            after = retries.repaired_values(push, tables, ask, ends)
    except ApiError as error:
        faults = (error.details or {}).get("fields") or []
        problem = " ".join(fault["message"] for fault in faults) or error.message
    page_context = {
        **context,
        "push": data,
        "chosen": chosen,
        "key": group_key(query),
        "count": found[0].count if found else len(ends),
        "can_retry": can_retry and bool(ends),
        "fix": {"how": "formula", "column": query.column, **fix},
        "changed": bool(fix.get("column")) and not problem,
        "ways": presentation.REPAIR_OPTIONS,
        "columns": _columns_to_show(before, query.column),
        "rows": [
            {"number": end.row, "before": old, "after": new}
            for end, old, new in zip(ends, before, after, strict=True)
        ],
        "problem": problem,
        "here": url_for("push_pages.failure", push_id=push_id, **group_key(query)),
        "next_after": ends[-1].row if more else None,
    }
    if "HX-Request" in request.headers:
        return Response(render_block("pushes/failure.html", "panel", **page_context))
    return Response(render_template("pushes/failure.html", **page_context), mimetype="text/html")


def group_key(query: FailureQuery) -> dict[str, Any]:
    """Return the query parameters of a reason, in the form of `failures.Group.key`."""
    key = query.model_dump(exclude={"after"})
    return {**key, "expected": int(query.expected)}


def _columns_to_show(rows: list[dict[str, Any]], column: str) -> list[str]:
    """Return the columns to show: the one that failed first, then the others."""
    names = list(rows[0]) if rows else []
    return [column, *(name for name in names if name != column)] if column in names else names


@route(bp, "/pushes/<push_id>/repair", ["POST"], scope="push", allows_api_keys=False, hidden=True)
def repair(actor: Actor, push_id: str) -> Response:
    """Send the rows that did not arrive again, with the corrections in the form of the push's page."""
    values = form_values(request.form)
    push = pushes.get(actor, push_id, "push")
    try:
        body = presentation.retry_body(push, values)
        if isinstance(of := values.get("of"), dict):  # only the rows of one reason
            query = parse(FailureQuery, of, strict=False)
            if query.table >= len(push.tables):
                raise tenancy.not_found("table", str(query.table))
            ends = retries.rows_in_group(push, query.selection(), 0, limits.MAX_ROWS_PER_GENERATION)
            body = {**body, "table": push.tables[query.table]["name"], "rows": [item.row for item in ends]}
        try:
            ask = parse(RetryInput, body, strict=False)
        except ApiError as error:
            raise add_retry_faults(actor, error, body, push_id) from None
        new_push = retries.retry(actor, push_id, ask)
    except ApiError as error:
        return _show_with_error(actor, push_id, error, values)
    return see_other(url_for("pushes.show", push_id=new_push.id))


@route(bp, "/pushes/<push_id>/rerun", ["POST"], scope="push", allows_api_keys=False, hidden=True)
def rerun(actor: Actor, push_id: str) -> Response:
    """Start the same request again, with the seed and the time of the first one."""
    push = pushes.get(actor, push_id, "push")
    ask = {
        **{key: value for key, value in push.request["ask"].items() if value is not None and key != "retry"},
        "seed": push.pins["seed"],
        "confirm": request.form.get("confirm") or None,
    }
    if push.pins["now"]:
        ask["now"] = push.pins["now"]
    source, action = (
        push.template_id or push.dataset_id,
        "template.push" if push.template_id else "dataset.push",
    )
    try:
        if push.kind != "push" or source is None:
            raise ApiError("conflict", "Only pushes of templates or datasets can be repeated.")
        if push.template_id:
            prepared = preparation.prepare_template(actor, source, parse(PushInput, ask, strict=False))
        else:
            prepared = preparation.prepare_dataset(actor, source, parse(DatasetPushInput, ask, strict=False))
        new_push = pushes.queue(actor, prepared, action)
    except ApiError as error:
        return _show_with_error(actor, push_id, error, {})
    return see_other(url_for("pushes.show", push_id=new_push.id))


def _show_with_error(actor: Actor, push_id: str, error: ApiError, values: Mapping[str, Any]) -> Response:
    """Render the page of a push with an error."""
    push = pushes.get(actor, push_id)
    data = pushes.as_json(push)
    context = presentation.context(actor, push, data)
    html = render_template("pushes/show.html", data=data, error=error, given=values, **context)
    return Response(html, error.status, mimetype="text/html")


@bp.app_context_processor
def helpers() -> dict[str, Any]:
    """Return the functions that templates of push pages use."""
    if getattr(g, "face", "") != "person":
        return {}
    return {
        "connection_names": presentation.connection_names,
        "push_bar": presentation.progress_bar,
        "ROW_STATES": presentation.STATES,
    }
