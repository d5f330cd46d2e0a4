"""Texts in parts give the same bytes as texts that are put together first: in every locale, format and option."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from tests.engine.formats.test_block_cuts import FORMAT_IDS, TEXT_FORMATS
from webapp import limits
from webapp.engine import groups
from webapp.engine.blocks import BoundPlan, GenerationContext
from webapp.engine.data import vocabulary
from webapp.engine.formats import FORMATS, write
from webapp.engine.plan import compile_plan
from webapp.engine.spec import parse
from webapp.engine.text_parts import TextParts

ENV = GenerationContext("composed", datetime(2026, 1, 1, tzinfo=UTC))
TYPES = (
    "name",
    "email",
    "username",
    "company_email",
    "street_address",
    "address",
    "phone_number",
    "company_name",
    "avatar",
)
ROWS = 700
LOCALES = vocabulary.open_default().locales


def bound(fields: list[dict]) -> BoundPlan:
    return BoundPlan(compile_plan(groups.assign(parse(fields)), vocabulary.open_default()), ENV)


def fields(locale: str | None = None) -> list[dict]:
    # The values between the texts are of several widths, so that a part in the wrong place changes the bytes.
    found: list[dict] = [{"name": "id", "type": "row_number"}]
    for kind in TYPES:
        found.append({"name": kind, "type": kind})
        if locale is not None and kind != "avatar":
            found[-1]["locale"] = locale
    return [*found, {"name": "amount", "type": "number", "options": {"min": -5, "max": 5, "decimals": 2}}]


def both(made: BoundPlan, name: str, options: dict, rows: int = ROWS) -> tuple[bytes, bytes]:
    kind = FORMATS[name]
    whole, parts = (kind(made.schema, kind.Options(**options), title="t") for _ in range(2))
    return (
        b"".join(write(whole, made.blocks(0, rows))),
        b"".join(write(parts, made.blocks_for(parts, 0, rows))),
    )


def composed_columns(made: BoundPlan, rows: int = ROWS) -> int:
    return sum(isinstance(column, TextParts) for column in made.block_with_text_parts(0, rows))


@pytest.mark.parametrize(
    ("name", "options"),
    [*TEXT_FORMATS, ("csv", {"escape_formulas": True}), ("csv", {"delimiter": "|"})],
    ids=[*FORMAT_IDS, "csv-formulas", "csv-pipe"],
)
def test_every_text_format_writes_the_same_bytes_from_parts(name, options):
    result = bound(fields())
    assert composed_columns(result) >= 7
    whole, parts = both(result, name, options)
    assert whole == parts


@pytest.mark.parametrize("locale", LOCALES)
def test_every_locale_gives_the_same_bytes_from_parts(locale):
    result = bound(fields(locale))
    assert composed_columns(result) >= 5
    for name, options in (("csv", {}), ("json", {}), ("sql", {"dialect": "mysql"})):
        whole, parts = both(result, name, options)
        assert whole == parts, name


def test_parts_are_really_copied_into_the_row(monkeypatch):
    # The parts of whole addresses are long, so that large blocks are put together to measure them.
    result = bound([field for field in fields("en_US") if field["name"] != "address"])
    kind = FORMATS["json"]
    writer = kind(result.schema, kind.Options(), title="t")
    list(write(writer, result.blocks_for(writer, 0, 200_000)))  # its pools are known now
    monkeypatch.setattr(TextParts, "to_array", None)
    assert b"".join(
        write(kind(result.schema, kind.Options(), title="t"), result.blocks_for(writer, 0, 20_000))
    )


def test_changed_blank_and_unique_columns_are_put_together():
    result = bound(
        [
            {"name": "a", "type": "name", "percent_blank": 30},
            {"name": "b", "type": "name", "text_case": "upper"},
            {"name": "c", "type": "email", "unique": True},
            {"name": "d", "type": "name", "formula": "upper(this)"},
        ]
    )
    assert composed_columns(result) == 0
    for name in ("csv", "json"):
        whole, parts = both(result, name, {})
        assert whole == parts


def test_a_column_that_another_reads_has_the_same_texts():
    result = bound(
        [
            {"name": "shown", "type": "formula", "options": {"expression": "upper(name)"}},
            {"name": "name", "type": "name"},
            {"name": "again", "type": "formula", "options": {"expression": "lower(name)"}},
        ]
    )
    whole, parts = both(result, "csv", {})
    assert whole == parts


def test_a_file_of_one_column_has_the_same_texts():
    whole, parts = both(bound([{"name": "n", "type": "company_name"}]), "csv", {})
    assert whole == parts


def test_overrides_replace_parts():
    plan = compile_plan(groups.assign(parse(fields())), vocabulary.open_default())
    result = BoundPlan(plan, ENV, {"name": "Anna, Lee"})
    whole, parts = both(result, "csv", {})
    assert whole == parts
    assert b'"Anna, Lee"' in parts


def test_blocks_that_are_written_in_several_parts(monkeypatch):
    monkeypatch.setattr(limits, "FORMAT_PART_BYTES", 20_000)
    monkeypatch.setattr(limits, "FORMAT_PART_PIECES", 900)
    for name in ("csv", "json", "sql"):
        whole, parts = both(bound(fields("de_DE")), name, {})
        assert whole == parts


def pools(*texts: list[str]) -> TextParts:
    indices = [np.arange(60) % len(pool) for pool in texts]
    parts = tuple((pa.array(pool, pa.string()), index) for pool, index in zip(texts, indices, strict=True))
    return TextParts(parts, 10_000)


@pytest.mark.parametrize(("name", "options"), TEXT_FORMATS, ids=FORMAT_IDS)
@pytest.mark.parametrize(
    "columns",
    [
        [pools(["a", "b"], ["c"])],
        [pools(["", "x"], ["", "y", ""])],
        [pools([""], [""]), pools(["a"], ["b"])],
        [pools(['a"'], ["b", "c,d"]), pools(["'"], ["\\", "n"])],
        [pools(["=1", "+"], ["x"]), pools(["\n"], ["\r"]), pools([" a"], ["b "])],
        [pools(["\x01", "é", "語"], ["\u2028", "😀"], [";"], ["|"]), pools(["a" * 30], ["b" * 5, "c" * 13])],
        [pools(["\\"], [".", ""])],
    ],
)
def test_any_parts_are_written_as_their_text(name, options, columns):
    kind = FORMATS[name]
    schema = pa.schema([(f"c{at}", pa.string()) for at in range(len(columns))])
    whole = b"".join(
        write(kind(schema, kind.Options(**options), title="t"), [[c.to_array() for c in columns]] * 2)
    )
    writer = kind(schema, kind.Options(**options), title="t")
    assert b"".join(write(writer, [columns, columns])) == whole


def test_blocks_with_and_without_parts_follow_each_other():
    texts = [pools(["a", "b,"], ["c"]), pools(["x"], ["y"], ["z", "'"]), pools(["1"], ["2"])]
    for name in ("csv", "json", "sql"):
        kind = FORMATS[name]
        schema = pa.schema([("c", pa.string()), ("n", pa.int64())])
        number = pa.array(range(60))
        mixed = [
            [item, number]
            for item in (texts[2], texts[1].to_array(), texts[1], texts[0], texts[2].to_array())
        ]
        plain = [[item.to_array() if isinstance(item, TextParts) else item, number] for item, _ in mixed]
        written = [
            b"".join(write(kind(schema, kind.Options(), title="t"), blocks)) for blocks in (mixed, plain)
        ]
        assert written[0] == written[1]
