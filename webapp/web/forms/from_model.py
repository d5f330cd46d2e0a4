"""Forms from pydantic models.

The JSON Schema of the model, which the catalogue and the documentation also use, determines the controls: whole
numbers, decimals, switches, choices, lists with one value per line, nested objects, and JSON text for everything else.
Labels come from the names in the API, hints from the descriptions, placeholders from the defaults.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pydantic import BaseModel, ValidationError
from wtforms.form import BaseForm

from webapp.engine import form_hints
from webapp.engine.types.registry import find
from webapp.web.forms import controls
from webapp.web.forms import controls as forms_controls

LONG_TEXT_CHARS: Final = 500  # characters from which a text gets more than one line
MAX_INLINE_CHOICES: Final = 12
MAX_INLINE_CONTROLS: Final = 2
MAX_GROWING_CONTROLS: Final = 2
MAX_CONTROLS_WITH_PICKERS: Final = 3
Schema = Mapping[str, Any]


class ModelForm(BaseForm):
    """A form generated from a model. `payload()` is the JSON that the model then validates.

    Controls are accessed by name (`form["min"]`), so keys can have any name.
    """

    controls: ClassVar[dict[str, Any]] = {}
    names: ClassVar[tuple[str, ...]] = ()
    short: ClassVar[frozenset[str]] = frozenset()
    anything: ClassVar[frozenset[str]] = frozenset()
    picks: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Suggestions for an option in addition to a text input; see ``engine/form_hints.py``."""

    def __init__(
        self, formdata: Any = None, obj: Any = None, prefix: str = "", data: Any = None, **more: Any
    ) -> None:
        super().__init__(self.controls, prefix=prefix)
        values = {**more, **(data or {})}  # a form inside a form gets its values by name
        initial = {
            name: values.get(name, forms_controls.UNSET if name in self.anything else None)
            for name in self.names
        }
        self.process(formdata, data=initial)
        for field in self:
            field.pick = self.picks.get(field.short_name, {})

    if TYPE_CHECKING:

        def __iter__(self) -> Iterator[forms_controls.RenderedField]: ...
        def __getitem__(self, name: str) -> forms_controls.RenderedField: ...

    def payload(self) -> dict[str, Any]:
        """Return the entered values."""
        return forms_controls.payload(self)


@lru_cache(maxsize=1024)
def form_class(model: type[BaseModel], names: tuple[str, ...] | None = None) -> type[ModelForm]:
    """Return the form of a model, or of some of its keys in the given order. `fields` (field definitions) has no
    control, because field definitions are separate rows."""
    schema = model.model_json_schema(by_alias=True)
    return _form(schema, schema.get("$defs", {}), names)


def bind_form(
    model: type[BaseModel],
    data: Mapping[str, Any] | None = None,
    *,
    formdata: Any = None,
    prefix: str = "",
    names: tuple[str, ...] | None = None,
) -> ModelForm:
    """Return the form of a model, filled from a submitted form (`formdata`) or from a JSON object (`data`)."""
    return form_class(model, names)(formdata, data=data, prefix=prefix)


def control_names(model: type[BaseModel]) -> tuple[str, ...]:
    """Return the API names of the keys of a model that have a control, in the model's order."""
    return form_class(model).names


def inline_control_names(model: type[BaseModel]) -> tuple[str, ...]:
    """Return the first few keys that fit on one line: numbers, checkboxes, choices, short texts; without those, lists
    and texts that grow. Keys picked from other templates are always included. With a connection, only it and its query
    are included."""
    form = form_class(model)
    kinds = {name: form.picks.get(name, {}).get("kind") for name in form.names}
    if "connection" in kinds.values():
        return tuple(name for name in form.names if kinds[name] in _CONNECTION_KINDS)[
            :MAX_CONTROLS_WITH_PICKERS
        ]
    short = tuple(name for name in form.names if name in form.short)
    if any(kinds[name] == "template" for name in short):
        return short[:MAX_CONTROLS_WITH_PICKERS]
    short = short[:MAX_INLINE_CONTROLS]
    return (
        short
        or tuple(name for name in form.names if form.controls[name].field_class in _GROWING_CONTROLS)[
            :MAX_GROWING_CONTROLS
        ]
    )


def _form(schema: Schema, defs: Schema, names: Collection[str] | None = None) -> type[ModelForm]:
    properties = schema.get("properties", {})
    included = [
        name for name in (properties if names is None else names) if name in properties and name != "fields"
    ]
    required = schema.get("required", ())
    form_controls: dict[str, Any] = {}
    for name in included:
        if not branches_of(properties[name], defs):
            continue  # always null: nothing to fill in
        form_controls[name] = control_of(name, properties[name], defs, required=name in required)
    attributes = {
        "controls": form_controls,
        "names": tuple(form_controls),
        "short": frozenset(
            name for name in form_controls if form_controls[name].field_class in _SHORT_CONTROLS
        ),
        "anything": frozenset(
            name for name in form_controls if form_controls[name].field_class is forms_controls.Anything
        ),
        "picks": {
            name: properties[name][form_hints.KEY]
            for name in form_controls
            if form_hints.KEY in properties[name]
        },
    }
    return type("MadeForm", (ModelForm,), attributes)


_CONNECTION_KINDS: Final = ("connection", "table", "column", "formula")
_SHORT_CONTROLS: Final = (
    forms_controls.Number,
    forms_controls.Line,
    forms_controls.Choice,
    forms_controls.Switch,
    forms_controls.Anything,
    forms_controls.Range,
)
_GROWING_CONTROLS: Final = (forms_controls.Lines, forms_controls.Text)


def control_of(name: str, schema: Schema, defs: Schema, *, required: bool) -> Any:
    """Return the control of one key, not yet bound to a form."""
    default = schema.get("default")
    branches = branches_of(schema, defs)
    label, common = label_of(name), {"description": schema.get("description", "")}
    render: dict[str, Any] = {}
    if required:
        render["aria-required"] = "true"
    common["render_kw"] = render
    kinds = {branch.get("type", "any") for branch in branches}
    if kinds != {"boolean"} and default not in (None, "", [], {}) and not isinstance(default, Mapping):
        render["placeholder"] = forms_controls.as_text(default)
    choices = _choices(branches)
    if choices is not None:
        return forms_controls.Choice(label, choices, "choose" if required else "default", default, **common)
    if kinds == {"boolean"}:
        if any(part.get("type") == "null" for part in schema.get("anyOf", ())):
            return forms_controls.Choice(
                label, [True, False], "choose" if required else "default", default, **common
            )
        return forms_controls.Switch(label, bool(default), **common)
    if "object" in kinds:
        if schema.get(form_hints.KEY, {}).get("kind") == "range":
            shape = next(branch for branch in branches if branch.get("type") == "object")
            return forms_controls.Range(
                _form(shape, defs), label, shape["properties"], **_group_arguments(common)
            )
        return _object(label, branches, defs, kinds, common)
    if "array" in kinds:
        single_as_value = bool(kinds & {"string", "integer", "number"})
        return _array(
            label, next(b for b in branches if b.get("type") == "array"), defs, common, single_as_value
        )
    if kinds <= {"integer", "number", "string"} and kinds & {"integer", "number"} and _is_number(branches):
        render |= {"step": "1" if kinds == {"integer"} else "any"}
        return forms_controls.Number(label, forms_controls.parse_number, **common)
    if "string" in kinds and kinds <= {"integer", "number", "string"} and len(kinds) > 1:
        return forms_controls.Line(label, forms_controls.parse_number, **common)
    if kinds == {"string"}:
        if max((b.get("maxLength", 0) for b in branches), default=0) > LONG_TEXT_CHARS:
            return forms_controls.Text(label, **common)
        return forms_controls.Line(label, **common)
    return forms_controls.Anything(label, **common)


def _object(label: str, branches: list[Schema], defs: Schema, kinds: set[str], common: dict[str, Any]) -> Any:
    objects = [branch for branch in branches if branch.get("type") == "object"]
    shape = objects[0]
    if len(objects) == 1 and shape.get("properties") and kinds <= {"object", "integer"}:
        inner = _form(shape, defs)
        checkboxes = {
            name for name in inner.names if inner.controls[name].field_class is forms_controls.Choices
        }
        if set(inner.names) <= inner.short | checkboxes:
            return forms_controls.Part(inner, label, **_group_arguments(common))
    return forms_controls.Json(label, **common)


def _group_arguments(common: dict[str, Any]) -> dict[str, Any]:
    return {"separator": ".", "description": common["description"]}


def _array(label: str, schema: Schema, defs: Schema, common: dict[str, Any], single_as_value: bool) -> Any:
    items = branches_of(schema.get("items", {}), defs)
    choices = _choices(items)
    if choices is not None and len(choices) <= MAX_INLINE_CHOICES and not single_as_value:
        return forms_controls.Choices(label, [str(choice) for choice in choices], **common)
    kinds = {item.get("type", "any") for item in items}
    if kinds == {"string"}:
        return forms_controls.Lines(label, single_as_value=single_as_value, **common)
    if kinds <= {"integer", "number", "string"} and _is_number(items):
        return forms_controls.Lines(
            label, forms_controls.parse_number, single_as_value=single_as_value, **common
        )
    if kinds & {"object", "array"} and "any" not in kinds and "string" not in kinds:
        return forms_controls.Json(label, **common)
    return forms_controls.Lines(
        label,
        forms_controls.parse_json_or_text,
        forms_controls.format_json_or_text,
        single_as_value=single_as_value,
        **common,
    )


def branches_of(schema: Schema, defs: Schema) -> list[Schema]:
    """Return the alternatives of a schema with references resolved, without null."""
    if "$ref" in schema:
        return branches_of(defs[schema["$ref"].rsplit("/", 1)[1]], defs)
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            return [branch for part in schema[key] for branch in branches_of(part, defs)]
    return [] if schema.get("type") == "null" else [schema]


def _choices(branches: list[Schema]) -> list[Any] | None:
    found: list[Any] = []
    for branch in branches:
        if "const" in branch:
            found.append(branch["const"])
        elif "enum" in branch:
            found.extend(branch["enum"])
        else:
            return None
    return found or None


def _is_number(branches: list[Schema]) -> bool:
    """Return whether texts, if allowed, are only the exact form of a decimal number: pydantic's schema of a Decimal is
    a number, then a string."""
    kinds = [branch.get("type") for branch in branches]
    return "string" not in kinds or kinds == ["number", "string"]


def label_of(name: str) -> str:
    """Return the label for a name in the API: `lineCount` and `line_count` are both "Line count"."""
    parts = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name.replace("_", " ")).split()
    plain = [part if part.isupper() and len(part) > 1 else part.lower() for part in parts]
    text = " ".join(plain)
    return text[:1].upper() + text[1:]


# Conversion of a browser's form for a model: an empty input is missing, and a single value of a list is a list.

_MAX_PASSES = 4  # errors of a nested object are reported only after those of its parent are corrected


def convert_form_values(model: type[BaseModel], values: dict[str, Any]) -> dict[str, Any]:
    """Convert `values` of a form (texts, nested by their names) so that `model` can parse them.

    Empty texts are removed only where the model does not accept them: an empty description stays empty. A text becomes
    a list with one item where a list is required, and digits become an integer where only an integer is valid. All
    other values are left for the model to validate.
    """
    fields = values.get("fields")
    for field in (
        fields if isinstance(fields, list) else ()
    ):  # their options, each by the model of its field's type
        options = field.get("options") if isinstance(field, dict) else None
        if isinstance(options, dict) and options and isinstance(field.get("type"), str):
            kind = find(field["type"])
            if kind is not None:
                convert_form_values(kind.Options, options)
    for _ in range(_MAX_PASSES):
        try:
            model.model_validate(values, strict=False)
        except ValidationError as error:
            errors = error.errors(include_url=False)
            if sum(_convert_value_at(values, item["loc"], item["type"]) for item in errors) == 0:
                break
        else:
            break
    return values


def _convert_value_at(values: Any, path: Sequence[str | int], kind: str) -> bool:
    """Return whether the value at `path`, or its nearest submitted parent, can be corrected in the form."""
    parent: Any = None  # the parent object or list
    key: str | int = ""
    value: Any = values
    for step in path:
        if not isinstance(value, dict | list) or (isinstance(value, dict) and step not in value):
            continue  # a step that pydantic adds for the branch of a union
        if isinstance(value, list) and not (isinstance(step, int) and step < len(value)):
            continue
        parent, key, value = value, step, value[step]  # type: ignore[index]  # of a dict or a list, as checked above
    if not isinstance(value, str) or parent is None:
        return False
    if not value:
        del parent[key]
        return True
    if kind == "int_type" and isinstance(number := controls.parse_integer(value), int):
        parent[key] = number
        return True
    if "list" in kind:
        parent[key] = [value]
        return True
    return False
