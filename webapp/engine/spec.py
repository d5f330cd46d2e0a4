"""Parse templates: from the caller's input to `TemplateSpec`, or to a list of all faults with their paths."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from webapp import json_input, limits
from webapp.engine import form_hints
from webapp.engine.errors import SpecError
from webapp.engine.invalid_data.settings import Invalid
from webapp.engine.masking import settings as masking_settings
from webapp.engine.masking.settings import Masking
from webapp.engine.source_data import SourceSpec
from webapp.engine.types.base import FieldType
from webapp.engine.types.registry import BY_NAME, find
from webapp.errors import (
    Fault,
    did_you_mean,
    drop_other_union_branches,
    pydantic_error_path,
    pydantic_message,
)

Checkable = Literal["no", "values", "all"]
"""What can be checked of an invalid field: nothing; each option by itself, because another one that it may be compared
with is wrong; or all options."""

FIELD_ID = re.compile(r"fld_[0-9A-HJKMNP-TV-Z]{26}")

ELEMENT = "of"
"""The option of a type whose values are arrays of one kind: the field that generates an element."""

READ_ONLY_KEYS = frozenset({"label"})
"""Keys the service adds to a field when it answers; ignored when they come back."""


class CommonKeys(BaseModel):
    """The keys that fields of all types have."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str | None = Field(
        None, description=("ID that seeds the column; it stays the same when the field is edited.")
    )
    name: str = Field(min_length=1, max_length=limits.MAX_NAME_CHARS)
    type: str = Field(min_length=1, max_length=limits.MAX_NAME_CHARS)
    options: dict[str, Any] = Field(default_factory=dict)
    sensitive: bool = Field(False, description="Source values are masked before they are output.")
    masking: Masking | None = Field(
        None, description=("Masking strategy. Default: a value of the same kind.")
    )
    percent_blank: Decimal = Field(Decimal(0), ge=0, le=100, max_digits=9, decimal_places=4)
    unique: bool = Field(
        False,
        description=(
            "All values are different. With a label: fields with the same label are unique in combination."
        ),
    )
    unique_together: str | None = Field(None, min_length=1, max_length=limits.MAX_NAME_CHARS, exclude=True)
    """The word that stood for ``unique``: a caller writes it there."""
    hidden: bool = False
    locale: str | None = Field(None, max_length=20)
    group: str | None = Field(None, max_length=limits.MAX_NAME_CHARS)
    formula: str | None = Field(
        None, max_length=limits.MAX_FORMULA_CHARS, json_schema_extra=form_hints.FORMULA
    )
    prefix: str = Field("", max_length=limits.MAX_AFFIX_CHARS)
    suffix: str = Field("", max_length=limits.MAX_AFFIX_CHARS)
    text_case: Literal["upper", "lower", "title", "sentence"] | None = None
    description: str = Field("", max_length=limits.MAX_DESCRIPTION_CHARS)
    invalid: Invalid | None = Field(None, description="Invalid data in the cells of the field.")
    column: str | None = Field(
        None, min_length=1, max_length=limits.MAX_NAME_CHARS,
        description=("For a template with a source: the column with the values. Default: the column "
                    "with the field's name."),
    )  # fmt: skip


def field_schema() -> dict[str, Any]:
    """The JSON Schema of the keys that every field has, as a caller writes them."""
    schema = CommonKeys.model_json_schema()
    schema["properties"].pop("unique_together")
    unique = schema["properties"]["unique"]
    unique.pop("type")
    unique["anyOf"] = [
        {"type": "boolean"},
        {"type": "string", "minLength": 1, "maxLength": limits.MAX_NAME_CHARS},
    ]
    return _inline_references(schema, schema.pop("$defs", {}))


def _inline_references(schema: Any, defs: dict[str, Any]) -> Any:
    """Return a schema without references: the definitions that it refers to are inlined."""
    if isinstance(schema, list):
        return [_inline_references(item, defs) for item in schema]
    if not isinstance(schema, dict):
        return schema
    referred = defs[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else {}
    own = {key: value for key, value in schema.items() if key != "$ref"}
    return {key: _inline_references(value, defs) for key, value in {**referred, **own}.items()}


_COMMON_IN_OPTIONS = frozenset(CommonKeys.model_fields) - {
    "id",
    "name",
    "type",
    "options",
    "unique_together",
    "column",
}


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field as parsed: common keys, its type's class and that type's checked options."""

    path: str
    common: CommonKeys
    type: type[FieldType]
    options: BaseModel
    children: tuple[FieldSpec, ...] = ()
    has_errors: bool = False
    """Whether it has errors. Fields that read it can be checked, but it generates no values."""
    checkable: Checkable = "no"
    """Of an invalid field: what can be checked of its other keys and options."""

    @property
    def name(self) -> str:
        return self.common.name

    @property
    def id(self) -> str | None:
        return self.common.id

    @property
    def group(self) -> str | None:
        return self.common.group

    def to_json(self) -> dict[str, Any]:
        """Return the field as stored and returned by the API, including defaults of the common keys."""
        common = self.common
        options = self.options.model_dump(mode="json", exclude_unset=True, by_alias=True)
        if self.children:
            inner = [child.to_json() for child in self.children]
            options |= {"of": inner[0]} if ELEMENT in self.type.Options.model_fields else {"fields": inner}
        blank = common.percent_blank
        return {
            "id": common.id,
            "name": common.name,
            "type": self.type.name,
            "label": self.type.label,
            "options": options,
            "sensitive": common.sensitive,
            "masking": common.masking and common.masking.model_dump(mode="json", exclude_unset=True),
            "percent_blank": int(blank) if blank == int(blank) else float(blank),
            "unique": common.unique_together or common.unique,
            "hidden": common.hidden,
            "locale": common.locale,
            "group": common.group,
            "formula": common.formula,
            "prefix": common.prefix,
            "suffix": common.suffix,
            "text_case": common.text_case,
            "description": common.description,
            **({"invalid": common.invalid.to_json()} if common.invalid is not None else {}),
            **({"column": common.column} if common.column is not None else {}),
        }


@dataclass(frozen=True, slots=True)
class TemplateSpec:
    """A whole template: its fields and the locale they fall back to."""

    name: str
    fields: tuple[FieldSpec, ...]
    locale: str | None = None
    source: SourceSpec | None = None
    """The source of its rows, if they are not generated."""
    invalid_data: Invalid | None = None
    """The settings for invalid data."""

    def walk(self) -> Iterator[FieldSpec]:
        """Every field, nested ones included, parents before children."""
        pending = list(reversed(self.fields))
        while pending:
            field = pending.pop()
            yield field
            pending.extend(reversed(field.children))


def parse(
    fields: Any,
    *,
    name: str = "rows",
    locale: str | None = None,
    source: SourceSpec | None = None,
    invalid_data: Invalid | None = None,
) -> TemplateSpec:
    """Reads a list of field definitions. Raises `SpecError` with every fault found, and with the template as far as it
    could be parsed."""
    parser = _Parser()
    parsed = parser.fields(fields, "fields", depth=1)
    spec = TemplateSpec(name=name, fields=parsed, locale=locale, source=source, invalid_data=invalid_data)
    if parser.faults:
        raise SpecError(parser.faults, partial=spec)
    return spec


def with_ids(spec: TemplateSpec, new_id: Any) -> TemplateSpec:
    """The same template, with an id from ``new_id()`` for each field that has none."""

    def visit(field: FieldSpec) -> FieldSpec:
        common = field.common if field.id else field.common.model_copy(update={"id": new_id()})
        return replace(field, common=common, children=tuple(visit(child) for child in field.children))

    return replace(spec, fields=tuple(visit(field) for field in spec.fields))


M = TypeVar("M", bound=BaseModel)


class _Parser:
    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self._count = 0
        self._ids: dict[str, str] = {}

    def fields(self, raw: Any, path: str, depth: int) -> tuple[FieldSpec, ...]:
        if not isinstance(raw, list):
            return self._reject(path, "wrong_type", "fields must be an array of field definitions.")
        if not raw:
            return self._reject(path, "too_few", "A template needs at least one field.")
        if depth > limits.MAX_NESTING:
            return self._reject(
                path, "too_deep", f"Fields can be nested at most {limits.MAX_NESTING} levels deep."
            )
        self._count += len(raw)
        if self._count > limits.MAX_FIELDS:
            text = f"A template has at most {limits.MAX_FIELDS} fields; this one has {self._count} or more."
            return self._reject(path, "too_many", text)
        parsed = []
        for i, item in enumerate(raw):
            if len(self.faults) >= limits.MAX_FIELD_FAULTS:
                break  # more faults would not help anyone
            parsed.append(self._field(item, f"{path}[{i}]", depth))
        found = tuple(field for field in parsed if field is not None)
        self.faults.extend(fault for field in found for fault in masking_settings.find_faults(field, found))
        paths: dict[str, str] = {}
        result = []
        for field in found:
            if field.name in paths:
                text = f'The name "{field.name}" is already used by {paths[field.name]}.'
                self._reject(f"{field.path}.name", "duplicate", text, "Use a different name for each field.")
                # Under another name it is checked too.
                field = replace(field, common=field.common.model_copy(update={"name": field.path}))
            paths.setdefault(field.name, field.path)
            result.append(field)
        return tuple(result)

    def _reject(self, path: str, code: str, message: str, hint: str = "") -> tuple[FieldSpec, ...]:
        self.faults.append(Fault(path, code, message, hint))
        return ()

    def _field(self, raw: Any, path: str, depth: int) -> FieldSpec | None:
        if not isinstance(raw, dict):
            self._reject(
                path, "wrong_type", "A field definition must be an object with name, type and options."
            )
            return None
        fault_count = len(self.faults)
        common = self._common(raw, path)
        type_name = raw.get("type")
        kind: type[FieldType] | None = None
        if isinstance(type_name, str):  # else the common keys have reported it
            kind = find(type_name)
            if kind is None:
                hint = did_you_mean(type_name.lower(), BY_NAME) or "GET /field-types lists every type."
                self._reject(f"{path}.type", "unknown_type", f'There is no field type "{type_name}".', hint)
        if common is None or kind is None or not isinstance(raw.get("options", {}), dict | None):
            return self._placeholder_field(raw.get("name"), path)
        if common.id is not None:
            if not FIELD_ID.fullmatch(common.id):
                self._reject(
                    f"{path}.id",
                    "wrong_format",
                    "A field ID must be fld_ followed by the 26 characters of a ULID.",
                )
            elif common.id in self._ids:
                self._reject(f"{path}.id", "duplicate", f"This ID is already used by {self._ids[common.id]}.")
            self._ids.setdefault(common.id, path)
        if common.invalid is not None and depth > 1:
            text = "Only top-level fields support invalid data, not nested fields."
            hint = "Remove it, or set it for the enclosing field, which can be missing as a whole."
            self._reject(f"{path}.invalid", "not_here", text, hint)
        has_own_faults = len(self.faults) > fault_count
        raw_options = dict(common.options)
        children: tuple[FieldSpec, ...] = ()
        if "fields" in kind.Options.model_fields:
            children = self.fields(raw_options.pop("fields", None), f"{path}.options.fields", depth + 1)
        elif ELEMENT in kind.Options.model_fields:
            children = self._element(raw_options.pop(ELEMENT, None), f"{path}.options.{ELEMENT}", depth + 1)
        options, usable = self._validate_valid_keys(kind.Options, raw_options, f"{path}.options", {})
        needs_children = not {"fields", ELEMENT}.isdisjoint(kind.Options.model_fields)
        if options is None or (needs_children and not children):
            return self._placeholder_field(common.name, path)
        if usable == "values" or has_own_faults or (len(self.faults) > fault_count and not children):
            return FieldSpec(path, common, kind, options, children, has_errors=True, checkable=usable)
        return FieldSpec(path, common, kind, options, children)

    def _placeholder_field(self, name: Any, path: str) -> FieldSpec | None:
        if not isinstance(name, str) or not name:
            return None
        kind = BY_NAME["null"]
        common = CommonKeys.model_construct(name=name, type="null")
        return FieldSpec(path, common, kind, kind.Options(), has_errors=True)

    def _common(self, raw: dict[str, Any], path: str) -> CommonKeys | None:
        keys = {k: v for k, v in raw.items() if k not in READ_ONLY_KEYS}
        if "active" in keys:
            keys["hidden"] = not keys.pop("active")
        if "unique_together" in keys:
            self._reject(
                f"{path}.unique_together",
                "unknown_key",
                "This key is not supported here.",
                "Use unique instead.",
            )
        options = keys.get("options")
        if options is None:
            keys["options"] = options = {}
        if isinstance(options, dict):
            moved = {k: v for k, v in options.items() if k in _COMMON_IN_OPTIONS}
            keys["options"] = {k: v for k, v in options.items() if k not in moved}
            keys = {**moved, **keys}
        if keys.get("masking") is not None:
            keys.setdefault("sensitive", True)
            if keys["sensitive"] is False:
                text = "masking is only available for sensitive fields, but sensitive is false."
                self._reject(
                    f"{path}.masking", "contradiction", text, "Remove masking, or set sensitive: true."
                )
        if isinstance(keys.get("unique"), str):
            keys["unique_together"] = keys.pop("unique")
        common, _ = self._validate_valid_keys(CommonKeys, keys, path, {"name": path, "type": "null"})
        name = raw.get("name")
        if common is None or common.name == name or not (isinstance(name, str) and name):
            return common
        return common.model_copy(update={"name": name})  # other fields may read it by its invalid name

    def _validate_valid_keys(
        self, model: type[M], raw: dict[str, Any], path: str, substitutes: Mapping[str, Any]
    ) -> tuple[M | None, Checkable]:
        """Return `raw` as an instance of `model`, without the keys that have errors, which are reported.

        `substitutes` replace required keys. None if it is of no use without them.
        """
        fault_count = len(self.faults)
        raw = json_input.canonicalize_enums(model, raw)
        found: M | None = validate_model(model, raw, path, self.faults)
        if found is not None:
            return found, "all"
        steps = [fault.path[len(path) :].lstrip(".") for fault in self.faults[fault_count:]]
        invalid = {re.split(r"[.\[]", step, maxsplit=1)[0] for step in steps}
        valid = {key: value for key, value in raw.items() if key not in invalid}
        for key in invalid & substitutes.keys():
            valid[key] = substitutes[key]
        only_unknown_keys = all(fault.code == "unknown_key" for fault in self.faults[fault_count:])
        try:
            return model.model_validate(valid), "all" if only_unknown_keys else "values"
        except ValidationError:
            return None, "no"

    def _element(self, raw: Any, path: str, depth: int) -> tuple[FieldSpec, ...]:
        """Return the field that generates the elements of an array; it needs no name."""
        if not isinstance(raw, dict):
            code = "required" if raw is None else "wrong_type"
            return self._reject(path, code, 'Set the type of the elements: {"type": "city", "options": {}}.')
        if depth > limits.MAX_NESTING:
            return self._reject(
                path, "too_deep", f"Fields can be nested at most {limits.MAX_NESTING} levels deep."
            )
        self._count += 1
        if self._count > limits.MAX_FIELDS:
            return self._reject(path, "too_many", f"A template has at most {limits.MAX_FIELDS} fields.")
        found = self._field({"name": "item", **raw}, path, depth)
        return () if found is None else (found,)


_MESSAGES = {
    "missing": ("required", "This is required."),
    "extra_forbidden": ("unknown_key", "This key is not supported here."),
}


def validate_model(model: type[BaseModel], raw: dict[str, Any], path: str, faults: list[Fault]) -> Any:
    """``raw`` as an instance of ``model``, or None after appending all errors to ``faults``."""
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        if error.error_count() > limits.MAX_FAULTS:  # listing them would take longer than finding them
            faults.append(
                Fault(path, "too_many", f"There are {error.error_count():,} errors here, too many to list.")
            )
        else:
            found = [
                _fault(item, model, raw, path)
                for item in error.errors(include_url=False, include_context=True)
            ]
            faults.extend(drop_other_union_branches(found))
        return None


def _fault(item: Any, model: type[BaseModel], raw: Any, path: str) -> Fault:
    where = pydantic_error_path(item, raw, path)
    code, message = _MESSAGES.get(item["type"]) or (item["type"], pydantic_message(item))
    hint: str | None = ""
    if item["type"] == "extra_forbidden" and item["loc"]:
        known = [info.alias or name for name, info in model.model_fields.items()]
        hint = did_you_mean(str(item["loc"][-1]), known)
        if not hint and known:
            hint = "Known: " + ", ".join(known) + "."
    return Fault(where, code, message, hint)
