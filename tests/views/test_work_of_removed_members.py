"""Pushes and exports belong to the workspace: they finish when the member who started them loses the role in the
meantime, and a removed member can neither read nor control them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from jobs.lease import Lease
from jobs.pushes.push import PushRunner
from tests.views.speak import make
from tests.views.targets import CUSTOMERS, shop  # noqa: F401
from tests.views.targets import work as push_worker  # noqa: F401
from webapp import limits


@pytest.fixture
def edith(api, cast):
    return api(cast.edith)


@pytest.fixture(params=["removed", "viewer"])
def loses_role(request, api, cast):
    """Take the role of editor from Edith."""

    def act():
        olivia = api(cast.olivia)
        [whole] = olivia.get(f"/members?user_id={cast.edith.user_id}").json["items"]
        at = f"/members/{whole['id']}"
        if request.param == "removed":
            answer = olivia.delete(f"{at}?everywhere=true&revoke_keys=true")
        else:
            answer = olivia.patch(at, json={"role": "viewer"})
        assert answer.status_code == 200, answer.text

    act.kind = request.param
    return act


@pytest.fixture
def in_the_middle(monkeypatch):
    """Do something when a worker has taken the work and begins with it."""
    begun: list[int] = []

    def arrange(module, name, act):
        usual = getattr(module, name)

        def begin(*args, **more):
            if not begun:
                begun.append(1)
                with ThreadPoolExecutor(1) as other:  # a session of the database belongs to a thread
                    other.submit(act).result()
            return usual(*args, **more)

        monkeypatch.setattr(module, name, begin)
        return begun

    return arrange


def closed(program, loses_role):
    """What the member gets now where they must not act."""
    return 401 if loses_role.kind == "removed" else 403


def test_a_push_finishes_when_its_member_loses_the_role_and_they_cannot_control_it(
    api, cast, edith, shop, push_worker, loses_role, in_the_middle
):
    path = f"/templates/{make(edith, name='Customers', fields=CUSTOMERS)['id']}"
    push = edith.post(f"{path}/push", json={"connection_id": shop.connection_id, "count": 300}).json
    looks = in_the_middle(PushRunner, "_run_session", loses_role)
    push_worker(push["id"])
    assert looks, "it happened while the push was running"
    ended = api(cast.olivia).get(f"/pushes/{push['id']}").json
    assert (ended["status"], ended["counts"]["delivered"]) == ("completed", 300)
    assert shop.count("customers") == 300
    for route in ("undo", "retry"):
        answer = edith.post(f"/pushes/{push['id']}/{route}", json={})
        assert answer.status_code == closed(edith, loses_role), answer.text
    if loses_role.kind == "removed":
        assert edith.get(f"/pushes/{push['id']}").status_code == 401


def test_an_export_finishes_when_its_member_loses_the_role_and_others_download_it(
    api, cast, edith, path, work, loses_role, in_the_middle, monkeypatch
):
    monkeypatch.setattr(limits, "EXPORT_PROGRESS_SECONDS", 0.0)
    export = edith.post(f"{path}/exports", json={"count": 50_000, "format": "csv"}).json
    looks = in_the_middle(Lease, "check", loses_role)
    work(export["id"])
    assert looks, "it happened while the export was running"
    olivia = api(cast.olivia)
    assert olivia.get(f"/exports/{export['id']}").json["status"] == "completed"
    assert olivia.get(f"/exports/{export['id']}/download").status_code in (200, 302, 303)
    if loses_role.kind == "removed":
        assert edith.get(f"/exports/{export['id']}/download").status_code == 401


def test_an_admin_stops_the_work_of_a_removed_member(api, cast, edith, path, loses_role):
    export = edith.post(f"{path}/exports", json={"count": 500, "format": "csv"}).json
    loses_role()
    answer = api(cast.olivia).delete(f"/exports/{export['id']}")
    assert (answer.status_code, answer.json["status"]) == (200, "cancelled")
