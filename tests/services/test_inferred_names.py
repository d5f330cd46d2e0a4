"""Field types are inferred from the names of a column and its table, with cases from sample schemas and products."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from webapp.connectors.schema import Column, Entity
from webapp.imports.inference import columns
from webapp.imports.inference.names import singular, split_words
from webapp.row_templates.services import compilation

CASES = Path(__file__).with_name("inferred_names.txt")


def cases() -> list[Any]:
    found = []
    for line in CASES.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        table, beside, column, length, expected = (part.strip() for part in line.split("|"))
        found.append(pytest.param(table, beside.split(), column, length, expected, id=f"{table}.{column}"))
    return found


def became(
    table: str, beside: Sequence[str], name: str, length: str, values: Sequence[Any] = (), rows: int = 10
) -> Any:
    """The field that a text column of a table becomes."""
    unique = length.endswith("u")
    size = None if length == "None" else int(length.removesuffix("u"))
    column = Column(name, "text", "text", max_length=size, unique=unique)
    entity = Entity(table, (table,), (*(Column(item, "text", "text") for item in beside), column))
    sample = pa.RecordBatch.from_pydict({name: pa.array(list(values))}) if values else None
    return columns.infer_columns(entity, sample, compilation.vocabulary(), rows)[-1]


@pytest.mark.parametrize(("table", "beside", "column", "length", "expected"), cases())
def test_the_type_of_a_column_depends_on_its_table(app, table, beside, column, length, expected):
    with app.app_context():
        assert became(table, beside, column, length).field["type"] == expected


@pytest.mark.parametrize(
    ("table", "beside", "column", "length", "values", "expected"),
    [
        ("employees", "hire_date", "title", "30", ["Mr.", "Ms.", "Mr.", "Dr."], "title"),
        ("customers", "first_name", "title", "30", ["Clerk", "President", "Clerk"], "job_title"),
        ("users", "email", "name", "30", ["ann.lee", "bob7"], "username"),
        ("countries", "name", "code", "10", ["DEU", "FRA", "ITA"], "country_code alpha3"),
        ("countries", "name", "code", "10", [f"C-{n:03}" for n in range(20)], "regexp"),
        ("products", "email", "category", "30", ["green", "red"] * 20, "enum green red"),
        ("users", "email", "role", "30", ["green", "red"] * 20, "enum green red"),
        ("employees", "hire_date", "job_title", "60", ["Clerk", "Smith"] * 20, "job_title"),
    ],
)
def test_a_sample_distinguishes_what_a_name_does_not(app, table, beside, column, length, values, expected):
    kind, *more = expected.split()
    with app.app_context():
        result = became(table, [beside], column, length, values).field
    assert result["type"] == kind
    assert not more or result["options"] in ({"values": more}, {"format": " ".join(more)})


def test_a_unique_name_with_too_few_values_becomes_words_with_a_note(app):
    with app.app_context():
        few = became("departments", ["id"], "name", "60u", rows=10)
        assert (few.field["type"], few.field["unique"], few.state) == ("department", True, "yellow")
        many = became("departments", ["id"], "name", "80u", rows=500)
        assert (many.field["type"], many.field["unique"]) == ("words", True)
        codes = became("currencies", ["name"], "code", "3u", rows=500)
        assert (codes.field["type"], codes.state) == ("currency_code", "yellow"), "there are no other codes"


def test_a_title_of_a_work_has_as_many_words_as_fit(app):
    with app.app_context():
        result = became("books", ["isbn"], "title", "20").field
        assert (result["type"], result["options"], result.get("formula")) == ("words", {"count": 1}, None)
        assert became("books", ["isbn"], "title", "200").field["text_case"] == "title"


@pytest.mark.parametrize(
    ("plural", "one"),
    [("countries", "country"), ("addresses", "address"), ("movies", "movie"), ("boxes", "box"), ("people", "person"),
     ("status", "status"), ("courses", "course"), ("classes", "class"), ("analysis", "analysis"), ("news", "news")],
)  # fmt: skip
def test_nouns_are_put_into_the_singular(plural, one):
    assert singular(plural) == one


def test_names_are_split_as_people_write_them():
    assert (
        split_words("OrderItems")
        == split_words("ORDER_ITEMS")
        == split_words("order-items")
        == ["order", "items"]
    )
    assert split_words("customerID") == ["customer", "id"]
    assert split_words("dept_name") == ["department", "name"]
