"""A backup moves an installation from a folder to S3 and back, on a real S3 server of this machine."""

from __future__ import annotations

from tests.s3.conftest import BUCKET, KEYS, running, server  # noqa: F401
from tests.upkeep.conftest import Place

BODIES = {
    "files/ws/one": b"one" * 100_000,
    "files/ws/empty": b"",
    "exports/ws/exp/1.csv": b"a,b\n",
    "vocab/odd": b"x",
}


def stored(place: Place) -> dict[str, bytes]:
    return {node.key: b"".join(place.store.get(node.key)) for node in place.store.walk()}


def test_files_go_from_a_folder_to_s3_and_back(place, new_place, server, tmp_path):
    for key, body in BODIES.items():
        place.store.put(key, [body] if body else [])
    env = {name.upper(): value for name, value in KEYS.items()}
    there = new_place("sqlite", STORAGE_URL=f"s3://{BUCKET}/deep/prefix", AWS_ENDPOINT_URL=server.url, **env)
    back = new_place("sqlite")
    for at, (item, other) in enumerate(((place, there), (there, back))):
        assert item.run("backup", str(tmp_path / f"{at}.zip"), "--include-keys") == 0
        assert other.run("restore", str(tmp_path / f"{at}.zip")) == 0
        assert stored(other) == BODIES
    assert there.run("restore", str(tmp_path / "1.zip"), "--force-empty") == 0
    assert stored(there) == BODIES
