"""The key ring of stored secrets: every process with the keys can decrypt, also during rotations."""

from __future__ import annotations

import threading

import pytest
from cryptography.fernet import Fernet

from webapp.security.sealing import Vault, VaultError

OLD, NEW, OTHER = (Fernet.generate_key().decode() for _ in range(3))


def test_the_newest_key_seals_and_the_older_ones_open():
    sealed = Vault([OLD]).seal("text")
    assert Vault([NEW, OLD]).open(sealed) == "text"
    with pytest.raises(VaultError):
        Vault([OLD]).open(Vault([NEW, OLD]).seal("text"))


def test_secrets_encrypted_with_the_newest_key_are_unchanged():
    ring = Vault([NEW, OLD])
    renewed = ring.reencrypt(Vault([OLD]).seal("text"))
    assert renewed is not None
    assert Vault([NEW]).open(renewed) == "text"
    assert ring.reencrypt(renewed) is None


@pytest.mark.parametrize("keys", [[], [OTHER]])
def test_a_missing_key_is_reported_without_the_secret(keys):
    with pytest.raises(VaultError, match="VAULT_KEYS") as result:
        Vault(keys).open(Vault([OLD]).seal("canary"))
    assert "canary" not in str(result.value)


def test_without_a_key_nothing_is_sealed():
    with pytest.raises(VaultError, match="VAULT_KEYS"):
        Vault([]).seal("text")


def test_a_changed_secret_is_not_opened():
    sealed = bytearray(Vault([OLD]).seal("text"))
    sealed[20] ^= 1
    with pytest.raises(VaultError):
        Vault([OLD]).open(bytes(sealed))


def test_a_process_with_an_older_ring_reads_it_again():
    ring = Vault([OLD], lambda: [NEW, OLD])
    assert ring.open(Vault([NEW]).seal("text")) == "text"


def test_the_keys_are_read_again_but_once_for_a_secret_that_nothing_opens():
    requests = []

    def again():
        requests.append(1)
        return [OLD]

    with pytest.raises(VaultError):
        Vault([OLD], again).open(Vault([OTHER]).seal("text"))
    assert requests == [1]


def test_threads_that_read_a_new_key_concurrently_all_get_it():
    sealed, at_once, read = Vault([NEW]).seal("text"), threading.Barrier(8), []

    def again():
        return [NEW, OLD]

    for _ in range(50):
        ring = Vault([OLD], again)

        def look(ring=ring):
            at_once.wait()
            read.append(ring.open(sealed))

        threads = [threading.Thread(target=look) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert read == ["text"] * 400


def test_a_thread_that_comes_second_to_the_new_keys_uses_them():
    sealed = Vault([NEW]).seal("text")
    ring = Vault([OLD], lambda: [NEW, OLD])
    real, seconds = ring.reload, []

    def second():
        seconds.append(real())  # another thread was quicker
        return real()

    ring.reload = second  # type: ignore[method-assign]
    assert ring.open(sealed) == "text"
    assert seconds == [True]
