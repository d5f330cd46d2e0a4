"""Mail servers for tests: aiosmtpd, which speaks real SMTP, with what it was given at hand."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword

USER, PASSWORD = "rowsmith", "a password / of @ signs"


class MailServer:
    """`with MailServer() as server:`; `server.mails` are the messages it took, in order.

    `refuses`: recipients it answers 550, `later`: those it answers 450. `answer` is what it says
    to a message, `before_answer` is called before that.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        starttls: ssl.SSLContext | None = None,
        tls: ssl.SSLContext | None = None,
        sign_in: bool = False,
    ) -> None:
        self.port = port or _free()
        self.mails: list[EmailMessage] = []
        self.refuses: set[str] = set()
        self.later: set[str] = set()
        self.answer = "250 OK"
        self.before_answer: Callable[[], None] | None = None
        self.encrypted: list[bool] = []
        more: dict[str, Any] = {"tls_context": starttls, "require_starttls": True} if starttls else {}
        if sign_in:
            more |= {
                "authenticator": _authenticator,
                "auth_required": True,
                "auth_require_tls": bool(starttls),
            }
        self._more = {"ssl_context": tls, **more}

    def __enter__(self) -> MailServer:
        self._controller = Controller(self, hostname="127.0.0.1", port=self.port, **self._more)
        self._controller.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._controller.stop()

    async def handle_RCPT(  # noqa: N802 - the library's name
        self, _server: Any, _session: Any, envelope: Any, address: str, _options: Any
    ) -> str:
        if address in self.refuses:
            return "550 5.1.1 No such user here"
        if address in self.later:
            return "450 4.2.1 Come again later"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        self.encrypted.append(session.ssl is not None)
        if self.answer.startswith("250"):
            self.mails.append(message_from_bytes(envelope.original_content, policy=policy.default))
        if self.before_answer is not None:
            self.before_answer()
        return self.answer


def _authenticator(_server: Any, _session: Any, _envelope: Any, _mechanism: str, given: Any) -> AuthResult:
    good = isinstance(given, LoginPassword) and (given.login, given.password) == (
        USER.encode(),
        PASSWORD.encode(),
    )
    return AuthResult(success=good, handled=False)


def _free() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
