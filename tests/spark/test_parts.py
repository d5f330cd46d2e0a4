"""What the data source is made of, without a Spark: options, times of day, a service that breaks off, the guide."""

from __future__ import annotations

import pickle
import re
from datetime import time

import pyarrow as pa
import pytest
from flask import Response

from webapp import limits
from webapp.paths import ROOT


@pytest.fixture
def parts(pyspark):
    """The modules of the package."""
    from rowsmith_spark import options, origin, source, times

    return type("Parts", (), {"options": options, "origin": origin, "source": source, "times": times})


@pytest.fixture
def template(api, cast):
    fields = [{"name": "id", "type": "row_number"}, {"name": "name", "type": "name"}]
    return api(cast.edith).post("/templates", json={"name": "T", "fields": fields}).json["id"]


def test_an_interrupted_response_is_requested_again(parts, app, origin, cast, template):
    broken = []

    def break_once(answer):
        if answer.mimetype != "application/vnd.apache.parquet" or broken:
            return answer
        broken.append(answer.get_data())
        headers = {name: value for name, value in answer.headers if name != "Content-Length"}

        def half():
            yield broken[0][:200]
            raise OSError("the cable")

        return Response(half(), headers=headers)

    app.after_request_funcs.setdefault(None, []).append(break_once)
    service = parts.origin.Service(template, origin, cast.edith.key)
    result = service.generate({"count": 100, "seed": "s", "now": "2026-01-01T00:00:00Z"})
    assert result.parquet == broken[0]


def test_address_and_key_are_those_of_the_environment_where_none_are_given(parts, monkeypatch):
    monkeypatch.setenv("SERVICE_API_URL", "https://data.example.org")
    monkeypatch.setenv("SERVICE_API_KEY", "rws_theirs")
    result = parts.origin.origin("tpl_x", None, None, None, None)
    assert (result.url, result.key) == ("https://data.example.org", "rws_theirs")
    result = parts.origin.origin("tpl_x", None, None, "rws_mine", None)
    assert result.key == "rws_mine"


def test_the_key_is_in_nothing_that_is_shown(parts):
    options = parts.options.parse({"template": "tpl_x", "key": "rws_secret", "url": "https://x.example"})
    result = parts.origin.origin(options.template, None, options.url, options.key, None)
    assert "rws_secret" not in repr(options) + repr(result)
    assert b"rws_secret" in pickle.dumps(result)  # executors need it


def test_a_call_asks_for_what_every_plan_allows(parts):
    least = min(plan.rows_per_generation for plan in limits.PLANS.values())
    assert parts.options.Options().rows_per_call == parts.options.ROWS_PER_CALL == least


def test_times_are_formatted_as_in_json_everywhere(parts):
    plain = [time(1, 2, 3), None, time(4, 5, 6, 7)]
    kind = pa.time64("us")
    inner = pa.struct([("at", kind), ("n", pa.int64())])
    objects = [{"at": plain[0], "n": 1}, None, {"at": None, "n": 3}]
    lists = [objects, None, []]
    table = pa.table(
        [pa.array(plain, kind), pa.array(objects, inner), pa.array(lists, pa.list_(inner))],
        schema=pa.schema([("plain", kind), ("object", inner), ("lists", pa.list_(inner))]),
    )
    spelled = [{"at": "01:02:03", "n": 1}, None, {"at": None, "n": 3}]
    expected = {
        "plain": ["01:02:03", None, "04:05:06.000007"],
        "object": spelled,
        "lists": [spelled, None, []],
    }
    assert parts.times.times_as_text(table).to_pydict() == expected
    assert parts.times.times_as_text(table.slice(1)).to_pydict() == {
        name: found[1:] for name, found in expected.items()
    }


def test_the_guide_names_every_option(parts):
    guide = (ROOT / "docs" / "guide" / "scale.md").read_text()
    section = guide.partition("\n## Spark\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"`([a-z_]+)`", section)) >= set(parts.options.NAMES)


def test_spark_finds_the_source_by_itself(pyspark):
    from pyspark_rowsmith import DefaultSource

    assert DefaultSource.name() == "rowsmith"
