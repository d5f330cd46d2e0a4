"""Files that several processes generate: the bytes of one process, errors, and processes that end."""

from __future__ import annotations

import os
import signal
import tracemalloc

import pytest

from tests.cli.conftest import descendants
from tests.jobs.waiting import eventually
from tests.services.test_rows import FIELDS, made, recipe, source
from webapp import limits
from webapp.errors import ApiError
from webapp.generation.services import rows

TEXT_FORMATS = ["csv", "json", "ndjson", "sql"]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(limits, "PARALLEL_FROM_ROWS", 1_000)
    monkeypatch.setattr(limits, "PARALLEL_PART_ROWS", 700)


@pytest.mark.parametrize("format", TEXT_FORMATS)
@pytest.mark.parametrize("count", [1_000, 1_400, 5_003])
def test_several_processes_produce_the_bytes_of_one(format, count):
    output = recipe(count=count, offset=3, format=format).open(3)
    assert b"".join(output) == b"".join(recipe(count=count, offset=3, format=format).open())
    assert (output.rows_generated, output.rows_sent) == (count, count)


@pytest.mark.parametrize("together", [1, 450, 900])
def test_a_part_of_sql_ends_where_a_statement_does(together):
    ask = {"count": 5_003, "format": "sql", "sql": {"rows_per_statement": together}}
    assert b"".join(recipe(**ask).open(2)) == b"".join(recipe(**ask).open())


def test_a_part_has_whole_blocks(monkeypatch):
    monkeypatch.setattr(limits, "PARALLEL_PART_ROWS", 20_000)
    few = recipe(source([{"name": "n", "type": "row_number"}]), count=100_000, format="csv")
    assert rows.rows_per_part(few) == 2 * limits.BLOCK_ROWS


def test_a_running_total_continues_across_parts():
    fields = [
        {"name": "n", "type": "number", "options": {"min": 1, "max": 9}},
        {"name": "total", "type": "running_total", "options": {"field": "n"}},
        {"name": "before", "type": "previous", "options": {"field": "n"}},
    ]
    ask = {"count": 3_000, "format": "csv"}
    assert b"".join(recipe(source(fields), **ask).open(2)) == made(source(fields), **ask)


def test_long_rows_are_sent_in_several_messages(monkeypatch):
    monkeypatch.setattr(limits, "PARALLEL_PART_BYTES", 10_000)
    fields = [*FIELDS, {"name": "long", "type": "constant", "options": {"value": "x" * 3_000}}]
    ask = {"count": 1_000, "format": "ndjson"}
    assert rows.rows_per_part(recipe(source(fields), **ask)) <= 3
    assert b"".join(recipe(source(fields), **ask).open(2)) == made(source(fields), **ask)


@pytest.mark.parametrize(("format", "count", "several"), [
    ("csv", 999, False), ("csv", 1_000, True), ("xlsx", 5_000, False), ("parquet", 5_000, False),
])  # fmt: skip
def test_only_long_files_whose_parts_can_be_joined_use_several_processes(format, count, several):
    expected = len(os.sched_getaffinity(0)) if several else 1
    assert rows.processes_for(recipe(count=count, format=format)) == expected


def test_an_error_of_the_template_is_reported_like_that_of_one_process(monkeypatch):
    monkeypatch.setattr(limits, "BLOCK_BYTES", 5_000)
    long = 'repeat("x", 9000) if n == 2500 else "y"'
    fields = [
        {"name": "n", "type": "row_number"},
        {"name": "x", "type": "formula", "options": {"expression": long}},
    ]
    with pytest.raises(ApiError) as alone:
        b"".join(_checked(recipe(source(fields), count=4_000, format="csv").open()))
    with pytest.raises(ApiError) as several:
        b"".join(_checked(recipe(source(fields), count=4_000, format="csv").open(2)))
    assert several.value.as_dict() == alone.value.as_dict()


def _checked(output):
    """What the pieces are to a job: an error of the engine becomes one of the service."""
    from webapp.engine.errors import SpecError
    from webapp.errors import validation_error

    try:
        yield from output
    except SpecError as error:
        raise validation_error(error.faults) from None


@pytest.mark.parametrize("reader_only", [True, False])
def test_parts_that_are_larger_than_expected_are_generated_when_they_are_read(monkeypatch, reader_only):
    monkeypatch.setattr(limits, "PARALLEL_PART_BYTES", 5_000)
    if reader_only:
        monkeypatch.setattr(rows._Worker, "is_ready", False)
    fields = [
        {"name": "n", "type": "row_number"},
        {"name": "x", "type": "formula", "options": {"expression": 'repeat("x", 900) if n > 2000 else "y"'}},
    ]
    ask = {"count": 4_000, "format": "csv"}
    assert b"".join(recipe(source(fields), **ask).open(2)) == made(source(fields), **ask)


def test_the_reader_takes_over_the_parts_that_no_process_has_begun(monkeypatch):
    here = []
    ahead = rows._generate_ahead

    def counted(part, writer):
        here.append(part.offset)
        return ahead(part, writer)

    monkeypatch.setattr(rows, "_generate_ahead", counted)
    monkeypatch.setattr(rows._Worker, "is_ready", False)
    assert b"".join(recipe(count=7_000, format="csv").open(2)) == made(count=7_000, format="csv")
    assert len(here) > 1


def test_a_process_that_is_killed_ends_the_file_with_an_error(monkeypatch):
    monkeypatch.setattr(limits, "PARALLEL_PART_ROWS", 10)
    before = descendants(os.getpid())
    output = iter(recipe(count=200_000, format="csv").open(2))
    next(output)
    os.kill(min(descendants(os.getpid()) - before), signal.SIGKILL)
    with pytest.raises(RuntimeError, match="ended unexpectedly"):
        list(output)


def test_a_file_that_is_abandoned_leaves_no_process():
    before = descendants(os.getpid())
    output = recipe(count=50_000, format="csv").open(2)
    assert descendants(os.getpid()) - before
    output.close()
    eventually(lambda: not descendants(os.getpid()) - before)


def test_the_reader_keeps_only_what_it_has_not_passed_on():
    tracemalloc.start()
    try:
        size = sum(map(len, recipe(count=60_000, format="csv").open(2)))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < size / 2
