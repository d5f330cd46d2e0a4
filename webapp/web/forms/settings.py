"""Forms of settings: objects inside objects, one of several kinds of object, names with values.

The controls come from the JSON Schema of the model, as those of `from_model` do. An object is a separate
`SettingsGroup`, whose names continue with a dot (`settings.retry.retries`); where several kinds are possible (`auth`),
a select chooses one, and its fields are those of that kind. Errors use the same names.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel
from wtforms import SelectChoice  # type: ignore[attr-defined]  # new in WTForms 3.3; the stubs are of 3.2

from webapp.web.forms import controls as forms_controls
from webapp.web.forms.controls import UNSET
from webapp.web.forms.from_model import ModelForm, Schema, branches_of, control_of, label_of
from webapp.web.forms.page_form import PageForm

if TYPE_CHECKING:
    from webapp.web.forms.controls import RenderedField

OTHER_KEYS: Final = "{}"
"""The selection of an object where a keyword is allowed instead."""
_TITLES: Final = {
    "auth": "Authentication", "csrf": "CSRF token", "base_url": "Base URL", "service_url": "Service URL",
    "document_url": "Document URL", "token_url": "Token URL", "url": "URL", "odata_version": "OData version",
    "sap_client": "SAP client", "verify_tls": "Check the certificate", "api_key": "API key", "client_id": "Client ID",
    "query_params": "Query parameters", "in": "Sent in", "client_auth": "ID and secret are sent",
}  # fmt: skip
_CHOICE_TEXTS: Final = {
    ("auth", "none"): "none",
    ("auth", "basic"): "user and password (Basic)",
    ("auth", "bearer"): "bearer token",
    ("auth", "api-key"): "API key in a header or the query",
    ("auth", "oauth2-client-credentials"): "OAuth 2.0 client credentials",
    ("csrf", ""): "fetched from the service root",
    ("csrf", "off"): "not sent",
    ("csrf", OTHER_KEYS): "fetched from another path",
    ("push_mode", "per_row"): "one request per row",
    ("push_mode", "batch"): "multiple rows per request",
    ("in", "header"): "a header",
    ("in", "query"): "the query",
    ("client_auth", "post"): "in the body of the token request",
    ("client_auth", "basic"): "in the Authorization header",
    ("odata_version", "auto"): "detect from $metadata",
    ("odata_version", "v2"): "V2",
    ("odata_version", "v4"): "V4",
}
_PLACEHOLDERS: Final = {
    "host": "db.example.com",
    "database": "shop",
    "username": "app_writer",
    "schema": "public",
    "base_url": "https://api.example.com",
    "service_url": "https://host.example.com/sap/opu/odata/sap/API_BUSINESS_PARTNER",
    "document_url": "https://api.example.com/openapi.json",
    "push_path": "/customers",
    "file": "shop.db",
}
_HINTS: Final = {
    "timeout_seconds": "Time limit for each attempt, in seconds.",
    "retries": "Number of additional attempts.",
    "backoff_seconds": "Seconds to wait before each retry. The last value is used for all further retries.",
    "retry_on": "Statuses that are retried. Network errors are always retried.",
    "request_template": "The request for one row. Without a body, the row itself is sent.",
    "body": 'JSON with {{field}}. A lone "{{field}}" keeps its type. Default: the row.',
    "query_params": "{{field}} is a value of the row.",
    "token_url": "URL of the token endpoint.",
    "fetch_path": "Relative to the service root, or to the root of the host if it begins with a slash.",
    "verify_tls": "Turn this off only for test systems with a self-signed certificate.",
}


def title_of(name: str) -> str:
    """Return the label of a setting."""
    return _TITLES.get(name) or label_of(name)


# --- Controls ---------------------------------------------------------------------------------------------------


def _number(text: str) -> int | float | str:
    """Return a JSON number; the text itself if it is not one."""
    found = forms_controls.parse_number(text)
    if isinstance(found, int):
        return found
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text


class Numbers(forms_controls.Line):
    """Numbers on one line, separated by commas or spaces."""

    def process_data(self, value: Any) -> None:
        """Set the value from JSON."""
        self.data = (
            format_numbers(value) if isinstance(value, Sequence) and not isinstance(value, str) else ""
        )

    def json_value(self) -> Any:
        """Return the numbers; anything else as text."""
        found = re.split(r"[\s,;]+", (self.data or "").strip())
        return [_number(part) for part in found if part] or UNSET


def format_numbers(values: Iterable[Any]) -> str:
    """Return numbers as the text of their control."""
    return ", ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in values)


class Pairs(forms_controls.Text):
    """Names with values, `name: value` on each line. JSON is accepted too, and shown if lines are not enough."""

    def process_data(self, value: Any) -> None:
        """Set the value from JSON."""
        if not isinstance(value, Mapping):
            self.data = "" if value is None else forms_controls.as_text(value)
        elif all(_fits_on_line(name, item) for name, item in value.items()):
            self.data = "\n".join(f"{name}: {item}" for name, item in value.items())
        else:
            self.data = json.dumps(value, ensure_ascii=False, indent=1)

    def json_value(self) -> Any:
        """Return the object; or the text itself if a line has no colon, or JSON is incomplete."""
        text = (self.data or "").strip()
        if not text:
            return UNSET
        if text.startswith("{"):
            return forms_controls.parse_json_or_text(text)
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if not all(":" in line for line in lines):
            return text
        found = (line.partition(":") for line in lines)
        return {name.strip(): value.strip() for name, _, value in found}


def _fits_on_line(name: str, value: Any) -> bool:
    if not isinstance(value, str):
        return False
    is_stripped = value == value.strip() and name == name.strip() and not {"\n", "\r"} & {*name, *value}
    return bool(is_stripped and name and ":" not in name and not name.startswith("{"))


# --- The tree ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _FormSource:
    """The sources of a form, at any depth."""

    defs: Schema
    formdata: Any
    """The submitted values; None: use only the data."""

    def text(self, name: str) -> str | None:
        return None if self.formdata is None else self.formdata.get(name, "")


class SettingsGroup:
    """One object: its parts are controls and other groups, in the model's order.

    `options` are the kinds of object to choose from, `(value, words, chosen)`, chosen by the select `choice`.
    """

    def __init__(self, source: _FormSource, name: str, schema: Schema, data: Any, normal: Any = None) -> None:
        self.name = name
        self.short_name = name.rpartition(".")[2]
        self.title = title_of(self.short_name)
        self.hint = _HINTS.get(self.short_name) or str(schema.get("description", ""))
        self.options: list[tuple[str, str, bool]] = []
        self.choice = ""
        self._data = data if isinstance(data, Mapping) else {}
        self._keyword: str | None = None
        self._kind_key: str | None = None
        self.focused = False
        shape = self._shape(source, schema, data)
        self.parts: list[RenderedField | SettingsGroup] = []
        if shape is not None:
            self._fill(source, shape, normal if isinstance(normal, Mapping) else {})

    def _shape(self, source: _FormSource, schema: Schema, data: Any) -> Schema | None:
        """Return the object's schema, that of the selected kind if there are several; None for a keyword instead."""
        found = branches_of(schema, source.defs)
        objects = [branch for branch in found if branch.get("type") == "object"]
        if "discriminator" in schema:
            key = self._kind_key = schema["discriminator"]["propertyName"]
            kinds = {branch["properties"][key]["const"]: branch for branch in objects}
            sent = source.text(f"{self.name}.{key}")
            chosen = self._select(
                key, kinds, self._data.get(key) if sent is None else sent, next(iter(kinds))
            )
            if self._data.get(key, next(iter(kinds))) != chosen:
                self._data = {}
            return kinds.get(chosen)
        keywords = [branch["const"] for branch in found if "const" in branch]
        if not keywords:
            return objects[0]
        sent = source.text(f"{self.name}.is")
        selected = OTHER_KEYS if isinstance(data, Mapping) else data
        chosen = self._select("is", ["", *keywords, OTHER_KEYS], selected if sent is None else sent, "")
        self._keyword = chosen
        return objects[0] if chosen == OTHER_KEYS else None

    def _select(self, key: str, kinds: Iterable[str], sent: Any, default: str) -> str:
        chosen = str(sent) if sent else default
        self.choice = f"{self.name}.{key}"
        self.options = [
            (kind, _CHOICE_TEXTS.get((self.short_name, kind), kind), kind == chosen) for kind in kinds
        ]
        return chosen

    def _fill(
        self,
        source: _FormSource,
        shape: Schema,
        normal: Mapping[str, Any],
        names: Sequence[str] | None = None,
    ) -> None:
        required = shape.get("required", ())
        schemas = {
            name: {**property_schema, "default": normal[name]}
            if normal.get(name) is not None
            else property_schema
            for name, property_schema in shape.get("properties", {}).items()
            if (names is None or name in names) and name != self._kind_key
        }
        groups = {
            name
            for name, property_schema in schemas.items()
            if any(part.get("properties") for part in branches_of(property_schema, source.defs))
        }
        controls = {
            name: _control(name, property_schema, source.defs, name in required)
            for name, property_schema in schemas.items()
            if name not in groups
        }
        self._defaults = {name: property_schema.get("default") for name, property_schema in schemas.items()}
        form = PageForm(controls, prefix=f"{self.name}." if self.name else "")
        form.process(source.formdata, data={name: self._data.get(name) for name in controls})
        for name, property_schema in schemas.items():
            if name in groups:
                group_name = f"{self.name}.{name}" if self.name else name
                self.parts.append(
                    SettingsGroup(source, group_name, property_schema, self._data.get(name), normal.get(name))
                )
                continue
            field = form[name]
            field.sealed, field.required = bool(property_schema.get("secret")), name in required
            field.group = property_schema.get("group")
            if isinstance(field, forms_controls.Choice):
                texts = {value: text for (setting, value), text in _CHOICE_TEXTS.items() if setting == name}
                choices: list[Any] = list(field.choices or ())  # SelectChoice, which the stubs do not know
                field.choices = [
                    SelectChoice(choice.value, texts.get(choice.label, choice.label)) for choice in choices
                ]
            self.parts.append(field)

    @property
    def filled(self) -> bool:
        """Return whether any value was entered."""
        return self.payload() is not UNSET

    def controls(self) -> Iterator[RenderedField | SettingsGroup]:
        """Yield this group and all controls and groups in it."""
        yield self
        for part in self.parts:
            if isinstance(part, SettingsGroup):
                yield from part.controls()
            else:
                yield part

    def payload(self) -> Any:
        """Return the entered JSON; `UNSET` for nothing.

        A default value that a control omits is kept if it was set explicitly before. Otherwise the setting would seem
        to change, and the user would have to enter the secret again.
        """
        if self._keyword is not None and self._keyword != OTHER_KEYS:
            return self._keyword or UNSET
        found: dict[str, Any] = {}
        for part in self.parts:
            name = part.short_name
            value = part.payload() if isinstance(part, SettingsGroup) else part.json_value()
            if value is None or value == "":
                value = UNSET
            if value is UNSET and name in self._data and self._data[name] == self._defaults.get(name, UNSET):
                value = self._data[name]
            if value is not UNSET:
                found[name] = value
        if self._kind_key is not None:
            chosen = next((value for value, _, is_selected in self.options if is_selected), None)
            is_default = chosen == self.options[0][0] and not found and self._kind_key not in self._data
            return UNSET if is_default else {self._kind_key: chosen, **found}
        return found if found or self._keyword == OTHER_KEYS else UNSET


@cache
def _schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of a model, cached because pydantic generates it each time. Do not change it."""
    return model.model_json_schema(by_alias=True)


class SettingsForm(SettingsGroup):
    """The form of a model, filled from a browser's form (`formdata`), else from JSON (`data`).

    `names` are the fields of the form. `normal` are defaults that replace those of the model. With both, `data` has the
    previous values, and `formdata` the new ones.
    """

    def __init__(
        self,
        model: type[BaseModel],
        data: Mapping[str, Any] | None = None,
        *,
        formdata: Any = None,
        name: str = "settings",
        names: Sequence[str] | None = None,
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        schema = _schema(model)
        self._names = names
        super().__init__(
            _FormSource(schema.get("$defs", {}), formdata),
            name,
            schema,
            data,
            {**_object_defaults(model), **(defaults or {})},
        )

    def _fill(
        self,
        source: _FormSource,
        shape: Schema,
        normal: Mapping[str, Any],
        names: Sequence[str] | None = None,
    ) -> None:
        super()._fill(source, shape, normal, names or self._names)

    def values(self) -> dict[str, Any]:
        """Return the settings that were entered."""
        found = self.payload()
        return {} if found is UNSET else dict(found)

    def error_messages(self, faults: Iterable[Mapping[str, Any]]) -> dict[str, str]:
        """Return the messages by the name of the control or group that they belong to, without all others."""
        known = {part.name: part for part in self.controls() if part is not self}
        found: dict[str, str] = {}
        for fault in faults:
            steps = re.split(r"\.|(?=\[)", str(fault["path"]))
            if self.name:
                if steps[0] != self.name:
                    continue
                steps = steps[1:]
            current = self.name
            for step in steps:  # skip steps that pydantic adds for the branches of a union
                name = f"{current}.{step}" if current else step
                current = name if name in known else current
            if current != self.name and current not in found:
                found[current] = _error_message(known[current], fault)
        return found


def error_summary(
    forms: Iterable[PageForm | SettingsForm | ModelForm], faults: Mapping[str, str]
) -> list[tuple[str, str, str]]:
    """Return the controls with errors in the order of the page, as (id, label, message). The first gets the focus."""
    found: list[tuple[RenderedField | SettingsGroup, str, str, str]] = []
    for form in forms:
        for part in form.controls() if isinstance(form, SettingsForm) else form:
            if part.name in faults:
                label = part.title if isinstance(part, SettingsGroup) else part.label.text
                element_id = (part.choice or part.name) if isinstance(part, SettingsGroup) else part.id
                found.append((part, element_id, label, faults[part.name]))
    if found:
        found[0][0].focused = True
    return [entry[1:] for entry in found]


def _object_defaults(model: type[BaseModel]) -> dict[str, Any]:
    """Return defaults that are objects, which a schema does not contain."""
    found = {
        info.alias or name: info.get_default(call_default_factory=True)
        for name, info in model.model_fields.items()
        if not info.is_required()
    }
    return {
        name: default.model_dump(by_alias=True)
        for name, default in found.items()
        if isinstance(default, BaseModel)
    }


def _error_message(part: RenderedField | SettingsGroup, fault: Mapping[str, Any]) -> str:
    if isinstance(part, Pairs) and fault["code"] == "wrong_type":
        return "Enter one per line, as name: value."
    if isinstance(part, forms_controls.Number) and fault["code"] == "wrong_type":
        return "Enter a number." if isinstance(_number(part.data or ""), str) else "Enter a whole number."
    if (
        isinstance(part, forms_controls.Json)
        and fault["code"] in ("wrong_type", "invalid")
        and not _is_json(part)
    ):
        return "Enter valid JSON."
    if fault["code"] == "missing" or (fault["code"] == "too_short" and not getattr(part, "data", "")):
        return "This field is required."
    text = str(fault["message"])
    hint = f" {fault['hint']}" if fault.get("hint") else ""
    return text[:1].upper() + text[1:] + hint


def _is_json(part: forms_controls.Json) -> bool:
    try:
        json.loads(part.data or "null")
    except ValueError:
        return False
    return True


def _control(name: str, schema: Schema, defs: Schema, required: bool) -> Any:
    """Return the control of one setting that is not a group."""
    found = branches_of(schema, defs)
    kinds = {branch.get("type", "any") for branch in found}
    label, default = title_of(name), schema.get("default")
    common: dict[str, Any] = {"description": schema.get("description") or _HINTS.get(name, "")}
    render: dict[str, Any] = {"aria-required": "true"} if required else {}
    if name in _PLACEHOLDERS:
        render["placeholder"] = _PLACEHOLDERS[name]
    if default not in (None, "", [], {}) and not isinstance(default, Mapping | list | bool):
        render["placeholder"] = (
            f"{default:g}" if isinstance(default, float) else forms_controls.as_text(default)
        )
    common["render_kw"] = render
    if kinds == {"object"} and all(_has_text_values(branch) for branch in found):
        render["placeholder"] = "name: value"
        return Pairs(label, **common)
    if kinds & {"any", "object"}:
        return forms_controls.Json(label, **common)
    if kinds <= {"integer", "number"}:
        return forms_controls.Number(label, _number, **{**common, "render_kw": {**render, "step": "any"}})
    if kinds == {"array"}:
        items = {
            branch.get("type") for array in found for branch in branches_of(array.get("items", {}), defs)
        }
        if items <= {"integer", "number"}:
            return Numbers(
                label, **{**common, "render_kw": {"placeholder": format_numbers(default) if default else ""}}
            )
    if kinds == {"string"} and not any("enum" in branch or "const" in branch for branch in found):
        return (forms_controls.Text if schema.get("multiline") else forms_controls.Line)(label, **common)
    control = control_of(name, schema, defs, required=required)
    control.args = (label, *control.args[1:])
    return control


def _has_text_values(schema: Schema) -> bool:
    value_schema = schema.get("additionalProperties")
    return (
        isinstance(value_schema, Mapping)
        and value_schema.get("type") == "string"
        and not schema.get("properties")
    )
