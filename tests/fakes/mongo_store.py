"""What the MongoDB of `mongo_wire` keeps: collections with unique indexes and validators, in memory.

Conditions, changes and validators are those that the connector uses, as the server's manual describes them; anything
else is an error, so that a test never passes on something that the fake only ignored.
"""

from __future__ import annotations

import copy
import datetime as dt
import re
from decimal import Decimal
from typing import Any

import bson
from bson import Decimal128, Int64, ObjectId, Regex


class Refused(Exception):
    def __init__(self, code: int, message: str, **more: Any) -> None:
        self.told = {"code": code, "errmsg": message, **more}
        super().__init__(message)


def comparable(value: Any) -> Any:
    """In the order of BSON's types: null, numbers, texts, everything else by its bytes."""
    if isinstance(value, Decimal128):
        value = value.to_decimal()
    if value is None:
        return (0,)
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return (1, Decimal(value))
    if isinstance(value, str):
        return (2, value.encode())
    return (3, type(value).__name__, bson.encode({"": value}))


def got(document: Any, path: str) -> Any:
    for part in path.split("."):
        document = document.get(part) if isinstance(document, dict) else None
    return document


def matches(document: dict, condition: dict) -> bool:
    for name, expected in condition.items():
        if name == "$or":
            if not any(matches(document, item) for item in expected):
                return False
        elif name.startswith("$"):
            raise Refused(2, f"unknown top level operator: {name}")
        elif not _holds(got(document, name), expected):
            return False
    return True


def _holds(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Regex | re.Pattern):
        found = wanted.try_compile() if isinstance(wanted, Regex) else wanted
        return isinstance(value, str) and bool(found.search(value))
    if not (isinstance(wanted, dict) and any(key.startswith("$") for key in wanted)):
        return comparable(value) == comparable(wanted)
    for operator, entry in wanted.items():
        if operator == "$in":
            fits = comparable(value) in {comparable(item) for item in entry}
        elif operator == "$not":
            fits = not _holds(value, entry)
        elif operator in ("$gt", "$gte", "$lt", "$lte"):
            here, there = comparable(value), comparable(entry)
            fits = here[0] == there[0] and {
                "$gt": here > there, "$gte": here >= there, "$lt": here < there, "$lte": here <= there,
            }[operator]  # fmt: skip
        else:
            raise Refused(2, f"unknown operator: {operator}")
        if not fits:
            return False
    return True


NAMES = {
    "bool": bool, "string": str, "double": float, "decimal": Decimal128, "objectId": ObjectId, "date": dt.datetime,
    "object": dict, "array": list, "binData": bytes, "null": type(None),
}  # fmt: skip


def is_a(value: Any, name: str) -> bool:
    if name in ("int", "long"):
        whole = isinstance(value, int) and not isinstance(value, bool)
        return whole and isinstance(value, Int64) == (name == "long")
    return isinstance(value, NAMES[name])


def broken(document: dict, schema: dict) -> list[dict]:
    """What the server tells in `errInfo.details.schemaRulesNotSatisfied`."""
    found, fields = [], []
    for name, rule in schema.get("properties", {}).items():
        if name in document and (details := _faults(document[name], rule)):
            fields.append({"propertyName": name, "details": details})
    if fields:
        found.append({"operatorName": "properties", "propertiesNotSatisfied": fields})
    if missing := [name for name in schema.get("required", ()) if name not in document]:
        result = {"required": schema["required"]}
        found.append({"operatorName": "required", "specifiedAs": result, "missingProperties": missing})
    return found


def _faults(value: Any, rule: dict) -> list[dict]:
    found = []
    kinds = rule.get("bsonType", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(is_a(value, kind) for kind in kinds):
        result = {"specifiedAs": {"bsonType": rule["bsonType"]}, "reason": "type did not match"}
        word = "null" if value is None else type(value).__name__
        found.append({"operatorName": "bsonType", **result, "consideredValue": value, "consideredType": word})
    if value is not None and "minimum" in rule and comparable(value) < comparable(rule["minimum"]):
        result = {"specifiedAs": {"minimum": rule["minimum"]}, "reason": "comparison failed"}
        found.append({"operatorName": "minimum", **result, "consideredValue": value})
    if isinstance(value, str) and len(value) > rule.get("maxLength", len(value)):
        result = {
            "specifiedAs": {"maxLength": rule["maxLength"]},
            "reason": "specified string length was not satisfied",
        }
        found.append({"operatorName": "maxLength", **result, "consideredValue": value})
    return found


class Collection:
    """Documents by `_id`, and of each unique index which document holds which values."""

    def __init__(self, name: str, options: dict) -> None:
        self.name, self.options = name, options
        self.documents: dict[Any, dict] = {}
        self.indexes: dict[str, dict] = {"_id_": {"v": 2, "key": {"_id": 1}, "name": "_id_"}}
        self.held: dict[str, dict[Any, Any]] = {}

    def index(self, told: dict) -> None:
        self.indexes[told["name"]] = told
        if told.get("unique"):
            self.held[told["name"]] = {
                self._values(told, document): key for key, document in self.documents.items()
            }

    def _values(self, index: dict, document: dict) -> Any:
        return tuple(comparable(got(document, name)) for name in index["key"])

    def insert(self, document: dict) -> None:
        document = {"_id": document.get("_id", ObjectId()), **document}
        key = comparable(document["_id"])
        if key in self.documents:
            self._duplicate("_id_", {"_id": 1}, {"_id": document["_id"]})
        self._put(key, document, None)

    def _put(self, key: Any, document: dict, before: dict | None) -> None:
        schema = self.options.get("validator", {}).get("$jsonSchema", {})
        if rules := broken(document, schema):
            details = {"operatorName": "$jsonSchema", "schemaRulesNotSatisfied": rules}
            info = {"failingDocumentId": document["_id"], "details": details}
            raise Refused(121, "Document failed validation", errInfo=info)
        for name, holders in self.held.items():
            index = self.indexes[name]
            if holders.get(self._values(index, document), key) != key:
                self._duplicate(name, index["key"], {item: got(document, item) for item in index["key"]})
        for name, holders in self.held.items():
            if before is not None:
                holders.pop(self._values(self.indexes[name], before))
            holders[self._values(self.indexes[name], document)] = key
        self.documents[key] = document

    def _duplicate(self, name: str, pattern: dict, values: dict) -> None:
        message = f"E11000 duplicate key error collection: {self.name} index: {name} dup key: {values}"
        raise Refused(11000, message, keyPattern=pattern, keyValue=values)

    def find(self, condition: dict) -> list[dict]:
        expected = condition.get("_id")
        if isinstance(expected, dict) and list(expected) == ["$in"]:
            return [item for key in expected["$in"] for item in self.find({**condition, "_id": key})]
        quick = self._by_index(condition)
        return [
            document
            for document in (self.documents.values() if quick is None else quick)
            if matches(document, condition)
        ]

    def _by_index(self, condition: dict) -> list[dict] | None:
        for name, index in self.indexes.items():
            if set(index["key"]) == set(condition) and not any(
                isinstance(item, dict) for item in condition.values()
            ):
                values = tuple(comparable(condition[item]) for item in index["key"])
                if name != "_id_" and name not in self.held:
                    continue
                key = values[0] if name == "_id_" else self.held[name].get(values)
                return [self.documents[key]] if key in self.documents else []
        return None

    def update(self, condition: dict, change: dict, upsert: bool) -> tuple[int, Any]:
        """How many documents were found, and the `_id` of the one that was made."""
        found = self.find(condition)[:1]
        if not found and not upsert:
            return 0, None
        before = found[0] if found else None
        after = copy.deepcopy(before) if before else {}
        if before is None:
            for name, value in condition.items():
                _set(after, name, value)
            for name, value in change.get("$setOnInsert", {}).items():
                _set(after, name, value)
            after = {"_id": after.get("_id", ObjectId()), **after}
        if change.keys() - {"$set", "$setOnInsert"}:
            raise Refused(9, f"unknown modifier: {list(change)}")
        for name, value in change.get("$set", {}).items():
            _set(after, name, value)
        if before is not None and before["_id"] != after["_id"]:
            raise Refused(66, "Performing an update on the path '_id' would modify the immutable field '_id'")
        self._put(comparable(after["_id"]), after, before)
        return 1, None if before else after["_id"]

    def delete(self, condition: dict) -> int:
        for item in self.find(condition)[:1]:
            del self.documents[comparable(item["_id"])]
            for name, holders in self.held.items():
                holders.pop(self._values(self.indexes[name], item))
            return 1
        return 0


def _set(document: dict, path: str, value: Any) -> None:
    *outer, last = path.split(".")
    for part in outer:
        document = document.setdefault(part, {})
    document[last] = value
