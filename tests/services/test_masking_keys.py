"""A workspace's masking keys: one is made when it is needed, rotation keeps the old ones, the vault seals them all."""

from __future__ import annotations

import threading

import pytest
from cryptography.fernet import Fernet

from webapp import app_vault
from webapp.access import actors
from webapp.connections.models import MaskingKey
from webapp.errors import ApiError
from webapp.extensions import db
from webapp.security.sealing import Vault
from webapp.sources.services import masking_keys


@pytest.fixture
def acme(app, cast):
    with app.app_context():
        yield actors.system_actor(cast.acme, cast.main, cast.blue)
        db.session.remove()


def test_the_first_key_is_created_once_and_kept(acme):
    first = masking_keys.load_keys(acme.workspace_id)
    assert first.current == 1
    assert len(first.keys[1]) == 32
    assert masking_keys.load_keys(acme.workspace_id).keys == first.keys
    assert str(first.keys[1]) not in repr(first)


def test_every_workspace_has_its_own_keys(acme, cast):
    other = masking_keys.load_keys(cast.mallory_inc).keys
    assert other[1] != masking_keys.load_keys(acme.workspace_id).keys[1]


def test_a_rotation_makes_a_new_version_and_keeps_the_old_ones(acme):
    before = masking_keys.load_keys(acme.workspace_id)
    assert masking_keys.rotate(acme).version == 2
    after = masking_keys.load_keys(acme.workspace_id)
    assert after.current == 2
    assert after.keys[1] == before.keys[1] != after.keys[2]
    assert [key.version for key in masking_keys.listing(acme)] == [2, 1]


def test_the_key_is_stored_encrypted_and_a_rotation_encrypts_it_again(acme, monkeypatch):
    ring = masking_keys.load_keys(acme.workspace_id)
    (stored,) = db.session.query(MaskingKey)
    assert ring.keys[1] not in stored.sealed
    newer = Vault([Fernet.generate_key().decode(), *app_vault.vault()._keys])
    monkeypatch.setattr(app_vault, "vault", lambda: newer)
    assert masking_keys.reencrypt_all() == (1, 1)
    assert masking_keys.reencrypt_all() == (0, 1)
    assert masking_keys.load_keys(acme.workspace_id).keys == ring.keys
    monkeypatch.setattr(app_vault, "vault", lambda: Vault([Fernet.generate_key().decode()]))
    for ask in (lambda: masking_keys.load_keys(acme.workspace_id), masking_keys.reencrypt_all):
        with pytest.raises(ApiError) as result:
            ask()
        assert result.value.code == "unavailable"


def test_concurrent_users_of_a_first_key_get_the_same(app, cast):
    both, got = threading.Barrier(3, timeout=10), []

    def ask():
        with app.app_context():
            both.wait()
            got.append(masking_keys.load_keys(cast.acme).keys)
            db.session.remove()

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 3
    assert got[0] == got[1] == got[2]
