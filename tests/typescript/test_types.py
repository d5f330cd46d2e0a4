"""The committed types are those that the present service gives, and say what its schemas say."""

from __future__ import annotations

import json
import re
from types import ModuleType

from tests.typescript.conftest import PACKAGE
from webapp.errors import CODES


def shape(generate: ModuleType, schema: dict, **others: dict) -> str:
    return generate.text({"components": {"schemas": {"One": schema, **others}}})


def test_the_types_are_those_of_the_present_service(generate: ModuleType):
    expected = generate.text(generate.document())
    assert generate.TYPES.read_text("utf-8") == expected, "run sdk/typescript/tools/generate.py"


def test_keys_are_optional_that_need_not_be_given(generate: ModuleType):
    text = shape(
        generate,
        {"properties": {"a": {"type": "integer"}, "b-c": {"type": ["string", "null"]}}, "required": ["a"]},
    )
    assert '  a: number;\n  "b-c"?: string | null;\n' in text


def test_references_choices_and_lists_keep_their_shape(generate: ModuleType):
    text = shape(
        generate,
        {
            "properties": {
                "many": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
                "two": {"$ref": "#/components/schemas/Two"},
                "any": {"$ref": "#/components/schemas/JsonValue"},
                "kind": {"enum": ["x", 1]},
                "free": {"type": "object", "additionalProperties": {"type": "integer"}},
            },
            "required": ["many", "two", "any", "kind", "free"],
        },
        Two={"properties": {"inner": {"title": "Inner", "type": "object", "properties": {"x": {}}}}},
        JsonValue={},
    )
    for line in (
        "many: (string | null)[];",
        "two: Two;",
        "any: unknown;",
        'kind: "x" | 1;',
        "free: Record<string, number>;",
        "inner?: Inner;",
        "export interface Inner {",
    ):
        assert line in text, line


def test_a_description_cannot_end_its_comment(generate: ModuleType):
    text = shape(generate, {"description": "a */ b", "properties": {"a": {"description": "c */"}}})
    assert "/** a * / b */" in text
    assert text.count("*/") == 2


def test_the_lock_file_names_no_registry():
    lock = json.loads((PACKAGE / "package-lock.json").read_text("utf-8"))
    assert "://" not in json.dumps(lock["packages"])
    assert all(one.get("integrity") for name, one in lock["packages"].items() if name)


def test_every_error_class_of_targets_is_documented():
    source = (PACKAGE / "src" / "errors.ts").read_text("utf-8")
    result = set(re.findall(r'"(\w+)"', source.split("TARGET_CODES = [")[1].split("]")[0]))
    assert result <= set(CODES)
