"""Forms from pydantic models.

A form's controls are chosen by the JSON Schema of the model, which is what the catalogue serves and the documents
print: whole numbers, decimals, switches, choices, lists with one value a line, objects inside objects, and JSON
text for the rest. Labels come from the wire names, hints from the descriptions, placeholders from the defaults.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pydantic import BaseModel, ValidationError
from wtforms.form import BaseForm

from webapp.engine import form_hints as picks
from webapp.engine.types.registry import find
from webapp.web.forms import controls
from webapp.web.forms import controls as forms_controls

LONG_TEXT: Final = 500  # characters from which a text gets more than one line
FEW_CHOICES: Final = 12
MOST_INLINE: Final = 2
MOST_GROWING: Final = 2
MOST_BESIDE_PICKS: Final = 3
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
        given = {**more, **(data or {})}  # a form inside a form gets its values by name
        known = {
            name: given.get(name, forms_controls.UNSET if name in self.anything else None)
            for name in self.names
        }
        self.process(formdata, data=known)
        for field in self:
            field.pick = self.picks.get(field.short_name, {})

    if TYPE_CHECKING:

        def __iter__(self) -> Iterator[forms_controls.DrawnField]: ...
        def __getitem__(self, name: str) -> forms_controls.DrawnField: ...

    def payload(self) -> dict[str, Any]:
        """The entered values."""
        return forms_controls.payload(self)


@lru_cache(maxsize=1024)
def form_class(model: type[BaseModel], names: tuple[str, ...] | None = None) -> type[ModelForm]:
    """Return the form of a model, or of some of its keys in the given order. `fields` (field definitions) has no
    control, because field definitions are separate rows."""
    schema = model.model_json_schema(by_alias=True)
    return _form(schema, schema.get("$defs", {}), names)


def bound(
    model: type[BaseModel],
    data: Mapping[str, Any] | None = None,
    *,
    formdata: Any = None,
    prefix: str = "",
    names: tuple[str, ...] | None = None,
) -> ModelForm:
    """The model's form, filled from what a browser sent (`formdata`) or from a JSON object (`data`)."""
    return form_class(model, names)(formdata, data=data, prefix=prefix)


def keys(model: type[BaseModel]) -> tuple[str, ...]:
    """The wire names of a model's keys that have a control, in its order."""
    return form_class(model).names


def inline(model: type[BaseModel]) -> tuple[str, ...]:
    """Return the first few keys that fit on one line: numbers, checkboxes, choices, short texts; without those, lists
    and texts that grow. Keys picked from other templates are always included. With a connection, only it and its query
    are included."""
    made = form_class(model)
    kinds = {name: made.picks.get(name, {}).get("kind") for name in made.names}
    if "connection" in kinds.values():
        return tuple(name for name in made.names if kinds[name] in _FROM_CONNECTIONS)[:MOST_BESIDE_PICKS]
    short = tuple(name for name in made.names if name in made.short)
    if any(kinds[name] == "template" for name in short):
        return short[:MOST_BESIDE_PICKS]
    short = short[:MOST_INLINE]
    return (
        short
        or tuple(name for name in made.names if made.controls[name].field_class in _GROWING)[:MOST_GROWING]
    )


def _form(schema: Schema, defs: Schema, names: Collection[str] | None = None) -> type[ModelForm]:
    properties = schema.get("properties", {})
    wanted = [
        name for name in (properties if names is None else names) if name in properties and name != "fields"
    ]
    required = schema.get("required", ())
    body: dict[str, Any] = {}
    for name in wanted:
        if not branches_of(properties[name], defs):
            continue  # always null: nothing to fill in
        body[name] = control_of(name, properties[name], defs, required=name in required)
    kept = {
        "controls": body,
        "names": tuple(body),
        "short": frozenset(name for name in body if body[name].field_class in _SHORT),
        "anything": frozenset(name for name in body if body[name].field_class is forms_controls.Anything),
        "picks": {name: properties[name][picks.KEY] for name in body if picks.KEY in properties[name]},
    }
    return type("MadeForm", (ModelForm,), kept)


_FROM_CONNECTIONS: Final = ("connection", "table", "column", "formula")
_SHORT: Final = (
    forms_controls.Number,
    forms_controls.Line,
    forms_controls.Choice,
    forms_controls.Switch,
    forms_controls.Anything,
    forms_controls.Range,
)
_GROWING: Final = (forms_controls.Lines, forms_controls.Text)


def control_of(name: str, schema: Schema, defs: Schema, *, required: bool) -> Any:
    """The control of one key, not yet bound to a form."""
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
        if schema.get(picks.KEY, {}).get("kind") == "range":
            shape = next(branch for branch in branches if branch.get("type") == "object")
            return forms_controls.Range(_form(shape, defs), label, shape["properties"], **_plain(common))
        return _object(label, branches, defs, kinds, common)
    if "array" in kinds:
        alone = bool(kinds & {"string", "integer", "number"})
        return _array(label, next(b for b in branches if b.get("type") == "array"), defs, common, alone)
    if kinds <= {"integer", "number", "string"} and kinds & {"integer", "number"} and _is_number(branches):
        render |= {"step": "1" if kinds == {"integer"} else "any"}
        return forms_controls.Number(label, forms_controls.number, **common)
    if "string" in kinds and kinds <= {"integer", "number", "string"} and len(kinds) > 1:
        return forms_controls.Line(label, forms_controls.number, **common)
    if kinds == {"string"}:
        if max((b.get("maxLength", 0) for b in branches), default=0) > LONG_TEXT:
            return forms_controls.Text(label, **common)
        return forms_controls.Line(label, **common)
    return forms_controls.Anything(label, **common)


def _object(label: str, branches: list[Schema], defs: Schema, kinds: set[str], common: dict[str, Any]) -> Any:
    objects = [branch for branch in branches if branch.get("type") == "object"]
    shape = objects[0]
    if len(objects) == 1 and shape.get("properties") and kinds <= {"object", "integer"}:
        inner = _form(shape, defs)
        ticked = {name for name in inner.names if inner.controls[name].field_class is forms_controls.Choices}
        if set(inner.names) <= inner.short | ticked:
            return forms_controls.Part(inner, label, **_plain(common))
    return forms_controls.Json(label, **common)


def _plain(common: dict[str, Any]) -> dict[str, Any]:
    return {"separator": ".", "description": common["description"]}


def _array(label: str, schema: Schema, defs: Schema, common: dict[str, Any], alone: bool) -> Any:
    items = branches_of(schema.get("items", {}), defs)
    choices = _choices(items)
    if choices is not None and len(choices) <= FEW_CHOICES and not alone:
        return forms_controls.Choices(label, [str(choice) for choice in choices], **common)
    kinds = {item.get("type", "any") for item in items}
    if kinds == {"string"}:
        return forms_controls.Lines(label, alone=alone, **common)
    if kinds <= {"integer", "number", "string"} and _is_number(items):
        return forms_controls.Lines(label, forms_controls.number, alone=alone, **common)
    if kinds & {"object", "array"} and "any" not in kinds and "string" not in kinds:
        return forms_controls.Json(label, **common)
    return forms_controls.Lines(
        label, forms_controls.guess, forms_controls.guessed_text, alone=alone, **common
    )


def branches_of(schema: Schema, defs: Schema) -> list[Schema]:
    """The alternatives of a schema, references resolved, null left out."""
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
    """A wire name for people: `lineCount` and `line_count` are both "Line count"."""
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name.replace("_", " ")).split()
    plain = [word if word.isupper() and len(word) > 1 else word.lower() for word in words]
    text = " ".join(plain)
    return text[:1].upper() + text[1:]


# Conversion of a browser's form for a model: an empty input is missing, and a single value of a list is a list.

_TRIES = 4  # an object inside an object shows its own faults once those around it are gone


def filled(model: type[BaseModel], values: dict[str, Any]) -> dict[str, Any]:
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
                filled(kind.Options, options)
    for _ in range(_TRIES):
        try:
            model.model_validate(values, strict=False)
        except ValidationError as error:
            errors = error.errors(include_url=False)
            if sum(_mend(values, item["loc"], item["type"]) for item in errors) == 0:
                break
        else:
            break
    return values


def _mend(values: Any, path: Sequence[str | int], kind: str) -> bool:
    """Return whether the value at `path`, or its nearest submitted parent, can be corrected in the form."""
    held: Any = None  # the parent object or list
    key: str | int = ""
    here: Any = values
    for step in path:
        if not isinstance(here, dict | list) or (isinstance(here, dict) and step not in here):
            continue  # a step that pydantic put in: the branch of a union
        if isinstance(here, list) and not (isinstance(step, int) and step < len(here)):
            continue
        held, key, here = here, step, here[step]  # type: ignore[index]  # of a dict or a list, as was just seen
    if not isinstance(here, str) or held is None:
        return False
    if not here:
        del held[key]
        return True
    if kind == "int_type" and isinstance(number := controls.integer(here), int):
        held[key] = number
        return True
    if "list" in kind:
        held[key] = [here]
        return True
    return False
