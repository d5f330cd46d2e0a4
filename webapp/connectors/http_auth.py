"""How a request to a target is authenticated: one model for each kind, chosen by `type`.

Each `on_wire` gives a `requests` auth object, which `net.session` applies to the origin it was given for and to no
other. `authorised` sends a request with one: at a 401 a fetched token is dropped, and a fresh one is sent once.
"""

from __future__ import annotations

import base64
import re
from abc import abstractmethod
from typing import Annotated, Any, Final, Literal
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import requests
from pydantic import AfterValidator, ConfigDict, Field, PrivateAttr
from requests.auth import AuthBase, HTTPBasicAuth

from webapp import limits
from webapp.connectors.base import Settings
from webapp.connectors.http_token import Renewing, TokenAuth, TokenStore
from webapp.net.session import NetError, Reply, Session, checked, exchange

SECRET: Final = {"secret": True}
_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # RFC 9110, 5.6.2: token
_VALUE: Final = re.compile(r"[!-~\xa1-\xff](?:[\t -~\xa1-\xff]*[!-~\xa1-\xff])?")
_VISIBLE: Final = re.compile(r"[!-~]+")
# What the transport writes itself: set by hand, a request could be read in two ways.
_OWN: Final = frozenset(
    "connection content-length expect host keep-alive te trailer transfer-encoding upgrade proxy-authorization "
    "proxy-connection".split()
)


def _header_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError("the name of a header has letters, digits and signs like - and _")
    if name.lower() in _OWN:
        raise ValueError("this header is written by the service itself")
    return name


def _header_value(value: str) -> str:
    if value and not _VALUE.fullmatch(value):
        raise ValueError(
            "the value of a header has no line breaks, no control characters, no characters beyond Latin-1, and no "
            "spaces around it"
        )
    return value


def _visible(value: str) -> str:
    if not _VISIBLE.fullmatch(value):
        raise ValueError("this has letters, digits and signs only: no spaces, no line breaks")
    return value


def _printable(value: str) -> str:
    if not value.isprintable():
        raise ValueError("this has no line breaks and no control characters")
    return value


def _url(value: str) -> str:
    try:
        return checked(value)
    except NetError as error:
        raise ValueError(error.message) from None


HeaderName = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_header_name)]
HeaderValue = Annotated[str, Field(max_length=limits.HTTP_HEADER_CHARS), AfterValidator(_header_value)]
Url = Annotated[str, Field(min_length=1, max_length=limits.HTTP_URL_CHARS), AfterValidator(_url)]
_Text = Annotated[str, Field(max_length=limits.HTTP_HEADER_CHARS), AfterValidator(_printable)]


class _Kind(Settings):
    """What is given is told by no error of pydantic's, for it may be a secret."""

    model_config = ConfigDict(hide_input_in_errors=True, serialize_by_alias=True)

    @abstractmethod
    def on_wire(self, session: Session) -> AuthBase:
        """For requests that `session` sends, by any number of threads."""

    def secrets(self) -> list[str]:
        """What no message may hold, not empty texts."""
        names = [name for name, info in type(self).model_fields.items() if info.json_schema_extra == SECRET]
        return [value for value in (getattr(self, name) for name in names) if value]


class NoAuth(_Kind):
    """Nothing is sent."""

    type: Literal["none"] = "none"

    def on_wire(self, session: Session) -> AuthBase:
        """See `_Kind.on_wire`."""
        return _Nothing()


class BasicAuth(_Kind):
    """User and password, in UTF-8 (RFC 7617)."""

    type: Literal["basic"]
    username: Annotated[_Text, Field(min_length=1, pattern="^[^:]*$")]
    password: _Text = Field("", repr=False, json_schema_extra=SECRET)

    def on_wire(self, session: Session) -> AuthBase:
        """See `_Kind.on_wire`."""
        return HTTPBasicAuth(self.username.encode(), self.password.encode())

    def secrets(self) -> list[str]:
        """See `_Kind.secrets`: also as the header has them."""
        pair = base64.b64encode(f"{self.username}:{self.password}".encode()).decode()
        return [*super().secrets(), pair]


class BearerAuth(_Kind):
    """A long-lived token: `Authorization: Bearer <token>`."""

    type: Literal["bearer"]
    token: Annotated[str, Field(min_length=1, max_length=limits.TOKEN_CHARS), AfterValidator(_visible)] = (
        Field(repr=False, json_schema_extra=SECRET)
    )

    def on_wire(self, session: Session) -> AuthBase:
        """See `_Kind.on_wire`."""
        return _Header("Authorization", f"Bearer {self.token}")


class ApiKeyAuth(_Kind):
    """A key in a header of that name, or in a query parameter."""

    type: Literal["api-key"]
    where: Literal["header", "query"] = Field("header", alias="in")
    name: HeaderName
    value: Annotated[HeaderValue, Field(min_length=1)] = Field(repr=False, json_schema_extra=SECRET)

    def on_wire(self, session: Session) -> AuthBase:
        """See `_Kind.on_wire`."""
        return _Header(self.name, self.value) if self.where == "header" else _Query(self.name, self.value)


class ClientCredentials(_Kind):
    """OAuth 2.0 client credentials (RFC 6749, 4.4): a token is fetched, kept and renewed. `client_auth`: where id and
    secret stand in the token request, in its form (`post`) or in its Authorization header (`basic`)."""

    type: Literal["oauth2-client-credentials"]
    token_url: Url
    client_id: Annotated[_Text, Field(min_length=1)]
    client_secret: _Text = Field(repr=False, json_schema_extra=SECRET)
    scope: _Text | None = None
    client_auth: Literal["post", "basic"] = "post"
    _store: TokenStore | None = PrivateAttr(None)

    def share_tokens(self, store: TokenStore) -> None:
        """Share the tokens of these credentials with other processes."""
        self._store = store

    def on_wire(self, session: Session) -> TokenAuth:
        """See `_Kind.on_wire`. Applied to a request it fetches a token where there is none, which raises
        ConnectorError (code `token_request_failed`)."""
        return TokenAuth(self, session, self._store)


Auth = Annotated[
    NoAuth | BasicAuth | BearerAuth | ApiKeyAuth | ClientCredentials,
    Field(discriminator="type"),
]
AUTH_TYPES: Final = frozenset({"none", "basic", "bearer", "api-key", "oauth2-client-credentials"})
"""Pydantic puts these into the places of faults, and nobody wrote them there."""


def authorised(session: Session, request: requests.Request, **how: Any) -> Reply:
    """`exchange`, where `request.auth` may hold a fetched token: when a 401 says that it is worth nothing any more,
    the request is sent once more with a fresh one. That is part of the same attempt, and no retry."""
    reply = exchange(session, request, **how)
    auth = request.auth
    if isinstance(auth, Renewing):
        if reply.status != 401:
            auth.worked()
        elif auth.drop():
            reply = exchange(session, request, **how)
            if reply.status != 401:
                auth.worked()
    return reply


class _Nothing(AuthBase):
    def __call__(self, r: requests.PreparedRequest) -> requests.PreparedRequest:
        return r


class _Header(AuthBase):
    def __init__(self, name: str, value: str) -> None:
        self._name, self._value = name, value

    def __call__(self, r: requests.PreparedRequest) -> requests.PreparedRequest:
        r.headers[self._name] = self._value
        return r


class _Query(AuthBase):
    def __init__(self, name: str, value: str) -> None:
        self._name, self._value = name, value

    def __call__(self, r: requests.PreparedRequest) -> requests.PreparedRequest:
        parts = urlsplit(r.url or "")
        others = [one for one in parts.query.split("&") if one and parse_qsl(one, True)[0][0] != self._name]
        own = urlencode([(self._name, self._value)], quote_via=quote)
        r.url = parts._replace(query="&".join([*others, own])).geturl()
        return r
