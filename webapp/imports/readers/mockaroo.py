"""Read schema files of Mockaroo: types are found by their names in Mockaroo, and options are converted.

An option without a counterpart is reported with its name. Names with dots become nested objects for the formats for
which Mockaroo creates them (JSON); formulas are translated from Ruby if possible (see `mockaroo_formulas`).
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from webapp import limits
from webapp.connectors.schema import Column, Entity
from webapp.engine.data.vocabulary import Vocabulary
from webapp.engine.errors import SpecError
from webapp.engine.plan import compile_plan
from webapp.engine.spec import parse
from webapp.engine.types.geography import geography_of
from webapp.engine.types.registry import find
from webapp.imports.inference.columns import ColumnResult
from webapp.imports.inference.evidence import Field, definition
from webapp.imports.readers import csv, json_rows, mockaroo_formulas
from webapp.imports.readers.base import (
    FALLBACK,
    ParsedFile,
    Source,
    Table,
    UnreadableFileError,
    clean_name,
    unique_names,
)
from webapp.imports.readers.mockaroo_formulas import UntranslatableFormulaError

_TYPES: Final[Mapping[str, str]] = {
    "custom list": "enum", "blank": "null", "row number": "row_number", "datetime": "datetime", "date": "date",
    "regular expression": "regexp", "character sequence": "character_sequence", "digit sequence": "digit_sequence",
    "sentences": "sentences", "paragraphs": "paragraphs", "words": "words", "number": "number", "boolean": "boolean",
    "email address": "email", "ip address v4": "ipv4", "ip address v6": "ipv6", "guid": "uuid", "full name": "name",
    "phone": "phone_number", "postal code": "zip_code", "state (abbrev)": "state_abbr",
    "gender (abbrev)": "sex", "gender (binary)": "sex",
    "country code": "country_code", "currency code": "currency_code", "first name (european)": "first_name",
    "credit card #": "credit_card_number", "credit card type": "credit_card_type", "job title": "job_title",
    "company name": "company_name", "street address": "street_address", "url": "url", "domain name": "domain_name",
    "hex color": "hex_color", "isbn": "isbn", "ssn": "ssn", "time": "time", "mac address": "mac_address",
    "mongodb objectid": "mongodb_objectid", "buzzword": "words", "title": "title", "money": "money",
    "template": "derived", "json array": "nested", "sql expression": "constant",
}  # fmt: skip
_UNSUPPORTED_TYPES: Final = frozenset({"repeating element"})
"""Types of Mockaroo whose name has a different meaning in Rowsmith."""
_COMMON: Final = (
    "name",
    "type",
    "null_percentage",
    "percentBlank",
    "percentageBlank",
    "formula",
    "id",
    "position",
)
_LOCALIZED_TYPES: Final = frozenset(
    "city state state_abbr zip_code street_address street_name street_number latitude longitude phone_number"
    " first_name last_name name time_zone address_line_2".split()
)
"""Types that a locale restricts to one country."""


def is_schema_file(value: Any) -> bool:
    """Return whether a JSON document is a schema file of Mockaroo."""
    inner = value.get("columns") if isinstance(value, dict) else None
    return (
        isinstance(inner, list)
        and bool(inner)
        and all(isinstance(item, dict) and "type" in item for item in inner)
    )


def read(source: Source, vocabulary: Vocabulary) -> ParsedFile:
    """Read the file as one table. Raises `UnreadableFileError`."""
    value = json_rows.parse_json(source)
    if not is_schema_file(value):
        raise UnreadableFileError(
            "The file is not a Mockaroo schema.", 'It needs {"name": ..., "columns": [{"name", "type"}]}.'
        )
    result = ParsedFile("mockaroo")
    schema = _Schema(value, vocabulary)
    title = clean_name(value.get("name") or source.stem) or "rows"
    columns = schema.columns()
    table = Table(
        Entity(title, (title,), tuple(Column(column.name, "text", column.source_type) for column in columns))
    )
    table.known_results = {column.name: column.to_result() for column in columns}
    for name, text in schema.notes.items():
        if name in table.known_results:
            table.note(name, text)
    csv.report_excess_columns(
        title, unique_names(column.get("name", "") for column in value["columns"])[0], result
    )
    result.tables.append(table)
    return result


@dataclasses.dataclass(slots=True)
class _ColumnDraft:
    """One column while it is converted; a column with `children` is an object."""

    name: str
    source_type: str
    """The name of its type in the file."""
    field: Field
    warnings: list[str] = dataclasses.field(default_factory=list)
    error: str = ""
    children: list[_ColumnDraft] = dataclasses.field(default_factory=list)
    path: str = ""

    def to_field(self) -> Field:
        """Return the field, including its nested fields."""
        if not self.children:
            return self.field
        options = {**self.field["options"], "fields": [child.to_field() for child in self.children]}
        return {**self.field, "options": options}

    def reasons(self) -> list[str]:
        """Return the messages for the report; those of nested columns begin with their names."""
        return (
            ([self.error] if self.error else [])
            + self.warnings
            + [f"{child.name}: {text}" for child in self.children for text in child.reasons()]
        )

    def is_red(self) -> bool:
        """Return whether the column, or one inside it, was replaced by text."""
        return bool(self.error) or any(child.is_red() for child in self.children)

    def to_result(self) -> ColumnResult:
        """Return the result for the report."""
        reasons, kind = self.reasons(), find(self.field["type"])
        if reasons:
            return ColumnResult(
                self.name, self.to_field(), "red" if self.is_red() else "yellow", " ".join(reasons)
            )
        label = kind.label if kind else self.field["type"]
        reason = f'"{self.source_type}" is {label} here.' if self.source_type else f"An object: {label}."
        return ColumnResult(self.name, self.to_field(), "green", reason)


class _Options:
    """The options of a column; the used ones are recorded."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._raw = {key: option for key, option in options.items() if option not in (None, "", [], {})}
        self._used = set(_COMMON)

    def take(self, *names: str) -> Any:
        """Return the value of the first option with one of these names, or None."""
        self._used.update(names)
        return next((self._raw[name] for name in names if name in self._raw), None)

    def number(self, *names: str) -> int | float | None:
        """Return an option that is a number, which may be written as text, or None."""
        value = self.take(*names)
        try:
            found = float(str(value).replace(",", "")) if value is not None else None
        except ValueError:
            found = None
        if found is None or isinstance(value, bool) or not math.isfinite(found):
            self._used -= set(names) if value is not None else set()
            return None
        return int(found) if found == int(found) else found

    def discard(self, *names: str) -> None:
        """Mark options as unused, so that they are reported as lost."""
        self._used -= set(names)

    def unused_names(self) -> list[str]:
        """Return the names of the options that were not used and are not false."""
        return [name for name, item in self._raw.items() if name not in self._used and item is not False]


class _Schema:
    def __init__(self, value: Mapping[str, Any], vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._raw: list[Mapping[str, Any]] = value["columns"][: limits.MAX_FIELDS]
        self._paths = {clean_name(item.get("name", "")) for item in self._raw}
        self.notes: dict[str, str] = {}
        form = str(value.get("file_format") or "json").casefold()
        self._nested = form == "json" or any(
            str(item["type"]).casefold() == "json array" for item in self._raw
        )
        self._leaves: list[tuple[_ColumnDraft, Mapping[str, Any]]] = []
        self._cartesian = [
            len(_parse_list(item.get("values")))
            for item in self._raw
            if item.get("selectionStyle") == "cartesian"
        ]
        self._cartesian_seen = 0

    # --- Columns, and objects of them -----------------------------------------------------------------------

    def columns(self) -> list[_ColumnDraft]:
        """Return the top-level columns, including their nested columns."""
        top: list[_ColumnDraft] = []
        names, changed = unique_names(item.get("name", "") for item in self._raw)
        self.notes = dict(changed)
        for name, raw in zip(names, self._raw, strict=True):
            column = self._convert_column(name, raw)
            self._leaves.append((column, raw))
            self._insert_column(top, column, raw)
        first: dict[str, str] = {}
        for column, _ in self._leaves:
            kind = find(column.field["type"])
            restriction = column.field.get("locale") or column.field["options"].get("sex")
            if kind is None or kind.group_kind is None or not isinstance(restriction, str):
                continue
            # Columns about other people or places than the first ones have a group of their own.
            if first.setdefault(kind.group_kind, restriction) != restriction:
                column.field["group"] = f"{kind.group_kind}_{restriction.casefold()}"
        for draft in top:
            self._make_valid(draft)
        self._translate_formulas(top)
        return top

    def _insert_column(self, top: list[_ColumnDraft], column: _ColumnDraft, raw: Mapping[str, Any]) -> None:
        """Put a column into the object that its name refers to."""
        parts = column.path.split(".")
        if not self._nested or not all(parts) or len(parts) > limits.MAX_NESTING:
            parts = [column.path]
        array = str(raw["type"]).casefold() == "json array"
        level = top
        for part in parts[:-1]:
            name, count = _split_count(part)
            node = next(
                (draft for draft in level if draft.name == name and draft.field["type"] == "nested"), None
            )
            if node is None:
                if any(draft.name == name for draft in level):  # a value and an object of one name
                    parts = [column.path]
                    level = top
                    break
                node = _ColumnDraft(name, "", definition(name, "nested", {}))
                level.append(node)
            if count is not None:
                node.field["options"] |= {"array": True, "count": count}
            level = node.children
        name, count = _split_count(parts[-1]) if self._nested else (parts[-1], None)
        node = next(
            (draft for draft in level if draft.name == name and draft.field["type"] == "nested"), None
        )
        if array and node is not None:
            node.source_type, node.warnings = column.source_type, node.warnings + column.warnings
            node.field = {**column.field, "name": name, "options": column.field["options"]}
            return
        column.name = name
        if count is not None and not array:
            inner = {key: item for key, item in column.field.items() if key not in ("name", "hidden")}
            column.field = definition(name, "array", {"of": inner, "count": count})
        column.field = {**column.field, "name": name}
        if name.startswith("__"):  # Mockaroo leaves such columns out of its files
            column.field["hidden"] = True
        level.append(column)

    def _convert_column(self, name: str, raw: Mapping[str, Any]) -> _ColumnDraft:
        source_type = clean_name(raw["type"])
        kind = None
        if source_type.casefold() not in _UNSUPPORTED_TYPES:
            kind = find(_TYPES.get(source_type.casefold(), source_type))
        options = _Options(raw)
        if kind is None or kind.name in ("dataset_column", "template", "array"):
            error = f'Imported as text: the type "{source_type}" is not supported. Choose a similar type.'
            if kind is not None and kind.name == "dataset_column":
                dataset, dataset_column = (
                    clean_name(options.take("dataset") or ""),
                    clean_name(options.take("column") or ""),
                )
                error = (
                    f'Imported as text: it uses the column "{dataset_column}" of the dataset "{dataset}".'
                    f" Upload that dataset as a file, and choose the type {kind.label}."
                )
            column = _ColumnDraft(
                name, source_type, definition(name, FALLBACK, {"count": 2}), error=error, path=name
            )
        else:
            column = _ColumnDraft(name, source_type, definition(name, kind.name), path=name)
            convert = _CONVERTERS.get(kind.name)
            if convert is not None:
                convert(self, column, options)
            if kind.name == "first_name":
                sex = next(
                    (item for item in ("female", "male") if f"({item})" in source_type.casefold()), None
                )
                if sex is not None:
                    column.field["options"]["sex"] = sex
            if source_type.casefold() == "gender (abbrev)":
                column.field = definition(name, "enum", {"values": ["F", "M"]})
            if kind.name in _LOCALIZED_TYPES or kind.name in ("country", "country_code"):
                self._restrict_countries(column, kind.name, options)
        share = _Options(raw).number("null_percentage", "percentBlank", "percentageBlank")
        if share is not None and 0 < share <= 100 and column.field["type"] != "null":
            column.field["percent_blank"] = round(float(share), 2)
        for item in options.unused_names():
            value_text = json.dumps(raw[item], ensure_ascii=False)
            column.warnings.append(
                f'The option "{clean_name(item)}" was not imported: {clean_name(value_text)[:60]}.'
            )
        return column

    def _restrict_countries(self, column: _ColumnDraft, kind: str, options: _Options) -> None:
        """Restrict a type to countries: to a list of them, or to the locale of the only one."""
        countries = _parse_list(options.take("countries", "country"))
        if options.take("onlyUSPlaces", "onlyUsPlaces") is True:
            countries = countries or ["United States"]
        if not countries:
            return
        geography = geography_of(self._vocabulary)
        rows = [geography.country_row(str(country)) for country in countries]
        codes = [None if row is None else geography.countries["alpha2"][row].as_py() for row in rows]
        if kind == "country":
            column.field = definition(column.name, "enum", {"values": countries})
        elif kind == "country_code" and None not in codes:
            column.field = definition(column.name, "enum", {"values": codes})
        elif len(codes) == 1 and (locale := self._locale(codes[0])) is not None:
            column.field["locale"] = locale
        else:
            options.discard("countries", "country", "onlyUSPlaces", "onlyUsPlaces")

    def _locale(self, code: str | None) -> str | None:
        if code == "US":
            return "en_US"
        return next(
            (locale for locale in sorted(self._vocabulary.locales) if code and locale.endswith(f"_{code}")),
            None,
        )

    # --- Options --------------------------------------------------------------------------------------------

    def convert_list(self, column: _ColumnDraft, options: _Options) -> None:
        """Convert a custom list: random, weighted, in order, or by rules about other columns."""
        values = _parse_list(options.take("values"))
        style = str(options.take("selectionStyle", "selection_style") or "random").casefold()
        weights, distribution = options.take("weights"), options.take("distribution")
        column.field["options"]["values"] = values
        if isinstance(weights, list) and len(weights) == len(values):
            column.field["options"]["weights"] = weights
        elif weights is not None:
            options.discard("weights")
        if style in ("sequential", "cyclic", "cartesian") and values:
            self._select_in_order(column, values, style)
        elif style in ("custom", "weighted", "dynamic"):
            if isinstance(distribution, list) and all(isinstance(item, dict) for item in distribution):
                self._apply_distribution(column, values, distribution)
                return
            if (
                isinstance(distribution, list)
                and len(distribution) == len(values)
                and all(isinstance(item, int | float) and item >= 0 for item in distribution)
            ):
                column.field["options"]["weights"] = distribution
                return
        elif style != "random":
            options.discard("selectionStyle", "selection_style")
        if distribution is not None:  # which Mockaroo keeps, but uses with the style "custom" only
            column.warnings.append(
                f'The option "distribution" is not used with the selection style "{clean_name(style)}".'
            )

    def _select_in_order(self, column: _ColumnDraft, values: list[Any], style: str) -> None:
        if len(values) > limits.MOCKAROO_SEQUENTIAL_VALUES:
            column.warnings.append(
                f'The option "selectionStyle" was not imported: "{style}" with {len(values)} values.'
            )
            return
        slower = 1
        if style == "cartesian":
            self._cartesian_seen += 1
            slower = math.prod(self._cartesian[self._cartesian_seen :])
        position = "row - 1" if slower == 1 else f"(row - 1) // {slower}"
        cases = ", ".join(f"{number}, {_literal(value)}" for number, value in enumerate(values))
        expression = f"switch(({position}) % {len(values)}, {cases})"
        if len(values) == 1:
            column.field = definition(column.name, "constant", {"value": values[0]})
        else:
            column.field = definition(column.name, "formula", {"expression": expression})

    def _apply_distribution(
        self, column: _ColumnDraft, values: list[Any], rules: list[dict[str, Any]]
    ) -> None:
        """Convert weights; those that depend on other columns become cases."""
        plain = {str(item).strip(): item for item in values}
        cases, otherwise = [], None
        for rule in rules:
            shares = rule.get("frequencies")
            if not isinstance(shares, dict):
                continue
            parts = {plain.get(str(key).strip(), key): _parse_weight(item) for key, item in shares.items()}
            positive = {value: share for value, share in parts.items() if share > 0}
            if not positive:
                continue
            if rule.get("rule"):
                cases.append((str(rule["rule"]), positive))
            else:
                otherwise = positive
        if not cases:
            if otherwise:
                weights = [otherwise[item] for item in otherwise]
                column.field = definition(
                    column.name, "enum", {"values": list(otherwise), "weights": weights}
                )
            return
        found = []
        for rule_text, positive in cases:
            try:
                when = mockaroo_formulas.translate(rule_text, self.name_resolver(column))
            except (UntranslatableFormulaError, RecursionError) as error:
                warning = (
                    f'The rule "{clean_name(rule_text)[:80]}" of the option "distribution" was not '
                    f"imported ({error})."
                )
                column.warnings.append(warning)
                continue
            found.append({"when": when, "then_formula": _weighted_choice(positive)})
        if found:
            rest = otherwise or dict.fromkeys(values, 1.0)
            options = {"cases": found, "else_formula": _weighted_choice(rest)}
            column.field = definition(column.name, "case", options)

    # --- Formulas -------------------------------------------------------------------------------------------

    def name_resolver(self, column: _ColumnDraft) -> Callable[[str], str | None]:
        """Return a function that translates names of other columns for a formula of this one."""
        paths = self._paths
        own = column.path.split(".")[:-1] if self._nested else []

        def name_of(name: str) -> str | None:
            sibling = ".".join([*own, name])
            path = sibling if sibling in paths else name if name in paths else None
            if path is None or path == column.path:
                return None
            parts = path.split(".") if self._nested else [path]
            if own and parts[: len(own)] == own:
                parts = parts[len(own) :]
            first = (
                parts[0]
                if re.fullmatch(r"(?!__)[A-Za-z_]\w*", parts[0])
                else f"field({json.dumps(parts[0])})"
            )
            return ".".join([first, *parts[1:]])

        return name_of

    def _translate_formulas(self, top: list[_ColumnDraft]) -> None:
        for column, raw in self._leaves:
            if column.error or column.field["type"] == "array":
                if raw.get("formula"):
                    column.warnings.append(
                        _option_warning("formula", raw["formula"], "its values differ from Mockaroo's")
                    )
                continue
            if column.field["type"] == "formula" and not column.field["options"]:
                expression = self._translate_formula(column, raw.get("value"), "value")
                if expression is None:
                    self._replace_with_text(column)
                    continue
                column.field["options"]["expression"] = expression
            formula = self._translate_formula(column, raw.get("formula"), "formula")
            if formula is not None:
                column.field["formula"] = formula
        for _ in range(
            _MAX_ROUNDS
        ):  # takes away what does not fit the other columns: formulas first, then types
            try:
                compile_plan(
                    parse([draft.to_field() for draft in top[: limits.MAX_FIELDS]]), self._vocabulary
                )
            except SpecError as error:
                changed = [
                    self._replace_failed_column(top, fault.path, fault.message) for fault in error.faults
                ]
                if not any(changed):
                    return
            else:
                return

    def _translate_formula(self, column: _ColumnDraft, source: Any, option: str) -> str | None:
        if not isinstance(source, str) or not source.strip():
            return None
        try:
            if len(source) > limits.MAX_FORMULA_CHARS:
                raise UntranslatableFormulaError("it is too long")
            return mockaroo_formulas.translate(source, self.name_resolver(column))
        except (UntranslatableFormulaError, RecursionError) as error:
            column.warnings.append(_option_warning(option, source, str(error) or "it is nested too deeply"))
            return None

    def _replace_with_text(self, column: _ColumnDraft) -> None:
        """Replace a column whose formula cannot be converted by text."""
        preserved: Field = {
            item: column.field[item] for item in ("percent_blank", "hidden") if item in column.field
        }
        column.field = {**definition(column.name, FALLBACK, {"count": 2}), **preserved}
        column.error = "Imported as text."

    def _replace_failed_column(self, top: list[_ColumnDraft], path: str, message: str) -> bool:
        column, level = None, top
        for index in re.findall(r"fields\[(\d+)\]", path):
            if int(index) >= len(level):
                break
            column = level[int(index)]
            level = column.children
        if column is None or column.children:
            return False
        if "formula" in column.field and path.endswith(".formula"):
            column.warnings.append(_option_warning("formula", column.field.pop("formula"), message))
        elif column.field["type"] in ("formula", "derived"):
            column.warnings.append(
                _option_warning("value", next(iter(column.field["options"].values())), message)
            )
            self._replace_with_text(column)
        elif column.field["type"] == "case":
            column.warnings.append(_option_warning("distribution", "its rules", message))
            self._replace_with_text(column)
        else:
            return False
        return True

    def _make_valid(self, column: _ColumnDraft) -> None:
        """Remove options that are invalid for their type; if that is not sufficient, replace the type by text."""
        for child in column.children:
            self._make_valid(child)
        if (
            column.children
            or column.error
            or "formula" in column.field
            or column.field["type"] in ("formula", "case", "derived")
        ):
            return
        preserved: Field = {
            key: column.field[key] for key in ("percent_blank", "hidden") if key in column.field
        }
        if self._is_valid(column.field):
            return
        kind = find(column.field["type"])
        without_options = {**definition(column.name, column.field["type"]), **preserved}
        if self._is_valid(without_options):
            names = ", ".join(f'"{option}"' for option in column.field["options"]) or "its locale"
            column.warnings.append(
                f"Options that are not valid for {kind.label if kind else 'this type'} were not imported: {names}."
            )
            column.field = without_options
        else:
            column.field = {**definition(column.name, FALLBACK, {"count": 2}), **preserved}
            label = kind.label if kind else column.source_type
            column.error = f"Imported as text: {label} requires options that the file does not contain."

    def _is_valid(self, field: Field) -> bool:
        try:
            compile_plan(
                parse([{key: item for key, item in field.items() if key != "hidden"}]), self._vocabulary
            )
        except SpecError:
            return False
        return True


_MAX_ROUNDS: Final = 12  # chosen: faults of columns that use each other come to light one after the other


def _option_warning(option: str, source: Any, why: str) -> str:
    return f'The option "{option}" was not imported ({clean_name(why)[:100]}): {clean_name(source)[:120]}'


def _parse_list(value: Any) -> list[Any]:
    if isinstance(value, str):
        return [item.strip() for item in value.split(",") if item.strip()]
    items = value if isinstance(value, list) else []
    return [json.dumps(item) if isinstance(item, list | dict) else item for item in items if item is not None]


def _parse_weight(value: Any) -> float:
    try:
        found = float(value)
    except (TypeError, ValueError):
        return 0.0
    return found if math.isfinite(found) else 0.0


def _literal(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _weighted_choice(shares: Mapping[Any, float]) -> str:
    """Return a formula that chooses one of the values by their weights, which are rounded to hundredths."""
    if len(shares) == 1:
        return _literal(next(iter(shares)))
    smallest = min(shares.values())
    total = sum(shares.values())
    ratios = [share / smallest for share in shares.values()]
    even = all(abs(ratio - round(ratio)) < 1e-9 for ratio in ratios) and sum(ratios) <= 100
    times = [round(ratio) if even else max(1, round(100 * share / total))
             for ratio, share in zip(ratios, shares.values(), strict=True)]  # fmt: skip
    choices = [_literal(value) for value, number in zip(shares, times, strict=True) for _ in range(number)]
    return f"choose({', '.join(choices)})"


def _split_count(part: str) -> tuple[str, dict[str, int] | None]:
    """Split a name such as `lines[1-3]` into the name and the number of elements."""
    match = re.fullmatch(r"(.+)\[(\d{1,4})(?:-(\d{1,4}))?\]", part)
    if match is None:
        return part, None
    return match[1], {"min": int(match[2]), "max": int(match[3] or match[2])}


_DATE_FORMATS: Final = (
    "%m/%d/%Y %I:%M %p", "%m/%d/%Y %H:%M:%S", "%m/%d/%Y %H:%M", "%m/%d/%Y", "%Y-%m-%dT%H:%M:%S.%fZ",
    "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d",
)  # fmt: skip


def _parse_date(value: Any, day: bool) -> str | None:
    """Return a bound in ISO format; it is usually written as in the United States. None if it is invalid."""
    for form in _DATE_FORMATS:
        try:
            found = datetime.strptime(str(value).strip().removesuffix("Z"), form.removesuffix("Z"))  # noqa: DTZ007
        except ValueError:
            continue
        plain = day or not (found.hour or found.minute or found.second)
        return found.date().isoformat() if plain else found.isoformat()
    return None


def _parse_time(value: Any) -> str | None:
    for form in ("%I:%M %p", "%I:%M:%S %p", "%H:%M:%S", "%H:%M"):
        try:
            return datetime.strptime(str(value).strip(), form).strftime("%H:%M:%S")  # noqa: DTZ007
        except ValueError:
            continue
    return None


_TIME_FORMATS: Final = {
    "12 hour": "%I:%M %p", "24 hour": "%H:%M", "12 hour w/seconds": "%I:%M:%S %p", "24 hour w/seconds": "%H:%M:%S",
    "24 hour w/millis": "%H:%M:%S.%f",
}  # fmt: skip


def _set_bounds(reader: Callable[[Any], str | None], column: _ColumnDraft, options: _Options) -> None:
    for end in ("min", "max"):
        value = options.take(end)
        found = reader(value) if value is not None else None
        if found is not None:
            column.field["options"][end] = found
        elif value is not None:
            options.discard(end)


def _convert_date(schema: _Schema, column: _ColumnDraft, options: _Options) -> None:
    day = column.field["type"] == "date" and "%H" not in str(options.take("format") or "")
    _set_bounds(lambda value: _parse_date(value, day), column, options)
    form = options.take("format", "date_format")
    if isinstance(form, str) and "%" in form:
        column.field["options"]["format"] = form
    elif form is not None:
        options.discard("format", "date_format")


def _convert_time(schema: _Schema, column: _ColumnDraft, options: _Options) -> None:
    _set_bounds(_parse_time, column, options)
    form = str(options.take("format") or "")
    if form.casefold() in _TIME_FORMATS or "%" in form:
        column.field["options"]["format"] = _TIME_FORMATS.get(form.casefold(), form)
    elif form:
        options.discard("format")


def _number_converter(
    names: Mapping[str, Sequence[str]],
) -> Callable[[_Schema, _ColumnDraft, _Options], None]:
    """Return a converter for options that are numbers, by their names in Rowsmith."""

    def convert(schema: _Schema, column: _ColumnDraft, options: _Options) -> None:
        for name, aliases in names.items():
            value = options.number(*aliases)
            if value is not None:
                column.field["options"][name] = value

    return convert


def _convert_number(schema: _Schema, column: _ColumnDraft, options: _Options) -> None:
    _number_converter({"min": ("min",), "max": ("max",), "decimals": ("decimals",)})(schema, column, options)
    if not column.field["options"].get("decimals"):
        column.field["options"].pop("decimals", None)


def _convert_count(schema: _Schema, column: _ColumnDraft, options: _Options) -> None:
    """Set the count to the largest number."""
    minimum, maximum = options.number("min", "min_paragraphs"), options.number("max", "max_paragraphs")
    numbers = [item for item in (minimum, maximum) if item is not None]
    if numbers:
        column.field["options"]["count"] = max(1, min(int(max(numbers)), limits.MAX_WORDS))
    if minimum is not None and minimum != max(numbers):
        options.discard("min", "min_paragraphs")


def _convert_format(schema: _Schema, column: _ColumnDraft, options: _Options) -> None:
    value = options.take("format", "mask")
    if value is not None:
        column.field["options"]["format"] = str(value)


_MASK_CHARACTERS: Final = {
    "#": "[0-9]", "@": "[a-z]", "^": "[A-Z]", "*": "[0-9A-Za-z]", "$": "[0-9a-z]", "%": "[0-9A-Z]",
}  # fmt: skip


def _convert_character_mask(schema: _Schema, column: _ColumnDraft, options: _Options) -> None:
    mask = str(options.take("format", "mask") or "")
    if "$" in mask or "%" in mask:  # for which there is no sign here
        signs = re.findall(r"\\?.", mask)
        pattern = "".join(_MASK_CHARACTERS.get(sign, re.escape(sign[-1])) for sign in signs)
        column.field = definition(column.name, "regexp", {"string": pattern})
    elif mask:
        column.field["options"]["mask"] = mask


def _convert_phone(schema: _Schema, column: _ColumnDraft, options: _Options) -> None:
    form = options.take("format")
    if isinstance(form, str) and "#" in form:
        column.field["options"]["format"] = form
    elif form is not None:
        options.discard("format")


_POSIX: Final = {
    "upper": "A-Z", "lower": "a-z", "alpha": "A-Za-z", "digit": "0-9", "alnum": "0-9A-Za-z", "xdigit": "0-9A-Fa-f",
}  # fmt: skip


def _convert_pattern(schema: _Schema, column: _ColumnDraft, options: _Options) -> None:
    value = options.take("value")
    if value is None:
        return
    text = str(value)
    for name, characters in _POSIX.items():
        text = text.replace(f"[[:{name}:]]", f"[{characters}]")
        text = re.sub(rf"(\[[^\]]*)\[:{name}:\]", rf"\g<1>{characters}", text)
        text = text.replace(f"[:{name}:]", f"[{characters}]")
    column.field["options"]["string"] = text


def _convert_money(schema: _Schema, column: _ColumnDraft, options: _Options) -> None:
    _number_converter({"min": ("min",), "max": ("max",), "decimals": ("decimals",)})(schema, column, options)
    symbol = options.take("symbol")
    if symbol == "none":
        column.field = definition(column.name, "number", {"decimals": 2, **column.field["options"]})
    elif symbol == "random":
        options.discard("symbol")
    elif symbol is not None:
        column.field["options"]["symbol"] = str(symbol)


def _convert_card_types(schema: _Schema, column: _ColumnDraft, options: _Options) -> None:
    names = ("cardTypes", "card_types", "types", "issuer", "cardType")
    types = [re.sub(r"[^a-z]", "", str(item).casefold()) for item in _parse_list(options.take(*names))]
    issuers = [_ISSUERS.get(item, item) for item in types]
    if issuers and set(issuers) <= set(_ISSUERS.values()):
        column.field["options"]["issuer"] = list(dict.fromkeys(issuers))
    elif issuers:
        options.discard(*names)


_ISSUERS: Final = {
    "visa": "visa", "mastercard": "mastercard", "amex": "amex", "americanexpress": "amex", "discover": "discover",
    "diners": "diners", "dinersclub": "diners", "jcb": "jcb", "unionpay": "unionpay", "chinaunionpay": "unionpay",
    "maestro": "maestro",
}  # fmt: skip


def _convert_password(schema: _Schema, column: _ColumnDraft, options: _Options) -> None:
    length = options.number("minLength", "min_length", "length")
    if length is not None:
        column.field["options"]["length"] = int(length)
    option_classes = {"lower": "lower", "upper": "upper", "numbers": "digits", "symbols": "symbols"}
    counts = {name: options.number(option) for option, name in option_classes.items()}
    classes = [name for name, number in counts.items() if number]
    if classes:
        column.field["options"]["classes"] = classes


def _convert_array(schema: _Schema, column: _ColumnDraft, options: _Options) -> None:
    minimum, maximum = options.number("minItems", "min"), options.number("maxItems", "max")
    count = {"min": int(minimum or 0), "max": int(maximum if maximum is not None else minimum or 5)}
    column.field["options"] |= {"array": True, "count": count}


def _convert_size(schema: _Schema, column: _ColumnDraft, options: _Options) -> None:
    for dimension, (minimum_option, maximum_option) in {
        "width": ("minWidth", "maxWidth"),
        "height": ("minHeight", "maxHeight"),
    }.items():
        low, high = options.number(minimum_option), options.number(maximum_option, dimension)
        if high is not None or low is not None:
            column.field["options"][dimension] = int(high if high is not None else low or 0)
        if low is not None and high is not None and low != high:
            options.discard(minimum_option)
    form = options.take("format")
    if form in ("png", "gif", "jpg"):
        column.field["options"]["format"] = form
    elif form is not None:
        options.discard("format")


def _convert_template(schema: _Schema, column: _ColumnDraft, options: _Options) -> None:
    """Convert a template such as `{first} {last}`."""
    value = str(options.take("value", "template") or "")
    namer = schema.name_resolver(column)

    def put(match: re.Match[str]) -> str:
        name = namer(match[1].strip())
        return match[0] if name is None else "{{" + name + "}}"

    column.field["options"]["value"] = re.sub(r"\{([^{}]+)\}", put, value)


def _convert_constant(schema: _Schema, column: _ColumnDraft, options: _Options) -> None:
    column.field["options"]["value"] = str(options.take("value") or "")
    column.warnings.append("The SQL expression is imported as text, because it is not run in a database.")


def _convert_formula(schema: _Schema, column: _ColumnDraft, options: _Options) -> None:
    options.take("value")


def _convert_url(schema: _Schema, column: _ColumnDraft, options: _Options) -> None:
    options.take("includeProtocol", "includeHost")  # which ours has


_CONVERTERS: Final[Mapping[str, Callable[[_Schema, _ColumnDraft, _Options], None]]] = {
    "enum": _Schema.convert_list, "number": _convert_number, "date": _convert_date, "datetime": _convert_date,
    "time": _convert_time,
    "words": _convert_count, "sentences": _convert_count, "paragraphs": _convert_count,
    "phone_number": _convert_phone, "regexp": _convert_pattern,
    "digit_sequence": _convert_format, "character_sequence": _convert_character_mask, "money": _convert_money,
    "nested": _convert_array,
    "sequence": _number_converter({"start": ("start",), "step": ("step",), "repeat": ("repeat",)}),
    "normal": _number_converter({"mean": ("mean",), "stddev": ("sd", "stddev", "stdDev", "standardDeviation"),
                              "decimals": ("decimals",), "min": ("min",), "max": ("max",)}),
    "poisson": _number_converter({"lambda_": ("mean", "lambda")}),
    "exponential": _number_converter({"mean": ("mean",), "lambda_": ("lambda", "rate"), "decimals": ("decimals",)}),
    "geometric": _number_converter({"probability": ("probability", "successProbability")}),
    "binomial": _number_converter({"trials": ("trials", "n"), "probability": ("probability", "successProbability")}),
    "boolean": _number_converter({"probability": ("probability",)}),
    "car_year": _number_converter({"min": ("min",), "max": ("max",)}),
    "credit_card_number": _convert_card_types, "password": _convert_password, "image_url": _convert_size,
    "derived": _convert_template,
    "constant": _convert_constant, "formula": _convert_formula, "url": _convert_url,
}  # fmt: skip
