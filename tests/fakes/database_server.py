"""Database servers of a test's own, in a temporary folder: killed and started again like after a power cut."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from pathlib import Path

import psycopg
import pymysql
import pytest


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class DatabaseServer(ABC):
    """A server that is not run as root. `url` is a connection string for its own database."""

    user = "nobody"

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="rowsmith-server-"))
        self.port = _free_port()
        self.process: subprocess.Popen[bytes] | None = None
        if os.geteuid() == 0:
            shutil.chown(self.folder, self.user)
        try:
            self.prepare()
            self.start()
            self.create()
        except BaseException:
            self.close()
            raise

    @property
    @abstractmethod
    def url(self) -> str:
        """A connection string."""

    @abstractmethod
    def prepare(self) -> None:
        """Create the data folder."""

    @abstractmethod
    def command(self) -> list[str]:
        """The command line of the server."""

    @abstractmethod
    def create(self) -> None:
        """Create the database."""

    @abstractmethod
    def answers(self) -> bool:
        """Whether it takes connections."""

    def _run_as(self) -> dict[str, str]:
        return {"user": self.user} if os.geteuid() == 0 else {}

    def run(self, *command: str) -> None:
        """Run a command as the user of the server."""
        done = subprocess.run(command, capture_output=True, cwd=self.folder, text=True, **self._run_as())
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self) -> None:
        """Return when the server takes connections."""
        self.process = subprocess.Popen(
            self.command(),
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **self._run_as(),
        )
        until = time.monotonic() + 60
        while not self.answers():
            assert self.process.poll() is None, "the server has ended"
            assert time.monotonic() < until, "the server does not answer"
            time.sleep(0.05)

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """End it without a shutdown, so that it recovers from its log at the next start."""
        assert self.process is not None
        self.process.send_signal(number)
        self.process.wait(30)

    def close(self) -> None:
        """End it and remove its files."""
        if self.process is not None and self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class PostgresqlServer(DatabaseServer):
    """PostgreSQL, from the newest version that is installed."""

    def __init__(self) -> None:
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
        if not found:
            pytest.skip("PostgreSQL's server programs are not installed")
        self.programs = found[-1].parent
        super().__init__()

    @property
    def url(self) -> str:
        return f"postgresql://tester@127.0.0.1:{self.port}/shop"

    def prepare(self) -> None:
        data = str(self.folder / "data")
        self.run(str(self.programs / "initdb"), "-D", data, "-U", "tester", "-A", "trust", "--no-sync")

    def command(self) -> list[str]:
        options = [
            f"port={self.port}",
            "listen_addresses=127.0.0.1",
            f"unix_socket_directories={self.folder}",
        ]
        return [
            str(self.programs / "postgres"), "-D", str(self.folder / "data"),
            *(word for option in options for word in ("-c", option)),
        ]  # fmt: skip

    def create(self) -> None:
        with psycopg.connect(self.url.replace("/shop", "/postgres"), autocommit=True) as connection:
            connection.execute("CREATE DATABASE shop")

    def answers(self) -> bool:
        try:
            psycopg.connect(self.url.replace("/shop", "/postgres"), connect_timeout=5).close()
        except psycopg.Error:
            return False
        return True

    def kill(self, number: signal.Signals = signal.SIGQUIT) -> None:
        """An immediate shutdown: every session is cut, nothing is written out."""
        super().kill(number)


class MariadbServer(DatabaseServer):
    """MariaDB."""

    def __init__(self) -> None:
        if shutil.which("mariadbd") is None or shutil.which("mariadb-install-db") is None:
            pytest.skip("MariaDB's server programs are not installed")
        super().__init__()

    @property
    def url(self) -> str:
        return f"mysql://root@127.0.0.1:{self.port}/shop"

    def prepare(self) -> None:
        self.run(
            "mariadb-install-db", "--no-defaults", f"--datadir={self.folder}/data", "--skip-test-db",
            "--auth-root-authentication-method=normal",
        )  # fmt: skip

    def command(self) -> list[str]:
        return [
            shutil.which("mariadbd") or "", "--no-defaults", f"--datadir={self.folder}/data", f"--port={self.port}",
            "--bind-address=127.0.0.1", f"--socket={self.folder}/s", f"--pid-file={self.folder}/pid",
            "--innodb-buffer-pool-size=32M", "--performance-schema=OFF",
        ]  # fmt: skip

    def create(self) -> None:
        connection = pymysql.connect(host="127.0.0.1", port=self.port, user="root")
        with connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE shop")

    def answers(self) -> bool:
        try:
            pymysql.connect(host="127.0.0.1", port=self.port, user="root", connect_timeout=5).close()
        except pymysql.Error:
            return False
        return True
