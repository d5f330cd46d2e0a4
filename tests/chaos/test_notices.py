"""The sender of webhooks and mails is killed at the worst moment: nothing is lost, and what comes twice says so."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import update

from tests.chaos.conftest import environment  # noqa: F401
from tests.conftest import VAULT_KEY
from tests.fakes.echo_target import Answer, EchoTarget
from tests.fakes.mail_server import MailServer
from tests.jobs.conftest import app, clock, new_export  # noqa: F401
from tests.jobs.waiting import eventually
from webapp import clock as present
from webapp.access.models import Membership, User, Workspace
from webapp.extensions import write_session
from webapp.mail.models import Mail
from webapp.notifications.models import Delivery, Webhook
from webapp.notifications.services import webhooks
from webapp.security.sealing import Vault


@pytest.fixture
def courier(environment, tmp_path):
    """Starts a sweeper with its courier; kills what is left at the end."""
    running = []

    def start(**more):
        with (tmp_path / "courier.log").open("ab") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "jobs.sweeper"],
                env={**environment, "VAULT_KEYS": VAULT_KEY, **more},
                cwd=Path(__file__).parents[2],
                stdout=out,
                stderr=out,
            )
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.wait()


def hooked(url):
    """A webhook of the only workspace there is; returns its secret."""
    secret = "whsec_" + "A" * 43 + "="
    with write_session() as session:
        workspace = session.query(Workspace).one()
        session.add(
            Webhook(workspace_id=workspace.id, url=url, events=["*"], sealed=Vault([VAULT_KEY]).seal(secret))
        )
    return secret


def all_of(model):
    with write_session() as session:
        return session.query(model).all()


def test_a_delivery_arrives_at_least_once_and_with_one_id_when_its_sender_is_killed_before_its_note(
    app, new_export, courier
):
    killed = threading.Event()
    with EchoTarget() as target:
        secret = hooked(target.url("/hook"))
        export_id = new_export(status="completed", finished_at=present.now(), pins={}, request={})
        first = courier()

        def kill(_seen):
            os.kill(first.pid, signal.SIGKILL)  # it has sent the request and not noted its end
            first.wait()
            killed.set()
            return Answer(200)

        target.on("/hook", kill, Answer(200))
        assert killed.wait(60)
        (delivery,) = all_of(Delivery)
        assert (delivery.status, delivery.attempts) == ("pending", 1)
        with write_session() as session:  # the dead sender's claim runs out
            session.execute(update(Delivery).values(claimed_until=present.now() - timedelta(seconds=1)))
        courier()
        eventually(lambda: all_of(Delivery)[0].status == "delivered", within=60)
        one, two = target.calls("/hook")
        assert one.body == two.body
        assert one.json["object"]["id"] == export_id
        assert one.headers["webhook-id"] == two.headers["webhook-id"] == delivery.id
        stamp = int(two.headers["webhook-timestamp"])
        expected = webhooks.signature(secret, delivery.id, stamp, two.body)
        assert two.headers["webhook-signature"] == expected


def test_unnotified_ends_are_reported_by_the_next_sender(app, new_export, courier):
    with EchoTarget() as target:
        hooked(target.url("/hook"))
        target.on("/hook", Answer(200))
        ended = {
            new_export(status=status, finished_at=present.now(), pins={}, request={})
            for status in ("completed", "failed", "cancelled")
            for _ in range(20)
        }
        first = courier()
        eventually(lambda: len(target.calls("/hook")) >= 5, within=60)
        first.kill()  # with some told, some on their way, and some not begun
        first.wait()
        with write_session() as session:
            session.execute(update(Delivery).values(claimed_until=None))
        courier()
        eventually(
            lambda: [item.status for item in all_of(Delivery)] == ["delivered"] * len(ended), within=90
        )
        assert {call.json["object"]["id"] for call in target.calls("/hook")} == ended
        assert len({call.headers["webhook-id"] for call in target.calls("/hook")}) == len(ended)


def test_a_slow_receiver_keeps_no_other_waiting(app, new_export, courier):
    with EchoTarget() as slow, EchoTarget() as quick:
        slow.on("/hook", Answer(200, delay=60))
        quick.on("/hook", Answer(200))
        hooked(slow.url("/hook"))
        for _ in range(20):
            new_export(status="completed", finished_at=present.now(), pins={}, request={})
        courier()
        eventually(lambda: len(slow.calls("/hook")) == 2, within=60)
        hooked(quick.url("/hook"))
        new_export(status="failed", finished_at=present.now(), pins={}, request={})
        eventually(lambda: len(quick.calls("/hook")) == 1, within=10)
        assert slow.most_at_once == 2


def test_a_mail_of_a_killed_sender_is_sent_with_the_same_message_id(app, new_export, courier):
    with MailServer() as server:
        mail = {"SMTP_URL": f"smtp://127.0.0.1:{server.port}?tls=off", "MAIL_FROM": "rows@example.org"}
        with write_session() as session:
            workspace = session.query(Workspace).one()
            user = User(email="edith@example.org", name="Edith")
            session.add(user)
            session.flush()
            session.add(Membership(workspace_id=workspace.id, user_id=user.id, role="editor"))
            user_id = user.id
        request = present.now() - timedelta(hours=1)
        new_export(
            status="failed", finished_at=present.now(), created_at=request, created_by=user_id, pins={}, request={},
            file_name="people.csv",
        )  # fmt: skip
        first = courier(**mail)

        def kill():
            os.kill(first.pid, signal.SIGKILL)
            first.wait()

        server.before_answer = kill
        eventually(lambda: len(server.mails) == 1, within=60)
        first.wait(timeout=30)
        server.before_answer = None
        with write_session() as session:
            session.execute(update(Mail).values(claimed_until=None))
        courier(**mail)
        eventually(lambda: all_of(Mail)[0].status == "sent", within=60)
        assert [item["Subject"] for item in server.mails] == ["Export people.csv has failed"] * 2
        assert len({item["Message-ID"] for item in server.mails}) == 1
