"""Forms of settings: objects inside objects, one of several kinds of object, names with values.

The controls come from the JSON Schema of the model, as those of `from_model` do. An object is a separate `Group`,
whose names continue with a dot (`settings.retry.retries`); where several kinds are possible (`auth`), a select chooses
one, and its fields are those of that kind. Errors use the same names.
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
    from webapp.web.forms.controls import DrawnField

ELSE: Final = "{}"
"""The selection of an object where a keyword is allowed instead."""
_TITLES: Final = {
    "auth": "Authentication", "csrf": "CSRF token", "base_url": "Base URL", "service_url": "Service URL",
    "document_url": "Document URL", "token_url": "Token URL", "url": "URL", "odata_version": "OData version",
    "sap_client": "SAP client", "verify_tls": "Check the certificate", "api_key": "API key", "client_id": "Client ID",
    "query_params": "Query parameters", "in": "Sent in", "client_auth": "ID and secret are sent",
}  # fmt: skip
_WORDS: Final = {
    ("auth", "none"): "none",
    ("auth", "basic"): "user and password (Basic)",
    ("auth", "bearer"): "bearer token",
    ("auth", "api-key"): "API key in a header or the query",
    ("auth", "oauth2-client-credentials"): "OAuth 2.0 client credentials",
    ("csrf", ""): "fetched at the service root",
    ("csrf", "off"): "none is sent",
    ("csrf", ELSE): "fetched elsewhere",
    ("push_mode", "per_row"): "one request for each row",
    ("push_mode", "batch"): "many rows in one request",
    ("in", "header"): "a header",
    ("in", "query"): "the query",
    ("client_auth", "post"): "in the form of the token request",
    ("client_auth", "basic"): "in its Authorization header",
    ("odata_version", "auto"): "what $metadata says",
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
    "timeout_seconds": "Seconds that one attempt may take.",
    "retries": "Attempts after the first.",
    "backoff_seconds": "Seconds to wait before each of them; the last one is used for those beyond.",
    "retry_on": "Statuses that are tried again, as network errors are.",
    "request_template": "What is sent for one row. Without a body it is the row itself.",
    "body": 'JSON with {{field}}. A lone "{{field}}" keeps its type. Default: the row.',
    "query_params": "{{field}} is a value of the row.",
    "token_url": "URL of the token endpoint.",
    "fetch_path": "Relative to the service root, or to the root of the host if it begins with a slash.",
    "verify_tls": "Off only for a test system whose certificate is its own.",
}


def title_of(name: str) -> str:
    """The name of a setting for people."""
    return _TITLES.get(name) or label_of(name)


# --- Controls ---------------------------------------------------------------------------------------------------


def _number(text: str) -> int | float | str:
    """Return a JSON number; the text itself if it is not one."""
    found = forms_controls.number(text)
    if isinstance(found, int):
        return found
    try:
        made = float(text)
    except ValueError:
        return text
    return made if math.isfinite(made) else text


class Numbers(forms_controls.Line):
    """Numbers on one line, apart by commas or spaces."""

    def process_data(self, value: Any) -> None:
        """From JSON."""
        self.data = numbers(value) if isinstance(value, Sequence) and not isinstance(value, str) else ""

    def json_value(self) -> Any:
        """Return the numbers; anything else as text."""
        found = re.split(r"[\s,;]+", (self.data or "").strip())
        return [_number(one) for one in found if one] or UNSET


def numbers(values: Iterable[Any]) -> str:
    """Return numbers as the text of their control."""
    return ", ".join(f"{one:g}" if isinstance(one, float) else str(one) for one in values)


class Pairs(forms_controls.Text):
    """Names with values, `name: value` on each line; JSON is taken too, and shown where lines could not say it."""

    def process_data(self, value: Any) -> None:
        """From JSON."""
        if not isinstance(value, Mapping):
            self.data = "" if value is None else forms_controls.as_text(value)
        elif all(_plain(name, one) for name, one in value.items()):
            self.data = "\n".join(f"{name}: {one}" for name, one in value.items())
        else:
            self.data = json.dumps(value, ensure_ascii=False, indent=1)

    def json_value(self) -> Any:
        """Return the object; or the text itself if a line has no colon, or JSON is incomplete."""
        text = (self.data or "").strip()
        if not text:
            return UNSET
        if text.startswith("{"):
            return forms_controls.guess(text)
        lines = [one.strip() for one in text.splitlines() if one.strip()]
        if not all(":" in one for one in lines):
            return text
        found = (one.partition(":") for one in lines)
        return {name.strip(): value.strip() for name, _, value in found}


def _plain(name: str, value: Any) -> bool:
    if not isinstance(value, str):
        return False
    fits = value == value.strip() and name == name.strip() and not {"\n", "\r"} & {*name, *value}
    return bool(fits and name and ":" not in name and not name.startswith("{"))


# --- The tree ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Source:
    """The sources of a form, at any depth."""

    defs: Schema
    formdata: Any
    """The submitted values; None: use only the data."""

    def text(self, name: str) -> str | None:
        return None if self.formdata is None else self.formdata.get(name, "")


class Group:
    """One object: its parts are controls and other groups, in the model's order.

    `options` are the kinds of object to choose from, `(value, words, chosen)`, chosen by the select `choice`.
    """

    def __init__(self, source: _Source, name: str, schema: Schema, data: Any, normal: Any = None) -> None:
        self.name = name
        self.short_name = name.rpartition(".")[2]
        self.title = title_of(self.short_name)
        self.hint = _HINTS.get(self.short_name) or str(schema.get("description", ""))
        self.options: list[tuple[str, str, bool]] = []
        self.choice = ""
        self._said = data if isinstance(data, Mapping) else {}
        self._word: str | None = None
        self._key: str | None = None
        self.focused = False
        shape = self._shape(source, schema, data)
        self.parts: list[DrawnField | Group] = []
        if shape is not None:
            self._fill(source, shape, normal if isinstance(normal, Mapping) else {})

    def _shape(self, source: _Source, schema: Schema, data: Any) -> Schema | None:
        """Return the object's schema, that of the selected kind if there are several; None for a keyword instead."""
        found = branches_of(schema, source.defs)
        objects = [one for one in found if one.get("type") == "object"]
        if "discriminator" in schema:
            key = self._key = schema["discriminator"]["propertyName"]
            kinds = {one["properties"][key]["const"]: one for one in objects}
            sent = source.text(f"{self.name}.{key}")
            chosen = self._chosen(
                key, kinds, self._said.get(key) if sent is None else sent, next(iter(kinds))
            )
            if self._said.get(key, next(iter(kinds))) != chosen:
                self._said = {}
            return kinds.get(chosen)
        words = [one["const"] for one in found if "const" in one]
        if not words:
            return objects[0]
        sent = source.text(f"{self.name}.is")
        held = ELSE if isinstance(data, Mapping) else data
        chosen = self._chosen("is", ["", *words, ELSE], held if sent is None else sent, "")
        self._word = chosen
        return objects[0] if chosen == ELSE else None

    def _chosen(self, key: str, kinds: Iterable[str], sent: Any, otherwise: str) -> str:
        chosen = str(sent) if sent else otherwise
        self.choice = f"{self.name}.{key}"
        self.options = [(one, _WORDS.get((self.short_name, one), one), one == chosen) for one in kinds]
        return chosen

    def _fill(
        self, source: _Source, shape: Schema, normal: Mapping[str, Any], names: Sequence[str] | None = None
    ) -> None:
        required = shape.get("required", ())
        wanted = {
            name: {**told, "default": normal[name]} if normal.get(name) is not None else told
            for name, told in shape.get("properties", {}).items()
            if (names is None or name in names) and name != self._key
        }
        inner = {
            name
            for name, told in wanted.items()
            if any(one.get("properties") for one in branches_of(told, source.defs))
        }
        made = {
            name: _control(name, told, source.defs, name in required)
            for name, told in wanted.items()
            if name not in inner
        }
        self._defaults = {name: told.get("default") for name, told in wanted.items()}
        form = PageForm(made, prefix=f"{self.name}." if self.name else "")
        form.process(source.formdata, data={name: self._said.get(name) for name in made})
        for name, told in wanted.items():
            if name in inner:
                where = f"{self.name}.{name}" if self.name else name
                self.parts.append(Group(source, where, told, self._said.get(name), normal.get(name)))
                continue
            field = form[name]
            field.sealed, field.required = bool(told.get("secret")), name in required
            field.group = told.get("group")
            if isinstance(field, forms_controls.Choice):
                words = {str(at): told for (of, at), told in _WORDS.items() if of == name}
                choices: list[Any] = list(field.choices or ())  # SelectChoice, which the stubs do not know
                field.choices = [SelectChoice(one.value, words.get(one.label, one.label)) for one in choices]
            self.parts.append(field)

    @property
    def filled(self) -> bool:
        """Return whether any value was entered."""
        return self.payload() is not UNSET

    def controls(self) -> Iterator[DrawnField | Group]:
        """Itself and all below it."""
        yield self
        for part in self.parts:
            if isinstance(part, Group):
                yield from part.controls()
            else:
                yield part

    def payload(self) -> Any:
        """Return the entered JSON; `UNSET` for nothing.

        A default value that a control omits is kept if it was set explicitly before. Otherwise the setting would seem
        to change, and the user would have to enter the secret again.
        """
        if self._word is not None and self._word != ELSE:
            return self._word or UNSET
        found: dict[str, Any] = {}
        for part in self.parts:
            name = part.short_name
            value = part.payload() if isinstance(part, Group) else part.json_value()
            if value is None or value == "":
                value = UNSET
            if value is UNSET and name in self._said and self._said[name] == self._defaults.get(name, UNSET):
                value = self._said[name]
            if value is not UNSET:
                found[name] = value
        if self._key is not None:
            chosen = next((value for value, _, on in self.options if on), None)
            usual = chosen == self.options[0][0] and not found and self._key not in self._said
            return UNSET if usual else {self._key: chosen, **found}
        return found if found or self._word == ELSE else UNSET


@cache
def _schema(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a model, which pydantic makes anew each time. Not changed."""
    return model.model_json_schema(by_alias=True)


class SettingsForm(Group):
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
        normal: Mapping[str, Any] | None = None,
    ) -> None:
        schema = _schema(model)
        self._names = names
        super().__init__(
            _Source(schema.get("$defs", {}), formdata), name, schema, data, {**_made(model), **(normal or {})}
        )

    def _fill(
        self, source: _Source, shape: Schema, normal: Mapping[str, Any], names: Sequence[str] | None = None
    ) -> None:
        super()._fill(source, shape, normal, names or self._names)

    def values(self) -> dict[str, Any]:
        """The settings that were filled in."""
        found = self.payload()
        return {} if found is UNSET else dict(found)

    def placed(self, faults: Iterable[Mapping[str, Any]]) -> dict[str, str]:
        """Messages by the name of the control, or of the group, that they belong to; all others are left out."""
        known = {part.name: part for part in self.controls() if part is not self}
        found: dict[str, str] = {}
        for fault in faults:
            steps = re.split(r"\.|(?=\[)", str(fault["path"]))
            if self.name:
                if steps[0] != self.name:
                    continue
                steps = steps[1:]
            here = self.name
            for step in steps:  # steps that pydantic put in, the branch of a union, are passed over
                name = f"{here}.{step}" if here else step
                here = name if name in known else here
            if here != self.name and here not in found:
                found[here] = _worded(known[here], fault)
        return found


def places(
    forms: Iterable[PageForm | SettingsForm | ModelForm], faults: Mapping[str, str]
) -> list[tuple[str, str, str]]:
    """The controls with a fault in the order of a page, as (id, label, message); the first of them gets the focus."""
    found: list[tuple[DrawnField | Group, str, str, str]] = []
    for form in forms:
        for part in form.controls() if isinstance(form, SettingsForm) else form:
            if part.name in faults:
                label = part.title if isinstance(part, Group) else part.label.text
                at = (part.choice or part.name) if isinstance(part, Group) else part.id
                found.append((part, at, label, faults[part.name]))
    if found:
        found[0][0].focused = True
    return [one[1:] for one in found]


def _made(model: type[BaseModel]) -> dict[str, Any]:
    """Return defaults that are objects, which a schema does not contain."""
    found = {
        info.alias or name: info.get_default(call_default_factory=True)
        for name, info in model.model_fields.items()
        if not info.is_required()
    }
    return {name: one.model_dump(by_alias=True) for name, one in found.items() if isinstance(one, BaseModel)}


def _worded(part: DrawnField | Group, fault: Mapping[str, Any]) -> str:
    if isinstance(part, Pairs) and fault["code"] == "wrong_type":
        return "One on each line, as name: value."
    if isinstance(part, forms_controls.Number) and fault["code"] == "wrong_type":
        return "Enter a number." if isinstance(_number(part.data or ""), str) else "Enter a whole number."
    if (
        isinstance(part, forms_controls.Json)
        and fault["code"] in ("wrong_type", "invalid")
        and not _is_json(part)
    ):
        return "This is no JSON."
    if fault["code"] == "missing" or (fault["code"] == "too_short" and not getattr(part, "data", "")):
        return "This is needed."
    text = str(fault["message"])
    more = f" {fault['hint']}" if fault.get("hint") else ""
    return text[:1].upper() + text[1:] + more


def _is_json(part: forms_controls.Json) -> bool:
    try:
        json.loads(part.data or "null")
    except ValueError:
        return False
    return True


def _control(name: str, schema: Schema, defs: Schema, required: bool) -> Any:
    """The control of one setting that is no group."""
    found = branches_of(schema, defs)
    kinds = {one.get("type", "any") for one in found}
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
    if kinds == {"object"} and all(_of_texts(one) for one in found):
        render["placeholder"] = "name: value"
        return Pairs(label, **common)
    if kinds & {"any", "object"}:
        return forms_controls.Json(label, **common)
    if kinds <= {"integer", "number"}:
        return forms_controls.Number(label, _number, **{**common, "render_kw": {**render, "step": "any"}})
    if kinds == {"array"}:
        items = {one.get("type") for array in found for one in branches_of(array.get("items", {}), defs)}
        if items <= {"integer", "number"}:
            return Numbers(
                label, **{**common, "render_kw": {"placeholder": numbers(default) if default else ""}}
            )
    if kinds == {"string"} and not any("enum" in one or "const" in one for one in found):
        return (forms_controls.Text if schema.get("multiline") else forms_controls.Line)(label, **common)
    made = control_of(name, schema, defs, required=required)
    made.args = (label, *made.args[1:])
    return made


def _of_texts(schema: Schema) -> bool:
    told = schema.get("additionalProperties")
    return isinstance(told, Mapping) and told.get("type") == "string" and not schema.get("properties")
