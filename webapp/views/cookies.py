"""The signed cookie, for those who have one: requests without any cookie do not pay for reading it."""

from __future__ import annotations

from flask import Flask, Request, Response
from flask.sessions import SecureCookieSessionInterface, SessionMixin


class CookieSessions(SecureCookieSessionInterface):
    """Flask's signed cookie. Programs send none, so for them no signer is made and nothing is written."""

    def open_session(self, app: Flask, request: Request) -> SessionMixin | None:
        """The cookie's content; empty without one."""
        if "HTTP_COOKIE" not in request.environ:
            return self.session_class()
        return super().open_session(app, request)  # type: ignore[arg-type, return-value]

    def save_session(self, app: Flask, session: SessionMixin, response: Response) -> None:  # type: ignore[override]
        """Write the cookie when it was used."""
        if session.accessed or session.modified:
            super().save_session(app, session, response)  # type: ignore[arg-type]
