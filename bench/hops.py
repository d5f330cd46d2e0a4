"""Count the functions and modules of Rowsmith that the three main flows pass: a generate call, a pushed row, and a line
of a run's log.

.venv/bin/python bench/hops.py [--calls] [--url postgresql://postgres@127.0.0.1:5432/postgres]

Each flow runs with full caches under `sys.setprofile`. Counted are distinct named functions of `webapp` and `jobs`,
without comprehensions and lambdas: those that calculate and format values (`webapp.engine`) apart from all others.
``--calls`` also lists the functions in the order of their first call.
"""

from __future__ import annotations

import argparse
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from sqlalchemy import select

from bench import push_job
from bench.push import CREATE, URL
from jobs import lease
from jobs.scenarios.log_reader import LineSplitter, RunLog
from webapp import limits
from webapp.access.models import User
from webapp.accounts.services import api_keys
from webapp.connectors.postgresql.connector import PostgresqlConnector
from webapp.extensions import application, db
from webapp.net.gate import Gate
from webapp.scenarios.models import Scenario
from webapp.scenarios.services import runs, scenarios
from webapp.scenarios.views.run_pages import FollowedRun
from webapp.web import events

Hop = tuple[str, str]


def passed(act: Callable[[], object]) -> Counter[Hop]:
    """Return how often `act` calls each function of ours, as (module, name), in the order of their first call."""
    found: Counter[Hop] = Counter()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        path, name = frame.f_code.co_filename, frame.f_code.co_qualname
        if event == "call" and path.startswith((f"{ROOT}/webapp/", f"{ROOT}/jobs/")) and name[-1] != ">":
            module = path.removeprefix(f"{ROOT}/").removesuffix(".py").removesuffix("/__init__")
            found[module.replace("/", "."), name] += 1

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found


def flows(service: push_job.Service, clear: Callable[[], object]) -> Iterator[tuple[str, Counter[Hop]]]:
    """Yield the name of each flow and the functions that it passes."""
    actor, client = service.actor, application().test_client()
    user_id = db.session.scalars(select(User.id)).one()
    key = api_keys.create(
        actor, "hops", api_version="2026-11-21", project_id=actor.project_id, user_id=user_id
    )[1]
    db.session.remove()

    def generate(count: int) -> None:
        response = client.post(
            f"/templates/{service.template}/generate",
            json={"count": count, "format": "csv", "seed": "hops"},
            headers={"Authorization": f"Bearer {key}"},
        )
        assert response.status_code == 200, response.text
        assert response.data.count(b"\n") == count + 1

    for count in (10, 100_000):
        generate(count)
        yield f"generate, {count:,} rows as CSV", passed(lambda count=count: generate(count))

    pushed = []
    for chunks in (1, 1, 3):
        clear()
        rows = chunks * limits.PUSH_CHUNK_ROWS
        pushed.append(passed(lambda rows=rows: service.push("orders", rows)))
    yield "push, from the request to its end", pushed[1]
    yield "push, each further chunk of rows", pushed[2] - pushed[1]

    created = scenarios.create(actor, name="hops", code="print('a line')")
    run = runs.queue(actor, db.session.get_one(Scenario, created["id"]), {})
    with lease.leased("run", run.id) as work:
        log, lines = RunLog(work), LineSplitter()

        def write() -> None:
            log.add(lines.feed(b"a line\n"))
            log.flush()

        write()
        yield "log line, from the program to SQL", passed(write)
        feed = events.log_hub(application()).attach(FollowedRun(run.id), lines=True)
        after = feed.reached
        following = events.log_events(application(), feed, after)

        def follow() -> None:
            events.log_hub(application()).look(feed)
            next(following)

        write()
        follow()
        write()
        yield "log line, from SQL to a follower", passed(follow)
        events.log_hub(application()).detach(feed, lines=True)
        work.finish()


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", action="store_true")
    parser.add_argument("--url", default=URL)
    value = parser.parse_args()
    schema = f"rowsmith_bench_{uuid.uuid4().hex[:8]}"
    settings = PostgresqlConnector.Settings(connection_string=value.url, schema=schema)
    session = PostgresqlConnector(settings, Gate(["127.0.0.0/8", "::1/128"])).open()
    session.execute(f"CREATE SCHEMA {schema}")
    session.schema = schema
    session.execute(CREATE)
    try:
        with push_job.service("postgresql", {"connection_string": value.url, "schema": schema}) as service:
            print(f"{'flow':36}{'functions':>10}{'modules':>9}{'in the engine':>15}")
            for name, found in flows(service, lambda: session.execute("TRUNCATE orders")):
                engine = [hop for hop in found if hop[0].startswith("webapp.engine")]
                others = [hop for hop in found if hop not in engine]
                print(f"{name:36}{len(others):>10}{len({hop[0] for hop in others}):>9}{len(engine):>15}")
                for module, function in found if value.calls else ():
                    print(f"    {module}: {function}")
    finally:
        session.execute(f"DROP SCHEMA {schema} CASCADE")
        session.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
