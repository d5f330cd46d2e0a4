"""The page of a dataset: its diagram or table, and the drawer with the rows of one table. For browsers only; API
clients use /datasets.

Every change is saved immediately: see `editing.py`. The page consists of parts that are replaced by themselves: the
workspace (toolbar and diagram), the drawer, and the state in the top bar. Without JavaScript, links and buttons load
the whole page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

from flask import Blueprint, Response, flash, render_template, request, url_for
from sqlalchemy import func

from webapp import limits
from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.dataset_editor import destinations, editing, overview
from webapp.dataset_editor.editing import Children
from webapp.dataset_editor.overview import Overview, Table
from webapp.datasets.models import Dataset
from webapp.datasets.services import datasets
from webapp.datasets.services import rows as datasets_rows
from webapp.engine.types.relations import Cardinality
from webapp.errors import ApiError
from webapp.extensions import db
from webapp.row_templates.models import Template
from webapp.row_templates.services.relations import Edge
from webapp.web import row_tables, snippets
from webapp.web.responses import render_block, see_other
from webapp.web.routing import route

bp = Blueprint("dataset_pages", __name__)
PAGE: Final = "datasets/show.html"
NEW_PAGE: Final = "datasets/new.html"
VIEWS: Final = ("diagram", "table", "versions", "api")
_MAX_BARS: Final = 30
DISTRIBUTIONS: Final = (
    ("uniform", "Evenly spread"),
    ("poisson", "Around an average"),
    ("geometric", "Mostly few, around an average"),
    ("zipf", "Mostly few"),
)


@dataclass(slots=True)
class ViewState:
    """What the page shows of a dataset: the part of the address after `?`.

    `table` is the table whose rows the drawer shows; `relation` is the path of a field of it, and then the drawer shows
    that relation. `around` is the table whose related tables the diagram shows, if not all fit.
    """

    view: str = "diagram"
    q: str = ""
    page: int = 1
    around: str = ""
    table: str = ""
    relation: str = ""
    to: str = ""
    folded: bool = False

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, str]) -> ViewState:
        """Return the state that the parameters of a page or a form contain."""
        page = parameters.get("page", "")
        return cls(
            view=parameters["view"] if parameters.get("view") in VIEWS else "diagram",
            q=parameters.get("q", "").strip()[: limits.MAX_NAME_CHARS],
            page=max(1, int(page)) if page.isdecimal() and len(page) < 6 else 1,
            around=parameters.get("around", "")[: limits.MAX_NAME_CHARS],
            table=parameters.get("table", "")[: limits.MAX_NAME_CHARS],
            relation=parameters.get("relation", "")[: limits.MAX_NAME_CHARS],
            to=parameters.get("to", "")[: limits.MAX_NAME_CHARS],
            folded=bool(parameters.get("folded")),
        )

    def to_parameters(self, **changes: Any) -> dict[str, Any]:
        """Return it as parameters of an address, without the defaults."""
        current = {name: getattr(self, name) for name in self.__dataclass_fields__} | changes
        defaults = ViewState()
        found = {name: value for name, value in current.items() if value != getattr(defaults, name)}
        return {**found, "folded": "1"} if found.get("folded") else found


@dataclass(slots=True)
class Feedback:
    """Feedback of a response: errors by input, a message, and values that were entered and not saved."""

    faults: Mapping[str, str] = field(default_factory=dict)
    message: str = ""
    typed: Mapping[str, str] = field(default_factory=dict)
    status: int = 200


def render_page(
    actor: Actor, dataset: Dataset, state: ViewState | None = None, feedback: Feedback | None = None
) -> Response:
    """Return the page of a dataset, or the parts of it that an htmx request replaces."""
    state, feedback = state or ViewState.from_parameters(request.args), feedback or Feedback()
    context = _context(actor, dataset, state, feedback)
    block = {"workspace": "workspace", "drawer": "drawer"}.get(request.headers.get("HX-Target", ""))
    if "HX-Request" in request.headers and block:
        text = render_block(PAGE, block, **context) + render_block(PAGE, "bars", **context, oob=True)
        return Response(text, feedback.status)
    return Response(render_template(PAGE, **context), feedback.status, mimetype="text/html")


def _context(actor: Actor, dataset: Dataset, state: ViewState, feedback: Feedback) -> dict[str, Any]:
    version = datasets.version_of(dataset)
    data = datasets.as_json(dataset, version)
    tables = overview.build_overview(actor, data)
    visible, listed, pages = _visible_tables(tables, state)
    chosen = tables.by_id.get(state.table)
    edge = tables.edge(state.table, state.relation) if chosen and state.relation else None
    if chosen is None or (chosen.missing and not state.relation):
        state.relation = ""
    can_write = actor.can("write", dataset.team_id)
    context: dict[str, Any] = {
        "data": data,
        "tables": tables,
        "shown": state,
        "link": _link_function(dataset.id, state),
        "feedback": feedback,
        "can_write": can_write,
        "can_generate": actor.can("generate", dataset.team_id),
        "can_push": actor.can("push", dataset.team_id),
        "undoable": editing.steps(dataset, version),
        "most": limits.MAX_DATASET_TABLES,
        "listed": listed,
        "pages": pages,
        "drawn": overview.build_diagram(tables, visible, folded=state.folded)
        if state.view == "diagram"
        else None,
        "label_of": overview.label_of,
        "in_words": overview.describe_relation,
        "newer": [item.name for item in tables.tables if item.version < item.newest],
        "chosen": chosen,
        "edge": edge,
        "shapes": DISTRIBUTIONS,
        "destination": destinations.choose_destination(actor, dataset, state.to),
        "warnings": [item["message"] for item in data["warnings"]],
    }
    if chosen is not None and state.view in ("diagram", "table"):
        context |= _drawer_context(actor, data, tables, chosen, edge)
    if state.view == "versions":
        context["versions"] = [
            {
                "number": item.number,
                "at": item.created_at,
                "who": who,
                "tables": len(item.spec["templates"]),
                "what": (item.step or {}).get("label", ""),
            }
            for item, who in datasets.KIND.history(dataset)
        ]
    if state.view == "api":
        context["use"] = snippets.of_dataset(snippets.origin(), dataset.id, data)
    return context


def _link_function(dataset_id: str, state: ViewState) -> Callable[..., str]:
    """Return the function that templates build addresses of the page with: `link(table="tpl_x")`."""

    def link(**changes: Any) -> str:
        if changes.keys() & {"view", "q"}:
            changes = {"page": 1, "around": "", **changes}
        values = state.to_parameters(**changes)
        address = url_for("datasets.show", dataset_id=dataset_id)
        return f"{address}?{urlencode(values)}" if values else address

    return link


def _visible_tables(tables: Overview, state: ViewState) -> tuple[set[str] | None, list[Table], int]:
    """Return the tables of the diagram (None: all), those of the table view, and the number of pages.

    The diagram shows a bounded number of tables: those that match a search and their related tables, those around one
    table, or a page of them in load order.
    """
    words = state.q.casefold().split()
    matching = [
        table
        for table in tables.tables
        if all(word in f"{table.name} {table.template_name}".casefold() for word in words)
    ]
    if state.view == "table":
        per_page = limits.DATASET_LINES
        pages = max(1, -(-len(matching) // per_page))
        state.page = min(state.page, pages)
        return None, matching[(state.page - 1) * per_page : state.page * per_page], pages
    per_page = limits.DATASET_CARDS
    if not words and len(tables.tables) <= per_page:
        return None, matching, 1
    if state.around in tables.by_id and not words:
        return _with_related(tables, [state.around], per_page), matching, 1
    if words:
        pages = max(1, -(-len(matching) // per_page))
        state.page = min(state.page, pages)
        found = [table.template_id for table in matching[(state.page - 1) * per_page : state.page * per_page]]
        return (
            (_with_related(tables, found, per_page) if pages == 1 and found else set(found)),
            matching,
            pages,
        )
    pages = -(-len(tables.load_order) // per_page)
    state.page = min(state.page, pages)
    first = (state.page - 1) * per_page
    return {table.template_id for table in tables.load_order[first : first + per_page]}, matching, pages


def _with_related(tables: Overview, start: list[str], limit: int) -> set[str]:
    """Return some tables and those that are related to them, up to `limit`."""
    found, queue = dict.fromkeys(start), list(start)
    related: dict[str, list[str]] = {}
    for edge in tables.edges:
        related.setdefault(edge.child_template_id, []).append(edge.parent_template_id)
        related.setdefault(edge.parent_template_id, []).append(edge.child_template_id)
    for template_id in queue:
        for related_id in related.get(template_id, ()):
            if len(found) < limit:
                found.setdefault(related_id)
    return set(found)


def _drawer_context(
    actor: Actor, data: Mapping[str, Any], tables: Overview, chosen: Table, edge: Edge | None
) -> dict[str, Any]:
    """Return the rows of a table, and the relations that its columns are part of."""
    related = tables.related(chosen.template_id)
    references = {item.child_field: item for item in related if item.child_template_id == chosen.template_id}
    referenced = {
        item.parent_field or chosen.key for item in related if item.parent_template_id == chosen.template_id
    }
    context: dict[str, Any] = {
        "related": related,
        "out": references,
        "into": referenced,
        "grid": None,
        "rows_problem": "",
    }
    if chosen.missing:
        return context
    if edge is not None:
        context |= _relation_context(edge)
    spec = {"seed": data["seed"], "anchor": data["anchor"]}
    pinned = {table.template_id: table.version for table in tables.tables if not table.missing}
    members = [
        datasets_rows.TableSpec(
            table.index, table.template_id, pinned[table.template_id], table.name, table.count
        )
        for table in tables.tables
        if not table.missing
    ]
    member = next(item for item in members if item.template_id == chosen.template_id)
    try:
        rows = datasets_rows.sample(actor, spec, members, member, limits.DATASET_SAMPLE_ROWS)
        context["grid"] = row_tables.row_table(rows, 1)
    except ApiError as error:
        if error.status >= 500 and error.code not in ("target_failed", "target_timeout", "unavailable"):
            raise
        context["rows_problem"] = error.message
    return context


def _relation_context(edge: Edge) -> dict[str, Any]:
    """Return the number of rows per parent as the form of a relation shows it, and its chart: heights of the bars up to
    36, and the average as text."""
    cardinality = edge.cardinality
    if cardinality is None:
        return {"children": Children("one" if edge.unique else "any", "1", "3"), "bars": [], "average": ""}
    children = Children(
        "range", str(cardinality.get("min", 1)), str(cardinality.get("max", 3)),
        str(cardinality.get("distribution", "uniform")), str(cardinality.get("mean") or ""),
    )  # fmt: skip
    spread = Cardinality.model_validate(dict(cardinality)).spread()
    bars = []
    if spread.max - spread.min < _MAX_BARS:
        masses = spread.masses(None)
        bars = [round(36 * mass / max(masses), 1) for mass in masses]
    return {"children": children, "bars": bars, "average": f"{float(spread.average()):.3g}"}


# --- Changes ------------------------------------------------------------------------------------------------


@route(bp, "/datasets/<dataset_id>/edit", ["POST"], scope="write", hidden=True, allows_api_keys=False)
def save(actor: Actor, dataset_id: str) -> Response:
    """Save a change: the inputs that were changed, and then what a button does. The answer has the parts of the page
    that are affected, or the page."""
    state = ViewState.from_parameters(request.form)
    verb, _, argument = request.form.get("do", "set").partition(":")
    if verb == "delete":
        deleted = datasets.delete(actor, datasets.get(actor, dataset_id, "write", lock=True))
        flash(f"Dataset {deleted['name']} deleted", url_for("datasets.restore", dataset_id=dataset_id))
        return see_other(url_for("datasets.index"))
    feedback = Feedback()
    inputs = {
        name: text
        for name, text in request.form.items()
        if name in editing.SETTINGS or name.startswith(("count:", "as:"))
    }
    seen_version = request.form.get("version", "")
    before = datasets.get(actor, dataset_id, "write", lock=True)
    foreign = bool(seen_version) and seen_version != str(before.version)
    try:
        saved = editing.set_values(actor, before, inputs)
        feedback.faults = saved.faults
        if verb != "set" and not saved.faults:
            feedback.message = _perform(actor, dataset_id, verb, argument, state)
    except ApiError as error:
        if error.code in ("not_found", "forbidden") or error.status >= 500:
            raise
        db.session.rollback()
        feedback.faults = _faults_by_input(error, verb)
        feedback.status = error.status
    if feedback.faults:
        feedback.status = max(feedback.status, 422)
        feedback.typed = dict(request.form)
    if foreign and not feedback.message:
        feedback.message = "Another user changed this dataset. The page now shows the new version."
    dataset = datasets.get(actor, dataset_id)
    if "HX-Request" not in request.headers:
        if feedback.faults:
            return render_page(actor, dataset, state, feedback)
        if feedback.message:
            flash(feedback.message)
        return see_other(_link_function(dataset_id, state)())
    context = _context(actor, dataset, state, feedback)
    if any(name.startswith("relation") for name in feedback.faults):
        text = render_block(PAGE, "drawer", **context)
        return Response(text, feedback.status, {"HX-Retarget": "#drawer"})
    replace_all = (foreign or verb != "set") and not feedback.faults
    blocks = ("workspace", "drawer", "bars") if replace_all else ("values", "bars")
    return Response(
        "".join(render_block(PAGE, block, **context, oob=True) for block in blocks), feedback.status
    )


def _perform(actor: Actor, dataset_id: str, verb: str, argument: str, state: ViewState) -> str:
    """Do what a button does. Return a message, "" for none. Errors: not_found, forbidden, validation_error."""
    dataset = datasets.get(actor, dataset_id, "write", lock=True)
    if verb in ("undo", "redo"):
        label = getattr(editing.steps(dataset, datasets.version_of(dataset)), verb)
        done = (editing.undo if verb == "undo" else editing.redo)(actor, dataset)
        return f"{verb.capitalize()}: {label}" if done and label else ""
    if verb == "add":
        editing.add_tables(
            actor, dataset, request.form.getlist("add") or [argument], bool(request.form.get("parents"))
        )
    elif verb == "remove":
        removed = overview.build_overview(actor, datasets.show(dataset)).by_id.get(argument)
        if editing.remove_table(actor, dataset, argument) is not None:
            state.table, state.relation = (
                ("", "") if state.table == argument else (state.table, state.relation)
            )
            return f"Table {removed.name if removed else ''} removed"
    elif verb in ("up", "down"):
        editing.move_table(actor, dataset, argument, -1 if verb == "up" else 1)
    elif verb == "relate":
        name = request.form.get("relation-name", "")
        child = request.form.get("relation-child", argument)
        tables = overview.build_overview(actor, datasets.show(dataset))
        parent = request.form.get("relation-parent", "")
        if parent not in tables.by_id:  # a name and not an id
            typed = parent.strip().casefold()
            parent = next(
                (table.template_id for table in tables.tables if table.name.casefold() == typed), parent
            )
        _, field_name = editing.add_relation(actor, dataset, child, parent, name, _submitted_children())
        state.table, state.relation = child, field_name
    elif verb in ("children", "unrelate"):
        edge = overview.build_overview(actor, datasets.show(dataset)).edge(state.table, state.relation)
        if edge is None:
            return "This relation no longer exists."
        if verb == "children":
            editing.set_children(actor, dataset, edge, _submitted_children())
            return ""
        editing.remove_relation(actor, dataset, edge)
        state.relation = ""
        return f"Field {edge.child_field} removed"
    return ""


def _submitted_children() -> Children:
    form = request.form
    kind = form.get("relation-kind", "any")
    return Children(
        "range" if kind == "range" else "one" if kind == "one" else "any",
        form.get("relation-least", ""),
        form.get("relation-most", ""),
        form.get("relation-distribution", ""),
        form.get("relation-mean", ""),
    )


def _faults_by_input(error: ApiError, verb: str) -> dict[str, str]:
    """Return the errors of a request by input; `` for those of no input."""
    form_inputs = {"least", "most", "mean", "distribution", "parent", "relation"}
    found: dict[str, str] = {}
    for fault in error.details.get("fields", ()):
        hint = f" {fault['hint']}" if fault.get("hint") else ""
        if verb in ("children", "relate", "unrelate"):
            name = f"relation-{fault['path']}" if fault["path"] in form_inputs else "relation-form"
        else:
            name = ""
        found.setdefault(name, f"{fault['message']}{hint}")
    return found or {"relation-form" if verb in ("children", "relate", "unrelate") else "": error.message}


# --- Tables that can be added -------------------------------------------------------------------------------


def _find_choices(actor: Actor, without: list[str], find: str) -> tuple[list[Template], bool]:
    """Return the templates that can be added, by name, and whether there are more."""
    statement = tenancy.listing(actor, Template).where(Template.id.not_in(without))
    if find:
        statement = statement.where(Template.name.icontains(find, autoescape=True))
    found = db.session.scalars(
        statement.order_by(func.lower(Template.name)).limit(limits.DATASET_CHOICES + 1)
    ).all()
    return list(found[: limits.DATASET_CHOICES]), len(found) > limits.DATASET_CHOICES


@route(bp, "/datasets/<dataset_id>/choices", scope="write", hidden=True, allows_api_keys=False)
def choices(actor: Actor, dataset_id: str) -> Response:
    """List the templates that can be added to a dataset."""
    dataset = datasets.get(actor, dataset_id, "write")
    data = datasets.show(dataset)
    find = request.args.get("find", "").strip()
    existing = [template["template_id"] for template in data["templates"]]
    picked = datasets.look_up_templates(actor, request.args.getlist("add"))[0]
    found, more = _find_choices(actor, [*existing, *picked], find)
    context = {"data": data, "choice": found, "picked": list(picked.values()), "more": more, "find": find}
    if "HX-Request" in request.headers:
        return Response(render_block("datasets/choices.html", "choices", **context))
    return Response(render_template("datasets/choices.html", **context), mimetype="text/html")


@route(bp, "/datasets/new", scope="write", hidden=True, allows_api_keys=False)
def new(actor: Actor) -> Response:
    """Show the form of a new dataset: its name and its first tables."""
    return _new_page(actor, request.args)


def _new_page(
    actor: Actor, values: Any, faults: Mapping[str, str] | None = None, status: int = 200
) -> Response:
    picked = [item for item in values.getlist("add") if item]
    find = values.get("find", "").strip()
    found, more = _find_choices(actor, picked, find)
    chosen = datasets.look_up_templates(actor, picked)[0]
    context = {
        "name": values.get("name", ""),
        "picked": [chosen[item] for item in picked if item in chosen],
        "choice": found,
        "more": more,
        "find": find,
        "faults": faults or {},
        "parents": not values or bool(values.get("parents")),
    }
    if request.headers.get("HX-Target") == "choices":
        return Response(render_block(NEW_PAGE, "choices", **context))
    return Response(render_template(NEW_PAGE, **context), status, mimetype="text/html")


@route(bp, "/datasets/new", ["POST"], scope="write", hidden=True, allows_api_keys=False)
def make(actor: Actor) -> Response:
    """Create a dataset, or search for templates."""
    form = request.form
    if form.get("do") == "find":
        return _new_page(actor, form)
    template_ids = [item for item in form.getlist("add") if item]
    faults = {}
    if not (name := form.get("name", "").strip()):
        faults["name"] = "Enter a name."
    if not template_ids:
        faults["add"] = "Choose at least one template."
    if faults:
        return _new_page(actor, form, faults, 422)
    try:
        dataset = editing.create(actor, name, template_ids, bool(form.get("parents")))
    except ApiError as error:
        if error.code != "validation_error":
            raise
        db.session.rollback()
        found = {
            "name" if item["path"] == "name" else "add": item["message"] for item in error.details["fields"]
        }
        return _new_page(actor, form, found, error.status)
    return see_other(url_for("datasets.show", dataset_id=dataset["id"]))
