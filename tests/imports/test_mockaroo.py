"""Schema files of Mockaroo: every option becomes ours, or is reported with its name."""

from __future__ import annotations

import json
import re

import pytest

from webapp.imports.readers.mockaroo_formulas import UntranslatableFormulaError, translate


def imported(edith, *columns, **more):
    """The answer to the import of a file with these columns."""
    document = {"name": "people", "num_rows": 10, "file_format": "json", "columns": list(columns), **more}
    answer = edith.post("/import", json={"content": json.dumps(document), "format": "mockaroo"})
    assert answer.status_code == 201, answer.text
    return answer.json


def generated(edith, made, count=60):
    """Rows of the imported template."""
    answer = edith.post(
        f"/templates/{made['templates'][0]['id']}/generate", json={"count": count, "seed": "s"}
    )
    assert answer.status_code == 200, answer.text
    return answer.json


def one(edith, column):
    """The field, the line of the report, and the values of a single column."""
    created = imported(edith, {"name": "a", **column})
    return (
        created["templates"][0]["fields"][0],
        created["report"][0],
        [row["a"] for row in generated(edith, created)],
    )


KEPT = [
    ({"type": "Sequence", "start": "100", "step": 5, "repeat": 2}, lambda v: v[:4] == [100, 100, 105, 105]),
    ({"type": "Custom List", "values": ["a", "b"], "selectionStyle": "custom",
      "distribution": [{"frequencies": {"a": "1", "b": 0}}]}, lambda v: set(v) == {"a"}),
    ({"type": "Custom List", "values": ["a", "b", "c"], "selectionStyle": "custom",
      "distribution": [{"frequencies": {"a": 98, "b": 1, "c": 1}}]}, lambda v: v.count("a") > 50),
    ({"type": "Custom List", "values": ["x", "y", "z"], "selectionStyle": "sequential", "distribution": None},
     lambda v: v[:4] == ["x", "y", "z", "x"]),
    ({"type": "Country", "countries": ["Germany", "France"]}, lambda v: set(v) == {"Germany", "France"}),
    ({"type": "Country Code", "countries": ["Germany", "France"]}, lambda v: set(v) == {"DE", "FR"}),
    ({"type": "State (abbrev)", "onlyUSPlaces": True}, lambda v: all(re.fullmatch("[A-Z]{2}", x) for x in v)),
    ({"type": "Number", "min": "1", "max": "9", "decimals": "2"}, lambda v: all(1 <= x <= 9 for x in v)),
    ({"type": "Normal Distribution", "mean": 50, "sd": 0.5, "decimals": 1}, lambda v: all(46 < x < 54 for x in v)),
    ({"type": "Poisson Distribution", "mean": 2}, lambda v: sum(v) / 60 < 4),
    ({"type": "Exponential Distribution", "rate": 0.5, "decimals": 3}, lambda v: sum(v) / 60 < 5),
    ({"type": "Geometric Distribution", "probability": 0.9}, lambda v: sum(v) / 60 < 2),
    ({"type": "Binomial Distribution", "trials": 5, "probability": 0.3}, lambda v: max(v) <= 5),
    ({"type": "Phone", "format": "#-(###)###-####"}, lambda v: re.fullmatch(r"\d-\(\d{3}\)\d{3}-\d{4}", v[0])),
    ({"type": "Date", "min": "1/1/2020", "max": "12/31/2021", "format": "%Y-%m-%d"},
     lambda v: all("2020-01-01" <= x <= "2021-12-31" for x in v)),
    ({"type": "Datetime", "min": "1/1/2020 12:00 AM", "max": "1/2/2020 11:30 PM", "format": "%Y-%m-%d"},
     lambda v: set(v) == {"2020-01-01", "2020-01-02"}),
    ({"type": "Time", "min": "9:00 AM", "max": "5:30 PM", "format": "24 Hour"},
     lambda v: all("09:00" <= x < "17:31" for x in v)),
    ({"type": "Regular Expression", "value": r"[:upper:]{2}-\d{3}-[[:lower:]]"},
     lambda v: re.fullmatch("[A-Z]{2}-[0-9]{3}-[a-z]", v[0])),
    ({"type": "Character Sequence", "format": "##-@@-^^"}, lambda v: re.fullmatch("[0-9]{2}-[a-z]{2}-[A-Z]{2}", v[0])),
    ({"type": "Character Sequence", "format": "$%-#"}, lambda v: re.fullmatch("[0-9a-z][0-9A-Z]-[0-9]", v[0])),
    ({"type": "Digit Sequence", "format": "##/##"}, lambda v: re.fullmatch(r"\d\d/\d\d", v[0])),
    ({"type": "Money", "min": 1, "max": 9, "symbol": "none"}, lambda v: all(1 <= x <= 9 for x in v)),
    ({"type": "Money", "min": 1, "max": 9, "symbol": "€"}, lambda v: all(x.startswith("€") for x in v)),
    ({"type": "Credit Card #", "cardTypes": ["visa"]}, lambda v: all(x.startswith("4") for x in v)),
    ({"type": "Password", "minLength": 12, "upper": 1, "lower": 1},
     lambda v: all(re.fullmatch("[A-Za-z]{12}", x) for x in v)),
    ({"type": "Gender (abbrev)"}, lambda v: set(v) == {"F", "M"}),
    ({"type": "Sentences", "min": 2, "max": 2}, lambda v: all(x.count(".") == 2 for x in v)),
    ({"type": "City", "null_percentage": "50"}, lambda v: 10 < v.count(None) < 50),
    ({"type": "City", "formula": "this.upcase + \" #{this.length}\""}, lambda v: all(x == x.upper() for x in v)),
    ({"type": "Formula", "value": "if 1 > 2 then 'no' else 'yes' end"}, lambda v: set(v) == {"yes"}),
]  # fmt: skip


@pytest.mark.parametrize(("column", "holds"), KEPT, ids=[column["type"] for column, _ in KEPT])
def test_an_option_is_kept(edith, column, holds):
    _, row, values = one(edith, column)
    assert (row["state"], row["confidence"]) == ("green", "high"), row
    assert holds(values), values


@pytest.mark.parametrize(
    ("column", "names"),
    [
        ({"type": "Sequence", "start": 3, "restart": 7}, ["restart"]),
        ({"type": "City", "countries": ["Germany", "France"]}, ["countries"]),
        ({"type": "Words", "min": 2, "max": 5}, ["min"]),
        ({"type": "Money", "symbol": "random"}, ["symbol"]),
        ({"type": "Number", "min": "few", "max": 9}, ["min"]),
        ({"type": "URL", "includeProtocol": True, "includeQueryString": True}, ["includeQueryString"]),
        ({"type": "Custom List", "values": ["a"], "selectionStyle": "moody"}, ["selectionStyle"]),
        (
            {"type": "Custom List", "values": ["a"], "selectionStyle": "random", "distribution": [{}]},
            ["distribution"],
        ),
        ({"type": "City", "formula": "this.zorg(1)"}, ["formula"]),
        ({"type": "City", "formula": "field('nowhere')"}, ["formula"]),
        ({"type": "Number", "formula": "'a' - 3"}, ["formula"]),
        ({"type": "Row Number", "shiny": {"new": 1}, "other": "x"}, ["shiny", "other"]),
    ],
)
def test_an_option_that_is_not_kept_is_reported_with_its_name(edith, column, names):
    _, row, _ = one(edith, column)
    assert (row["state"], row["confidence"]) == ("yellow", "check")
    assert re.findall(r'The option "(\w+)"', row["reason"]) == names


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ({"type": "Unheard Of", "pace": 3}, 'The option "pace"'),
        (
            {"type": "Dataset Column", "dataset": "Accounts", "column": "key", "selectionStyle": "random"},
            '"Accounts"',
        ),
        ({"type": "Formula", "value": "from_dataset('x')"}, 'The option "value"'),
        ({"type": "Unheard Of", "formula": "this"}, 'The option "formula"'),
    ],
)
def test_a_type_that_is_not_here_is_text_and_names_what_is_lost(edith, column, expected):
    field, row, _ = one(edith, column)
    assert (field["type"], row["state"]) == ("words", "red")
    assert expected in row["reason"]


def test_names_of_both_sexes_are_of_different_people(edith):
    created = imported(
        edith, {"name": "her", "type": "First Name (Female)"}, {"name": "him", "type": "First Name (Male)"}
    )
    assert {row["state"] for row in created["report"]} == {"green"}
    assert [field["options"]["sex"] for field in created["templates"][0]["fields"]] == ["female", "male"]
    assert len(generated(edith, created)) == 60


def test_cartesian_lists_go_through_all_combinations(edith):
    lists = [{"name": name, "type": "Custom List", "values": values, "selectionStyle": "cartesian"}
             for name, values in (("a", ["x", "y"]), ("b", [1, 2, 3]))]  # fmt: skip
    rows = generated(edith, imported(edith, *lists), 6)
    assert [(row["a"], row["b"]) for row in rows] == [
        ("x", 1),
        ("x", 2),
        ("x", 3),
        ("y", 1),
        ("y", 2),
        ("y", 3),
    ]


def test_weights_that_depend_on_another_column_become_cases(edith):
    rules = [{"rule": 'field("kind") == "a"', "frequencies": {"Open": 1, "Hold": 0}},
             {"rule": "field('kind') == 'b'", "frequencies": {"Open": 0, "Hold": 1}},
             {"frequencies": {"Closed": 1}}]  # fmt: skip
    created = imported(
        edith,
        {"name": "kind", "type": "Custom List", "values": ["a", "b", "c"]},
        {"name": "state", "type": "Custom List", "values": ["Open", "Hold", "Closed"], "selectionStyle": "custom",
         "distribution": rules},
    )  # fmt: skip
    assert {row["state"] for row in created["report"]} == {"green"}
    found = {(row["kind"], row["state"]) for row in generated(edith, created)}
    assert found == {("a", "Open"), ("b", "Hold"), ("c", "Closed")}


def test_dots_make_objects_and_arrays_in_json_and_stay_in_names_elsewhere(edith):
    columns = [
        {"name": "id", "type": "Row Number"},
        {"name": "home.city", "type": "City"},
        {"name": "home.geo.lat", "type": "Latitude", "formula": "this.zorg"},
        {"name": "lines", "type": "JSON Array", "minItems": 2, "maxItems": 2},
        {"name": "lines.count", "type": "Number", "min": 1, "max": 3},
        {"name": "lines.twice", "type": "Formula", "value": "count * 2"},
        {"name": "tags[1-3]", "type": "Color"},
        {"name": "__secret", "type": "Number", "min": 1, "max": 1},
        {"name": "shown", "type": "Formula", "value": "__secret + 1"},
    ]
    created = imported(edith, *columns)
    rows = generated(edith, created, 5)
    assert list(rows[0]) == ["id", "home", "lines", "tags", "shown"]
    assert set(rows[0]["home"]) == {"city", "geo"}
    assert all(line["twice"] == 2 * line["count"] for row in rows for line in row["lines"])
    assert {len(row["lines"]) for row in rows} == {2}
    assert {row["shown"] for row in rows} == {2}
    home = next(row for row in created["report"] if row["column"] == "home")
    assert home["state"] == "yellow"
    assert 'geo: lat: The option "formula"' in home["reason"]
    flat = imported(edith, *columns[:2], file_format="csv")
    assert [field["name"] for field in flat["templates"][0]["fields"]] == ["id", "home.city"]


NAMES = {"kind": "kind", "first name": 'field("first name")', "born": "born", "n": "n"}


@pytest.mark.parametrize(
    ("ruby", "ours"),
    [
        ("if field('kind') == 'x' then nil else this end", '(null if (kind == "x") else this)'),
        ("if n > 5\n 'big'\nelsif n > 3\n 'mid'\nelse\n 'small'\nend",
         '("big" if (n > 5) else ("mid" if (n > 3) else "small"))'),
        ("n > 10 && !kind.nil? ? 'a' : 'b'", '("a" if ((n > 10) and (not (kind == null))) else "b")'),
        ("this unless kind == 'x'", '(this if not ((kind == "x")) else null)'),
        ("case kind when 'a', 'b' then 1 else 2 end", 'switch(kind, "a", 1, "b", 1, 2)'),
        ("\"#{kind}.#{field('first name').downcase}\"", 'concat(kind, ".", lower(field("first name")))'),
        (r"this.gsub(/\.(\w+)$/, '.\\1.fake')", r'regex_replace(this, "\\.(\\w+)$", ".\\1.fake")'),
        ("now() + days(-23)", "add_days(now(), -23)"),
        ("born - 3.months", "add_months(born, -(3))"),
        ("kind[0,3].upcase + kind[-2..-1]", "(upper(left(kind, 3)) + right(kind, 2))"),
        ("this.split('@')[0]", 'split_part(this, "@", 1)'),
        ("['a', 'b'].sample", 'choose("a", "b")'),
        ("['a', 'b'].include?(kind)", '(kind in ["a", "b"])'),
        ("random(1, 6) + rand(3) + rand(1..4)", "((random_int(1, 6) + random_int(0, 2)) + random_int(1, 4))"),
        ("kind =~ /^A/i ? 1 : 0", '(1 if matches(kind, "(?i)^A") else 0)'),
        ("format(born, '%m/%d/%Y')", 'format_date(born, "%m/%d/%Y")'),
        ("n.to_s.rjust(5, '0')", 'pad_left(text(n), 5, "0")'),
    ],
)  # fmt: skip
def test_a_ruby_formula_is_translated(ruby, ours):
    assert translate(ruby, NAMES.get) == ours


@pytest.mark.parametrize(
    "ruby",
    [
        "x = 5; x",
        "this.each { |a| a }",
        "from_dataset('a', 'b')",
        "nowhere + 1",
        "if n then 1",
        "1 +",
        "days(3)",
        "",
    ],
)
def test_what_has_no_counterpart_is_said(ruby):
    with pytest.raises(UntranslatableFormulaError) as caught:
        translate(ruby, NAMES.get)
    assert str(caught.value)
