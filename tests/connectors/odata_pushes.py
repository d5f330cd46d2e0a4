"""What the tests of OData connections share: a target, a connection to it, and a push of some rows."""

from __future__ import annotations

import threading
from collections import Counter

import pyarrow as pa
import pytest

from tests.connectors.odata_documents import V2
from tests.fakes.echo_target import EchoTarget
from webapp.connectors.base import WriteSpec
from webapp.connectors.http.channel import LOCATION, RowBatch
from webapp.connectors.odata.connector import OdataConnector, OdataSettings
from webapp.net.gate import Gate

GATE = Gate(["127.0.0.0/8"])
SECRET = "s3cret-token"


class SendControl:
    """The controller of a push: stops it after a number of requests."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.stop_after, self.asked, self.waits = stop_after, 0, []
        self._lock = threading.Lock()

    def raise_if_stopped(self) -> None:
        with self._lock:
            self.asked += 1
            if self.stop_after is not None and self.asked > self.stop_after:
                raise InterruptedError

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)


@pytest.fixture
def target():
    with EchoTarget() as found:
        yield found


def connector(
    target: EchoTarget, document: bytes | None = V2, path: str = "/sap", **settings
) -> OdataConnector:
    found = OdataConnector(
        OdataSettings.model_validate({"service_url": target.url(path), "parallel": 1, **settings}), GATE
    )
    found.document = document
    return found


def rows(values: list[dict], first: int = 1) -> RowBatch:
    batch = pa.RecordBatch.from_pylist(values)
    numbers = range(first, first + len(values))
    return RowBatch(batch, list(numbers), [f"push-{number}" for number in numbers])


def writing(made: OdataConnector, names: list[str], entity: str = "OrderSet", **more) -> WriteSpec:
    with made.open() as channel:
        found = channel.entity(entity)
    return WriteSpec(found, tuple(found.column(name) for name in names if name != LOCATION), **more)


def push(
    made: OdataConnector,
    count: int = 3,
    hand: SendControl | None = None,
    stop_at_failure: bool = False,
    **more,
):
    result = writing(made, ["Customer", "Total"], **more)
    with made.open() as channel:
        sending = channel.create_sender(result, hand or SendControl())
        values = [{"Customer": f"C{n}", "Total": n / 4} for n in range(1, count + 1)]
        found = []
        for start in range(0, count, sending.chunk_rows):
            part = values[start : start + sending.chunk_rows]
            found += sending.send(rows(part, start + 1), stop_at_failure)
        return found


def states(ended) -> Counter:
    return Counter((item.state, item.reason) for item in ended)


def _shown(made: OdataConnector, told: WriteSpec, row: dict) -> str:
    with made.open() as channel:
        return channel.create_sender(told, SendControl()).requests(rows([row]))[0]
