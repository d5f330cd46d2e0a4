"""E-mails: none is lost, duplicates occur only where SMTP cannot prevent them, and headers cannot be injected."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import quote

import pytest

from tests.conftest import settings_for
from tests.fakes.certificates import Authority
from tests.fakes.mail_server import PASSWORD, USER, MailServer
from webapp import clock, limits
from webapp.config import SettingsError
from webapp.extensions import db, write_session
from webapp.mail import services as mail
from webapp.mail.models import Mail
from webapp.mail.services import MailContent


class Outbox:
    """The application's outbox, with a present that tests move."""

    def __init__(self, app, tmp_path, url):
        settings = app.config["SETTINGS"]
        self.app, self.ahead = app, timedelta()
        app.config["SETTINGS"] = settings_for(
            settings.database_url,
            settings.redis_url,
            tmp_path,
            smtp_url=url,
            mail_from="Rowsmith <rows@example.org>",
        )

    def post(self, to="edith@example.org", **more):
        result = {"kind": "test", "subject": "A subject", "paragraphs": ["A line."], **more}
        with self.app.app_context(), write_session() as session:
            return mail.enqueue(session, MailContent(recipient=to, **result)).id

    def send(self, later=0.0):
        self.ahead += timedelta(seconds=later)
        with self.app.app_context():
            return mail.send_due(self.now)

    def now(self):
        return clock.now() + self.ahead

    def row(self, mail_id):
        with self.app.app_context(), write_session() as session:
            return session.get_one(Mail, mail_id)


@pytest.fixture
def server():
    with MailServer() as result:
        yield result


@pytest.fixture
def outbox(app, tmp_path, server):
    return Outbox(app, tmp_path, f"smtp://127.0.0.1:{server.port}?tls=off")


def test_a_mail_is_sent_once_and_its_text_is_gone_then(outbox, server):
    mail_id = outbox.post(
        recipient_name="Edith",
        paragraphs=[
            "A line that is long enough to be broken into two lines by whoever writes it for a mail of ours."
        ],
        details=[("Workspace", "Acme"), ("Project", "Main")],
        link=("Accept it", "https://x.example/invitations/abc"),
        reason="You get this because Adam has invited you.",
    )
    assert outbox.row(mail_id).sealed
    assert b"invitations/abc" not in outbox.row(mail_id).sealed
    assert outbox.send() == 1
    assert outbox.send(later=10 * 86_400) == 0
    (sent,) = server.mails
    assert (sent["From"], sent["To"]) == ("Rowsmith <rows@example.org>", "edith@example.org")
    assert (sent["Subject"], sent["Message-ID"]) == ("A subject", f"<{mail_id}@example.org>")
    assert sent["Auto-Submitted"] == "auto-generated"
    assert sent.get_content_type() == "text/plain"
    text = sent.get_content().replace("\r\n", "\n")
    assert text.startswith("Hello Edith,\n\nA line that is long enough")
    assert "  Workspace  Acme\n  Project    Main\n" in text
    assert "Accept it:\nhttps://x.example/invitations/abc\n\n-- \nRowsmith, http" in text
    assert max(map(len, text.splitlines())) <= limits.MAIL_LINE_CHARS
    row = outbox.row(mail_id)
    assert (row.status, row.attempts, row.sealed, row.reason) == ("sent", 1, None, "")


def test_a_mail_goes_by_starttls_with_a_password_to_a_server_whose_certificate_is_verified(app, tmp_path):
    authority = Authority(tmp_path)
    with MailServer(starttls=authority.server("127.0.0.1"), sign_in=True) as server:
        front = f"smtp://{USER}:{quote(PASSWORD, safe='')}@127.0.0.1:{server.port}"
        outbox = Outbox(app, tmp_path, f"{front}?ca={authority.file}")
        outbox.post()
        assert outbox.send() == 1
        assert server.encrypted == [True]
        stranger = Outbox(app, tmp_path, front)
        mail_id = stranger.post()
        assert stranger.send() == 0
        assert "certificate of 127.0.0.1" in stranger.row(mail_id).reason
        wrong = Outbox(app, tmp_path, f"smtp://{USER}:other@127.0.0.1:{server.port}?ca={authority.file}")
        second = wrong.post()
        assert wrong.send() == 0
        row = wrong.row(second)
        assert (row.status, "rejected the user or the password" in row.reason) == ("queued", True)
    assert len(server.mails) == 1


def test_a_mail_goes_by_tls_from_the_first_byte(app, tmp_path):
    authority = Authority(tmp_path)
    with MailServer(tls=authority.server("127.0.0.1")) as server:
        outbox = Outbox(app, tmp_path, f"smtps://127.0.0.1:{server.port}?ca={authority.file}")
        outbox.post()
        assert outbox.send() == 1
    assert len(server.mails) == 1


def test_no_mail_is_sent_to_a_server_without_starttls(app, tmp_path, server):
    outbox = Outbox(app, tmp_path, f"smtp://127.0.0.1:{server.port}")
    mail_id = outbox.post()
    assert outbox.send() == 0
    assert "does not support STARTTLS" in outbox.row(mail_id).reason
    assert server.mails == []


def test_a_rejected_recipient_is_given_up_with_the_reason_and_does_not_block_other_mails(outbox, server):
    server.refuses.add("gone@example.org")
    refused, good = outbox.post("gone@example.org"), outbox.post()
    assert outbox.send() == 1
    row = outbox.row(refused)
    assert (row.status, row.attempts, row.sealed) == ("failed", 1, None)
    assert row.reason == "The server rejected this recipient (550 5.1.1 No such user here)."
    assert outbox.row(good).status == "sent"


def test_a_recipient_that_is_put_off_is_tried_again(outbox, server):
    server.later.add("edith@example.org")
    mail_id = outbox.post()
    assert (outbox.send(), outbox.row(mail_id).status) == (0, "queued")
    server.later.clear()
    assert outbox.send(later=limits.MAIL_RETRY_SECONDS[0] - 1) == 0
    assert outbox.send(later=2) == 1


def test_a_mail_waits_for_a_server_that_is_down_and_comes_back(app, tmp_path):
    down = MailServer()
    outbox = Outbox(app, tmp_path, f"smtp://127.0.0.1:{down.port}?tls=off")
    mail_id = outbox.post()
    assert outbox.send() == 0
    assert outbox.send(later=limits.MAIL_RETRY_SECONDS[0]) == 0
    assert "could not be reached" in outbox.row(mail_id).reason
    with MailServer(port=down.port) as server:
        assert outbox.send(later=limits.MAIL_RETRY_SECONDS[1]) == 1
    assert len(server.mails) == 1
    assert outbox.row(mail_id).attempts == 3


def test_a_mail_that_always_fails_is_finally_given_up(app, tmp_path):
    outbox = Outbox(app, tmp_path, f"smtp://127.0.0.1:{MailServer().port}?tls=off")
    mail_id = outbox.post()
    for wait in (0, *limits.MAIL_RETRY_SECONDS):
        outbox.send(later=wait)
    row = outbox.row(mail_id)
    assert (row.status, row.attempts, row.sealed) == ("failed", 1 + len(limits.MAIL_RETRY_SECONDS), None)
    assert row.reason.startswith("Given up after 11 attempts.")


def test_a_sender_that_dies_before_its_note_leaves_the_same_mail_to_the_next_one(outbox, server, monkeypatch):
    mail_id = outbox.post()
    with monkeypatch.context() as patch:
        patch.setattr(mail, "_update_claimed", lambda *_, **__: (_ for _ in ()).throw(MemoryError))
        with pytest.raises(MemoryError):
            outbox.send()
    assert outbox.send() == 0, "another sender has it in hand"
    assert outbox.send(later=limits.MAIL_CLAIM_SECONDS + 1) == 1
    assert [item["Message-ID"] for item in server.mails] == [f"<{mail_id}@example.org>"] * 2
    assert outbox.row(mail_id).status == "sent"


def test_a_sender_that_was_thought_dead_notes_nothing(outbox, server):
    mail_id = outbox.post()
    with outbox.app.app_context():
        slow = mail._claim_next(outbox.now())
        assert outbox.send(later=limits.MAIL_CLAIM_SECONDS + 1) == 1
        mail._update_claimed(slow, status="failed", reason="late")
    assert outbox.row(mail_id).status == "sent"


@pytest.mark.parametrize(
    "name",
    [
        "x\r\nBcc: all@example.org",
        "x\u2028Bcc: all@example.org",
        "x\x85Bcc: all@example.org",
        "x\0y",
        "a\u202eb",
        "=?utf-8?q?x=0d=0aBcc:_all@example.org?=",
        "=?utf-8?b?eA0KQmNjOiBhbGxAZXhhbXBsZS5vcmc=?=",
        "=?us-ascii?q?x=0aBcc:_all@example.org=0a=0aText?=",
    ],
)
def test_no_header_and_no_line_is_slipped_into_a_mail(outbox, server, name):
    outbox.post(
        subject=f"Invitation to {name}",
        recipient_name=name,
        details=[("Workspace", name)],
        paragraphs=[f"{name} invites you."],
    )
    assert outbox.send() == 1
    (sent,) = server.mails
    assert "Bcc" not in sent
    assert "\n" not in sent["Subject"]
    assert not any(line.startswith("Bcc") for line in sent.as_string().splitlines())
    assert "\u202e" not in sent["Subject"]


@pytest.mark.parametrize(
    "address",
    [
        "a@b\nBcc: c@d",
        "a@b,c@d",
        "a@b>, <c@d",
        "nobody",
        "@b",
        "a@",
        '"a"@b c',
        "a b@c",
        "a@b\r\nDATA",
        "a;b@c",
        "(a)b@c",
    ],
)
def test_ambiguous_addresses_get_no_mail(outbox, server, address):
    mail_id = outbox.post(address)
    assert outbox.send() == 0
    assert (outbox.row(mail_id).status, outbox.row(mail_id).reason) == (
        "failed",
        mail.INVALID_ADDRESS_MESSAGE,
    )
    assert server.mails == []


def test_a_mail_is_committed_together_with_its_cause_or_not_at_all(outbox):
    with pytest.raises(RuntimeError), outbox.app.app_context(), write_session() as session:
        mail.enqueue(session, MailContent("test", "edith@example.org", "A subject", ["A line."]))
        raise RuntimeError
    assert outbox.send() == 0


def test_without_a_mail_server_nothing_is_written(app):
    with app.app_context():
        assert not mail.is_configured()
        assert (
            mail.enqueue(db.session, MailContent("test", "edith@example.org", "A subject", ["A line."]))
            is None
        )


FAULTS = [
    ({"mail_from": ""}, "SMTP_URL is set without MAIL_FROM"),
    ({"smtp_url": ""}, "MAIL_FROM is set without SMTP_URL"),
    ({"mail_from": "nobody"}, "MAIL_FROM is not an address"),
    ({"mail_from": "a@b.example\nBcc: c@d.example"}, "MAIL_FROM must be one line"),
    ({"smtp_url": "http://mail.example.org"}, "SMTP_URL must begin with smtp:// or smtps://"),
    ({"smtp_url": "smtp://"}, "SMTP_URL has no host of a mail server"),
    ({"smtp_url": "smtp://mail.example.org:port"}, "SMTP_URL is not a URL"),
    ({"smtp_url": "smtp://user@mail.example.org"}, "SMTP_URL has a user without a password"),
    ({"smtp_url": "smtp://mail.example.org/inbox"}, "without a path"),
    ({"smtp_url": "smtp://mail.example.org?starttls=no"}, "an unknown option: starttls"),
    ({"smtp_url": "smtp://mail.example.org?tls=perhaps"}, "neither on nor off"),
    ({"smtp_url": "smtp://u:topsecret@mail.example.org?tls=off"}, "would be sent unencrypted"),
    ({"smtp_url": "smtps://mail.example.org?tls=off"}, "use one or the other"),
    (
        {"smtp_url": "smtp://mail.example.org?ca=/no/such.pem"},
        "a file of certificate authorities that does not exist",
    ),
    ({"vault_keys": ()}, "SMTP_URL is set without VAULT_KEYS"),
    ({"host": "0.0.0.0"}, "SMTP_URL is set without PUBLIC_URL"),
]


@pytest.mark.parametrize(("wrong", "sentence"), FAULTS, ids=[sentence for _, sentence in FAULTS])
def test_settings_of_mail_that_contradict_each_other_stop_the_start(tmp_path, wrong, sentence):
    good = {"smtp_url": "smtp://mail.example.org", "mail_from": "rows@example.org"}
    settings_for(f"sqlite:///{tmp_path}/x.db", "redis://127.0.0.1:1", tmp_path, **good)
    with pytest.raises(SettingsError) as caught:
        settings_for(f"sqlite:///{tmp_path}/x.db", "redis://127.0.0.1:1", tmp_path, **{**good, **wrong})
    assert sentence in str(caught.value)
    assert "topsecret" not in str(caught.value)


def test_the_password_of_the_mail_server_is_in_no_representation(tmp_path):
    result = settings_for(
        f"sqlite:///{tmp_path}/x.db",
        "redis://127.0.0.1:1",
        tmp_path,
        smtp_url="smtp://user:topsecret@mail.example.org",
        mail_from="rows@example.org",
    )
    assert result.mail_server.password == "topsecret"
    assert "topsecret" not in f"{result!r} {result.mail_server!r}"
