"""A MongoDB server of one process, for the real driver: OP_MSG and the hello in OP_QUERY, over TCP or TLS.

Wire: MongoDB, "MongoDB Wire Protocol". Accounts sign in by PLAIN (RFC 4616), whose exchange is one message.
"""

from __future__ import annotations

import datetime as dt
import itertools
import socket
import ssl
import struct
import threading
from typing import Any

import bson
from bson import CodecOptions, Int64
from bson.codec_options import DatetimeConversion

from tests.fakes.listening import Listening, exactly
from tests.fakes.mongo_store import Collection, Refused, comparable, got, matches

OP_REPLY, OP_QUERY, OP_MSG = 1, 2004, 2013
CODEC = CodecOptions(tz_aware=True, tzinfo=dt.UTC, datetime_conversion=DatetimeConversion.DATETIME_AUTO)
WRITES = ("insert", "update", "delete", "create", "createIndexes", "drop", "dropDatabase")
READS = ["find", "listCollections", "listIndexes"]


class MongoWire(Listening):
    """`accounts`: name to (password, may write); without accounts, sign-in is disabled.
    `after_writes`: close the connection without a response after this many write commands."""

    def __init__(
        self, accounts: dict[str, tuple[str, bool]] | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        self.accounts = accounts or {}
        self.databases: dict[str, dict[str, Collection]] = {}
        self.after_writes: int | None = None
        self._cursors: dict[int, tuple[str, list[dict]]] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.RLock()
        super().__init__(tls)

    # --- messages ---

    def talk(self, peer: socket.socket) -> None:
        user: list[str] = []
        while True:
            size, number, _, opcode = struct.unpack("<4i", exactly(peer, 16))
            if opcode not in (OP_QUERY, OP_MSG):
                return  # another protocol
            body = exactly(peer, size - 16)
            if opcode == OP_QUERY:
                start = body.index(b"\0", 4) + 9
                answer = self._answer(bson.decode(body[start:], CODEC), user)
                reply = struct.pack("<iqii", 8, 0, 0, 1) + bson.encode(answer)
                _send(peer, number, OP_REPLY, reply)
                continue
            flags, command = _command(body)
            answer = self._answer(command, user)
            if self.after_writes is not None and next(iter(command)) in WRITES:
                self.after_writes -= 1
                if self.after_writes <= 0:
                    self.after_writes = None
                    return
            if not flags & 2:  # moreToCome: nothing is expected
                _send(peer, number, OP_MSG, struct.pack("<i", 0) + b"\0" + bson.encode(answer))

    def _answer(self, command: dict, user: list[str]) -> dict:
        name = next(iter(command))
        if name.lower() in ("hello", "ismaster"):  # the driver looks after the server while it works
            return {**self._do_hello(command, user), "ok": 1.0}
        with self._lock:
            try:
                self._allow(name, user)
                found = getattr(self, f"_do_{name.lower()}", None)
                if found is None:
                    raise Refused(59, f"no such command: '{name}'")
                return {**found(command, user), "ok": 1.0}
            except Refused as refused:
                return {**refused.told, "ok": 0.0}

    def _allow(self, name: str, user: list[str]) -> None:
        if not self.accounts or name.lower() in (
            "hello",
            "ismaster",
            "ping",
            "buildinfo",
            "saslstart",
            "endsessions",
        ):
            return
        if not user:
            raise Refused(13, f"Command {name} requires authentication")
        if name in WRITES and not self.accounts[user[0]][1]:
            raise Refused(13, f"not authorized on shop to execute command {name}")

    # --- saying hello ---

    def _do_hello(self, command: dict, user: list[str]) -> dict:
        sizes = {
            "maxBsonObjectSize": 16 * 1024**2,
            "maxMessageSizeBytes": 48_000_000,
            "maxWriteBatchSize": 100_000,
        }
        result = {
            "isWritablePrimary": True,
            "ismaster": True,
            "helloOk": True,
            "localTime": dt.datetime.now(dt.UTC),
        }
        return {
            **result,
            **sizes,
            "minWireVersion": 0,
            "maxWireVersion": 21,
            "connectionId": 1,
            "readOnly": False,
        }

    _do_ismaster = _do_hello

    def _do_ping(self, command: dict, user: list[str]) -> dict:
        return {}

    _do_endsessions = _do_killcursors = _do_ping

    def _do_buildinfo(self, command: dict, user: list[str]) -> dict:
        return {"version": "7.0.0", "versionArray": [7, 0, 0, 0]}

    def _do_saslstart(self, command: dict, user: list[str]) -> dict:
        _, name, password = bytes(command["payload"]).decode().split("\0")
        if command["mechanism"] != "PLAIN" or self.accounts.get(name, ("", 0))[0] != password:
            raise Refused(18, "Authentication failed.")
        user[:] = [name]
        return {"conversationId": 1, "done": True, "payload": b""}

    def _do_connectionstatus(self, command: dict, user: list[str]) -> dict:
        if not user:
            return {"authInfo": {"authenticatedUsers": [], "authenticatedUserPrivileges": []}}
        actions = [*READS, "insert", "update", "remove"] if self.accounts[user[0]][1] else READS
        grants = [{"resource": {"db": command["$db"], "collection": ""}, "actions": actions}]
        return {
            "authInfo": {"authenticatedUsers": [{"user": user[0]}], "authenticatedUserPrivileges": grants}
        }

    # --- looking around ---

    def _collection(self, command: dict, make: bool = False) -> Collection:
        name, database = command[next(iter(command))], self.databases.setdefault(command["$db"], {})
        if make and name not in database:
            database[name] = Collection(f"{command['$db']}.{name}", {})
        return database.get(name) or Collection(name, {})

    def _do_create(self, command: dict, user: list[str]) -> dict:
        name, database = command["create"], self.databases.setdefault(command["$db"], {})
        if name in database:
            raise Refused(48, f"Collection {command['$db']}.{name} already exists.")
        options = {"validator": command["validator"]} if "validator" in command else {}
        database[name] = Collection(f"{command['$db']}.{name}", options)
        return {}

    def _do_createindexes(self, command: dict, user: list[str]) -> dict:
        for index in command["indexes"]:
            self._collection(command, make=True).index({"v": 2, **index})
        return {}

    def _do_listcollections(self, command: dict, user: list[str]) -> dict:
        every = [
            {"name": name, "type": "collection", "options": collection.options}
            for name, collection in self.databases.get(command["$db"], {}).items()
        ]
        found = [item for item in every if matches(item, command.get("filter", {}))]
        return self._cursor(f"{command['$db']}.$cmd.listCollections", found, command.get("cursor", {}))

    def _do_listindexes(self, command: dict, user: list[str]) -> dict:
        if command["listIndexes"] not in self.databases.get(command["$db"], {}):
            raise Refused(26, f"ns does not exist: {command['$db']}.{command['listIndexes']}")
        every = list(self._collection(command).indexes.values())
        return self._cursor(f"{command['$db']}.{command['listIndexes']}", every, command.get("cursor", {}))

    # --- reading ---

    def _do_find(self, command: dict, user: list[str]) -> dict:
        found = self._collection(command).find(command.get("filter", {}))
        for name, direction in reversed(command.get("sort", {}).items()):
            found.sort(key=lambda item, name=name: comparable(got(item, name)), reverse=direction < 0)
        found = found[: command["limit"]] if command.get("limit") else found
        if chosen := command.get("projection"):
            names = [name for name, there in chosen.items() if there]
            found = [
                {name: one for name in names if (one := got(document, name)) is not None}
                for document in found
            ]
        return self._cursor(f"{command['$db']}.{command['find']}", found, command)

    def _do_getmore(self, command: dict, user: list[str]) -> dict:
        place, rest = self._cursors.pop(command["getMore"])
        return self._cursor(place, rest, command, "nextBatch")

    def _cursor(self, place: str, rows: list[dict], how: dict, word: str = "firstBatch") -> dict:
        size = how.get("batchSize") or 101
        number = next(self._numbers) if len(rows) > size else 0
        if number:
            self._cursors[number] = (place, rows[size:])
        return {"cursor": {"id": Int64(number), "ns": place, word: rows[:size]}}

    # --- writing ---

    def _written(self, command: dict, operations: list[dict], one_by_one: Any) -> dict:
        count, upserted, refused = 0, [], []
        for index, operation in enumerate(operations):
            try:
                found, result = one_by_one(operation)
                count += found
                if result is not None:
                    upserted.append({"index": index, "_id": result})
            except Refused as error:
                refused.append({"index": index, **error.told})
                if command.get("ordered", True):
                    break
        answer: dict[str, Any] = {"n": count, "nModified": count}
        if upserted:
            answer["upserted"] = upserted
        return {**answer, "writeErrors": refused} if refused else answer

    def _do_insert(self, command: dict, user: list[str]) -> dict:
        collection = self._collection(command, make=True)
        return self._written(command, command["documents"], lambda item: (collection.insert(item) or 1, None))

    def _do_update(self, command: dict, user: list[str]) -> dict:
        collection = self._collection(command, make=True)
        return self._written(
            command,
            command["updates"],
            lambda item: collection.update(item["q"], item["u"], item.get("upsert", False)),
        )

    def _do_delete(self, command: dict, user: list[str]) -> dict:
        collection = self._collection(command, make=True)
        return self._written(command, command["deletes"], lambda item: (collection.delete(item["q"]), None))


def _send(peer: socket.socket, to: int, opcode: int, body: bytes) -> None:
    peer.sendall(struct.pack("<4i", len(body) + 16, 1, to, opcode) + body)


def _command(body: bytes) -> tuple[int, dict]:
    """Flags and the command of an OP_MSG, its document sequences put into their places."""
    flags, at, command, sequences = struct.unpack_from("<i", body)[0], 4, {}, {}
    end = len(body) - 4 if flags & 1 else len(body)
    while at < end:
        kind, size = body[at], struct.unpack_from("<i", body, at + 1)[0]
        section = body[at + 1 : at + 1 + size]
        at += 1 + size
        if kind == 0:
            command = bson.decode(section, CODEC)
        else:
            name, _, documents = section[4:].partition(b"\0")
            sequences[name.decode()] = bson.decode_all(documents, CODEC)
    return flags, {**command, **sequences}
