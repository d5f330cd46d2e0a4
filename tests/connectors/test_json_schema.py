"""Shapes of JSON Schemas: their values are valid by an independent validator, and so are the rows of their fields."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import jsonschema_rs
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from webapp.connectors.http.request_template import Renderer, RequestTemplate
from webapp.connectors.json_schema import shapes, validation
from webapp.connectors.json_schema.shapes import OMISSION_KEYWORD, Shaper
from webapp.connectors.json_schema.validation import Document
from webapp.engine.blocks import BoundPlan, GenerationContext
from webapp.engine.plan import compile_plan
from webapp.engine.spec import parse
from webapp.imports.readers import formats
from webapp.imports.readers.base import Source
from webapp.imports.services import drafts
from webapp.row_templates.services import compilation

TREE = {
    "type": "object", "required": ["value"], "additionalProperties": False,
    "properties": {"value": {"type": "integer"},
                   "children": {"type": "array", "items": {"$ref": "#/definitions/tree"}}},
}  # fmt: skip
CASES = {
    "date-time": {"properties": {"at": {"type": "string", "format": "date-time"}}, "required": ["at"]},
    "time": {"properties": {"at": {"type": "string", "format": "time"}}},
    "formats": {
        "properties": {
            item: {"type": "string", "format": item}
            for item in (
                "date",
                "email",
                "hostname",
                "ipv4",
                "ipv6",
                "uri",
                "uri-reference",
                "uuid",
                "duration",
                "json-pointer",
                "regex",
            )
        }
    },
    "map": {
        "properties": {
            "labels": {"type": "object", "additionalProperties": {"type": "string", "minLength": 3}}
        },
        "required": ["labels"],
    },
    "map by expression": {
        "type": "object",
        "patternProperties": {"^x-[a-z]{3}$": {"type": "integer"}},
        "additionalProperties": False,
        "minProperties": 1,
    },
    "names of a map": {
        "properties": {
            "m": {
                "type": "object",
                "propertyNames": {"enum": ["a", "b"]},
                "minProperties": 1,
                "additionalProperties": {"type": "boolean"},
            }
        }
    },
    "object without properties": {"properties": {"meta": {"type": "object"}, "a": {"type": "integer"}}},
    "multipleOf": {
        "properties": {
            "n": {"type": "number", "multipleOf": 0.05, "minimum": 1, "maximum": 2},
            "i": {"type": "integer", "multipleOf": 7},
        }
    },
    "exclusive bounds": {
        "properties": {
            "n": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
            "i": {"type": "integer", "exclusiveMinimum": 5, "maximum": 6},
        }
    },
    "lengths": {
        "properties": {
            "name": {"type": "string", "minLength": 30, "maxLength": 40},
            "email": {"type": "string", "maxLength": 3},
            "none": {"type": "string", "maxLength": 0},
        }
    },
    "uniqueItems": {
        "properties": {
            "tags": {"type": "array", "uniqueItems": True, "minItems": 2, "items": {"enum": ["a", "b", "c"]}},
            "ids": {"type": "array", "uniqueItems": True, "minItems": 3, "items": {"type": "integer"}},
        }
    },
    "mixed enumeration": {
        "properties": {"port": {"enum": ["auto", 80, 443, 8080, None]}},
        "required": ["port"],
    },
    "oneOf of required": {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
    },
    "anyOf of required": {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    },
    "dependentRequired": {
        "type": "object",
        "properties": {"card": {"type": "string"}, "street": False, "n": {"type": "integer"}},
        "dependentRequired": {"card": ["street"]},
    },
    "dependencies": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "dependencies": {"a": {"not": {"required": ["b"]}}},
    },
    "if then else": {
        "type": "object",
        "properties": {"kind": {"enum": ["a", "b"]}, "size": {"type": "integer"}},
        "required": ["kind"],
        "if": {"properties": {"kind": {"const": "a"}}},
        "then": {"required": ["size"]},
        "else": {"not": {"required": ["size"]}},
    },
    "look-ahead": {
        "properties": {"password": {"type": "string", "pattern": r"^(?=.*\d)(?=.*[a-z]).{8,12}$"}}
    },
    "named groups": {"properties": {"v": {"type": "string", "pattern": r"^v(?<major>\d)\.\d$"}}},
    "expression and length": {
        "properties": {"s": {"type": "string", "pattern": "^[a-z]*$", "minLength": 12}}
    },
    "tuple": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {
            "point": {
                "type": "array",
                "items": [{"type": "number"}, {"enum": ["m", "km"]}],
                "additionalItems": False,
                "minItems": 2,
            }
        },
    },
    "contains": {
        "properties": {"l": {"type": "array", "items": {"enum": ["x", "y"]}, "contains": {"const": "x"}}}
    },
    "discriminated": {
        "properties": {
            "shape": {
                "oneOf": [
                    {
                        "properties": {"type": {"const": "circle"}, "r": {"type": "integer"}},
                        "required": ["type", "r"],
                    },
                    {
                        "properties": {"type": {"const": "square"}, "a": {"type": "integer"}},
                        "required": ["type", "a"],
                    },
                ]
            }
        }
    },
    "recursion": {"$ref": "#/definitions/tree", "definitions": {"tree": TREE}},
    "required recursion": {
        "$ref": "#/definitions/e",
        "definitions": {
            "e": {
                "type": "object",
                "required": ["is"],
                "properties": {"is": {"oneOf": [{"$ref": "#/definitions/e"}, {"type": "integer"}]}},
            }
        },
    },
    "closed allOf": {
        "allOf": [
            {"properties": {"a": {"type": "integer"}}},
            {"properties": {"a": {"minimum": 5}, "b": {"type": "string"}}, "additionalProperties": False},
        ]
    },
    "unevaluated": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "anyOf": [{"properties": {"b": {"type": "integer"}}}],
        "unevaluatedProperties": False,
    },
    "maxProperties": {
        "type": "object",
        "maxProperties": 1,
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    },
    "fixed values": {"properties": {"v": {"const": 3}, "o": {"const": {"a": [1]}}, "n": {"const": None}}},
}


def rows_of(schema, count=25):
    words = compilation.vocabulary()
    read = formats.read(Source(json.dumps(schema).encode(), "case.json"), "json_schema", words)
    (draft,) = drafts.draft_tables(read, words, 100)
    bound = BoundPlan(
        compile_plan(parse(draft.fields), words), GenerationContext("s", datetime(2026, 1, 1, tzinfo=UTC))
    )
    batch = pa.RecordBatch.from_arrays(list(bound.block(0, count)), schema=bound.schema)
    return [json.loads(text) for text in Renderer(RequestTemplate(method="POST"), "").render_bodies(batch)]


@pytest.mark.parametrize("name", CASES)
def test_generated_rows_are_valid_by_their_schema(name):
    validator = jsonschema_rs.validator_for(CASES[name], validate_formats=True)
    rows = rows_of(CASES[name])
    assert len(rows) == 25
    faults = [(row, error.message) for row in rows for error in validator.iter_errors(row)]
    assert not faults, faults[:3]


def test_optional_properties_are_generated_where_they_may_be():
    assert {"value"} == rows_of(CASES["recursion"])[0].keys() - {"children"}
    assert rows_of(CASES["discriminated"])[0]["shape"].keys() == {"type", "r"}
    assert set(rows_of(CASES["formats"])[0]) == set(CASES["formats"]["properties"])
    assert len({row["kind"] for row in rows_of(CASES["if then else"])}) == 1, "the values fit together"


def test_left_out_properties_say_why():
    shape = Shaper(Document(CASES["dependentRequired"])).shape(CASES["dependentRequired"])
    assert "not accepted together" in shape["properties"]["card"][OMISSION_KEYWORD]
    outside = {"type": "object", "properties": {"a": {"$ref": "other.json#/x"}, "b": {"type": "integer"}}}
    assert (
        "in another document" in Shaper(Document(outside)).shape(outside)["properties"]["a"][OMISSION_KEYWORD]
    )


def test_unknown_types_are_reported_as_errors():
    words = compilation.vocabulary()
    schema = {
        "type": "object",
        "required": ["b"],
        "properties": {"a": {"type": "text"}, "b": {"type": "text"}},
    }
    read = formats.read(Source(json.dumps(schema).encode(), "case.json"), "json_schema", words)
    (draft,) = drafts.draft_tables(read, words, 100)
    text = 'JSON Schema has no type "text".'
    assert [(column.state, column.reason) for column in draft.columns] == [
        ("red", f"Imported as text: {text}"),
        ("red", f"Not generated: {text}"),
    ]


def test_schemas_that_all_refer_to_one_another_are_all_generated():
    names = [f"D{number}" for number in range(30)]
    links = {f"p{number}": {"$ref": f"#/definitions/{name}"} for number, name in enumerate(names)}
    one = {"type": "object", "properties": {"name": {"type": "string"}, **links}, "required": ["name"]}
    document = Document({"definitions": dict.fromkeys(names, one)})
    document.visits_left = 20_000
    shaper = Shaper(document)
    found = [shaper.shape({"$ref": f"#/definitions/{name}"}) for name in names]
    assert [set(shape["required"]) for shape in found] == [{"name"}] * len(names)


def test_read_only_properties_are_not_sent_but_satisfy_required():
    schema = {
        "required": ["id", "name"],
        "properties": {"id": {"$ref": "#/d"}, "name": {"type": "string"}},
        "d": {"type": "integer", "readOnly": True},
    }
    shape = Shaper(Document(schema)).shape(schema)
    assert shape["properties"]["id"]["readOnly"] is True
    assert rows_of(schema)[0].keys() == {"name"}


def test_a_schema_without_values_has_no_shape():
    for schema in (False, {"allOf": [{"type": "string"}, {"type": "integer"}]}, {"enum": []},
                   {"type": "object", "required": ["a"], "properties": {"a": False}}):  # fmt: skip
        assert Shaper(Document({})).shape(schema) is None


def test_a_huge_schema_ends_at_the_budget():
    schema = {"$defs": {f"s{n}": {"type": "object", "properties": {
        f"p{k}": {"anyOf": [{"$ref": f"#/$defs/s{n + 1}"}] * 8} for k in range(9)}} for n in range(12)},
        "$ref": "#/$defs/s0"}  # fmt: skip
    document = Document(schema)
    document.visits_left = 50_000
    Shaper(document).shape(schema, visits=20_000)
    assert document.visits_left >= 0


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from([0.5, 2.0]) | st.text("ab1", max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(VALUES, st.sampled_from([case for case in CASES if "format" not in case]))
def test_the_validator_agrees_with_an_independent_one(value, name):
    schema = CASES[name]
    assert Document(schema).is_valid(value, schema) == jsonschema_rs.validator_for(schema).is_valid(value)


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [(r"^a$", "a\n", False), (r"\d", "٣", False), (r"^\p{Lu}", "Ä", True), (r"[^]", "x", True), ("(", "(", False),
     (r"b", "abc", True), (r"^(?<n>x)\k<n>$", "xx", True), (r"^\/a\-b$", "/a-b", True)],
)  # fmt: skip
def test_expressions_follow_ecmascript(pattern, text, found):
    assert validation.matches(pattern, text) is found


def test_sample_values_vary():
    shape = {"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"enum": [1, 2, 3]}}}
    assert len({json.dumps(shapes.sample(shape, k)) for k in range(24)}) >= 4
