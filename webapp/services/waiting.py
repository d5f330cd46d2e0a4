"""What a sign-in that has begun waits for, between two requests: the answer of a provider, or a code.

It lies in Redis under a hash of its token, sealed by a key that only the token and SECRET_KEY together give, for ten
minutes. Taking it is one command, so of several who use a token at once exactly one gets it.
"""

from __future__ import annotations

import os
from typing import Any, Final

import orjson
from flask import current_app

from webapp import limits
from webapp.extensions import redis_client
from webapp.security import keys, sealing

_PURPOSE: Final = "sign-in"


def keep(kind: str, data: dict[str, Any], extra: str = "") -> str:
    """Keep small JSON; the token it is had again with. `extra` is a further text that must be known then."""
    token, _ = keys.new_token(os.urandom)
    sealed = sealing.seal(_key(kind, token, extra), orjson.dumps(data))
    redis_client().set(_name(kind, token), sealed, ex=limits.SIGN_IN_WAIT_SECONDS)
    return token


def look(kind: str, token: str, extra: str = "") -> dict[str, Any] | None:
    """What was kept, which stays; None when it was taken, has run out, or `extra` is another."""
    return _opened(kind, token, extra, redis_client().get(_name(kind, token)))


def take(kind: str, token: str, extra: str = "") -> dict[str, Any] | None:
    """What was kept, and nobody gets it again; None as `look`."""
    return _opened(kind, token, extra, redis_client().getdel(_name(kind, token)))


def _opened(kind: str, token: str, extra: str, sealed: Any) -> dict[str, Any] | None:
    data = sealing.unseal(_key(kind, token, extra), sealed) if sealed is not None else None
    return orjson.loads(data) if data is not None else None


def _key(kind: str, token: str, extra: str) -> bytes:
    return sealing.derive(str(current_app.secret_key), f"{_PURPOSE} {kind}", f"{token}\0{extra}")


def _name(kind: str, token: str) -> str:
    return f"rowsmith:{_PURPOSE}:{kind}:{keys.digest(token)}"
