"""Settings are typed, and wrong ones stop the start with a sentence that names them."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from webapp import config
from webapp.config import Settings, SettingsError

KEY = "0123456789abcdefghijklmnopqrstuvwxyz"
FERNET = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="


OIDC = {"OIDC_ISSUER": "https://login.example.org", "OIDC_CLIENT_ID": "rowsmith", "OIDC_CLIENT_SECRET": "s"}


def refused(**env: str) -> str:
    with pytest.raises(SettingsError) as caught:
        Settings.from_env({"SECRET_KEY": KEY, **env})
    return str(caught.value)


def test_defaults_are_in_the_data_folder(tmp_path):
    result = Settings.from_env({"SECRET_KEY": KEY, "ROWSMITH_DATA_DIR": str(tmp_path)})
    assert result.database_url == f"sqlite:///{tmp_path}/rowsmith.db"
    assert result.storage_url == f"file://{tmp_path}/storage"


def test_settings_cannot_be_changed_after_the_start():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Settings(secret_key=KEY).port = 1


@pytest.mark.parametrize(
    ("env", "sentence"),
    [
        ({"SECRET_KEY": ""}, "SECRET_KEY is not set"),
        ({"SECRET_KEY": "short"}, "SECRET_KEY has 5 characters; it must have at least 32"),
        ({"SECRET_KEY": "a" * 40}, "SECRET_KEY repeats"),
        ({"VAULT_KEYS": "nonsense"}, "VAULT_KEYS: key 1 is not a Fernet key"),
        ({"VAULT_KEYS": f"{FERNET},x"}, "VAULT_KEYS: key 2"),
        ({"DATABASE_URL": "mysql://x/y"}, "DATABASE_URL must begin with"),
        ({"DATABASE_URL": "postgresql://host"}, "DATABASE_URL has no database name"),
        ({"DATABASE_URL": "sqlite://"}, "DATABASE_URL is SQLite in memory"),
        ({"REDIS_URL": "http://x"}, "REDIS_URL must begin with"),
        ({"REDIS_URL": "redis://x:port"}, "REDIS_URL is not a URL"),
        ({"STORAGE_URL": "s3://"}, "STORAGE_URL has no bucket name"),
        ({"STORAGE_URL": "file://other/path"}, "STORAGE_URL must be file:// and an absolute path"),
        ({"PUBLIC_URL": "http://data.example.org"}, "PUBLIC_URL is plain http"),
        ({"PUBLIC_URL": "https://data.example.org"}, "neither TLS_CERT nor TRUSTED_PROXIES"),
        ({"PUBLIC_URL": "https://data.example.org/x", "TRUSTED_PROXIES": "10.0.0.1"}, "without a path"),
        ({"PUBLIC_URL": "data.example.org"}, "PUBLIC_URL must be http"),
        ({"TRUSTED_PROXIES": "everybody"}, "TRUSTED_PROXIES must list addresses"),
        ({"TARGET_NETWORKS": "home"}, "TARGET_NETWORKS must list addresses, networks or the word none"),
        ({"TARGET_NETWORKS": "10.0.0.1/8"}, "TARGET_NETWORKS must list"),
        ({"TARGET_NETWORKS": "none,10.0.0.0/8"}, "TARGET_NETWORKS must be networks or the word none"),
        ({"TLS_CERT": "/x.pem"}, "TLS_CERT is set without TLS_KEY"),
        ({"OIDC_ISSUER": "https://login.example.org"}, "OIDC_CLIENT_ID is not set"),
        ({**OIDC, "OIDC_CLIENT_SECRET": ""}, "OIDC_CLIENT_SECRET is not set"),
        ({"OIDC_DOMAINS": "example.org"}, "OIDC_ISSUER is not set"),
        ({**OIDC, "OIDC_ISSUER": "http://login.example.org"}, "a provider outside loopback needs https"),
        ({**OIDC, "OIDC_ISSUER": "login.example.org"}, "OIDC_ISSUER must be https://host"),
        ({**OIDC, "OIDC_ISSUER": "https://a:b@login.example.org"}, "OIDC_ISSUER must be https://host"),
        ({**OIDC, "OIDC_DOMAINS": "example.org,@x"}, "OIDC_DOMAINS must list domains"),
        ({**OIDC, "OIDC_NEW_PEOPLE": "viewer"}, "set OIDC_DOMAINS to their domains"),
        ({**OIDC, "OIDC_NEW_PEOPLE": "owner"}, "OIDC_NEW_PEOPLE must be one of invited, viewer, editor"),
        ({**OIDC, "OIDC_SECOND_FACTOR": "no"}, "OIDC_SECOND_FACTOR must be one of ask, trust"),
        ({**OIDC, "ROWSMITH_HOST": "0.0.0.0"}, "OIDC_ISSUER is set without PUBLIC_URL"),
        ({"TLS_KEY": "/x.pem"}, "TLS_KEY is set without TLS_CERT"),
        ({"TLS_CERT": "/no/x.pem", "TLS_KEY": "/no/y.pem"}, "TLS_CERT: there is no file /no/x.pem"),
        ({"ROWSMITH_PORT": "http"}, "ROWSMITH_PORT must be a whole number"),
        ({"ROWSMITH_PORT": "70000"}, "ROWSMITH_PORT must be from 0 to 65535"),
        ({"ROWSMITH_METRICS": "maybe"}, "ROWSMITH_METRICS must be true or false"),
        ({"ROWSMITH_LOG_LEVEL": "loud"}, "ROWSMITH_LOG_LEVEL must be one of"),
        ({"ROWSMITH_HOSTS": "2"}, "DATABASE_URL is SQLite, which supports one machine only"),
        ({"ROWSMITH_HOSTS": "2"}, "REDIS_URL is on this machine"),
        ({"ROWSMITH_HOSTS": "2"}, "STORAGE_URL is a local folder"),
        ({"ROWSMITH_HOSTS": "2"}, "PUBLIC_URL is not set; with ROWSMITH_HOSTS above 1"),
    ],
)
def test_an_invalid_setting_is_rejected_by_name(env, sentence):
    assert sentence in refused(**env)


@pytest.mark.parametrize(
    ("env", "networks"),
    [
        ({}, config.LOCAL_NETWORKS),
        ({"PUBLIC_URL": "http://localhost:8000"}, config.LOCAL_NETWORKS),
        ({"PUBLIC_URL": "https://data.example.org", "TRUSTED_PROXIES": "10.0.0.1"}, ()),
        ({"ROWSMITH_HOST": "0.0.0.0"}, ()),
        ({"TARGET_NETWORKS": "none"}, ()),
        ({"TARGET_NETWORKS": "10.1.0.0/16, fd12::/16"}, ("10.1.0.0/16", "fd12::/16")),
    ],
)
def test_private_targets_are_allowed_if_the_service_is_only_for_this_machine(env, networks):
    assert Settings.from_env({"SECRET_KEY": KEY, **env}).reachable_networks == networks


def test_an_unknown_name_is_rejected_with_a_suggestion():
    assert (
        refused(ROWSMITH_DATADIR="/x")
        == "ROWSMITH_DATADIR is not a setting. Did you mean `ROWSMITH_DATA_DIR`?"
    )


def test_all_errors_are_reported_together():
    assert len(refused(ROWSMITH_PORT="x", ROWSMITH_METRICS="x", ROWSMITH_NONSENSE="x").splitlines()) == 3


def test_names_of_other_programs_are_not_changed():
    assert Settings.from_env({"SECRET_KEY": KEY, "PATH": "/bin", "HOME": "/"}).port == 8000


def test_good_settings_of_several_machines_are_taken(tmp_path):
    result = Settings.from_env(
        {
            "SECRET_KEY": KEY,
            "ROWSMITH_HOSTS": "3",
            "DATABASE_URL": "postgresql://u:p@db/rows",
            "REDIS_URL": "rediss://cache:6380/0",
            "STORAGE_URL": "s3://bucket/prefix",
            "AWS_REGION": "eu-central-1",
            "PUBLIC_URL": "https://data.example.org/",
            "TRUSTED_PROXIES": "10.0.0.0/8, unix",
        }
    )
    assert result.sqlalchemy_url == "postgresql+psycopg://u:p@db/rows"
    assert result.s3_options == {"AWS_REGION": "eu-central-1"}
    assert result.public_url == "https://data.example.org"
    assert result.trusted_proxies == ("10.0.0.0/8", "unix")
    assert result.is_https


def test_secrets_do_not_show_in_the_representation():
    shown = repr(Settings(secret_key=KEY, database_url="postgresql://u:geheim@db/rows", vault_keys=(FERNET,)))
    assert KEY not in shown
    assert "geheim" not in shown
    assert FERNET not in shown


def test_a_relative_sqlite_path_is_taken_from_the_working_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert (
        Settings(secret_key=KEY, database_url="sqlite:///x.db").sqlalchemy_url == f"sqlite:///{tmp_path}/x.db"
    )


def test_every_setting_has_its_line_in_the_reference():
    page = Path(__file__).parent.parent / "docs" / "reference" / "settings.md"
    # To renew it: python -c "from webapp import config; print(config.reference(), end='')" > docs/reference/settings.md
    assert page.read_text() == config.reference()


def test_making_the_application_opens_nothing(tmp_path, monkeypatch):
    import socket

    from webapp import blueprints, create_app  # noqa: F401 - imported before a socket can be no more

    def nothing(*_args, **_more):
        raise AssertionError("something was opened")

    monkeypatch.setattr(socket, "socket", nothing)
    monkeypatch.setattr(os, "mkdir", nothing)
    data = tmp_path / "none"
    create_app(Settings(secret_key=KEY, data_dir=data, redis_url="redis://127.0.0.1:1/0"))
    assert not data.exists()
