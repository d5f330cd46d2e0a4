"""The leak check: no real value of a sensitive column is written to its own row, even if masking is wrong.

It looks at the output, block by block before it is sent, and does not depend on how values are masked:

- own row: a real value against its masked one, exactly, ignoring case, by digits only, and as a part of it; and
  against the columns of the row that come from the source unmasked (a note that repeats the e-mail). One hit is an
  `ApiError` ``leak_found`` that names the column and the row, never the value.
- whole column: where masked values cannot be real ones by design (a token, a hash, a reserved e-mail domain), none of
  the column's real values may occur in any row. Elsewhere such coincidences are counted and reported next to the number
  expected by chance (`expected_by_chance`): in a dense range a masked value may be another person's real one.
"""

from __future__ import annotations

import functools
import re
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp import limits
from webapp.engine import digests, masking
from webapp.engine.digests import DigestSet, normalize_texts
from webapp.engine.source_data import to_texts
from webapp.engine.types.sourced import SourceFieldType
from webapp.errors import ApiError

if TYPE_CHECKING:
    from webapp.engine.blocks import BoundPlan
    from webapp.engine.layers import Column, Layer

_NOT_DIGITS: Final = bytes(set(range(256)) - set(b"0123456789"))
_NOT_DIGITS_OR_END: Final = bytes(set(range(256)) - set(b"0123456789\0"))
_LETTER: Final = re.compile(r"[^\W\d_]")
_MIN_DIGITS: Final = 9
"""Digits of a number, to find it in other columns in any format."""
_TOKEN_STRATEGIES: Final = ("tokenize", "hash")
_BLANKING_STRATEGIES: Final = ("redact", "null")


def create_leak_checker(bound: BoundPlan) -> LeakChecker | None:
    """Return the leak check for the output of a template with a source; None without one. If nothing is sensitive, it
    only names the columns that are not masked."""
    layer = bound.plan.layer
    sensitive = {
        name: column.type
        for name, column in layer.columns.items()
        if isinstance(column.type, SourceFieldType) and column.type.sensitive
    }
    unmasked_names = {
        name
        for name, column in layer.columns.items()
        if isinstance(column.type, SourceFieldType) and not column.type.sensitive
    }
    if not sensitive and not unmasked_names:
        return None
    unmasked_readers = (
        {name for name in layer.columns if unmasked_names & _dependencies(layer, name)}
        if sensitive
        else set()
    )
    unmasked = tuple(name for name in layer.visible if name in unmasked_names)
    return LeakChecker(
        sensitive, frozenset(unmasked_readers), {name: bound.states[name] for name in sensitive}, unmasked
    )


def _dependencies(layer: Layer, name: str) -> set[str]:
    """Return the columns that a column depends on in the same row, including itself."""
    found, pending = {name}, [name]
    while pending:
        column = layer.columns.get(pending.pop())
        new = set(_direct_dependencies(column)) - found if column is not None else set()
        found |= new
        pending.extend(new)
    return found


def _direct_dependencies(column: Column) -> Iterable[str]:
    yield from column.type.required_fields
    if column.agreement is not None:
        yield from (name for name, _ in column.agreement.fields)
    if column.formula is not None:
        yield from column.formula.required_fields
    inner = getattr(column.type, "layer", None)
    if inner is not None:
        for item in inner.columns.values():
            yield from _direct_dependencies(item)


class _RealValues:
    """The real values of a column in some rows."""

    def __init__(self, column: pa.Array) -> None:
        self.has_content: np.ndarray = masking.has_content(column)
        self.folded = digests.normalize_texts(column)

    @functools.cached_property
    def texts(self) -> list[Any]:
        """Them folded."""
        return self.folded.to_pylist()

    @functools.cached_property
    def digits(self) -> list[bytes]:
        """Their digits."""
        return _digits([text or "" for text in self.texts])

    @functools.cached_property
    def searchable_rows(self) -> list[int]:
        """Return the values that are long enough to be searched inside others."""
        enough = _to_booleans(pc.greater_equal(pc.utf8_length(self.folded), limits.LEAK_SUBSTRING_CHARS))
        return np.flatnonzero(self.has_content & enough).tolist()

    @functools.cached_property
    def long_number_rows(self) -> list[int]:
        """The values with enough digits to be searched for in any notation."""
        return [at for at in self.searchable_rows if len(self.digits[at]) >= _MIN_DIGITS]


class LeakChecker:
    """Checks the output of one request. Thread-safe; the results are in `report`."""

    def __init__(
        self,
        sensitive: Mapping[str, SourceFieldType],
        carriers: frozenset[str],
        maskers: Mapping[str, Any],
        unmasked: tuple[str, ...] = (),
    ) -> None:
        self.unmasked = unmasked
        """Columns of the output that have the values of the source."""
        self._sensitive, self._unmasked_readers, self._maskers = sensitive, carriers, maskers
        self._lock = threading.Lock()
        self._counts = {name: {"values": 0, "found": 0, "expected": 0.0} for name in sensitive}

    def check(
        self, rows: np.ndarray, columns: Mapping[str, pa.Array], known: dict[str, _RealValues] | None = None
    ) -> None:
        """Check some columns of some rows (``uint64[n]``) before they are sent. ``known`` caches the real values of
        these rows between calls. Error: ApiError leak_found."""
        known = {} if known is None else known
        unmasked_columns = {
            name: output for name, output in columns.items() if name in self._unmasked_readers
        }
        for name, sourced in self._sensitive.items():
            if name not in known and (unmasked_columns or name in columns):
                known[name] = _RealValues(to_texts(sourced.raw(rows)))
        for name, output in columns.items():
            if name in self._sensitive:
                self._check_masked(name, rows, known[name], to_texts(output))
        if not unmasked_columns:
            return
        # Against what comes from the source unmasked.
        texts = [pc.fill_null(digests.normalize_texts(item), "") for item in unmasked_columns.values()]
        joined_texts = pc.binary_join_element_wise(*texts, "\0") if len(texts) > 1 else texts[0]
        lines = joined_texts.to_pylist()
        figures: list[bytes] | None = None
        for name, column in known.items():
            values, numbers = column.texts, column.digits
            for at in [at for at in column.searchable_rows if values[at] in lines[at]]:
                parts = {key: text[at].as_py() for key, text in zip(unmasked_columns, texts, strict=True)}
                where = next((key for key, text in parts.items() if _occurs(values[at], text)), None)
                if where is not None:
                    raise self._leak_error(
                        name, where, rows[at], f'appears in "{where}", which is not masked'
                    )
            if figures is None and column.long_number_rows:
                figures = [line.encode().translate(None, _NOT_DIGITS_OR_END) for line in lines]
            for at in [at for at in column.long_number_rows if figures and numbers[at] in figures[at]]:
                parts = {key: text[at].as_py() for key, text in zip(unmasked_columns, texts, strict=True)}
                where = next((key for key, text in parts.items() if numbers[at] in _digits([text])[0]), None)
                if where is not None:
                    raise self._leak_error(
                        name, where, rows[at], f'appears in "{where}", which is not masked'
                    )

    def report(self) -> list[dict[str, Any]]:
        """Return the results so far, column by column."""
        entries = []
        for name, sourced in self._sensitive.items():
            masker, known = self._maskers[name], digests.column_digests(sourced.real, sourced.column)
            with self._lock:
                counts = dict(self._counts[name])
            entries.append(
                {
                    "column": name,
                    "source_column": sourced.column,
                    "strategy": masker.strategy,
                    "key_version": masker.key_version,
                    "values": counts["values"],
                    "survivors": 0,
                    "whole_column": {
                        "kind": "none" if masker.disjoint else "counted",
                        "distinct": known.distinct_count,
                        "share": known.sampled_share,
                        "found": counts["found"],
                        "expected": None
                        if masker.disjoint or masker.strategy == "replace"
                        else round(counts["expected"], 3),
                    },
                }
            )
        return entries

    def _check_masked(self, name: str, rows: np.ndarray, real: _RealValues, output: pa.Array) -> None:
        """Check a column against its masked values."""
        masker = self._maskers[name]
        telling = real.has_content
        if masker.strategy in _BLANKING_STRATEGIES:  # previously redacted values stay redacted
            telling = telling & ~_to_booleans(pc.equal(real.folded, "[redacted]"))
        positions = np.flatnonzero(telling & output.is_valid().to_numpy(zero_copy_only=False))
        low_before = real.folded.take(pa.array(positions))
        low_after = digests.normalize_texts(output.take(pa.array(positions)))
        matches = _to_booleans(pc.equal(low_before, low_after))
        if matches.any():
            raise self._leak_error(name, name, rows[positions[matches.argmax()]], "is unchanged")
        real_texts, output_texts = low_before.to_pylist(), low_after.to_pylist()
        if not masker.exact_only and masker.strategy not in _BLANKING_STRATEGIES:
            min_length = (
                limits.LEAK_CODED_CHARS
                if masker.strategy in _TOKEN_STRATEGIES
                else limits.LEAK_SUBSTRING_CHARS
            )
            pairs = enumerate(zip(real_texts, output_texts, strict=True))
            at = next((at for at, (old, new) in pairs if old in new and len(old) >= min_length), None)
            if at is not None:
                raise self._leak_error(name, name, rows[positions[at]], "is part of its masked value")
        same = enumerate(zip(_digits(real_texts), _digits(output_texts), strict=True))
        for at in [at for at, (before, after) in same if before == after and before]:
            count = len(_digits([real_texts[at]])[0])
            # A token or a hash has few digits, which match by chance.
            is_short = count < (
                limits.LEAK_CODED_CHARS if masker.strategy in _TOKEN_STRATEGIES else limits.LEAK_DIGITS
            )
            if not is_short or (
                masker.strategy not in _TOKEN_STRATEGIES and not _LETTER.search(real_texts[at])
            ):
                raise self._leak_error(
                    name, name, rows[positions[at]], "has the same digits as its masked value"
                )
        # Against the real values of other rows.
        source_column, rows = self._sensitive[name], rows[positions]
        known = digests.column_digests(source_column.real, source_column.column)
        matches = known.contains(digests.hash_texts(low_after))
        if matches.any():
            matches &= masking.has_content(low_after)
        if masker.disjoint and masker.strategy not in _BLANKING_STRATEGIES and matches.any():
            raise self._leak_error(name, name, rows[matches.argmax()], "appears in another row")
        expected = (
            expected_by_chance(source_column, masker.strategy, low_before, known)
            if masker.strategy == "format_preserve"
            else 0.0
        )
        with self._lock:
            counts = self._counts[name]
            counts["values"] += int(rows.size)
            counts["found"] += int(matches.sum()) if not masker.disjoint else 0
            counts["expected"] += expected

    def _leak_error(self, name: str, where: str, row: Any, how: str) -> ApiError:
        text = f'A real value of the sensitive column "{name}" {how} in row {int(row) + 1:,}. No data was output.'
        details = {
            "column": name,
            "found_in": where,
            "row": int(row) + 1,
            "strategy": self._maskers[name].strategy,
        }
        hint = (
            "Choose another masking strategy for this column."
            if where == name
            else f'Mark "{where}" as sensitive too (use redact for free text), or remove it from the template.'
        )
        return ApiError("leak_found", text, {**details, "hint": hint})


def _to_booleans(mask: pa.Array) -> np.ndarray:
    return pc.fill_null(mask, False).to_numpy(zero_copy_only=False)


def _digits(texts: list[str]) -> list[bytes]:
    """The digits of each text, for all texts together, which is much faster."""
    found = "\0".join(texts).encode().translate(None, _NOT_DIGITS_OR_END).split(b"\0") if texts else []
    if len(found) == len(texts):
        return found
    return [text.encode().translate(None, _NOT_DIGITS) for text in texts]  # one of them holds the end mark


def _occurs(value: str, line: str) -> bool:
    """Return whether a value occurs in a text; digits inside a longer number do not count, because they match by
    chance."""
    if value not in line or _LETTER.search(value):
        return value in line
    return re.search(rf"(?<!\d){re.escape(value)}(?!\d)", line) is not None


def merge_reports(reports: Iterable[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The reports of several parts of the same rows as one."""
    found: dict[str, dict[str, Any]] = {}
    for item in (entry for report in reports for entry in report):
        before = found.get(item["column"])
        if before is None:
            found[item["column"]] = {**item, "whole_column": dict(item["whole_column"])}
            continue
        before["values"] += item["values"]
        total, more = before["whole_column"], item["whole_column"]
        total["found"] += more["found"]
        if total["expected"] is not None:
            total["expected"] = round(total["expected"] + (more["expected"] or 0.0), 3)
    return list(found.values())


_LETTERS: Final = 26
_SHAPE_TABLE: Final = bytes(
    ord("9")
    if chr(item).isdigit() and item < 128
    else ord("a")
    if chr(item).isalpha() or item > 127
    else item
    for item in range(256)
)
_UTF8_CONTINUATION_BYTES: Final = bytes(range(0x80, 0xC0))
"""The bytes of UTF-8 that follow a first one."""
_CARD_FIXED_DIGITS: Final = 7
"""Digits of a card number that are kept or follow from the others: its first six and its check digit."""


def expected_by_chance(column: SourceFieldType, strategy: str, real: pa.Array, known: DigestSet) -> float:
    """Return how many rows (given their folded real values) chance masks as a value of the column: each as likely
    as the values of its shape are many among those that its shape allows."""

    def count() -> Counter[str]:
        found: Counter[str] = Counter()
        for piece in column.real.chunks(column.column):
            found.update(_shapes(column, normalize_texts(piece)))
        return found

    shapes = column.real.cached(("shapes", column.column), count)
    total = max(known.value_count, 1)
    distinct = known.distinct_count / total
    found = 0.0
    for shape, times in Counter(_shapes(column, real)).items():
        local = shape.partition("@")[0] if column.name == "email" else shape
        digits = local.count("9")
        if column.name == "credit_card_number":
            digits = max(0, digits - _CARD_FIXED_DIGITS)
        combinations = 10.0**digits * float(_LETTERS) ** local.count("a")
        found += times * min(1.0, shapes[shape] * distinct / combinations) if combinations > 1 else 0.0
    return found


def _shapes(column: SourceFieldType, texts: pa.Array) -> list[str]:
    """Texts with `9` for a digit and `a` for a letter; of an e-mail address the part after `@` is unchanged."""
    values = texts.drop_null().to_pylist()
    if column.name == "email":
        parts = [value.partition("@") for value in values]
        locals_ = _shapes_of_texts([part[0] for part in parts])
        return [f"{local}{at}{rest}" for local, (_, at, rest) in zip(locals_, parts, strict=True)]
    return _shapes_of_texts(values)


def _shapes_of_texts(values: list[str]) -> list[str]:
    # Byte by byte for all texts: the first byte of a letter beyond ASCII represents it.
    shaped = (
        "\0".join(values)
        .encode()
        .translate(_SHAPE_TABLE, _UTF8_CONTINUATION_BYTES)
        .decode("ascii")
        .split("\0")
        if values
        else []
    )
    return (
        shaped
        if len(shaped) == len(values)
        else [item for value in values for item in _shapes_of_texts([value.replace("\0", "")])]
    )
