"""OAuth tokens shared by web processes, workers and their jobs: encrypted in Redis, one entry per connection and
credentials.

The entry expires with the token. If Redis is emptied or unavailable, the only cost is another token request.
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from secrets import token_hex
from typing import Final

import orjson
import redis
from flask import current_app

from webapp import app_vault, clock, limits
from webapp.connectors.http.tokens import StoredToken
from webapp.extensions import redis_client
from webapp.monitoring import log_redaction
from webapp.security.vault import VaultError

log = logging.getLogger(__name__)

_PREFIX: Final = "rowsmith:oauth:"
# Deletes a key that still has the value it was read with. KEYS[1] the key, ARGV[1] the value.
_DELETE_IF_EQUAL: Final = (
    'if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end'
)


class SharedTokens:
    """The `TokenStore` of one connection. Safe in any thread; needs an app context only when it is created."""

    def __init__(self, connection_id: str) -> None:
        self.scope = connection_id
        self._client, self._vault = redis_client(), app_vault.vault()
        self._secret = current_app.config["SETTINGS"].secret_key.encode()

    def _name(self, key: str) -> str:
        """Return the Redis key, with a keyed digest: a plain one would let a reader of Redis try out client secrets."""
        digest = hmac.new(self._secret, key.encode(), "sha256").hexdigest()
        return f"{_PREFIX}{self.scope}:{digest}"

    def _read(self, name: str) -> tuple[bytes | None, StoredToken | None]:
        sealed = self._client.get(name)
        if sealed is None:
            return None, None
        assert isinstance(sealed, bytes)
        try:
            entry = StoredToken(**orjson.loads(self._vault.open(sealed)))
        except VaultError:
            return sealed, None  # sealed with a key that has been removed since
        log_redaction.learn(entry.token)
        return sealed, entry

    def load(self, key: str) -> StoredToken | None:
        """See `TokenStore.load`."""
        try:
            return self._read(self._name(key))[1]
        except redis.RedisError as error:
            log.warning("the shared OAuth tokens cannot be read: %s", type(error).__name__)
            return None

    def save(self, key: str, entry: StoredToken) -> None:
        """See `TokenStore.save`."""
        log_redaction.learn(entry.token)
        lasts = entry.until - clock.epoch() if entry.token else limits.TOKEN_FAILURE_SECONDS
        if lasts <= 0:
            return
        try:
            sealed = self._vault.seal(orjson.dumps(asdict(entry)).decode())
            self._client.set(self._name(key), sealed, px=max(round(lasts * 1000), 1))
        except VaultError:
            return  # without a key nothing is stored
        except redis.RedisError as error:
            log.warning("an OAuth token cannot be shared: %s", type(error).__name__)

    def drop(self, key: str, token: str) -> None:
        """See `TokenStore.drop`."""
        name = self._name(key)
        try:
            sealed, entry = self._read(name)
            if sealed is not None and (entry is None or entry.token == token):
                self._client.eval(_DELETE_IF_EQUAL, 1, name, sealed)
        except redis.RedisError as error:
            log.warning("a rejected OAuth token cannot be removed: %s", type(error).__name__)

    @contextmanager
    def fetching(self, key: str, wait: Callable[[], None]) -> Iterator[None]:
        """See `TokenStore.fetching`. The lock expires, so that a killed process does not block others."""
        name, owner = f"{self._name(key)}:lock", token_hex(8).encode()
        try:
            while not self._client.set(name, owner, nx=True, px=round(limits.TOKEN_LOCK_SECONDS * 1000)):
                wait()
        except redis.RedisError as error:
            log.warning("an OAuth token is fetched without a lock: %s", type(error).__name__)
        try:
            yield
        finally:
            try:
                self._client.eval(_DELETE_IF_EQUAL, 1, name, owner)
            except redis.RedisError:
                log.info("the lock of an OAuth token was not released and will expire")
