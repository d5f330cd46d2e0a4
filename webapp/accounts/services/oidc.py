"""Sign in through an OpenID Connect provider: the authorization code flow with PKCE, and the mapping to accounts.

The state of a sign-in (nonce, PKCE verifier, target page) is stored in Redis, encrypted with a key that depends on the
browser's cookie, and can be read once. The ID token (Core 1.0, 3.1.3.7) is checked first: whose signature, for whom,
for which sign-in, until when.

Accounts are identified by issuer and subject. On the first sign-in, the account is found by the e-mail address, which
the provider must have verified. If there is no account, an open invitation for that address is accepted. Other users
are only admitted if the operator allows it (OIDC_NEW_PEOPLE).

Functions import authlib and joserfc when they need them: they take 10 MB, and most services have no provider.
"""

from __future__ import annotations

import logging
import os
import re
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

import orjson
from flask import current_app
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from webapp import clock, limits
from webapp.access import actors
from webapp.access.models import Identity, Invitation, Membership, User, Workspace
from webapp.accounts.services import people, sign_in
from webapp.accounts.services.sign_in import ProviderAccount, SignInResult, Visitor
from webapp.audit.services import audit_log
from webapp.config import Settings
from webapp.config.values import is_loopback
from webapp.errors import ApiError
from webapp.extensions import db
from webapp.net.gate import Gate
from webapp.net.session import NetError, Reply, send_single
from webapp.security import keys

if TYPE_CHECKING:
    from joserfc.jwk import KeySet

# Signatures that only the provider can create. `none` means no signature, and with HS256 anyone with the public key
# could sign if the key were used as a shared secret.
ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
)
_KEY_TYPES: Final = frozenset({"RSA", "EC", "OKP"})


class InvalidTokenError(Exception):
    """An invalid token. The message is for the log and contains nothing of the token."""


def accepted_algorithms(supported: object) -> Sequence[str]:
    """Return the algorithms that a provider uses and we accept; RS256 if it does not list any (Discovery 1.0, 3)."""
    supported_names = supported if isinstance(supported, list) else ["RS256"]
    return [algorithm for algorithm in ALGORITHMS if algorithm in supported_names]


def parse_key_set(document: Mapping[str, Any]) -> KeySet:
    """Return the provider's public signature keys from its JWKS document. Other keys, and keys of unknown kinds, are
    ignored (RFC 7517, 5). Error: TokenRefused if none remains."""
    from joserfc.errors import JoseError
    from joserfc.jwk import JWKRegistry, KeySet

    found = []
    entries = document.get("keys")
    for data in entries if isinstance(entries, list) else ():
        if not isinstance(data, dict) or data.get("kty") not in _KEY_TYPES or data.get("use", "sig") != "sig":
            continue
        try:
            found.append(JWKRegistry.import_key(data))
        except (JoseError, ValueError, TypeError, KeyError):
            continue  # other keys may be valid
    if not found:
        raise InvalidTokenError("it publishes no key for verifying signatures")
    return KeySet(found)


def verify_token(
    token: str,
    keys: KeySet,
    *,
    issuer: str,
    client_id: str,
    nonce: str,
    access_token: str,
    accepted_algorithms: Sequence[str],
    now: float,
) -> dict[str, Any]:
    """Return the verified claims of a token. `accepted_algorithms`: the accepted algorithms. Error: TokenRefused."""
    from authlib.oidc.core.claims import CodeIDToken
    from joserfc import jwt
    from joserfc.errors import ClaimError, JoseError

    try:
        decoded = jwt.decode(token, keys, algorithms=list(accepted_algorithms))
        claims = CodeIDToken(
            decoded.claims,
            decoded.header,
            options={
                "iss": {"essential": True, "value": issuer},
                "aud": {"essential": True, "value": client_id},
                "sub": {"essential": True},
                "nonce": {"essential": True, "value": nonce},
            },
            params={"nonce": nonce, "client_id": client_id, "access_token": access_token},
        )
        claims.validate(now=int(now), leeway=limits.OIDC_LEEWAY_SECONDS)
    except (JoseError, ValueError, TypeError, KeyError) as error:
        # The kind of the error or the name of a claim; other messages may include contents of the token.
        reason = getattr(error, "error", "") or type(error).__name__
        if isinstance(error, ClaimError):
            reason = str(error)
        raise InvalidTokenError(f"its ID token was rejected: {reason}") from None
    subject = claims["sub"]
    if (
        not isinstance(subject, str)
        or not 0 < len(subject) <= limits.OIDC_TEXT_CHARS
        or not subject.isprintable()
    ):
        raise InvalidTokenError("its ID token was rejected: the subject must have 1 to 255 characters")
    return dict(claims)


# The OpenID Connect provider that the operator configured: its metadata, keys and responses.

# --- Signing in ---------------------------------------------------------------------------------------------

_CACHE_KEY: Final = "rowsmith.oidc"
_ALL_NETWORKS: Final = (
    "0.0.0.0/0",
    "::/0",
)  # the operator configured the host; metadata services of clouds stay blocked
_FORM_HEADERS: Final = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}


class ProviderError(Exception):
    """The provider does not respond, or its response is invalid. The message is for the operator's log."""


def is_configured() -> bool:
    """Return whether users can sign in through the provider."""
    return bool(current_app.config["SETTINGS"].oidc_issuer)


def provider() -> Provider:
    """Return the provider of the application's settings."""
    found = current_app.extensions.get(_CACHE_KEY)
    if found is None:
        found = current_app.extensions[_CACHE_KEY] = Provider(current_app.config["SETTINGS"])
    return found


class Provider:
    """Thread-safe: two concurrent requests for the same data are both sent, and the later response is cached."""

    def __init__(self, settings: Settings) -> None:
        self.issuer, self.client_id = settings.oidc_issuer, settings.oidc_client_id
        self._secret = settings.oidc_client_secret
        self._gate = Gate(_ALL_NETWORKS)
        self._lock = threading.Lock()
        self._metadata: tuple[float, dict[str, Any]] | None = None
        self._keys: tuple[float, KeySet] | None = None

    # --- Metadata ---------------------------------------------------------------------------------------------

    def metadata(self) -> dict[str, Any]:
        """Fetch the metadata (OpenID Connect Discovery 1.0, 4). Error: Unreachable if missing or of another issuer."""
        from authlib.oidc.discovery import get_well_known_url

        with self._lock:
            cached = self._metadata
        if cached is not None and time.monotonic() - cached[0] < limits.OIDC_CACHE_SECONDS:
            return cached[1]
        url = get_well_known_url(self.issuer, external=True)
        found = self._json(self._request("GET", url, {"Accept": "application/json"}))
        if found.get("issuer") != self.issuer:  # 4.3: they MUST be the same
            raise ProviderError("its metadata has a different issuer than OIDC_ISSUER")
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            _check_url(name, found.get(name))
        if found.get("userinfo_endpoint") is not None:
            _check_url("userinfo_endpoint", found["userinfo_endpoint"])
        with self._lock:
            self._metadata = (time.monotonic(), found)
        return found

    def _key_set(self, *, refresh: bool = False) -> KeySet:
        with self._lock:
            cached = self._keys
        max_age = limits.OIDC_KEYS_REFRESH_SECONDS if refresh else limits.OIDC_CACHE_SECONDS
        if cached is not None and time.monotonic() - cached[0] < max_age:
            return cached[1]
        found = parse_key_set(self._json(self._request("GET", self.metadata()["jwks_uri"], {})))
        with self._lock:
            self._keys = (time.monotonic(), found)
        return found

    # --- Claims about the user -----------------------------------------------------------------------------

    def fetch_claims(self, code: str, verifier: str, redirect_uri: str, nonce: str) -> dict[str, Any]:
        """Exchange a code for the identity of the user (Core 1.0, 3.1.3). Errors: Unreachable, TokenRefused."""
        token_response = self._exchange_code(code, verifier, redirect_uri)
        token, access_token = token_response.get("id_token"), token_response.get("access_token")
        if not isinstance(token, str) or not isinstance(access_token, str):
            raise InvalidTokenError("its token endpoint returned no ID token")
        found = self._verified_claims(token, access_token, nonce)
        if "email" in found:
            return found
        # Core 1.0, 5.3 and 5.4: userinfo adds claims that the ID token is missing, only for the same subject.
        url = self.metadata().get("userinfo_endpoint")
        if url is None:
            return found
        reply = self._request(
            "GET", url, {"Authorization": f"Bearer {access_token}", "Accept": "application/json"}
        )
        userinfo = self._json(reply) if reply.status == 200 else {}
        if userinfo.get("sub") != found["sub"]:
            raise InvalidTokenError(
                f"its userinfo endpoint returned {reply.status}, or the claims of another user"
            )
        return {
            **found,
            **{name: userinfo[name] for name in ("email", "email_verified", "name") if name in userinfo},
        }

    def _exchange_code(self, code: str, verifier: str, redirect_uri: str) -> dict[str, Any]:
        from authlib.oauth2.auth import ClientAuth
        from authlib.oauth2.rfc6749.parameters import prepare_token_request

        metadata = self.metadata()
        body = prepare_token_request(
            "authorization_code", redirect_uri=redirect_uri, code=code, code_verifier=verifier
        )
        methods = metadata.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        if "client_secret_basic" in methods:
            # RFC 6749, 2.3.1: both parts are form-encoded before they are joined. A blank as %20, which all decode.
            client = ClientAuth(
                quote(self.client_id, safe=""), quote(self._secret, safe=""), "client_secret_basic"
            )
        else:
            client = ClientAuth(self.client_id, self._secret, "client_secret_post")
        url, headers, body = client.prepare("POST", metadata["token_endpoint"], dict(_FORM_HEADERS), body)
        reply = self._request("POST", url, headers, body)
        if reply.status != 200:
            raise InvalidTokenError(f"its token endpoint returned {reply.status} ({_error_code(reply)})")
        return self._json(reply)

    def _verified_claims(self, token: str, access: str, nonce: str) -> dict[str, Any]:
        accepted = accepted_algorithms(self.metadata().get("id_token_signing_alg_values_supported"))

        def read(keys: KeySet) -> dict[str, Any]:
            return verify_token(
                token,
                keys,
                issuer=self.issuer,
                client_id=self.client_id,
                nonce=nonce,
                access_token=access,
                accepted_algorithms=accepted,
                now=clock.epoch(),
            )

        keys = self._key_set()
        try:
            return read(keys)
        except InvalidTokenError:
            fresh = self._key_set(refresh=True)
            if fresh is keys:
                raise
            return read(fresh)

    # --- HTTP -------------------------------------------------------------------------------------------------

    def _request(self, method: str, url: str, headers: Mapping[str, str], body: str | None = None) -> Reply:
        try:
            return send_single(
                self._gate,
                method,
                url,
                headers=headers,
                body=body,
                timeout_seconds=limits.OIDC_TIMEOUT_SECONDS,
                max_bytes=limits.OIDC_RESPONSE_BYTES,
            )
        except NetError as error:
            raise ProviderError(f"{error.reason}: {error.message}") from None

    def _json(self, reply: Reply) -> dict[str, Any]:
        try:
            found = orjson.loads(reply.body)
        except orjson.JSONDecodeError:
            found = None
        if reply.status != 200 or reply.truncated or not isinstance(found, dict):
            raise ProviderError(f"{urlsplit(reply.url).path} returned {reply.status} without a JSON object")
        return found


def _error_code(reply: Reply) -> str:
    """Return the error code of an error response (RFC 6749, 5.2) if it contains only allowed characters."""
    try:
        code = orjson.loads(reply.body).get("error")
    except (orjson.JSONDecodeError, AttributeError):
        return "no JSON"
    return code if isinstance(code, str) and code.isidentifier() and len(code) < 60 else "no error code"


def _check_url(name: str, url: object) -> None:
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
    except ValueError:
        safe = False
    if not safe:
        raise ProviderError(f"`{name}` in its metadata is missing or is not an https URL")


log = logging.getLogger("webapp")
_STATE: Final = "oidc"
_STATE_FORMAT: Final = re.compile(r"[0-9A-Za-z]{1,64}")

# Messages on the sign-in page; `{name}` is the name of the provider. The log has the details.
SIGN_IN_ERRORS: Final = {
    "stopped": "{name} rejected the sign-in, or you cancelled it. Try again, or sign in another way.",
    "stale": "This sign-in has expired, was started in another browser, or was used already. Start again.",
    "unreachable": "{name} is not responding correctly. Try again in a minute, or sign in another way.",
    "refused": "The response of {name} could not be verified. Try again; if the problem persists, contact "
    "your administrator.",
    "unverified": "{name} has not verified your e-mail address or does not share it. Verify it there first.",
    "domain": "The domain of your e-mail address at {name} is not allowed. Ask an admin.",
    "uninvited": "There is no account and no open invitation for your e-mail address. Ask an admin to invite you.",
    "linked": "Your e-mail address is linked to another account at {name}. Contact your administrator.",
    "closed": "Your account is closed. Contact your administrator.",
    "nowhere": "Your account is not a member of any workspace. Ask an admin to invite you.",
}


class SignInError(Exception):
    """A failed sign-in: one of `SIGN_IN_ERRORS`."""

    def __init__(self, code: str, reason: str = "") -> None:
        assert code in SIGN_IN_ERRORS
        self.code, self.reason = code, reason
        super().__init__(code)


def new_browser_token() -> str:
    """Return the state for a browser's cookie, so that only that browser can complete the sign-in."""
    return keys.new_token(os.urandom)[0]


def begin_sign_in(browser: str, redirect_uri: str, target: str) -> str:
    """Return the authorization URL at the provider (Core 1.0, section 3.1.2.1). Error: Problem."""
    from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
    from authlib.oauth2.rfc7636 import create_s256_code_challenge

    client = provider()
    try:
        endpoint = client.metadata()["authorization_endpoint"]
    except ProviderError as error:
        raise _logged_problem("unreachable", str(error)) from None
    nonce, verifier = (
        keys.new_token(os.urandom)[0],
        keys.new_token(os.urandom)[0],
    )  # 43 characters: RFC 7636, 4.1
    state = {"nonce": nonce, "verifier": verifier, "target": target, "redirect_uri": redirect_uri}
    return str(
        prepare_grant_uri(
            endpoint,
            client.client_id,
            "code",
            redirect_uri=redirect_uri,
            scope="openid email profile",
            state=sign_in.store_pending(_STATE, state, browser),
            nonce=nonce,
            code_challenge=create_s256_code_challenge(verifier),
            code_challenge_method="S256",
        )
    )


@dataclass(frozen=True, slots=True)
class AuthorizationResponse:
    """Query parameters of the provider's redirect; "" for missing ones."""

    state: str
    code: str
    error: str
    issuer: str


def finish_sign_in(
    response: AuthorizationResponse, browser: str, visitor: Visitor
) -> tuple[SignInResult, str]:
    """Complete a sign-in that `begin_sign_in` started. Return its result and the page to open; commits. Error:
    Problem."""
    state = (
        sign_in.take_pending(_STATE, response.state, browser)
        if browser and _STATE_FORMAT.fullmatch(response.state)
        else None
    )
    if state is None:
        raise _logged_problem("stale", "the state is unknown, was already used, or is from another browser")
    client = provider()
    if response.issuer and response.issuer != client.issuer:  # RFC 9207
        raise _logged_problem("refused", "the response has a different issuer")
    if response.error or not response.code:
        reason = (
            response.error
            if response.error.isidentifier()
            else "the response has neither a code nor an error"
        )
        raise _logged_problem("stopped", reason[:60])
    try:
        claims = client.fetch_claims(response.code, state["verifier"], state["redirect_uri"], state["nonce"])
    except ProviderError as error:
        raise _logged_problem("unreachable", str(error)) from None
    except InvalidTokenError as error:
        raise _logged_problem("refused", str(error)) from None
    settings: Settings = current_app.config["SETTINGS"]
    if claims.get("email_verified") not in (True, "true"):  # some providers send it as a string
        raise _logged_problem("unverified", "email_verified is not true")
    try:
        email = people.normalize_email(str(claims.get("email") or ""))
    except ApiError:
        raise _logged_problem("unverified", "email is missing or is not an e-mail address") from None
    if settings.oidc_domains and email.rpartition("@")[2] not in settings.oidc_domains:
        raise _logged_problem("domain", "the domain of the address is not in OIDC_DOMAINS")
    account = ProviderAccount(client.issuer, claims["sub"], email)
    user = _find_or_create_user(account, str(claims.get("name") or ""), settings, visitor)
    methods = claims.get("amr")
    has_second_factor = settings.oidc_second_factor == "trust" or (
        isinstance(methods, list) and "mfa" in methods
    )  # RFC 8176
    target = state["target"]
    try:
        result = sign_in.complete_first_step(
            user, visitor, "oidc", target=target, skip_second_factor=has_second_factor, account=account
        )
    except ApiError as error:
        db.session.rollback()
        raise SignInError("nowhere" if error.code == "forbidden" else "linked") from None
    return result, target


def _logged_problem(code: str, reason: str) -> SignInError:
    log.warning("sign-in by OpenID Connect: %s: %s", code, reason)
    return SignInError(code, reason)


def _find_or_create_user(account: ProviderAccount, name: str, settings: Settings, visitor: Visitor) -> User:
    """Return the user of an account at the provider, creating one if allowed; commits. Error: Problem."""
    linked = select(User).join(Identity, Identity.user_id == User.id)
    user = db.session.scalar(
        linked.where(Identity.issuer == account.issuer, Identity.subject == account.subject)
    )
    if user is None:
        user = people.find_user(account.email)
        other = select(Identity.id).where(Identity.issuer == account.issuer)
        if user is not None and db.session.scalar(other.where(Identity.user_id == user.id)) is not None:
            raise _audited_problem(user, visitor, "linked")
    if user is not None and user.disabled_at is not None:
        raise _audited_problem(user, visitor, "closed")
    if user is None:
        return _create_user(account, name, settings, visitor)
    member = select(Membership.id).where(Membership.user_id == user.id).limit(1)
    if db.session.scalar(member) is None:
        _accept_invitations(user, visitor)
    return user


def _audited_problem(user: User, visitor: Visitor, code: str) -> SignInError:
    """Record a rejected sign-in in the audit log of the account's workspaces, and return the Problem."""
    sign_in.record_failure(user, visitor, how="oidc", reason=code)
    return _logged_problem(code, "see the audit log")


def _create_user(account: ProviderAccount, name: str, settings: Settings, visitor: Visitor) -> User:
    invitations = _open_invitations(account.email)
    workspace_id = (
        _workspace_of_new_users(settings)
        if not invitations and settings.oidc_new_people != "invited"
        else None
    )
    if not invitations and workspace_id is None:
        raise _logged_problem(
            "uninvited", "no account, no open invitation, and OIDC_NEW_PEOPLE does not allow new users"
        )
    display_name = "".join(char for char in name if char.isprintable())[: limits.MAX_NAME_CHARS]
    try:
        user = people.add_user(account.email, display_name, None)
    except (ApiError, IntegrityError):  # created in another window at this moment
        db.session.rollback()
        return db.session.scalars(select(User).where(User.email == account.email)).one()
    if workspace_id is not None:
        people.add_member(_service_actor(workspace_id, user, visitor), user, settings.oidc_new_people)
    _accept_invitations(user, visitor)
    return user


def _open_invitations(email: str) -> list[Invitation]:
    statement = select(Invitation).where(
        Invitation.email == email,
        Invitation.accepted_at.is_(None),
        Invitation.revoked_at.is_(None),
        Invitation.expires_at > clock.now(),
    )
    return list(db.session.scalars(statement.order_by(Invitation.id).with_for_update()))


def _accept_invitations(user: User, visitor: Visitor) -> None:
    """Accept every open invitation of a user without a workspace: the provider has verified the address."""
    for invitation in _open_invitations(user.email):
        member = people.accept_invitation(invitation, user)
        actor = _service_actor(member.workspace_id, user, visitor)
        audit_log.record(actor, "invitation.accept", invitation, join=True, role=member.role, how="oidc")
    db.session.commit()


def _service_actor(workspace_id: str, user: User, visitor: Visitor) -> actors.Actor:
    """Return the actor of the service itself, for changes caused by a sign-in."""
    service = actors.system_actor(workspace_id)
    return replace(service, user_id=user.id, address=visitor.address, request_id=visitor.request_id)


def _workspace_of_new_users(settings: Settings) -> str | None:
    """Return the workspace of OIDC_NEW_PEOPLE: the one with that id or name, or the oldest. Log a message and return
    None if it is missing or ambiguous."""
    statement = select(Workspace.id).where(Workspace.deleted_at.is_(None)).order_by(Workspace.id)
    configured_name = settings.oidc_workspace
    if configured_name:
        statement = statement.where((Workspace.id == configured_name) | (Workspace.name == configured_name))
    found = db.session.scalars(statement.limit(2)).all()
    if not found or (configured_name and len(found) > 1):
        log.warning("OIDC_WORKSPACE matches %s", "more than one workspace" if found else "no workspace")
        return None
    return found[0]
