"""Mixed load: typical actions of users and programs, each in a separate loop, slow enough that no queue grows.

Every worker is a thread with a separate connection. It checks results immediately: a 5xx response, a broken connection,
an export whose bytes do not match its hash, a push that does not deliver, or a follower without an end event is an
error, and the soak test is about errors.
"""

from __future__ import annotations

import hashlib
import json
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final

import requests

from tests.promises.product import Api, Product

FORMATS: Final = ("json", "csv", "sql", "xlsx", "ndjson", "parquet")
MOST_ROWS: Final = 5_000
FEW_ROWS: Final = 90
EXPORT_ROWS: Final = 3_000
PUSH_ROWS: Final = 300
# Seconds between two rounds of a worker, at random up to twice as long: the machine is busy, never overwhelmed.
PAUSES: Final = {"generate": 0.15, "preview": 0.1, "export": 1.0, "push": 1.0, "run": 2.0, "page": 0.3, "key": 0.5,
                 "change": 1.0, "leave": 2.0}  # fmt: skip
PROGRAM: Final = """
import os
from pathlib import Path

from rowsmith import Client

rows = Client().generate_from_template_id(os.environ["TEMPLATE"], 50)
for number, row in enumerate(rows):
    print("row", number, row["email"])
Path(os.environ["SERVICE_WORKSPACE_OUTPUTS"], "emails.txt").write_text("\\n".join(row["email"] for row in rows))
"""
PAGES: Final = (
    "/templates", "/datasets", "/connections", "/endpoints", "/scenarios", "/runs", "/pushes", "/exports", "/trash",
    "/usage", "/audit", "/api-keys", "/members", "/secrets", "/workspace/files", "/status", "/import", "/docs",
    "/docs/field-types", "/docs/guide/pushes", "/docs/search?q=seed",
)  # fmt: skip


class Fault(Exception):
    """Something that must not happen."""


class Load:
    """The workers. `times`: seconds of requests since the sampler last took them. `faults`: what went wrong."""

    def __init__(self, product: Product, seed: int = 25) -> None:
        self.product = product
        self.faults: list[str] = []
        self.done: dict[str, int] = dict.fromkeys(PAUSES, 0)
        self.times: deque[float] = deque(maxlen=100_000)
        self._chance = random.Random(seed)
        self._end = threading.Event()
        self._threads: list[threading.Thread] = []
        api = product.api()
        self.customers = api.named("/templates", "Customers")["id"]
        # The rows of a child template are limited by its parents, so only a limited number is requested.
        most = {
            "Customers": MOST_ROWS,
            "Order documents": MOST_ROWS,
            "Orders": FEW_ROWS,
            "Order lines": FEW_ROWS,
        }
        listed = api.read("/templates?limit=100")["items"]
        self.most = {item["id"]: most[item["name"]] for item in listed if item["name"] in most}
        self.templates = list(self.most)
        self.database = api.named("/connections", "Shop database")["id"]
        self.scenario = api.made("/scenarios", {"name": "Soak", "code": PROGRAM, "network": "api"})["id"]
        self._place = 0

    def start(self) -> None:
        """Begin: of the quick kinds two workers each, of those that wait for a worker of the product one."""
        for kind in (*PAUSES, "generate", "page"):
            rounds = getattr(self, f"_{kind}")
            chance = random.Random(self._chance.random())
            thread = threading.Thread(target=self._work, args=(kind, rounds, chance), daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """Let every round in hand end."""
        self._end.set()
        for thread in self._threads:
            thread.join(300)
            if thread.is_alive():
                self.faults.append("a worker of the load did not come to an end within 300 s")

    def _work(self, kind: str, rounds: Callable[[Api, random.Random], None], chance: random.Random) -> None:
        api = Timed(self.product.browser() if kind == "page" else self.product.api(), self.times)
        while not self._end.is_set():
            try:
                rounds(api, chance)
                self.done[kind] += 1
            except (Fault, AssertionError, OSError, requests.RequestException, ValueError) as error:
                self.faults.append(
                    f"{time.strftime('%H:%M:%S')} {kind}: {type(error).__name__}: {error}"[:1000]
                )
            self._end.wait(chance.uniform(0, 2 * PAUSES[kind]))

    # --- kinds of work

    def _generate(self, api: Timed, chance: random.Random) -> None:
        template = chance.choice(self.templates)
        count, seed = chance.randint(1, self.most[template]), str(chance.random())
        body, where = (
            {"count": count, "format": chance.choice(FORMATS), "seed": seed},
            f"/templates/{template}/generate",
        )
        with api.call("POST", where, json=body, stream=True) as answer:
            if not sum(len(piece) for piece in answer.iter_content(65_536)):
                raise Fault(f"{where} {body}: no byte")

    def _preview(self, api: Timed, chance: random.Random) -> None:
        template = chance.choice(self.templates)
        body: dict[str, Any] = {"seed": str(chance.randint(1, 50))}
        if chance.random() < 0.5:
            body["fields"] = [{"name": "id", "type": "row_number"}, {"name": "mail", "type": "email"}]
        if len(api.call("POST", f"/templates/{template}/preview", json=body).json()["rows"]) != 3:
            raise Fault("a preview without three rows")

    def _export(self, api: Timed, chance: random.Random) -> None:
        template = chance.choice(self.templates)
        count = min(EXPORT_ROWS, self.most[template])
        body = {"count": count, "format": chance.choice(FORMATS), "seed": str(chance.random())}
        result = api.call("POST", f"/templates/{template}/exports", json=body).json()["id"]
        self._follow(api, f"/exports/{result}/events", "progress")
        ended = api.call("GET", f"/exports/{result}").json()
        if ended["status"] != "completed":
            raise Fault(f"export {ended['status']}: {ended['error']}")
        content = api.call("GET", f"/exports/{result}/download").content
        if hashlib.sha256(content).hexdigest() != ended["sha256"]:
            raise Fault("the bytes of an export are not those of its hash")

    def _push(self, api: Timed, chance: random.Random) -> None:
        self._place += PUSH_ROWS  # one worker pushes, so no two have the same rows
        body = {"connection_id": self.database, "target": "customers", "count": PUSH_ROWS, "offset": self._place,
                "seed": "soak"}  # fmt: skip
        result = api.call("POST", f"/templates/{self.customers}/push", json=body).json()["id"]
        self._follow(api, f"/pushes/{result}/logs?follow=true", "log")
        ended = api.call("GET", f"/pushes/{result}").json()
        if ended["counts"]["delivered"] != PUSH_ROWS:
            raise Fault(f"push {ended['status']}: {ended['counts']} {ended['error']}")
        undone = api.call("POST", f"/pushes/{result}/undo", json={}).json()["id"]
        self._follow(api, f"/pushes/{undone}/events", "progress")
        ended = api.call("GET", f"/pushes/{undone}").json()
        if ended["status"] != "completed":
            raise Fault(f"undo {ended['status']}: {ended['error']}")

    def _run(self, api: Timed, _chance: random.Random) -> None:
        body = {"params": {"TEMPLATE": self.customers}}
        result = api.call("POST", f"/scenarios/{self.scenario}/run", json=body).json()["id"]
        where = f"/scenarios/{self.scenario}/runs/{result}"
        lines = self._follow(api, f"{where}/logs?follow=true", "log")
        ended = api.call("GET", where).json()
        if ended["status"] != "completed":
            raise Fault(f"run {ended['status']}: {ended['error']}")
        if sum(line.startswith("row ") for line in lines) != 50:
            raise Fault(f"a run of fifty lines, of which a follower got {len(lines)}")

    def _page(self, api: Timed, chance: random.Random) -> None:
        page = chance.choice([*PAGES, f"/templates/{chance.choice(self.templates)}"])
        if not api.call("GET", page).text.rstrip().endswith("</html>"):
            raise Fault(f"{page} is no whole page")

    def _key(self, api: Timed, chance: random.Random) -> None:
        if chance.random() < 0.2:
            wrong = {"Authorization": "Bearer rws_aaaaaaaaaaaa_" + "b" * 43}
            api.call("GET", "/me", headers=wrong, wants=401)
        else:
            api.call("GET", "/me")

    def _change(self, api: Timed, chance: random.Random) -> None:
        fields = [{"name": "id", "type": "row_number"}, {"name": "city", "type": "city"}]
        result = api.call(
            "POST", "/templates", json={"name": f"soak {chance.random()}", "fields": fields}
        ).json()["id"]
        api.call("PATCH", f"/templates/{result}", json={"description": "changed"})
        api.call("GET", f"/templates/{result}/versions")
        api.call("DELETE", f"/templates/{result}")

    def _leave(self, api: Timed, chance: random.Random) -> None:
        """Disconnect in the middle of a stream."""
        body = {"count": 200_000, "format": chance.choice(("csv", "json")), "seed": "left"}
        with api.call("POST", f"/templates/{self.customers}/generate", json=body, stream=True) as answer:
            next(answer.iter_content(65_536))

    @staticmethod
    def _follow(api: Timed, path: str, kind: str) -> list[str]:
        """The data of a followed stream's events, to its end."""
        with api.call("GET", path, stream=True, timeout=300) as answer:
            found = []
            for event, _, data in events(answer):
                if event == "end":
                    return found
                if event == kind:
                    found.append(data)
        raise Fault(f"{path} stopped without an end")


class Timed:
    """Requests of one worker, whose times are noted and whose statuses are judged."""

    def __init__(self, api: Api, times: deque[float]) -> None:
        self._api, self._times = api, times

    def call(self, method: str, path: str, *, wants: int = 0, **how: Any) -> requests.Response:
        """An answer of success, or of the status that is wanted; Fault otherwise."""
        begun = time.perf_counter()
        answer = self._api.call(method, path, **how)
        self._times.append(time.perf_counter() - begun)
        if answer.status_code != wants and not (not wants and answer.ok):
            with answer:
                raise Fault(f"{method} {path}: {answer.status_code} {answer.text[:300]}")
        return answer


def events(answer: requests.Response) -> Iterator[tuple[str, str, str]]:
    """Kind, id and data of server-sent events as they come."""
    kind, number, data = "message", "", []
    for raw in answer.iter_lines(chunk_size=1):
        line = raw.decode()
        if not line:
            if data:
                yield kind, number, "\n".join(data)
            kind, number, data = "message", "", []
        elif not line.startswith(":"):
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "event":
                kind = value
            elif name == "id":
                number = value
            elif name == "data":
                data.append(value)


def as_text(done: dict[str, int]) -> str:
    """How often each kind of work was done."""
    return json.dumps(done)
