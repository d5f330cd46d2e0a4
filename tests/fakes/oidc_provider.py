"""An OpenID Connect provider on loopback: Authlib's authorization server with discovery, a sign-in page, tokens, keys
and userinfo. It requires PKCE (S256) and the client's secret, and accepts a code once. It can send invalid data."""

from __future__ import annotations

import base64
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from html import escape
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode, urljoin

import requests
from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import grants
from authlib.oauth2.rfc6749.models import AuthorizationCodeMixin, ClientMixin
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oidc.core.grants import OpenIDCode
from authlib.oidc.core.util import create_half_hash
from flask import Flask, Response, jsonify, request
from joserfc import jws, jwt
from joserfc.jwk import KeySet, OctKey, RSAKey
from werkzeug.serving import WSGIRequestHandler, make_server

PEOPLE = {
    "ada": {"sub": "ada-1", "email": "ada@example.org", "email_verified": True, "name": "Ada L."},
    "edith": {"sub": "edith-1", "email": "Edith@Example.org", "email_verified": True, "name": "Edith"},
}


class Client(ClientMixin):
    """The service under test. Its redirect address is registered when it is first used."""

    def __init__(self) -> None:
        self.client_id, self.client_secret = "rowsmith", "s3cret/+ &=ü"
        self.redirect_uris: set[str] = set()
        self.auth_methods = ("client_secret_basic",)

    def get_client_id(self) -> str:
        return self.client_id

    def get_default_redirect_uri(self) -> None:
        return None

    def get_allowed_scope(self, scope: str) -> str:
        return " ".join(word for word in (scope or "").split() if word in ("openid", "email", "profile"))

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return redirect_uri in self.redirect_uris

    def check_client_secret(self, client_secret: str) -> bool:
        return client_secret == self.client_secret

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method in self.auth_methods

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type == "authorization_code"


@dataclass
class Code(AuthorizationCodeMixin):
    """A code that was given and not yet used."""

    code: str
    redirect_uri: str
    scope: str
    nonce: str
    user: str
    code_challenge: str
    code_challenge_method: str

    def get_redirect_uri(self) -> str:
        return self.redirect_uri

    def get_scope(self) -> str:
        return self.scope

    def get_nonce(self) -> str:
        return self.nonce

    def get_auth_time(self) -> None:
        return None

    def get_acr(self) -> None:
        return None

    def get_amr(self) -> None:
        return None


@dataclass
class Lies:
    """What it does other than it should. `claims` go over the true ones, None takes one away."""

    claims: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    userinfo: dict[str, Any] | None = None
    """What the userinfo endpoint answers with; then the ID token has neither address nor name."""
    alg: str = "RS256"
    """Another, or `none`, or `HS256` keyed by the public key."""
    forged: bool = False
    """Signed by an unpublished key, with the key id of a published one."""
    down: str = ""
    """A path that answers 500."""


class OidcProvider:
    """`url(...)` returns its URLs; `visit` acts as a user in its pages; `asked` are the requested paths."""

    def __init__(self, people: dict[str, dict[str, Any]] | None = None) -> None:
        self.client, self.lies = Client(), Lies()
        self.people = {name: dict(result) for name, result in (people or PEOPLE).items()}
        self.key = RSAKey.generate_key(2048, {"kid": "first", "use": "sig"})
        self.codes: dict[str, Code] = {}
        self.tokens: dict[str, str] = {}
        self.asked: list[str] = []
        self.app = _application(self)
        self._server = make_server("127.0.0.1", 0, self._as_tls, threaded=True, request_handler=_Quiet)
        self._server.daemon_threads = True
        self.issuer = f"http://127.0.0.1:{self._server.server_port}/realm"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    def _as_tls(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        # Authlib's server refuses plain http, which is all that there is on this loopback.
        environ["wsgi.url_scheme"] = "https"
        return self.app(environ, start)

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def behave(self) -> None:
        """Tell the truth again, to everybody it knew at first."""
        self.lies, self.people = Lies(), {name: dict(result) for name, result in PEOPLE.items()}
        self.client.auth_methods = ("client_secret_basic",)

    def change_key(self) -> None:
        """Sign with a new key from now on, and publish only that key."""
        self.key = RSAKey.generate_key(2048, {"kid": secrets.token_hex(4), "use": "sig"})

    @property
    def settings(self) -> dict[str, str]:
        """Return the settings of the service for this provider."""
        result = {
            "oidc_issuer": self.issuer,
            "oidc_client_id": self.client.client_id,
            "oidc_name": "Acme SSO",
        }
        return {**result, "oidc_client_secret": self.client.client_secret}

    def visit(self, url: str, who: str = "ada", *, deny: bool = False) -> str:
        """Open the sign-in page and send it, as a browser would. Returns the address that one is sent back to."""
        with requests.Session() as browser:
            browser.trust_env = False
            page = browser.get(url, timeout=10)
            assert page.status_code == 200, page.text
            form = {"user": who, **({"deny": "1"} if deny else {})}
            sent = browser.post(url, data=form, timeout=10, allow_redirects=False)
        assert sent.status_code == 302, sent.text
        return urljoin(url, sent.headers["Location"])

    # --- What it says ---------------------------------------------------------------------------------------

    def metadata(self) -> dict[str, Any]:
        """Discovery 1.0, 3."""
        true = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "token_endpoint_auth_methods_supported": list(self.client.auth_methods),
            "code_challenge_methods_supported": ["S256"],
        }
        return {name: item for name, item in {**true, **self.lies.metadata}.items() if item is not None}

    def id_token(self, code: Code, access_token: str) -> str:
        """Core 1.0, 2."""
        now = int(time.time())
        true = {
            "iss": self.issuer,
            "aud": self.client.client_id,
            "iat": now,
            "exp": now + 300,
            "nonce": code.nonce,
            "at_hash": create_half_hash(access_token, "RS256").decode(),
            **self.people[code.user],
        }
        if self.lies.userinfo is not None:
            true = {
                name: item for name, item in true.items() if name not in ("email", "email_verified", "name")
            }
        result = {name: item for name, item in {**true, **self.lies.claims}.items() if item is not None}
        return self._signed(result)

    def _signed(self, claims: dict[str, Any]) -> str:
        if self.lies.alg == "none":
            parts = (json.dumps(part).encode() for part in ({"alg": "none", "typ": "JWT"}, claims))
            return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts) + "."
        header = {"alg": self.lies.alg, "kid": self.key.kid}
        if self.lies.alg == "HS256":
            public = OctKey.import_key(self.key.as_pem(private=False))
            return jws.serialize_compact(header, json.dumps(claims), public, ["HS256"])
        signer = RSAKey.generate_key(2048) if self.lies.forged else self.key
        return jwt.encode(header, claims, signer, [self.lies.alg])


class _Quiet(WSGIRequestHandler):
    def log(self, type: str, message: str, *args: object) -> None:
        pass


def _application(provider: OidcProvider) -> Flask:
    app = Flask("oidc_provider")

    class CodeGrant(grants.AuthorizationCodeGrant):
        TOKEN_ENDPOINT_AUTH_METHODS = ("client_secret_basic", "client_secret_post")

        def save_authorization_code(self, code: str, asked: Any) -> None:
            sent = asked.payload.data
            value = (code, asked.payload.redirect_uri, asked.payload.scope, sent.get("nonce", ""))
            challenge = (sent.get("code_challenge"), sent.get("code_challenge_method"))
            provider.codes[code] = Code(*value, asked.user.name, *challenge)

        def query_authorization_code(self, code: str, client: Client) -> Code | None:
            return provider.codes.get(code)

        def delete_authorization_code(self, authorization_code: Code) -> None:
            del provider.codes[authorization_code.code]

        def authenticate_user(self, authorization_code: Code) -> SimpleNamespace:
            return SimpleNamespace(name=authorization_code.user)

    class IdTokens(OpenIDCode):
        def exists_nonce(self, nonce: str, asked: Any) -> bool:
            return any(code.nonce == nonce for code in provider.codes.values())

        def encode_id_token(self, token: dict[str, Any], asked: Any) -> str:
            provider.tokens[token["access_token"]] = asked.authorization_code.user
            return provider.id_token(asked.authorization_code, token["access_token"])

    server = AuthorizationServer(
        app, lambda client_id: _client(provider, client_id), lambda token, asked: None
    )
    server.register_grant(CodeGrant, [CodeChallenge(required=True), IdTokens(require_nonce=True)])

    @app.before_request
    def note() -> Response | None:
        provider.asked.append(request.path)
        return (
            Response("down", 500)
            if provider.lies.down and request.path.endswith(provider.lies.down)
            else None
        )

    @app.get("/realm/.well-known/openid-configuration")
    def discovery() -> Response:
        return jsonify(provider.metadata())

    @app.get("/realm/keys")
    def keys() -> Response:
        return jsonify(KeySet([provider.key]).as_dict(private=False))

    @app.get("/realm/authorize")
    def page() -> str | Response:
        provider.client.redirect_uris.add(request.args["redirect_uri"])
        server.get_consent_grant(end_user=None)
        names = "".join(f"<option>{escape(name)}</option>" for name in provider.people)
        return (
            '<!doctype html><html lang="en"><title>Acme SSO</title><form method="post">'
            f'<label>Who are you? <select name="user">{names}</select></label>'
            '<button>Continue</button> <button name="deny" value="1">Cancel</button></form></html>'
        )

    @app.post("/realm/authorize")
    def authorize() -> Response:
        denied = "deny" in request.form
        if denied:
            back = {"error": "access_denied", "state": request.args["state"]}
            return Response(
                status=302, headers={"Location": f"{request.args['redirect_uri']}?{urlencode(back)}"}
            )
        who = SimpleNamespace(name=request.form["user"])
        grant = server.get_consent_grant(end_user=who)
        return server.create_authorization_response(grant_user=who, grant=grant)

    @app.post("/realm/token")
    def token() -> Response:
        return server.create_token_response()

    @app.get("/realm/userinfo")
    def userinfo() -> Response:
        name = provider.tokens.get(request.headers.get("Authorization", "").removeprefix("Bearer "))
        if name is None:
            return Response(status=401)
        return jsonify(provider.people[name] if provider.lies.userinfo is None else provider.lies.userinfo)

    return app


def _client(provider: OidcProvider, client_id: str) -> Client | None:
    return provider.client if client_id == provider.client.client_id else None
