"""OpenAPI documents of every version: what operations they have, and what their bodies are."""

from __future__ import annotations

import json

import pytest

from webapp.connectors.base import ConnectorError
from webapp.connectors.openapi import document as openapi_document
from webapp.connectors.openapi.connector import OpenapiConnector, request_template_of
from webapp.connectors.rest.sending import form_data

V3 = """
openapi: 3.0.3
info: {title: Shop, version: "1.2"}
servers: [{url: "https://{region}.shop.example/v1/", variables: {region: {default: eu}}}]
paths:
  /shops/{shop}/orders:
    parameters:
      - {name: shop, in: path, required: true, schema: {type: string}}
    get: {responses: {"200": {description: all}}}
    post:
      summary: Place an order
      parameters:
        - {name: dry, in: query, schema: {type: boolean}}
        - {name: tenant, in: query, required: true, schema: {type: integer}}
        - {$ref: "#/components/parameters/Trace"}
      requestBody: {$ref: "#/components/requestBodies/Order"}
      responses: {"201": {content: {application/json: {schema: {$ref: "#/components/schemas/Order"}}}}}
  /uploads:
    post: {requestBody: {content: {multipart/form-data: {schema: {type: object, properties: {f: {type: string}}}}}}}
components:
  parameters:
    Trace: {name: X-Trace, in: header, required: true, schema: {type: string, format: uuid}}
  requestBodies:
    Order: {content: {application/json: {schema: {$ref: "#/components/schemas/Order"}}}}
  schemas:
    Base: {type: object, required: [id], properties: {id: {type: integer, readOnly: true}}}
    Order:
      allOf:
        - {$ref: "#/components/schemas/Base"}
        - type: object
          required: [status]
          properties:
            status: {type: string, enum: [new, paid]}
            note: {type: string, nullable: true, maxLength: 40}
            pay: {oneOf: [{type: object, properties: {iban: {type: string}}}, {type: string}]}
            lines: {type: array, items: {$ref: "#/components/schemas/Line"}}
    Line: {type: object, properties: {sku: {type: string}, order: {$ref: "#/components/schemas/Order"}}}
"""
V2 = {
    "swagger": "2.0", "info": {"title": "Old", "version": "1"}, "host": "old.example", "basePath": "/api",
    "schemes": ["http"],
    "paths": {"/people": {"post": {
        "parameters": [{"in": "body", "name": "b", "schema": {"$ref": "#/definitions/P"}},
                       {"in": "header", "name": "X-Key", "type": "string", "required": True}],
        "responses": {"200": {"schema": {"$ref": "#/definitions/P"}}}}}},
    "definitions": {"P": {"type": "object", "properties": {"name": {"type": "string"}}}},
}  # fmt: skip
V31 = {
    "openapi": "3.1.0", "info": {"title": "New", "version": "1"},
    "paths": {"/p": {"put": {"requestBody": {"content": {"application/vnd.x+json; v=1": {"schema": {
        "type": "array", "items": {"type": "object", "properties": {"a": {"type": ["string", "null"]}}}}}}}}}},
}  # fmt: skip


def test_operations_with_json_are_listed_with_their_parameters():
    found = OpenapiConnector.read_document(V3.encode())
    assert found.base_url == "https://eu.shop.example/v1"
    (order,) = found.entities
    assert order.name == "POST /shops/{shop}/orders"
    assert order.parts == ("POST", "/shops/{shop}/orders", "?tenant", "X-Trace:")
    assert order.comment == "Place an order"
    columns = {field.name: field for field in order.fields}
    assert list(columns) == ["shop", "tenant", "X-Trace", "id", "status", "note", "pay", "lines"]
    result = {name: (column.type, column.nullable, column.generated) for name, column in columns.items()}
    assert result["shop"] == ("text", False, "")
    assert result["id"] == ("integer", False, "computed")
    assert result["status"] == ("enum", False, "")
    assert result["note"] == ("text", True, "")
    assert (result["pay"][0], result["lines"][0]) == ("json", "array")
    assert columns["status"].choices == ("new", "paid")
    assert columns["note"].max_length == 40


def test_recursive_schemas_end_at_the_recursion():
    (order,) = openapi_document.read(V3.encode()).operations
    line = order.body.shape["properties"]["lines"]["items"]
    assert list(line["properties"]) == ["sku"]


def test_swagger_2_is_read_the_same():
    found = OpenapiConnector.read_document(json.dumps(V2).encode())
    assert found.base_url == "http://old.example/api"
    (people,) = found.entities
    assert people.parts == ("POST", "/people", "X-Key:")
    assert [field.name for field in people.fields] == ["X-Key", "name"]


def test_an_array_of_rows_is_one_row_and_null_is_a_type_of_3_1():
    (one,) = OpenapiConnector.read_document(json.dumps(V31).encode()).entities
    assert (one.name, [(c.name, c.type, c.nullable) for c in one.fields]) == ("PUT /p", [("a", "text", True)])


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (b"{", "not valid JSON"),
        (b"a: [", "not valid YAML"),
        (b"- 1", "not an object"),
        (b'{"info": {}}', "neither openapi"),
        (b'{"openapi": "3.0.0", "paths": {"/a": {"$ref": "other.yaml#/a"}}}', ""),
        (
            b'{"openapi": "3.0.0", "paths": {"/a": {"post": {"requestBody": {"content": {"application/json": '
            b'{"schema": {"$ref": "other.yaml#/a"}}}}}}}}',
            'references another one: "other.yaml#/a"',
        ),
        (
            b'{"openapi": "3.0.0", "paths": {"/a": {"post": {"requestBody": {"content": {"application/json": '
            b'{"schema": {"$ref": "#/components/schemas/Gone"}}}}}}}}',
            '"#/components/schemas/Gone" does not exist',
        ),
        (b"!!python/object/apply:os.system [id]", "not valid YAML"),
    ],
)
def test_an_unreadable_file_is_one_clear_error(document, expected):
    with pytest.raises(ConnectorError) as caught:
        OpenapiConnector.read_document(document)
    assert caught.value.reason == "bad_document"
    assert expected in caught.value.message


def test_references_that_multiply_end_at_a_limit():
    schemas = {f"S{n}": {"allOf": [{"$ref": f"#/c/S{n + 1}"}] * 10} for n in range(12)} | {
        "S12": {"type": "string"}
    }
    body = {"content": {"application/json": {"schema": {"$ref": "#/c/S0"}}}}
    whole = {"openapi": "3.0.0", "c": schemas, "paths": {"/a": {"post": {"requestBody": body}}}}
    with pytest.raises(ConnectorError) as caught:
        OpenapiConnector.read_document(json.dumps(whole).encode())
    assert caught.value.reason == "bad_document"


def test_aliases_of_yaml_that_multiply_end_at_a_limit():
    levels = ["a0: &a0 {type: object, properties: {x: {type: string}}}"]
    levels += [
        f"a{n}: &a{n} {{type: object, properties: {{{', '.join(f'p{i}: *a{n - 1}' for i in range(9))}}}}}"
        for n in range(1, 10)
    ]
    body = "paths: {/a: {post: {requestBody: {content: {application/json: {schema: *a9}}}}}}"
    with pytest.raises(ConnectorError) as caught:
        OpenapiConnector.read_document("\n".join(["openapi: 3.0.0", *levels, body]).encode())
    assert caught.value.reason == "bad_document"


FORMS = """
openapi: 3.0.3
info: {title: Pay, version: "1"}
paths:
  /charges:
    post:
      requestBody:
        content:
          application/x-www-form-urlencoded:
            encoding: {metadata: {style: deepObject, explode: true}}
            schema:
              type: object
              required: [amount]
              properties:
                amount: {type: integer}
                metadata: {type: object, additionalProperties: {type: string}}
  /messages/{To}:
    post:
      parameters: [{name: To, in: path, required: true, schema: {type: string}}]
      requestBody:
        content:
          application/x-www-form-urlencoded:
            schema: {type: object, required: [To], properties: {To: {type: string}, Body: {type: string}}}
  /bulk:
    post:
      requestBody:
        content: {application/json: {schema: {type: array, items: {type: object, properties: {a: {type: integer}}}}}}
  /labels:
    put:
      requestBody: {content: {application/json: {schema: {type: array, items: {type: string}}}}}
"""


def test_the_request_of_an_operation_has_the_form_of_its_body():
    found = {
        entity.name: request_template_of(entity)
        for entity in OpenapiConnector.read_document(FORMS.encode()).entities
    }
    assert found["POST /charges"].encoding == "brackets"
    assert found["POST /messages/{To}"].encoding == "form"
    assert found["POST /messages/{To}"].body == {"To": '{{"To"}}', "Body": '{{"Body"}}'}, (
        "in the path and in the body"
    )
    assert found["POST /bulk"].body == [{"a": '{{"a"}}'}]
    assert found["PUT /labels"].body == '{{"body"}}'


def test_form_operations_of_swagger_2_are_read():
    fields = [{"in": "formData", "name": "text", "type": "string", "required": True}]
    whole = {"swagger": "2.0", "paths": {"/send": {"post": {"parameters": fields}}}}
    (one,) = OpenapiConnector.read_document(json.dumps(whole).encode()).entities
    assert [(column.name, column.nullable) for column in one.fields] == [("text", False)]
    assert request_template_of(one).encoding == "form"


@pytest.mark.parametrize(
    ("row", "brackets", "expected"),
    [
        ({"a": 1, "b": True, "c": None, "d": "x y"}, False, b"a=1&b=true&d=x+y"),
        ({"a": ["x", "y"], "o": {"k": 1}}, False, b"a=x&a=y&o=%7B%22k%22%3A1%7D"),
        ({"a": [{"p": 1}], "o": {"k": "v"}}, True, b"a%5B0%5D%5Bp%5D=1&o%5Bk%5D=v"),
    ],
)
def test_rows_as_form_data(row, brackets, expected):
    assert form_data(row, brackets) == expected


def test_one_operation_that_cannot_be_read_does_not_stop_the_others():
    bodies = {
        "/a": {"$ref": "other.yaml#/a"},
        "/b": {"type": "object", "properties": {"x": {"type": "string"}}},
    }
    paths = {path: {"post": {"requestBody": {"content": {"application/json": {"schema": schema}}}}}
             for path, schema in bodies.items()}  # fmt: skip
    found = OpenapiConnector.read_document(json.dumps({"openapi": "3.0.0", "paths": paths}).encode())
    assert [entity.name for entity in found.entities] == ["POST /b"]
