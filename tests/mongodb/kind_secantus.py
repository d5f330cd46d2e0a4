"""A database in SecantusDB, a server for MongoDB's protocol that we did not write, with the storage engine of MongoDB.

It has the accounts, validation rules, unique indexes and limits of MongoDB, and our connector reaches it with the real
driver. Its packages are in a separate environment (tests/separate_environment.py).
"""

from __future__ import annotations

import socket
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pymongo
from pymongo import MongoClient

from tests.connectors.kind_mongodb import READER, TYPES, WRITER, MongodbKind
from tests.connectors.kinds import GATE, Table
from tests.jobs.waiting import eventually
from tests.separate_environment import installed
from webapp.connectors.base import Connector
from webapp.connectors.mongodb.connector import MongodbConnector
from webapp.connectors.mongodb.session import MongodbSession

ROOT = ("root", "for this test only")
LOCK = Path(__file__).parent / "requirements.lock"


class Server:
    """The server with two accounts."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="rowsmith-secantus-")
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = int(found.getsockname()[1])
        self._process: subprocess.Popen[bytes] | None = None
        self.start()
        with self.client() as client:
            for (name, password), role in (
                (ROOT, "root"),
                (WRITER, "readWriteAnyDatabase"),
                (READER, "readAnyDatabase"),
            ):
                client.admin.command("createUser", name, pwd=password, roles=[role])
        self.stop()
        self.start("--auth")

    def start(self, *arguments: str) -> None:
        program = installed("secantus", LOCK) / "bin" / "secantusd-py"
        command = [program, "--host", "127.0.0.1", "--port", str(self.port), "--standalone", *arguments]
        command += ["--cache-size", "64M", "--storage-path", self.folder.name]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        eventually(self._answers, within=60)

    def _answers(self) -> bool:
        with self.client() as client:
            try:
                client.admin.command("hello")
            except pymongo.errors.PyMongoError:
                return False
        return True

    def client(self, **account: str) -> MongoClient[dict[str, Any]]:
        return MongoClient("127.0.0.1", self.port, serverSelectionTimeoutMS=2_000, tz_aware=True, **account)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(timeout=30)
            self._process = None

    def close(self) -> None:
        self.stop()
        self.folder.cleanup()


@cache
def server() -> Server:
    """One for all tests of this process; `tests/mongodb/conftest.py` closes it."""
    return Server()


class PatientConnector(MongodbConnector):
    """The server is slow: while it sorts many documents, it may not respond to the driver's heartbeats in time."""

    def open(self, timeout: float | None = None) -> MongodbSession:
        return super().open(timeout or 60)


class SecantusKind(MongodbKind):
    lacks = MongodbKind.lacks | {"check"}
    """It compares no decimals in validation rules."""

    @classmethod
    def unavailable(cls) -> str | None:
        installed("secantus", LOCK)  # skips with the reason
        return None

    def start(self) -> None:
        self.client = server().client(username=ROOT[0], password=ROOT[1])
        self.database = self.client[self.place]

    def stop(self) -> None:
        self.client.drop_database(self.place)
        self.client.close()

    def connector(self, *, read_only: bool = False, account: tuple[str, str] = WRITER) -> Connector:
        settings = MongodbConnector.Settings(
            host="127.0.0.1",
            port=server().port,
            database=self.place,
            username=account[0],
            password=account[1],
            options={"authSource": "admin"},
        )
        return PatientConnector(settings, GATE, read_only=read_only)

    def make(self, table: Table) -> None:
        rules: dict[str, Any] = {}
        for name, col in table.columns.items():
            rules[name] = {"bsonType": [*TYPES[col.type], *(["null"] if col.null else [])]}
            if col.length:
                rules[name]["maxLength"] = col.length
            if col.least is not None:
                rules[name]["minimum"] = col.least
        needed = [name for name, col in table.columns.items() if not col.null]
        schema: dict[str, Any] = {"properties": rules}
        if needed:
            schema["required"] = needed
        created = self.database.create_collection(table.name, validator={"$jsonSchema": schema})
        keys = [name for name, col in table.columns.items() if col.key]
        for columns in [keys, *([name] for name, col in table.columns.items() if col.unique)]:
            if columns:
                created.create_index([(name, 1) for name in columns], unique=True)

    def documents(self, table: str) -> list[dict[str, Any]]:
        return list(self.database[table].find())
