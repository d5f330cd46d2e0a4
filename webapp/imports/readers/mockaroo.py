"""Mockaroo's schema files: types are found by the names that they have there, and each option becomes ours.

An option without a counterpart is reported with its name. Names with dots become nested objects where Mockaroo makes
them, in JSON; formulas are translated from Ruby where that is possible (see `mockaroo_formulas`).
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
from webapp.imports.readers.base import FALLBACK, Read, Source, Table, Unreadable, clean, named
from webapp.imports.readers.mockaroo_formulas import Untranslatable

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
_UNLIKE: Final = frozenset({"repeating element"})
"""Types whose name means something else here."""
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
_PLACES: Final = frozenset(
    "city state state_abbr zip_code street_address street_name street_number latitude longitude phone_number"
    " first_name last_name name time_zone address_line_2".split()
)
"""Types that a locale restricts to one country."""


def is_one(value: Any) -> bool:
    """Whether a JSON document is such a file."""
    inner = value.get("columns") if isinstance(value, dict) else None
    return (
        isinstance(inner, list)
        and bool(inner)
        and all(isinstance(one, dict) and "type" in one for one in inner)
    )


def read(source: Source, words: Vocabulary) -> Read:
    """One table. Raises `Unreadable`."""
    value = json_rows.parsed(source)
    if not is_one(value):
        raise Unreadable(
            "This is no schema file of Mockaroo.", 'It needs {"name": ..., "columns": [{"name", "type"}]}.'
        )
    found = Read("mockaroo")
    schema = _Schema(value, words)
    title = clean(value.get("name") or source.stem) or "rows"
    kept = schema.columns()
    table = Table(Entity(title, (title,), tuple(Column(one.name, "text", one.called) for one in kept)))
    table.ready = {one.name: one.found() for one in kept}
    for name, text in schema.told.items():
        if name in table.ready:
            table.note(name, text)
    csv.beyond(title, named(one.get("name", "") for one in value["columns"])[0], found)
    found.tables.append(table)
    return found


@dataclasses.dataclass(slots=True)
class _ColumnDraft:
    """One column on its way; one with `inside` is an object."""

    name: str
    called: str
    """The name of its type in the file."""
    field: Field
    lost: list[str] = dataclasses.field(default_factory=list)
    red: str = ""
    inside: list[_ColumnDraft] = dataclasses.field(default_factory=list)
    path: str = ""

    def definition(self) -> Field:
        """The field, with the fields inside it."""
        if not self.inside:
            return self.field
        options = {**self.field["options"], "fields": [one.definition() for one in self.inside]}
        return {**self.field, "options": options}

    def reasons(self) -> list[str]:
        """What is to be told, of the columns inside with their names."""
        return (
            ([self.red] if self.red else [])
            + self.lost
            + [f"{one.name}: {text}" for one in self.inside for text in one.reasons()]
        )

    def is_red(self) -> bool:
        """Whether text stands for it, or for a column inside it."""
        return bool(self.red) or any(one.is_red() for one in self.inside)

    def found(self) -> ColumnResult:
        """What the report says of it."""
        reasons, kind = self.reasons(), find(self.field["type"])
        if reasons:
            return ColumnResult(
                self.name, self.definition(), "red" if self.is_red() else "yellow", " ".join(reasons)
            )
        label = kind.label if kind else self.field["type"]
        said = f'"{self.called}" is {label} here.' if self.called else f"An object: {label}."
        return ColumnResult(self.name, self.definition(), "green", said)


class _Options:
    """The options of a column, with a note of those that were taken."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = {key: one for key, one in given.items() if one not in (None, "", [], {})}
        self._taken = set(_COMMON)

    def take(self, *names: str) -> Any:
        """The value of the option of one of these names, or None."""
        self._taken.update(names)
        return next((self._given[name] for name in names if name in self._given), None)

    def number(self, *names: str) -> int | float | None:
        """An option that is a number, which may be written as text."""
        value = self.take(*names)
        try:
            found = float(str(value).replace(",", "")) if value is not None else None
        except ValueError:
            found = None
        if found is None or isinstance(value, bool) or not math.isfinite(found):
            self._taken -= set(names) if value is not None else set()
            return None
        return int(found) if found == int(found) else found

    def lose(self, *names: str) -> None:
        """Has options reported that were looked at, but are not kept."""
        self._taken -= set(names)

    def left(self) -> list[str]:
        """The names of the options that no one took and that say something."""
        return [name for name, one in self._given.items() if name not in self._taken and one is not False]


class _Schema:
    def __init__(self, value: Mapping[str, Any], words: Vocabulary) -> None:
        self._words = words
        self._given: list[Mapping[str, Any]] = value["columns"][: limits.MAX_FIELDS]
        self._paths = {clean(one.get("name", "")) for one in self._given}
        self.told: dict[str, str] = {}
        form = str(value.get("file_format") or "json").casefold()
        self._nested = form == "json" or any(
            str(one["type"]).casefold() == "json array" for one in self._given
        )
        self._leaves: list[tuple[_ColumnDraft, Mapping[str, Any]]] = []
        self._cartesian = [
            len(_listed(one.get("values"))) for one in self._given if one.get("selectionStyle") == "cartesian"
        ]
        self._cartesian_seen = 0

    # --- Columns, and objects of them -----------------------------------------------------------------------

    def columns(self) -> list[_ColumnDraft]:
        """The columns at the top, each with what is inside it."""
        top: list[_ColumnDraft] = []
        names, changed = named(one.get("name", "") for one in self._given)
        self.told = dict(changed)
        for name, given in zip(names, self._given, strict=True):
            made = self._column(name, given)
            self._leaves.append((made, given))
            self._place(top, made, given)
        first: dict[str, str] = {}
        for made, _ in self._leaves:
            kind = find(made.field["type"])
            said = made.field.get("locale") or made.field["options"].get("sex")
            if kind is None or kind.group_kind is None or not isinstance(said, str):
                continue
            # Columns about other people or places than the first ones have a group of their own.
            if first.setdefault(kind.group_kind, said) != said:
                made.field["group"] = f"{kind.group_kind}_{said.casefold()}"
        for one in top:
            self._check(one)
        self._formulas(top)
        return top

    def _place(self, top: list[_ColumnDraft], made: _ColumnDraft, given: Mapping[str, Any]) -> None:
        """Puts a column into the object that its name says."""
        parts = made.path.split(".")
        if not self._nested or not all(parts) or len(parts) > limits.MAX_NESTING:
            parts = [made.path]
        array = str(given["type"]).casefold() == "json array"
        level = top
        for part in parts[:-1]:
            name, count = _counted(part)
            node = next((one for one in level if one.name == name and one.field["type"] == "nested"), None)
            if node is None:
                if any(one.name == name for one in level):  # a value and an object of one name
                    parts = [made.path]
                    level = top
                    break
                node = _ColumnDraft(name, "", definition(name, "nested", {}))
                level.append(node)
            if count is not None:
                node.field["options"] |= {"array": True, "count": count}
            level = node.inside
        name, count = _counted(parts[-1]) if self._nested else (parts[-1], None)
        node = next((one for one in level if one.name == name and one.field["type"] == "nested"), None)
        if array and node is not None:
            node.called, node.lost = made.called, node.lost + made.lost
            node.field = {**made.field, "name": name, "options": made.field["options"]}
            return
        made.name = name
        if count is not None and not array:
            inner = {key: one for key, one in made.field.items() if key not in ("name", "hidden")}
            made.field = definition(name, "array", {"of": inner, "count": count})
        made.field = {**made.field, "name": name}
        if name.startswith("__"):  # Mockaroo leaves such columns out of its files
            made.field["hidden"] = True
        level.append(made)

    def _column(self, name: str, given: Mapping[str, Any]) -> _ColumnDraft:
        called = clean(given["type"])
        kind = None
        if called.casefold() not in _UNLIKE:
            kind = find(_TYPES.get(called.casefold(), called))
        options = _Options(given)
        if kind is None or kind.name in ("dataset_column", "template", "array"):
            red = f'Plain text stands for it: there is no type "{called}" here. Pick one that is like it.'
            if kind is not None and kind.name == "dataset_column":
                dataset, column = clean(options.take("dataset") or ""), clean(options.take("column") or "")
                red = (
                    f'Plain text stands for it: it takes the column "{column}" of the dataset "{dataset}". Upload that'
                    f" file, and choose the type {kind.label}."
                )
            made = _ColumnDraft(name, called, definition(name, FALLBACK, {"count": 2}), red=red, path=name)
        else:
            made = _ColumnDraft(name, called, definition(name, kind.name), path=name)
            convert = _CONVERT.get(kind.name)
            if convert is not None:
                convert(self, made, options)
            if kind.name == "first_name":
                sex = next((one for one in ("female", "male") if f"({one})" in called.casefold()), None)
                if sex is not None:
                    made.field["options"]["sex"] = sex
            if called.casefold() == "gender (abbrev)":
                made.field = definition(name, "enum", {"values": ["F", "M"]})
            if kind.name in _PLACES or kind.name in ("country", "country_code"):
                self._countries(made, kind.name, options)
        share = _Options(given).number("null_percentage", "percentBlank", "percentageBlank")
        if share is not None and 0 < share <= 100 and made.field["type"] != "null":
            made.field["percent_blank"] = round(float(share), 2)
        for one in options.left():
            shown = json.dumps(given[one], ensure_ascii=False)
            made.lost.append(f'The option "{clean(one)}" is not kept: {clean(shown)[:60]}.')
        return made

    def _countries(self, made: _ColumnDraft, kind: str, options: _Options) -> None:
        """Restricts a type to countries: a list of them, or the locale of the only one."""
        listed = _listed(options.take("countries", "country"))
        if options.take("onlyUSPlaces", "onlyUsPlaces") is True:
            listed = listed or ["United States"]
        if not listed:
            return
        geography = geography_of(self._words)
        rows = [geography.country_row(str(one)) for one in listed]
        codes = [None if row is None else geography.countries["alpha2"][row].as_py() for row in rows]
        if kind == "country":
            made.field = definition(made.name, "enum", {"values": listed})
        elif kind == "country_code" and None not in codes:
            made.field = definition(made.name, "enum", {"values": codes})
        elif len(codes) == 1 and (locale := self._locale(codes[0])) is not None:
            made.field["locale"] = locale
        else:
            options.lose("countries", "country", "onlyUSPlaces", "onlyUsPlaces")

    def _locale(self, code: str | None) -> str | None:
        if code == "US":
            return "en_US"
        return next((one for one in sorted(self._words.locales) if code and one.endswith(f"_{code}")), None)

    # --- Options --------------------------------------------------------------------------------------------

    def list_of_values(self, made: _ColumnDraft, options: _Options) -> None:
        """A custom list: at random, weighted, one after the other, or by rules about other columns."""
        values = _listed(options.take("values"))
        style = str(options.take("selectionStyle", "selection_style") or "random").casefold()
        weights, distribution = options.take("weights"), options.take("distribution")
        made.field["options"]["values"] = values
        if isinstance(weights, list) and len(weights) == len(values):
            made.field["options"]["weights"] = weights
        elif weights is not None:
            options.lose("weights")
        if style in ("sequential", "cyclic", "cartesian") and values:
            self._in_turn(made, values, style)
        elif style in ("custom", "weighted", "dynamic"):
            if isinstance(distribution, list) and all(isinstance(one, dict) for one in distribution):
                self._distributed(made, values, distribution)
                return
            if (
                isinstance(distribution, list)
                and len(distribution) == len(values)
                and all(isinstance(one, int | float) and one >= 0 for one in distribution)
            ):
                made.field["options"]["weights"] = distribution
                return
        elif style != "random":
            options.lose("selectionStyle", "selection_style")
        if distribution is not None:  # which Mockaroo keeps, but uses with the style "custom" only
            made.lost.append(
                f'The option "distribution" is not used with the selection style "{clean(style)}".'
            )

    def _in_turn(self, made: _ColumnDraft, values: list[Any], style: str) -> None:
        if len(values) > limits.MOCKAROO_SEQUENTIAL_VALUES:
            made.lost.append(f'The option "selectionStyle" is not kept: "{style}" with {len(values)} values.')
            return
        slower = 1
        if style == "cartesian":
            self._cartesian_seen += 1
            slower = math.prod(self._cartesian[self._cartesian_seen :])
        place = "row - 1" if slower == 1 else f"(row - 1) // {slower}"
        cases = ", ".join(f"{number}, {_literal(one)}" for number, one in enumerate(values))
        expression = f"switch(({place}) % {len(values)}, {cases})"
        if len(values) == 1:
            made.field = definition(made.name, "constant", {"value": values[0]})
        else:
            made.field = definition(made.name, "formula", {"expression": expression})

    def _distributed(self, made: _ColumnDraft, values: list[Any], rules: list[dict[str, Any]]) -> None:
        """Weights; those that depend on other columns become cases."""
        plain = {str(one).strip(): one for one in values}
        cases, otherwise = [], None
        for rule in rules:
            shares = rule.get("frequencies")
            if not isinstance(shares, dict):
                continue
            parts = {plain.get(str(key).strip(), key): _share(one) for key, one in shares.items()}
            kept = {value: share for value, share in parts.items() if share > 0}
            if not kept:
                continue
            if rule.get("rule"):
                cases.append((str(rule["rule"]), kept))
            else:
                otherwise = kept
        if not cases:
            if otherwise:
                weights = [otherwise[one] for one in otherwise]
                made.field = definition(made.name, "enum", {"values": list(otherwise), "weights": weights})
            return
        found = []
        for rule_text, kept in cases:
            try:
                when = mockaroo_formulas.translated(rule_text, self.namer(made))
            except (Untranslatable, RecursionError) as error:
                told = (
                    f'The rule "{clean(rule_text)[:80]}" of the option "distribution" is not kept ({error}).'
                )
                made.lost.append(told)
                continue
            found.append({"when": when, "then_formula": _chosen(kept)})
        if found:
            rest = otherwise or dict.fromkeys(values, 1.0)
            options = {"cases": found, "else_formula": _chosen(rest)}
            made.field = definition(made.name, "case", options)

    # --- Formulas -------------------------------------------------------------------------------------------

    def namer(self, made: _ColumnDraft) -> Callable[[str], str | None]:
        """How the other columns are written in a formula of this one."""
        paths = self._paths
        own = made.path.split(".")[:-1] if self._nested else []

        def name_of(asked: str) -> str | None:
            near = ".".join([*own, asked])
            path = near if near in paths else asked if asked in paths else None
            if path is None or path == made.path:
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

    def _formulas(self, top: list[_ColumnDraft]) -> None:
        for made, given in self._leaves:
            if made.red or made.field["type"] == "array":
                if given.get("formula"):
                    made.lost.append(_lost("formula", given["formula"], "its values are not Mockaroo's"))
                continue
            if made.field["type"] == "formula" and not made.field["options"]:
                expression = self._translated(made, given.get("value"), "value")
                if expression is None:
                    self._as_text(made)
                    continue
                made.field["options"]["expression"] = expression
            formula = self._translated(made, given.get("formula"), "formula")
            if formula is not None:
                made.field["formula"] = formula
        for _ in range(_ROUNDS):  # takes away what does not fit the other columns: formulas first, then types
            try:
                compile_plan(parse([one.definition() for one in top[: limits.MAX_FIELDS]]), self._words)
            except SpecError as error:
                changed = [self._simplify(top, fault.path, fault.message) for fault in error.faults]
                if not any(changed):
                    return
            else:
                return

    def _translated(self, made: _ColumnDraft, source: Any, option: str) -> str | None:
        if not isinstance(source, str) or not source.strip():
            return None
        try:
            if len(source) > limits.MAX_FORMULA_CHARS:
                raise Untranslatable("it is too long")
            return mockaroo_formulas.translated(source, self.namer(made))
        except (Untranslatable, RecursionError) as error:
            made.lost.append(_lost(option, source, str(error) or "it is nested too deeply"))
            return None

    def _as_text(self, made: _ColumnDraft) -> None:
        """Text stands for a column whose formula is not kept."""
        kept: Field = {one: made.field[one] for one in ("percent_blank", "hidden") if one in made.field}
        made.field = {**definition(made.name, FALLBACK, {"count": 2}), **kept}
        made.red = "Plain text stands for it."

    def _simplify(self, top: list[_ColumnDraft], path: str, message: str) -> bool:
        made, level = None, top
        for place in re.findall(r"fields\[(\d+)\]", path):
            if int(place) >= len(level):
                break
            made = level[int(place)]
            level = made.inside
        if made is None or made.inside:
            return False
        if "formula" in made.field and path.endswith(".formula"):
            made.lost.append(_lost("formula", made.field.pop("formula"), message))
        elif made.field["type"] in ("formula", "derived"):
            made.lost.append(_lost("value", next(iter(made.field["options"].values())), message))
            self._as_text(made)
        elif made.field["type"] == "case":
            made.lost.append(_lost("distribution", "its rules", message))
            self._as_text(made)
        else:
            return False
        return True

    def _check(self, made: _ColumnDraft) -> None:
        """Takes options away that do not fit their type, then the type itself."""
        for one in made.inside:
            self._check(one)
        if (
            made.inside
            or made.red
            or "formula" in made.field
            or made.field["type"] in ("formula", "case", "derived")
        ):
            return
        kept: Field = {key: made.field[key] for key in ("percent_blank", "hidden") if key in made.field}
        if self._fits(made.field):
            return
        kind = find(made.field["type"])
        dropped = {**definition(made.name, made.field["type"]), **kept}
        if self._fits(dropped):
            names = ", ".join(f'"{one}"' for one in made.field["options"]) or "its locale"
            made.lost.append(
                f"What its options say ({names}) does not fit {kind.label if kind else ''}: left out."
            )
            made.field = dropped
        else:
            made.field = {**definition(made.name, FALLBACK, {"count": 2}), **kept}
            label = kind.label if kind else made.called
            made.red = f"Plain text stands for it: {label} needs options that the file does not have."

    def _fits(self, made: Field) -> bool:
        try:
            compile_plan(parse([{key: one for key, one in made.items() if key != "hidden"}]), self._words)
        except SpecError:
            return False
        return True


_ROUNDS: Final = 12  # chosen: faults of columns that use each other come to light one after the other


def _lost(option: str, source: Any, why: str) -> str:
    return f'The option "{option}" is not kept ({clean(why)[:100]}): {clean(source)[:120]}'


def _listed(value: Any) -> list[Any]:
    if isinstance(value, str):
        return [one.strip() for one in value.split(",") if one.strip()]
    listed = value if isinstance(value, list) else []
    return [json.dumps(one) if isinstance(one, list | dict) else one for one in listed if one is not None]


def _share(value: Any) -> float:
    try:
        found = float(value)
    except (TypeError, ValueError):
        return 0.0
    return found if math.isfinite(found) else 0.0


def _literal(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _chosen(shares: Mapping[Any, float]) -> str:
    """A formula that draws one of the values by their weights, which are rounded to hundredths."""
    if len(shares) == 1:
        return _literal(next(iter(shares)))
    least = min(shares.values())
    total = sum(shares.values())
    whole = [share / least for share in shares.values()]
    even = all(abs(one - round(one)) < 1e-9 for one in whole) and sum(whole) <= 100
    times = [round(one) if even else max(1, round(100 * share / total))
             for one, share in zip(whole, shares.values(), strict=True)]  # fmt: skip
    drawn = [_literal(value) for value, number in zip(shares, times, strict=True) for _ in range(number)]
    return f"choose({', '.join(drawn)})"


def _counted(part: str) -> tuple[str, dict[str, int] | None]:
    """A name such as `lines[1-3]`: the name, and how many elements."""
    match = re.fullmatch(r"(.+)\[(\d{1,4})(?:-(\d{1,4}))?\]", part)
    if match is None:
        return part, None
    return match[1], {"min": int(match[2]), "max": int(match[3] or match[2])}


_MOMENTS: Final = (
    "%m/%d/%Y %I:%M %p", "%m/%d/%Y %H:%M:%S", "%m/%d/%Y %H:%M", "%m/%d/%Y", "%Y-%m-%dT%H:%M:%S.%fZ",
    "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d",
)  # fmt: skip


def _moment(value: Any, day: bool) -> str | None:
    """A bound, which is usually written as in the United States."""
    for form in _MOMENTS:
        try:
            found = datetime.strptime(str(value).strip().removesuffix("Z"), form.removesuffix("Z"))  # noqa: DTZ007
        except ValueError:
            continue
        plain = day or not (found.hour or found.minute or found.second)
        return found.date().isoformat() if plain else found.isoformat()
    return None


def _clock(value: Any) -> str | None:
    for form in ("%I:%M %p", "%I:%M:%S %p", "%H:%M:%S", "%H:%M"):
        try:
            return datetime.strptime(str(value).strip(), form).strftime("%H:%M:%S")  # noqa: DTZ007
        except ValueError:
            continue
    return None


_CLOCKS: Final = {
    "12 hour": "%I:%M %p", "24 hour": "%H:%M", "12 hour w/seconds": "%I:%M:%S %p", "24 hour w/seconds": "%H:%M:%S",
    "24 hour w/millis": "%H:%M:%S.%f",
}  # fmt: skip


def _bounds(reader: Callable[[Any], str | None], made: _ColumnDraft, options: _Options) -> None:
    for end in ("min", "max"):
        value = options.take(end)
        found = reader(value) if value is not None else None
        if found is not None:
            made.field["options"][end] = found
        elif value is not None:
            options.lose(end)


def _days(schema: _Schema, made: _ColumnDraft, options: _Options) -> None:
    day = made.field["type"] == "date" and "%H" not in str(options.take("format") or "")
    _bounds(lambda value: _moment(value, day), made, options)
    form = options.take("format", "date_format")
    if isinstance(form, str) and "%" in form:
        made.field["options"]["format"] = form
    elif form is not None:
        options.lose("format", "date_format")


def _time(schema: _Schema, made: _ColumnDraft, options: _Options) -> None:
    _bounds(_clock, made, options)
    form = str(options.take("format") or "")
    if form.casefold() in _CLOCKS or "%" in form:
        made.field["options"]["format"] = _CLOCKS.get(form.casefold(), form)
    elif form:
        options.lose("format")


def _named_numbers(names: Mapping[str, Sequence[str]]) -> Callable[[_Schema, _ColumnDraft, _Options], None]:
    """Options that are numbers, by our names."""

    def convert(schema: _Schema, made: _ColumnDraft, options: _Options) -> None:
        for ours, theirs in names.items():
            value = options.number(*theirs)
            if value is not None:
                made.field["options"][ours] = value

    return convert


def _number(schema: _Schema, made: _ColumnDraft, options: _Options) -> None:
    _named_numbers({"min": ("min",), "max": ("max",), "decimals": ("decimals",)})(schema, made, options)
    if not made.field["options"].get("decimals"):
        made.field["options"].pop("decimals", None)


def _count(schema: _Schema, made: _ColumnDraft, options: _Options) -> None:
    """As many as the largest number says."""
    least, most = options.number("min", "min_paragraphs"), options.number("max", "max_paragraphs")
    ends = [one for one in (least, most) if one is not None]
    if ends:
        made.field["options"]["count"] = max(1, min(int(max(ends)), limits.MAX_WORDS))
    if least is not None and least != max(ends):
        options.lose("min", "min_paragraphs")


def _format(schema: _Schema, made: _ColumnDraft, options: _Options) -> None:
    value = options.take("format", "mask")
    if value is not None:
        made.field["options"]["format"] = str(value)


_SIGNS: Final = {
    "#": "[0-9]", "@": "[a-z]", "^": "[A-Z]", "*": "[0-9A-Za-z]", "$": "[0-9a-z]", "%": "[0-9A-Z]",
}  # fmt: skip


def _characters(schema: _Schema, made: _ColumnDraft, options: _Options) -> None:
    mask = str(options.take("format", "mask") or "")
    if "$" in mask or "%" in mask:  # for which there is no sign here
        signs = re.findall(r"\\?.", mask)
        pattern = "".join(_SIGNS.get(one, re.escape(one[-1])) for one in signs)
        made.field = definition(made.name, "regexp", {"string": pattern})
    elif mask:
        made.field["options"]["mask"] = mask


def _phone(schema: _Schema, made: _ColumnDraft, options: _Options) -> None:
    form = options.take("format")
    if isinstance(form, str) and "#" in form:
        made.field["options"]["format"] = form
    elif form is not None:
        options.lose("format")


_POSIX: Final = {
    "upper": "A-Z", "lower": "a-z", "alpha": "A-Za-z", "digit": "0-9", "alnum": "0-9A-Za-z", "xdigit": "0-9A-Fa-f",
}  # fmt: skip


def _pattern(schema: _Schema, made: _ColumnDraft, options: _Options) -> None:
    value = options.take("value")
    if value is None:
        return
    text = str(value)
    for name, characters in _POSIX.items():
        text = text.replace(f"[[:{name}:]]", f"[{characters}]")
        text = re.sub(rf"(\[[^\]]*)\[:{name}:\]", rf"\g<1>{characters}", text)
        text = text.replace(f"[:{name}:]", f"[{characters}]")
    made.field["options"]["string"] = text


def _money(schema: _Schema, made: _ColumnDraft, options: _Options) -> None:
    _named_numbers({"min": ("min",), "max": ("max",), "decimals": ("decimals",)})(schema, made, options)
    symbol = options.take("symbol")
    if symbol == "none":
        made.field = definition(made.name, "number", {"decimals": 2, **made.field["options"]})
    elif symbol == "random":
        options.lose("symbol")
    elif symbol is not None:
        made.field["options"]["symbol"] = str(symbol)


def _cards(schema: _Schema, made: _ColumnDraft, options: _Options) -> None:
    names = ("cardTypes", "card_types", "types", "issuer", "cardType")
    listed = [re.sub(r"[^a-z]", "", str(one).casefold()) for one in _listed(options.take(*names))]
    issuers = [_ISSUERS.get(one, one) for one in listed]
    if issuers and set(issuers) <= set(_ISSUERS.values()):
        made.field["options"]["issuer"] = list(dict.fromkeys(issuers))
    elif issuers:
        options.lose(*names)


_ISSUERS: Final = {
    "visa": "visa", "mastercard": "mastercard", "amex": "amex", "americanexpress": "amex", "discover": "discover",
    "diners": "diners", "dinersclub": "diners", "jcb": "jcb", "unionpay": "unionpay", "chinaunionpay": "unionpay",
    "maestro": "maestro",
}  # fmt: skip


def _password(schema: _Schema, made: _ColumnDraft, options: _Options) -> None:
    length = options.number("minLength", "min_length", "length")
    if length is not None:
        made.field["options"]["length"] = int(length)
    asked = {"lower": "lower", "upper": "upper", "numbers": "digits", "symbols": "symbols"}
    counts = {ours: options.number(theirs) for theirs, ours in asked.items()}
    classes = [ours for ours, number in counts.items() if number]
    if classes:
        made.field["options"]["classes"] = classes


def _array(schema: _Schema, made: _ColumnDraft, options: _Options) -> None:
    least, most = options.number("minItems", "min"), options.number("maxItems", "max")
    count = {"min": int(least or 0), "max": int(most if most is not None else least or 5)}
    made.field["options"] |= {"array": True, "count": count}


def _size(schema: _Schema, made: _ColumnDraft, options: _Options) -> None:
    for ours, (least, most) in {
        "width": ("minWidth", "maxWidth"),
        "height": ("minHeight", "maxHeight"),
    }.items():
        low, high = options.number(least), options.number(most, ours)
        if high is not None or low is not None:
            made.field["options"][ours] = int(high if high is not None else low or 0)
        if low is not None and high is not None and low != high:
            options.lose(least)
    form = options.take("format")
    if form in ("png", "gif", "jpg"):
        made.field["options"]["format"] = form
    elif form is not None:
        options.lose("format")


def _text_of_fields(schema: _Schema, made: _ColumnDraft, options: _Options) -> None:
    """`{first} {last}`."""
    value = str(options.take("value", "template") or "")
    namer = schema.namer(made)

    def put(match: re.Match[str]) -> str:
        name = namer(match[1].strip())
        return match[0] if name is None else "{{" + name + "}}"

    made.field["options"]["value"] = re.sub(r"\{([^{}]+)\}", put, value)


def _constant(schema: _Schema, made: _ColumnDraft, options: _Options) -> None:
    made.field["options"]["value"] = str(options.take("value") or "")
    made.lost.append("The SQL expression is kept as text: no database runs it.")


def _formula(schema: _Schema, made: _ColumnDraft, options: _Options) -> None:
    options.take("value")


def _url(schema: _Schema, made: _ColumnDraft, options: _Options) -> None:
    options.take("includeProtocol", "includeHost")  # which ours has


_CONVERT: Final[Mapping[str, Callable[[_Schema, _ColumnDraft, _Options], None]]] = {
    "enum": _Schema.list_of_values, "number": _number, "date": _days, "datetime": _days, "time": _time,
    "words": _count, "sentences": _count, "paragraphs": _count, "phone_number": _phone, "regexp": _pattern,
    "digit_sequence": _format, "character_sequence": _characters, "money": _money, "nested": _array,
    "sequence": _named_numbers({"start": ("start",), "step": ("step",), "repeat": ("repeat",)}),
    "normal": _named_numbers({"mean": ("mean",), "stddev": ("sd", "stddev", "stdDev", "standardDeviation"),
                              "decimals": ("decimals",), "min": ("min",), "max": ("max",)}),
    "poisson": _named_numbers({"lambda_": ("mean", "lambda")}),
    "exponential": _named_numbers({"mean": ("mean",), "lambda_": ("lambda", "rate"), "decimals": ("decimals",)}),
    "geometric": _named_numbers({"probability": ("probability", "successProbability")}),
    "binomial": _named_numbers({"trials": ("trials", "n"), "probability": ("probability", "successProbability")}),
    "boolean": _named_numbers({"probability": ("probability",)}),
    "car_year": _named_numbers({"min": ("min",), "max": ("max",)}),
    "credit_card_number": _cards, "password": _password, "image_url": _size, "derived": _text_of_fields,
    "constant": _constant, "formula": _formula, "url": _url,
}  # fmt: skip
