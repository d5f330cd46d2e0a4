"""Forms of single pages: sign-in, profile, keys, secrets, members, webhooks, the workspace.

A form is declared once, next to the pydantic model that validates its input. The model defines which fields are
required, the maximum length of a value, and which numbers and options are allowed. The declaration adds what only a
page needs (labels, hints, autocomplete):

    SIGN_IN = FormSpec(
        SignInForm,
        {
            "email": Control("E-mail address", type="email", autocomplete="username"),
            "password": Control("Password", type="password", autocomplete="current-password"),
        },
    )

A view draws `SIGN_IN.draw()`, and after a rejected request `SIGN_IN.draw(sent=request.form, error=error)`: the typed
values are kept, each fault is at its field, and all others are in `form_errors`. The templates render both with
`ui.summary(form)` and `ui.field(form["email"])`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel
from wtforms import (  # type: ignore[attr-defined]  # SelectChoice is new in WTForms 3.3; the stubs are of 3.2
    FileField,
    HiddenField,
    RadioField,
    SelectChoice,
    SelectField,
    SelectMultipleField,
)
from wtforms.form import BaseForm
from wtforms.widgets import EmailInput, NumberInput, PasswordInput, TextArea, TextInput

from webapp.errors import ApiError, Fault, validation_error
from webapp.web.forms import controls
from webapp.web.forms.from_model import LONG_TEXT, Schema, branches_of

Choices = Sequence[tuple[str, str] | SelectChoice]
REQUIRED: Final = "This field is required."


@dataclass(frozen=True, slots=True)
class Control:
    """One field of a form, as a page shows it.

    `type`: `text` (one line of any length), `email`, `password`, `code` (a text that is never shown again), `textarea`,
    `radios`, `checkboxes`, `switch`, `file` or `hidden`; by default, the model determines it. `choices` are pairs of
    value and text, or `SelectChoice` with groups; choices that depend on the page are passed to `FormSpec.draw`.
    `required`: for fields that the model does not require, but the page does. `invalid`: the message for an invalid
    value.
    """

    label: str = ""
    _: KW_ONLY
    hint: str = ""
    type: str = ""
    autocomplete: str = ""
    placeholder: str = ""
    required: bool | None = None
    choices: Choices = ()
    invalid: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)


class TextLine(controls.Line):
    """A line of text. `secret`: it is never shown again."""

    def __init__(self, *args: Any, secret: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._secret = secret

    def _value(self) -> str:
        return "" if self._secret else str(self.data or "")


class Hidden(HiddenField):
    """A value that the page sets. The value sent by the browser is ignored."""

    def process_formdata(self, valuelist: list[str]) -> None:
        """From the browser: ignored."""


class PageForm(BaseForm):
    """A drawn form. `wrong` are its fields with an error, in the order of the page."""

    if TYPE_CHECKING:

        def __iter__(self) -> Iterator[controls.DrawnField]: ...
        def __getitem__(self, name: str) -> controls.DrawnField: ...

    @property
    def wrong(self) -> list[controls.DrawnField]:
        """The fields with an error."""
        return [one for one in self if one.errors]

    def owner(self, path: str) -> controls.DrawnField | None:
        """The shown field that a fault's path leads to or into."""
        while path:
            if path in self and self[path].control != "hidden":
                return self[path]
            path = re.sub(r"(^|\.)[^.\[]*$|\[\d+\]$", "", path)
        return None


class FormSpec:
    """The parts of a form.

    `codes` names the field that an error without a field belongs to, by the error's code. `focus` is the field that
    has the focus while there are no errors.
    """

    def __init__(
        self,
        model: type[BaseModel],
        shown: Mapping[str, Control],
        *,
        codes: Mapping[str, str] | None = None,
        focus: str = "",
    ) -> None:
        self.model, self.controls = model, dict(shown)
        self._codes, self._focus = codes or {}, focus

    @cached_property
    def rules(self) -> Mapping[str, Mapping[str, Any]]:
        """The constraints of the model for each field."""
        schema = self.model.model_json_schema(by_alias=True)
        return {name: _rules(schema, name, shown) for name, shown in self.controls.items()}

    def draw(
        self,
        data: Mapping[str, Any] | None = None,
        *,
        sent: Any = None,
        error: ApiError | None = None,
        id: str = "",
        choices: Mapping[str, Choices] | None = None,
        without: Iterable[str] = (),
        focus: str | None = None,
    ) -> PageForm:
        """Return the form with `data`; with `sent` and `error`, as it was submitted, with its errors.

        `id` is a prefix for the ids of the controls, for pages with several forms. `without`: fields that this page
        does not show.
        """
        names = [name for name in self.controls if name not in set(without)]
        given = choices or {}
        form = PageForm({name: self._field(name, id, given.get(name)) for name in names})
        form.process(sent, data={name: _at(data, name) for name in names})
        for one in form:
            one.required = self.rules[one.name]["required"]
            one.control = self.controls[one.name].type
            one.anchor = f"{one.id}-0" if one.control in ("radios", "checkboxes") else one.id
        if error is not None:
            self._place(form, error)
            if error.code == "validation_error":
                self._require(form)
        wanted = next((one.name for one in form.wrong), "")
        if not wanted and not form.form_errors:
            wanted = self._focus if focus is None else focus
        for one in form:
            one.focused = one.name == wanted
        return form

    def sent_in(self, sent: Any) -> bool:
        """Return whether a request came from this form, and not from another one at the same URL."""
        return any(name in sent for name, shown in self.controls.items() if shown.type != "hidden")

    def check(self, sent: Any) -> None:
        """Return `validation_error` for required fields that were left empty, if the model treats them as missing."""
        form = self.draw(sent=sent)
        self._require(form)
        if form.wrong:
            raise validation_error(Fault(one.name, "missing", REQUIRED) for one in form.wrong)

    def _field(self, name: str, id: str, choices: Choices | None) -> Any:
        shown, rules = self.controls[name], self.rules[name]
        render: dict[str, Any] = dict(shown.attributes)
        if shown.autocomplete:
            render["autocomplete"] = shown.autocomplete
        if shown.placeholder:
            render["placeholder"] = shown.placeholder
        if rules["required"] and shown.type not in ("checkboxes", "hidden"):
            render["required"] = True
        # A browser cuts off what is pasted into a password, unseen.
        if "most" in rules and shown.type not in ("radios", "password", "file"):
            render.setdefault("maxlength", rules["most"])
        common: dict[str, Any] = {
            "id": id + name.rpartition(".")[2],
            "render_kw": render,
            "description": shown.hint,
        }
        offered = [
            one if isinstance(one, SelectChoice) else SelectChoice(*one)
            for one in (choices if choices is not None else shown.choices or rules["options"])
        ]
        if shown.type == "hidden":
            return Hidden(shown.label, **common)
        if shown.type == "file":
            return FileField(shown.label, **common)
        if shown.type == "checkboxes":
            return SelectMultipleField(shown.label, choices=offered, validate_choice=False, **common)
        if shown.type == "radios":
            return RadioField(shown.label, choices=offered, coerce=_text, validate_choice=False, **common)
        if offered or choices is not None:
            render.pop("maxlength", None)
            return SelectField(shown.label, choices=offered, coerce=_text, validate_choice=False, **common)
        if shown.type == "switch" or rules["kind"] == "boolean":
            return controls.Switch(shown.label, **common)
        if rules["kind"] == "integer":
            render |= {key: rules[key] for key in ("min", "max") if key in rules}
            return controls.Number(shown.label, widget=NumberInput(step="1"), **common)
        if shown.type == "textarea" or (not shown.type and rules.get("most", 0) > LONG_TEXT):
            return TextLine(shown.label, widget=TextArea(), **common)
        widget = {"email": EmailInput(), "password": PasswordInput()}.get(shown.type, TextInput())
        return TextLine(shown.label, widget=widget, secret=shown.type in ("code", "password"), **common)

    def _place(self, form: PageForm, error: ApiError) -> None:
        """Put the faults of an error at the fields that they belong to."""
        faults = error.details.get("fields")
        if not faults:
            named = self._codes.get(error.code) or next((key for key in error.details if key in form), "")
            faults = [
                {
                    "path": named,
                    "code": error.code,
                    "message": error.message,
                    "hint": error.details.get("hint"),
                }
            ]
        for fault in faults:
            where = form.owner(str(fault["path"]))
            text = fault["message"] + (f" {fault['hint']}" if fault.get("hint") else "")
            if where is None:
                form.form_errors.append(text)
                continue
            text = self._breach(where) or text
            if text not in where.errors:
                where.errors = [*where.errors, text]

    def _require(self, form: PageForm) -> None:
        """Add an error to every required field that was left empty, even if the model treats it as missing."""
        for one in form:
            if one.required and not one.errors and one.control not in ("hidden", "file") and not _filled(one):
                one.errors = [self._breach(one)]

    def _breach(self, one: controls.DrawnField) -> str:
        """Which rule of the model the value of a field breaks, in a sentence; "" for none."""
        rules, value = self.rules[one.name], one.data
        several = one.control == "checkboxes"
        if one.type in ("Switch", "FileField"):
            return ""
        if not _filled(one):
            if not one.required:
                return ""
            return "Select at least one option." if several else REQUIRED
        if isinstance(one, SelectField):
            offered: list[Any] = list(
                one.iter_choices()
            )  # SelectChoice, which the type stubs confuse with tuples
            known = {choice.value for choice in offered}
            chosen = value if several else [value]
            return "" if known.issuperset(chosen) else "Select one of the listed options."
        text = str(value)
        if rules["kind"] == "integer":
            number, low, high = controls.integer(text.strip()), rules.get("min"), rules.get("max")
            if not isinstance(number, int):
                return "Enter a whole number."
            if low is not None and high is not None and not low <= number <= high:
                return f"Enter a number from {low:,} to {high:,}."
            return ""
        if len(text) > rules.get("most", len(text)):
            return f"Enter at most {rules['most']:,} characters. You entered {len(text):,}."
        if "pattern" in rules and not re.search(rules["pattern"], text):
            return self.controls[one.name].invalid
        return ""


def _filled(one: controls.DrawnField) -> bool:
    return bool(one.data.strip() if isinstance(one.data, str) else one.data)


def _at(data: Mapping[str, Any] | None, name: str) -> Any:
    """Return the value in `data` at a dotted name such as `limits.rows_per_hour`."""
    here: Any = data or {}
    for step in name.split("."):
        here = here.get(step) if isinstance(here, Mapping) else None
    return here


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _rules(schema: Schema, name: str, shown: Control) -> dict[str, Any]:
    """Return the constraints of a model for the value at `name`."""
    defs, needed = schema.get("$defs", {}), True
    here: Schema = schema
    for step in name.split("."):
        objects = [one for one in branches_of(here, defs) if "properties" in one]
        needed = needed and step in objects[0].get("required", ())
        here = objects[0]["properties"][step]
    branches = branches_of(here, defs)
    rules: dict[str, Any] = {"kind": branches[0].get("type", "string")}
    inner = branches_of(branches[0].get("items", {}), defs) if rules["kind"] == "array" else branches
    allowed = [option for one in inner for option in (one.get("enum") or [one.get("const")]) if option]
    rules["options"] = [(str(option), str(option)) for option in allowed]
    for ours, theirs in (
        ("most", "maxLength"),
        ("min", "minimum"),
        ("max", "maximum"),
        ("pattern", "pattern"),
    ):
        if theirs in branches[0]:
            rules[ours] = branches[0][theirs]
    rules["required"] = needed if shown.required is None else shown.required
    return rules
