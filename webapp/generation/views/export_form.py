"""The form of the export dialog: the options of generate and exports, with errors at their fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from flask import Response, render_template, request

from webapp.access.actors import Actor
from webapp.errors import ApiError, Fault, validation_error
from webapp.row_templates.models import Template
from webapp.row_templates.schemas import CsvSection, GenerateInput, SqlSection
from webapp.row_templates.services import templates
from webapp.web.forms.from_model import bound
from webapp.web.forms.page_form import Control, FormSpec

_FORMATS: Final = (
    ("csv", "Comma-separated"),
    ("json", "One array"),
    ("ndjson", "One object per line"),
    ("sql", "INSERTs"),
    ("xlsx", "Excel"),
    ("parquet", "columns"),
)
_SECTIONS: Final = (("csv", CsvSection), ("sql", SqlSection))
EXPORT: Final = FormSpec(
    GenerateInput,
    {
        "format": Control("Format", type="radios", choices=_FORMATS),
        "count": Control("Rows"),
        "seed": Control("Seed", placeholder="a new one", attributes={"spellcheck": "false"}),
        "locale": Control("Locale", attributes={"spellcheck": "false", "list": "locales"}),
    },
    codes={"row_limit_exceeded": "count"},
)


def context(
    actor: Actor,
    template: Template,
    given: Mapping[str, Any] | None = None,
    *,
    sent: Any = None,
    error: ApiError | None = None,
) -> dict[str, Any]:
    """Return the context of `templates/export.html`: the form with initial or submitted values and its error.

    `places` are (id of the control, label, error) in the order of the page; `faults` are errors of format
    options by the name of the control.
    """
    data = templates.show(template)
    sections = [(name, bound(model, formdata=sent, prefix=f"{name}.")) for name, model in _SECTIONS]
    names = {item.name for _, section in sections for item in section}
    faults: dict[str, str] = {}
    if error is not None and error.code == "validation_error":
        fields = error.details["fields"]
        faults = {field["path"]: field["message"] for field in fields if field["path"] in names}
        rest = [Fault(**field) for field in fields if field["path"] not in names]
        error = validation_error(rest) if rest else None
    form = EXPORT.draw(
        {"format": "csv", "count": data["quantity"], **(given or {})}, sent=sent, error=error, id="x-"
    )
    count, locale = form["count"], form["locale"]
    count.render_kw = {
        **count.render_kw,
        "max": actor.limits.rows_per_generation,
        "placeholder": data["quantity"],
    }
    locale.render_kw = {**locale.render_kw, "placeholder": data["locale"] or "the template's"}
    wrong = [(item.anchor, item.label.text, " ".join(item.errors)) for item in form.wrong]
    of_sections = [
        (item.id, item.label.text, faults[item.name])
        for _, section in sections
        for item in section
        if item.name in faults
    ]
    return {
        "data": data,
        "form": form,
        "sections": sections,
        "faults": faults,
        "places": [*wrong, *of_sections],
        "texts": list(form.form_errors),
    }


def again(actor: Actor, error: ApiError, template_id: str) -> Response:
    """Render the submitted form with its errors. For the dialog, render only the errors."""
    if error.code in ("not_found", "forbidden"):
        raise error
    found = context(actor, templates.get(actor, template_id, "generate"), sent=request.form, error=error)
    if "HX-Request" in request.headers:
        headers = {"HX-Retarget": "#estimate", "HX-Reswap": "innerHTML"}
        return Response(render_template("templates/estimate.html", **found), headers=headers)
    return Response(render_template("templates/export_page.html", **found), mimetype="text/html")
