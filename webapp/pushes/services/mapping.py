"""Which field goes into which column: suggested by name and type, or as the request says.

A column gets a field, a formula, or a reason why it is left out; one that needs a value and gets none is a fault,
told before anything is sent.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from webapp import limits
from webapp.connectors.base import Mode
from webapp.connectors.schema import Column, ColumnType, Entity
from webapp.errors import Fault, did_you_mean
from webapp.generation.services.row_makers import Field, unknown_field

DOCUMENTS: Final = ("collection", "endpoint", "entity_set", "operation")
"""Kinds of entities whose rows are documents: objects and arrays are taken as they are."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What one column gets. `how` it was found: given, computed, name, alike (letters and digits), synonym, label,
    type, or parent (a key that the target makes). `skipped` says why nothing is sent: identity, computed, default,
    nullable, update (not needed there), or left_out; it is missing where neither stands."""

    column: Column
    field: str | None = None
    formula: str | None = None
    how: str = ""
    skipped: str = ""

    @property
    def filled(self) -> bool:
        """Whether rows bring a value."""
        return bool(self.how)

    def as_json(self) -> dict[str, Any]:
        """As the API shows it."""
        state = "field" if self.filled else "skipped" if self.skipped else "missing"
        column = self.column
        return {
            "column": column.name,
            "state": state,
            "field": self.field,
            "formula": self.formula,
            "how": self.how or None,
            "skipped": self.skipped or None,
            "type": column.type,
            "declared": column.declared,
            "nullable": column.nullable,
            "key": column.key,
            "unique": column.unique,
            "max_length": column.max_length,
            "generated": column.generated,
            "default": column.default,
        }


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request says of one table. `path` stands before the faults' paths: `mappings.orders` of a dataset."""

    mapping: Mapping[str, str | None]
    computed: Mapping[str, str]
    mode: Mode = "insert"
    key_columns: Sequence[str] = ()
    mapping_path: str = "mapping"
    computed_path: str = "computed"


@dataclass(frozen=True, slots=True)
class Mapped:
    """The columns of a table and what they get, in their order; fields that go nowhere; what is wrong."""

    cells: list[Cell]
    unused: list[str]
    faults: list[Fault]

    def columns(self) -> dict[str, Cell]:
        """Those that rows bring, by name."""
        return {cell.column.name: cell for cell in self.cells if cell.filled}


def mapped(fields: Mapping[str, Field], entity: Entity, asked: Asked) -> Mapped:
    """The mapping of a request: what it names, the other fields by their names."""
    table = _Table(fields, entity, asked)
    table.take_given()
    table.take_computed()
    table.suggest()
    return table.result()


class _Table:
    """One mapping on its way."""

    def __init__(self, fields: Mapping[str, Field], entity: Entity, asked: Asked) -> None:
        self.fields, self.entity, self.asked = fields, entity, asked
        self.free_form = entity.kind in ("collection", "endpoint")
        self.cells = {column.name: Cell(column) for column in entity.fields}
        self.used: set[str] = set()
        self.faults: list[Fault] = []

    def take_given(self) -> None:
        """What the request names."""
        for name, wanted in self.asked.mapping.items():
            path = f"{self.asked.mapping_path}.{name}"
            if name not in self.fields:
                shown = [one.name for one in self.fields.values() if not one.hidden]
                self.faults.append(unknown_field(path, name, shown))
                continue
            self.used.add(name)
            if wanted is not None:
                self._take(path, wanted, Cell(_nothing(wanted), field=name, how="given"))
                whole = self.fields.get(name.partition(".")[0])
                if self.free_form and whole is not None and pa.types.is_struct(whole.dtype):
                    self.used.add(whole.name)  # what goes member by member does not go as a whole as well

    def take_computed(self) -> None:
        """Columns that have formulas."""
        for wanted, formula in self.asked.computed.items():
            path = f"{self.asked.computed_path}.{wanted}"
            self._take(path, wanted, Cell(_nothing(wanted), formula=formula, how="computed"))

    def _take(self, path: str, wanted: str, cell: Cell) -> None:
        column = self._column(wanted)
        if column is None:
            text = f'The table "{self.entity.name}" has no column "{wanted}".'
            hint = did_you_mean(wanted, self.cells)
            self.faults.append(Fault(path, "unknown_column", text, hint))
            return
        before = self.cells[column.name] if column.name in self.cells else Cell(column)
        if before.filled:
            other = before.field or before.formula
            text = f'The column "{column.name}" gets "{other}" already.'
            self.faults.append(Fault(path, "mapped_twice", text, "Set one of the two to null."))
        elif column.generated == "computed":
            text = f'The column "{column.name}" is computed by the target and cannot be written.'
            self.faults.append(Fault(path, "generated_column", text, "Take it out."))
        else:
            self.cells[column.name] = replace(cell, column=column)

    def _column(self, wanted: str) -> Column | None:
        found = self.entity.column(wanted)
        if found is not None:
            return found
        folded = [one for one in self.entity.fields if one.name.casefold() == wanted.casefold()]
        if len(folded) == 1:
            return folded[0]
        return Column(wanted, "other", "") if self.free_form else None

    def suggest(self) -> None:
        """Fields that the request does not name, to the columns that are still open; the surest first."""
        for how, key_of in _LEVELS:
            columns: dict[str, list[str]] = {}
            for column in self._open():
                for key in key_of.column(column, self.entity):
                    columns.setdefault(key, []).append(column.name)
            for field in self._left():
                names = [columns[key] for key in key_of.field(field, self.entity) if key in columns]
                fit = [
                    name
                    for found in names
                    for name in found
                    if not self.cells[name].filled
                    and (how in ("name", "alike") or _kin(field, self.cells[name].column))
                ]
                if fit:
                    self.used.add(field.name)
                    self.cells[fit[0]] = replace(self.cells[fit[0]], field=field.name, how=how)
        self._by_type()
        if self.free_form:
            for field in self._left():
                if "." not in field.name:
                    self.used.add(field.name)
                    new = Column(field.name, "other", "")
                    self.cells[field.name] = Cell(new, field=field.name, how="name")

    def _open(self) -> Iterator[Column]:
        # A foreign key that is also the target's counter takes the key of its parent.
        foreign = {
            name for one in self.entity.relations if one.entity != self.entity.name for name in one.columns
        }
        for cell in self.cells.values():
            column = cell.column
            keyed = column.name in self.asked.key_columns or column.name in foreign
            if cell.filled or column.generated == "computed" or (column.generated and not keyed):
                continue
            yield column

    def _left(self) -> list[Field]:
        return [one for one in self.fields.values() if not one.hidden and one.name not in self.used]

    def _by_type(self) -> None:
        """The one field and the one column that needs a value of a type that no other has."""
        waiting = [column for column in self._open() if column.required]
        for kind in _TELLING:
            columns = [column for column in waiting if column.type == kind]
            fields = [one for one in self._left() if kind in kinds_of(one)[:1]]
            if len(columns) == len(fields) == 1:
                name = columns[0].name
                self.used.add(fields[0].name)
                self.cells[name] = replace(self.cells[name], field=fields[0].name, how="type")

    def result(self) -> Mapped:
        """The table, with what every column without a field is left out for."""
        cells = [cell if cell.filled else self._skipped(cell) for cell in self.cells.values()]
        for cell in cells:
            if not cell.filled and not cell.skipped:
                text = f'The column "{cell.column.name}" needs a value, and no field goes there.'
                hint = "Name a field for it in mapping, or a formula in computed."
                left = [f'"{one.name}"' for one in self._left() if "." not in one.name]
                if 0 < len(left) <= limits.MAPPING_FIELDS_NAMED:
                    hint += f" Fields without a column: {', '.join(left)}."
                self.faults.append(Fault(self.asked.mapping_path, "missing_column", text, hint))
        if not any(cell.filled for cell in cells) and not self.faults:
            text = f'No field goes into a column of "{self.entity.name}".'
            self.faults.append(Fault(self.asked.mapping_path, "nothing_mapped", text, "Name the columns."))
        unused = [one.name for one in self._left() if "." not in one.name]
        parts = {name.partition(".")[0] for name in self.used if "." in name}
        return Mapped(cells, [name for name in unused if name not in parts], self.faults)

    def _skipped(self, cell: Cell) -> Cell:
        column = cell.column
        if column.generated:
            return replace(cell, skipped=column.generated)
        if self.asked.mode == "update" and column.name not in self.asked.key_columns:
            return replace(cell, skipped="update")
        if column.required:
            return cell
        return replace(cell, skipped="default" if column.default is not None else "nullable")


def _nothing(name: str) -> Column:
    return Column(name, "other", "")


# --- Names ------------------------------------------------------------------------------------------------------

_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
# Words that mean the same in the names of columns.
_SAME: Final = {
    word: group[0]
    for group in (
        ("email", "mail", "emailaddress", "mailaddress", "emailid"),
        ("phone", "telephone", "phonenumber", "telephonenumber", "phoneno", "tel", "telno"),
        ("mobile", "cell", "cellphone", "mobilephone", "mobilenumber"),
        ("firstname", "givenname", "forename", "fname"),
        ("lastname", "surname", "familyname", "lname"),
        ("fullname", "displayname", "name", "personname"),
        ("birthdate", "dateofbirth", "dob", "birthday", "born"),
        ("postcode", "zip", "zipcode", "postalcode", "plz"),
        ("street", "streetaddress", "addressline1", "address1", "addr1"),
        ("city", "town", "locality"),
        ("state", "province", "region"),
        ("countrycode", "countryiso", "isocountry"),
        ("company", "companyname", "organization", "organisation", "employer"),
        ("jobtitle", "occupation", "profession"),
        ("gender", "sex"),
        ("quantity", "qty", "amountordered"),
        ("description", "descr", "desc"),
        ("createdat", "created", "createdon", "creationdate", "datecreated", "createdate"),
        ("updatedat", "updated", "updatedon", "modifiedat", "modified", "lastmodified"),
        ("username", "login", "loginname", "userlogin"),
        ("ipaddress", "ip", "ipv4"),
        ("url", "website", "homepage", "webaddress", "link"),
        ("latitude", "lat"),
        ("longitude", "lon", "lng", "long"),
        ("price", "unitprice"),
        ("id", "rownumber"),
    )
    for word in group
}  # fmt: skip


def plain(name: str) -> str:
    """Letters and digits of a name, without case and accents."""
    folded = unicodedata.normalize("NFKD", name).casefold()
    return "".join(ch for ch in folded if ch.isalnum())


def words(name: str) -> list[str]:
    """The words of a name in snake_case, camelCase or any other writing."""
    return [found.casefold() for found in _WORDS.findall(name)]


def singular(word: str) -> str:
    """A word without the ending of its plural, as far as that is plain to see."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("ses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word


def _bare(name: str, entity: Entity) -> str:
    """A name without the table's in front of it: `customer_email` of `customers` is `email`."""
    table = [singular(word) for word in words(entity.name.rpartition(".")[2])]
    own = words(name)
    front = [singular(word) for word in own[: len(table)]]
    return "".join(own[len(table) :]) if front == table and len(own) > len(table) else plain(name)


def _names(name: str, entity: Entity) -> list[str]:
    bare = _bare(name, entity)
    return list(dict.fromkeys([plain(name), bare]))


def _meanings(name: str, entity: Entity) -> list[str]:
    return list(dict.fromkeys(_SAME.get(one, one) for one in _names(name, entity)))


@dataclass(frozen=True, slots=True)
class _Keys:
    column: Callable[[Column, Entity], Sequence[str]]
    field: Callable[[Field, Entity], Sequence[str]]


def _last(field: Field) -> str:
    return field.name.rpartition(".")[2]


_LEVELS: Final[Sequence[tuple[str, _Keys]]] = (
    ("name", _Keys(lambda one, _: [one.name], lambda one, _: [one.name])),
    ("alike", _Keys(lambda one, _: [plain(one.name)], lambda one, _: [plain(one.name)])),
    (
        "alike",
        _Keys(
            lambda one, of: _names(one.name, of), lambda one, of: [*_names(one.name, of), plain(_last(one))]
        ),
    ),
    (
        "synonym",
        _Keys(
            lambda one, of: _meanings(one.name, of),
            lambda one, of: [*_meanings(one.name, of), *_meanings(_last(one), of)],
        ),
    ),
    (
        "label",
        _Keys(
            lambda one, of: _meanings(one.name, of),
            lambda one, of: _meanings(one.label, of) if one.label else [],
        ),
    ),
)

# --- Types ------------------------------------------------------------------------------------------------------

# Types by which a column can be told from the others.
_TELLING: Final[Sequence[ColumnType]] = ("boolean", "date", "timestamptz", "timestamp", "uuid", "json")
_TEXT_TAKES: Final = frozenset(
    {"text", "enum", "uuid", "objectid", "json", "other", "binary", "time", "interval"}
)


def kinds_of(field: Field) -> list[ColumnType]:
    """The column types that suit a field, the nearest first."""
    dtype = field.dtype
    if pa.types.is_string(dtype):
        uuid = field.column is not None and field.column.type.name == "uuid" and field.column.after is None
        return ["uuid", "text"] if uuid else ["text"]
    for test, kinds in _SUITS:
        if test(dtype):
            return list(kinds)
    return ["other"]


_SUITS: Final[Sequence[tuple[Callable[[pa.DataType], bool], Sequence[ColumnType]]]] = (
    (pa.types.is_boolean, ("boolean", "integer", "text")),
    (pa.types.is_integer, ("integer", "decimal", "float", "text")),
    (pa.types.is_decimal, ("decimal", "float", "integer", "text")),
    (pa.types.is_floating, ("float", "decimal", "integer", "text")),
    (pa.types.is_date, ("date", "timestamp", "timestamptz", "text")),
    (pa.types.is_timestamp, ("timestamptz", "timestamp", "date", "text")),
    (pa.types.is_time, ("time", "text")),
    (pa.types.is_list, ("json", "array", "text")),
    (pa.types.is_struct, ("json", "text")),
)


def _kin(field: Field, column: Column) -> bool:
    """Whether values of a field can be meant for a column; texts may hold what the target reads from them."""
    if column.type in ("other", "text") or column.type in kinds_of(field):
        return True
    return pa.types.is_string(field.dtype) and (column.type in _TEXT_TAKES or _from_outside(field))


def _from_outside(field: Field) -> bool:
    """Whether a text field may hold anything: it came with the request."""
    return field.column is None
