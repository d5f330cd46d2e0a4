"""Authentication of requests to a target, one model for each kind, selected by `type`; and TLS settings.

`requests_auth` returns a `requests` auth object, which `net.session` applies only to the origin for which it
was created. `send_authenticated` sends a request: after a 401, it drops a fetched token and sends the request
once more with a new one.
"""

from __future__ import annotations

import base64
import re
import ssl
from abc import abstractmethod
from typing import Annotated, Any, Final, Literal
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import requests
from pydantic import AfterValidator, ConfigDict, Field, JsonValue, PrivateAttr
from requests.auth import AuthBase, HTTPBasicAuth

from webapp import limits
from webapp.connectors.base import Settings
from webapp.connectors.http.tokens import RenewableAuth, TokenAuth, TokenStore
from webapp.net.session import NetError, Reply, Session, check_url, exchange

PEM = "-----BEGIN CERTIFICATE-----"


def _check_certificate(text: str) -> str:
    if PEM not in text:
        raise ValueError(f"enter the certificate as PEM text ({PEM})")
    try:
        ssl.create_default_context(cadata=text)
    except (ssl.SSLError, ValueError):
        raise ValueError("this is not a valid certificate: copy all of its lines") from None
    return text


class TlsSettings(Settings):
    """`trust` is the argument `verify_tls` of `net.session.open_session`."""

    verify_tls: bool = Field(
        True, description="If off, any certificate is accepted. Use only for test systems."
    )
    ca_certificate: Annotated[str, Field(max_length=100_000), AfterValidator(_check_certificate)] | None = (
        Field(
            None,
            description="Certificate of the authority that signed the target's certificate, unless it is a public one.",
            json_schema_extra={"multiline": True},
        )
    )

    @property
    def trust(self) -> bool | str:
        """True: public authorities; False: no verification; a text: only this authority."""
        return (self.ca_certificate or True) if self.verify_tls else False


SECRET_BINDING_SETTINGS = frozenset({"verify_tls", "ca_certificate"})
"""Settings that affect who can receive a secret."""


# --- Authentication -----------------------------------------------------------------------------------------

SECRET: Final[dict[str, JsonValue]] = {"secret": True}
_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # RFC 9110, 5.6.2: token
_VALUE: Final = re.compile(r"[!-~\xa1-\xff](?:[\t -~\xa1-\xff]*[!-~\xa1-\xff])?")
_VISIBLE: Final = re.compile(r"[!-~]+")
# Headers that the HTTP library writes itself. If set by users, a request could be interpreted in two ways.
_RESERVED_HEADERS: Final = frozenset(
    "connection content-length expect host keep-alive te trailer transfer-encoding upgrade proxy-authorization "
    "proxy-connection".split()
)


def _check_header_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError("a header name consists of letters, digits and characters such as - and _")
    if name.lower() in _RESERVED_HEADERS:
        raise ValueError("this header is set by Rowsmith")
    return name


def _check_header_value(value: str) -> str:
    if value and not _VALUE.fullmatch(value):
        raise ValueError(
            "a header value must not contain line breaks, control characters, characters outside Latin-1, or "
            "leading or trailing spaces"
        )
    return value


def _check_visible(value: str) -> str:
    if not _VISIBLE.fullmatch(value):
        raise ValueError("only letters, digits and punctuation are allowed: no spaces, no line breaks")
    return value


def _check_printable(value: str) -> str:
    if not value.isprintable():
        raise ValueError("line breaks and control characters are not allowed")
    return value


def _check_url(value: str) -> str:
    try:
        return check_url(value)
    except NetError as error:
        raise ValueError(error.message) from None


HeaderName = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_check_header_name)]
HeaderValue = Annotated[str, Field(max_length=limits.HTTP_HEADER_CHARS), AfterValidator(_check_header_value)]
Url = Annotated[str, Field(min_length=1, max_length=limits.HTTP_URL_CHARS), AfterValidator(_check_url)]
_Text = Annotated[str, Field(max_length=limits.HTTP_HEADER_CHARS), AfterValidator(_check_printable)]


class _AuthModel(Settings):
    """Base class. Errors of pydantic do not contain the input, which may be a secret."""

    model_config = ConfigDict(hide_input_in_errors=True, serialize_by_alias=True)

    @abstractmethod
    def requests_auth(self, session: Session) -> AuthBase:
        """Return a `requests` auth object for requests that `session` sends, usable by any number of threads."""

    def secrets(self) -> list[str]:
        """Return the values that messages must not contain, without empty ones."""
        names = [name for name, info in type(self).model_fields.items() if info.json_schema_extra == SECRET]
        return [value for value in (getattr(self, name) for name in names) if value]


class NoAuth(_AuthModel):
    """No authentication."""

    type: Literal["none"] = "none"

    def requests_auth(self, session: Session) -> AuthBase:
        """See `_AuthModel.requests_auth`."""
        return _NoCredentials()


class BasicAuth(_AuthModel):
    """User name and password, in UTF-8 (RFC 7617)."""

    type: Literal["basic"]
    username: Annotated[_Text, Field(min_length=1, pattern="^[^:]*$")]
    password: _Text = Field("", repr=False, json_schema_extra=SECRET)

    def requests_auth(self, session: Session) -> AuthBase:
        """See `_AuthModel.requests_auth`."""
        return HTTPBasicAuth(self.username.encode(), self.password.encode())

    def secrets(self) -> list[str]:
        """See `_AuthModel.secrets`. Includes the encoded form in the header."""
        pair = base64.b64encode(f"{self.username}:{self.password}".encode()).decode()
        return [*super().secrets(), pair]


class BearerAuth(_AuthModel):
    """A long-lived token: `Authorization: Bearer <token>`."""

    type: Literal["bearer"]
    token: Annotated[
        str, Field(min_length=1, max_length=limits.TOKEN_CHARS), AfterValidator(_check_visible)
    ] = Field(repr=False, json_schema_extra=SECRET)

    def requests_auth(self, session: Session) -> AuthBase:
        """See `_AuthModel.requests_auth`."""
        return _HeaderAuth("Authorization", f"Bearer {self.token}")


class ApiKeyAuth(_AuthModel):
    """A key in a header or in a query parameter."""

    type: Literal["api-key"]
    where: Literal["header", "query"] = Field("header", alias="in")
    name: HeaderName
    value: Annotated[HeaderValue, Field(min_length=1)] = Field(repr=False, json_schema_extra=SECRET)

    def requests_auth(self, session: Session) -> AuthBase:
        """See `_AuthModel.requests_auth`."""
        return (
            _HeaderAuth(self.name, self.value)
            if self.where == "header"
            else _QueryAuth(self.name, self.value)
        )


class ClientCredentials(_AuthModel):
    """OAuth 2.0 client credentials (RFC 6749, 4.4): a token is fetched, cached and renewed.

    `client_auth` says where id and secret are in the token request: in its form (`post`) or its Authorization
    header (`basic`).
    """

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

    def requests_auth(self, session: Session) -> TokenAuth:
        """See `_AuthModel.requests_auth`. Fetches a token if there is none, which raises ConnectorError (code
        `token_request_failed`)."""
        return TokenAuth(self, session, self._store)


Auth = Annotated[
    NoAuth | BasicAuth | BearerAuth | ApiKeyAuth | ClientCredentials,
    Field(discriminator="type"),
]
AUTH_TYPES: Final = frozenset({"none", "basic", "bearer", "api-key", "oauth2-client-credentials"})
"""Names that pydantic adds to the location of faults, but that are not in the user's input."""


def send_authenticated(session: Session, request: requests.Request, **exchange_options: Any) -> Reply:
    """Send a request, and repeat it once with a new token if a 401 shows that a fetched token is no longer
    valid.

    Both requests count as the same attempt, not as a retry.
    """
    reply = exchange(session, request, **exchange_options)
    auth = request.auth
    if isinstance(auth, RenewableAuth):
        if reply.status != 401:
            auth.record_accepted()
        elif auth.discard():
            reply = exchange(session, request, **exchange_options)
            if reply.status != 401:
                auth.record_accepted()
    return reply


class _NoCredentials(AuthBase):
    def __call__(self, r: requests.PreparedRequest) -> requests.PreparedRequest:
        return r


class _HeaderAuth(AuthBase):
    def __init__(self, name: str, value: str) -> None:
        self._name, self._value = name, value

    def __call__(self, r: requests.PreparedRequest) -> requests.PreparedRequest:
        r.headers[self._name] = self._value
        return r


class _QueryAuth(AuthBase):
    def __init__(self, name: str, value: str) -> None:
        self._name, self._value = name, value

    def __call__(self, r: requests.PreparedRequest) -> requests.PreparedRequest:
        parts = urlsplit(r.url or "")
        others = [
            part for part in parts.query.split("&") if part and parse_qsl(part, True)[0][0] != self._name
        ]
        own = urlencode([(self._name, self._value)], quote_via=quote)
        r.url = parts._replace(query="&".join([*others, own])).geturl()
        return r
