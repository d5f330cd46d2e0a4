"""Keys leave in a backup only when that is said, and come back only to who has what opens them."""

from __future__ import annotations

import zipfile

import pytest

from tests.conftest import SECRET_KEY, VAULT_KEY
from webapp import limits
from webapp.backup import backup
from webapp.backup.archive import BackupError

OTHER = "b3RoZXJvdGhlcm90aGVyb3RoZXJvdGhlcm90aGVyMTI="
TEXT = backup.format_keys(SECRET_KEY, [OTHER, VAULT_KEY])


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(limits, "BACKUP_SCRYPT_COST", 16)


def test_encrypted_keys_can_only_be_decrypted_with_their_passphrase():
    raw = backup.encrypt_keys(TEXT, "correct horse battery", b"0123456789abcdef")
    assert SECRET_KEY.encode() not in raw
    assert backup.decrypt_keys(raw, "correct horse battery") == TEXT
    with pytest.raises(BackupError, match="The passphrase is wrong"):
        backup.decrypt_keys(raw, "correct horse batterz")


@pytest.mark.parametrize("raw", [b"", b"[]", b"{}", b'{"salt": "AA==", "cost": "many", "token": ""}'])
def test_an_invalid_encrypted_key_is_rejected_with_a_message(raw):
    with pytest.raises(BackupError, match="cannot be read"):
        backup.decrypt_keys(raw, "correct horse battery")


def test_a_backup_cannot_ask_for_all_of_the_memory():
    with pytest.raises(BackupError, match="cost"):
        backup.decrypt_keys(b'{"salt": "AA==", "cost": 1073741824, "token": ""}', "correct horse battery")


def test_keys_are_read_as_they_were_written():
    assert backup.parse_keys(TEXT) == (SECRET_KEY, (OTHER, VAULT_KEY))


def test_marks_tell_keys_apart_and_give_nothing_of_them_away():
    assert (
        backup.key_fingerprint(SECRET_KEY)
        == backup.key_fingerprint(SECRET_KEY)
        != backup.key_fingerprint(SECRET_KEY + "x")
    )
    assert backup.key_fingerprint(SECRET_KEY) not in SECRET_KEY
    result = backup.vault_fingerprint([OTHER, VAULT_KEY])
    assert backup.can_decrypt([VAULT_KEY, OTHER], result)
    assert not backup.can_decrypt([VAULT_KEY], result)
    assert not backup.can_decrypt([], result)


def test_a_short_or_missing_passphrase_is_rejected(tmp_path):
    (tmp_path / "short").write_text("too short\n")
    with pytest.raises(BackupError, match="9 characters; it must have at least 12"):
        backup.read_passphrase(tmp_path / "short")
    with pytest.raises(BackupError, match="No such file"):
        backup.read_passphrase(tmp_path / "none")


def test_no_key_is_in_a_backup_that_was_not_asked_for_them(place, file):
    assert place.run("backup", str(file)) == 0
    with zipfile.ZipFile(file) as parts:
        raw = b"".join(parts.read(name) for name in parts.namelist())
    assert SECRET_KEY.encode() not in raw
    assert VAULT_KEY.encode() not in raw
