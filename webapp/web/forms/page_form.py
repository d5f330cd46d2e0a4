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
from webapp.web.forms.from_model import LONG_TEXT_CHARS, Schema, branches_of

Choices = Sequence[tuple[str, str] | SelectChoice]
REQUIRED: Final = "This field is required."


@dataclass(frozen=True, slots=True)
class Control:
    """One field of a form, as a page shows it.

    `type`: `text` (one line of any length), `email`, `password`, `code` (a text that is never shown again), `textarea`,
    `radios`, `checkboxes`, `switch`, `file` or `hidden`; by default, the model determines it. `choices` are pairs of
    value and text, or `SelectChoice` with groups; choices that depend on the page are passed to `FormSpec.render`.
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
    """A rendered form. `wrong` are its fields with an error, in the order of the page."""

    if TYPE_CHECKING:

        def __iter__(self) -> Iterator[controls.RenderedField]: ...
        def __getitem__(self, name: str) -> controls.RenderedField: ...

    @property
    def wrong(self) -> list[controls.RenderedField]:
        """The fields with an error."""
        return [item for item in self if item.errors]

    def field_at_path(self, path: str) -> controls.RenderedField | None:
        """Return the visible field that the path of a fault leads to or into, or None."""
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
        page_controls: Mapping[str, Control],
        *,
        codes: Mapping[str, str] | None = None,
        focus: str = "",
    ) -> None:
        self.model, self.controls = model, dict(page_controls)
        self._codes, self._focus = codes or {}, focus

    @cached_property
    def rules(self) -> Mapping[str, Mapping[str, Any]]:
        """The constraints of the model for each field."""
        schema = self.model.model_json_schema(by_alias=True)
        return {name: _rules(schema, name, control) for name, control in self.controls.items()}

    def render(
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
        choices_by_name = choices or {}
        form = PageForm({name: self._field(name, id, choices_by_name.get(name)) for name in names})
        form.process(sent, data={name: _value_at(data, name) for name in names})
        for item in form:
            item.required = self.rules[item.name]["required"]
            item.control = self.controls[item.name].type
            item.anchor = f"{item.id}-0" if item.control in ("radios", "checkboxes") else item.id
        if error is not None:
            self._add_errors(form, error)
            if error.code == "validation_error":
                self._add_required_errors(form)
        focused = next((item.name for item in form.wrong), "")
        if not focused and not form.form_errors:
            focused = self._focus if focus is None else focus
        for item in form:
            item.focused = item.name == focused
        return form

    def matches_submission(self, sent: Any) -> bool:
        """Return whether a request came from this form, and not from another one at the same URL."""
        return any(name in sent for name, control in self.controls.items() if control.type != "hidden")

    def check(self, sent: Any) -> None:
        """Raise `validation_error` for required fields that were left empty, even if the model accepts that."""
        form = self.render(sent=sent)
        self._add_required_errors(form)
        if form.wrong:
            raise validation_error(Fault(item.name, "missing", REQUIRED) for item in form.wrong)

    def _field(self, name: str, id: str, choices: Choices | None) -> Any:
        control, rules = self.controls[name], self.rules[name]
        render: dict[str, Any] = dict(control.attributes)
        if control.autocomplete:
            render["autocomplete"] = control.autocomplete
        if control.placeholder:
            render["placeholder"] = control.placeholder
        if rules["required"] and control.type not in ("checkboxes", "hidden"):
            render["required"] = True
        # A browser cuts off what is pasted into a password, unseen.
        if "most" in rules and control.type not in ("radios", "password", "file"):
            render.setdefault("maxlength", rules["most"])
        common: dict[str, Any] = {
            "id": id + name.rpartition(".")[2],
            "render_kw": render,
            "description": control.hint,
        }
        options = [
            choice if isinstance(choice, SelectChoice) else SelectChoice(*choice)
            for choice in (choices if choices is not None else control.choices or rules["options"])
        ]
        if control.type == "hidden":
            return Hidden(control.label, **common)
        if control.type == "file":
            return FileField(control.label, **common)
        if control.type == "checkboxes":
            return SelectMultipleField(control.label, choices=options, validate_choice=False, **common)
        if control.type == "radios":
            return RadioField(control.label, choices=options, coerce=_text, validate_choice=False, **common)
        if options or choices is not None:
            render.pop("maxlength", None)
            return SelectField(control.label, choices=options, coerce=_text, validate_choice=False, **common)
        if control.type == "switch" or rules["kind"] == "boolean":
            return controls.Switch(control.label, **common)
        if rules["kind"] == "integer":
            render |= {key: rules[key] for key in ("min", "max") if key in rules}
            return controls.Number(control.label, widget=NumberInput(step="1"), **common)
        if control.type == "textarea" or (not control.type and rules.get("most", 0) > LONG_TEXT_CHARS):
            return TextLine(control.label, widget=TextArea(), **common)
        widget = {"email": EmailInput(), "password": PasswordInput()}.get(control.type, TextInput())
        return TextLine(control.label, widget=widget, secret=control.type in ("code", "password"), **common)

    def _add_errors(self, form: PageForm, error: ApiError) -> None:
        """Add the faults of an error to the fields that they belong to."""
        faults = error.details.get("fields")
        if not faults:
            path = self._codes.get(error.code) or next((key for key in error.details if key in form), "")
            faults = [
                {
                    "path": path,
                    "code": error.code,
                    "message": error.message,
                    "hint": error.details.get("hint"),
                }
            ]
        for fault in faults:
            item = form.field_at_path(str(fault["path"]))
            text = fault["message"] + (f" {fault['hint']}" if fault.get("hint") else "")
            if item is None:
                form.form_errors.append(text)
                continue
            text = self._error_message(item) or text
            if text not in item.errors:
                item.errors = [*item.errors, text]

    def _add_required_errors(self, form: PageForm) -> None:
        """Add an error to every required field that was left empty, even if the model treats it as missing."""
        for item in form:
            if (
                item.required
                and not item.errors
                and item.control not in ("hidden", "file")
                and not _is_filled(item)
            ):
                item.errors = [self._error_message(item)]

    def _error_message(self, item: controls.RenderedField) -> str:
        """Return a message for the constraint of the model that the value of a field violates; "" if there is none."""
        rules, value = self.rules[item.name], item.data
        is_multiple = item.control == "checkboxes"
        if item.type in ("Switch", "FileField"):
            return ""
        if not _is_filled(item):
            if not item.required:
                return ""
            return "Select at least one option." if is_multiple else REQUIRED
        if isinstance(item, SelectField):
            options: list[Any] = list(
                item.iter_choices()
            )  # SelectChoice, which the type stubs confuse with tuples
            allowed = {choice.value for choice in options}
            chosen = value if is_multiple else [value]
            return "" if allowed.issuperset(chosen) else "Select one of the listed options."
        text = str(value)
        if rules["kind"] == "integer":
            number, low, high = controls.parse_integer(text.strip()), rules.get("min"), rules.get("max")
            if not isinstance(number, int):
                return "Enter a whole number."
            if low is not None and high is not None and not low <= number <= high:
                return f"Enter a number from {low:,} to {high:,}."
            return ""
        if len(text) > rules.get("most", len(text)):
            return f"Enter at most {rules['most']:,} characters. You entered {len(text):,}."
        if "pattern" in rules and not re.search(rules["pattern"], text):
            return self.controls[item.name].invalid
        return ""


def _is_filled(item: controls.RenderedField) -> bool:
    return bool(item.data.strip() if isinstance(item.data, str) else item.data)


def _value_at(data: Mapping[str, Any] | None, name: str) -> Any:
    """Return the value in `data` at a dotted name such as `limits.rows_per_hour`."""
    value: Any = data or {}
    for step in name.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _rules(schema: Schema, name: str, control: Control) -> dict[str, Any]:
    """Return the constraints of a model for the value at `name`."""
    defs, is_required = schema.get("$defs", {}), True
    current: Schema = schema
    for step in name.split("."):
        objects = [branch for branch in branches_of(current, defs) if "properties" in branch]
        is_required = is_required and step in objects[0].get("required", ())
        current = objects[0]["properties"][step]
    branches = branches_of(current, defs)
    rules: dict[str, Any] = {"kind": branches[0].get("type", "string")}
    inner = branches_of(branches[0].get("items", {}), defs) if rules["kind"] == "array" else branches
    allowed = [
        option for branch in inner for option in (branch.get("enum") or [branch.get("const")]) if option
    ]
    rules["options"] = [(str(option), str(option)) for option in allowed]
    for key, schema_key in (
        ("most", "maxLength"),
        ("min", "minimum"),
        ("max", "maximum"),
        ("pattern", "pattern"),
    ):
        if schema_key in branches[0]:
            rules[key] = branches[0][schema_key]
    rules["required"] = is_required if control.required is None else control.required
    return rules
