"""Return the raw contents of the database, Redis and the file tree of a product, as an attacker could copy them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, quote_plus

import redis
import sqlalchemy as sa

from tests.promises.product import Product

# The keys that encrypt everything else. The operator must protect this file (docs/threat-model.md).
KEYS_FILE = "keys.env"


def forms(secret: str) -> list[bytes]:
    """How a secret is written by those who write it: as it is, in a URL, in JSON, in base64 at any place, in hex."""
    raw = secret.encode()
    found = {
        raw,
        quote(secret, safe="").encode(),
        quote_plus(secret).encode(),
        json.dumps(secret)[1:-1].encode(),
    }
    found |= {raw.hex().encode(), raw[::-1]}
    for before in (b"", b"u", b"us"):  # the three ways the letters of a text can fall in base64
        text = base64.b64encode(before + raw)
        # The first and the last letters depend on the surrounding bytes.
        start = -(-8 * len(before) // 6)
        cut = text[start : len(text) - 4] if len(text) > 12 else text
        found |= {cut, cut.replace(b"+", b"-").replace(b"/", b"_")}
    return sorted(found)


def hits(loot: Iterator[tuple[str, bytes]], secrets: dict[str, str]) -> list[str]:
    """Which secrets are found, and where."""
    expected = {name: forms(secret) for name, secret in secrets.items()}
    return [
        f"{name} in {where}"
        for where, stored in loot
        for name, spellings in expected.items()
        if any(spelling in stored for spelling in spellings)
    ]


def database(product: Product) -> Iterator[tuple[str, bytes]]:
    """Every row of every table, and of SQLite the bytes of its files."""
    url = sa.make_url(product.database_url)
    if url.drivername == "postgresql":
        url = url.set(drivername="postgresql+psycopg")
    engine = sa.create_engine(url)
    try:
        tables = sa.MetaData()
        tables.reflect(engine)
        with engine.connect() as connection:
            for table in tables.sorted_tables:
                for row in connection.execute(sa.select(table)):
                    parts = [value if isinstance(value, bytes) else _text(value) for value in row]
                    yield f"table {table.name}", b"\0".join(parts)
    finally:
        engine.dispose()
    if url.drivername.startswith("sqlite"):
        for path in Path(url.database or "").parent.glob("rowsmith.db*"):
            yield f"file {path.name}", path.read_bytes()


def _text(value: object) -> bytes:
    result = json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)
    return result.encode("utf-8", "replace")


def in_redis(product: Product) -> Iterator[tuple[str, bytes]]:
    """Yield every key with its value."""
    with product.redis() as client:
        for key in client.scan_iter():
            yield f"redis {key!r}", key + b"\0" + b"\0".join(_held(client, key))


def _held(client: redis.Redis, key: bytes) -> list[bytes]:
    kind = client.type(key)
    if kind == b"string":
        return [client.get(key) or b""]
    if kind == b"hash":
        return [part for pair in client.hgetall(key).items() for part in pair]
    if kind == b"list":
        return client.lrange(key, 0, -1)
    if kind == b"set":
        return list(client.smembers(key))
    if kind == b"zset":
        return client.zrange(key, 0, -1)
    if kind == b"stream":
        return [part for _, fields in client.xrange(key) for pair in fields.items() for part in pair]
    return []


def tree(product: Product) -> Iterator[tuple[str, bytes]]:
    """Every file of the data folder but the keys: storage, logs, snapshots, environments' configuration."""
    for path in sorted(product.data.rglob("*")):
        inside = path.relative_to(product.data)
        if (
            path.is_file()
            and not path.is_symlink()
            and path.name != KEYS_FILE
            and inside.parts[0] != "environments"
        ):
            yield f"file {inside}", path.read_bytes()


def everything(product: Product) -> Iterator[tuple[str, bytes]]:
    """All three."""
    yield from database(product)
    yield from in_redis(product)
    yield from tree(product)
