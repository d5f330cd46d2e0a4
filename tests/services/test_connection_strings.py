"""Nothing of a connection string is shown that could be a secret."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webapp.connections.services.settings import MASK, is_unambiguous, masked_connection_string, secrets_in

SECRET = "canary"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("postgresql://u:canary@h:5432/db", "postgresql://u:********@h:5432/db"),
        ("postgresql://h/db", "postgresql://h/db"),
        ("postgresql://u@h/db?sslmode=require", "postgresql://u@h/db?sslmode=require"),
        ("mysql+pymysql://u:canary@h/db?charset=utf8mb4", "mysql+pymysql://u:********@h/db?charset=utf8mb4"),
        ("sqlite:///box.db", "sqlite:///box.db"),
        ("host=h port=5 user=u password=canary", "host=h port=5 user=u password=********"),
        ("host = h  password = 'a canary \\' x'", "host=h password=********"),
        ("Server=tcp:h,1433;User ID=u;Password=canary;Encrypt=yes",
         "Server=tcp:h,1433;User ID=u;Password=********;Encrypt=yes"),
        ("DRIVER={ODBC Driver 18};SERVER=h;PWD={a;canary}", "DRIVER={ODBC Driver 18};SERVER=h;PWD=********"),
        ("jdbc:sqlserver://h:1;user=u;password=canary", "jdbc:sqlserver://h:1;user=u;password=********"),
        ("mongodb://u:canary@a,b/db?replicaSet=r&authSource=admin",
         "mongodb://u:********@a,b/db?replicaSet=r&authSource=admin"),
    ],
)  # fmt: skip
def test_the_settings_that_determine_the_host_are_shown(text, left):
    assert masked_connection_string(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://u:can@ary/canary@h/db",  # raw signs in a password
        "postgresql://user@tenant:canary@h/db",
        "postgresql://u:x/canary@h/db",
        "postgresql://u:x?canary@h/db",
        "postgresql://u:x#canary@h/db",
        "postgresql://u:x canary@h/db",
        "postgresql://h/db?password=canary&sslmode=require",
        "postgresql://h/db?sslpassword=canary",
        "postgresql://h/db#canary",
        "mongodb://u:p@h/db?authMechanismProperties=AWS_SESSION_TOKEN:canary",
        "mysql://h/db?ssl-key=canary&x=canary",
        "u/canary@h:1521/service",
        "oracle://u/canary@h:1521/service",
        "canary",
        "Password=a canary;Server=h",
        "Server=h;Password=a;canary;User=u",
        "Server=h;Pwd={a}}canary};User=u",
        "Server=h;Pwd='a canary;User=u",
        "host=h sslpassword=canary",
        "host=h password=a canary",
        "host=h access_token=canary",
        "AccountKey=canary==;Server=h",
        "host=h password=''canary",
        "jdbc:sqlserver://h;password={a;canary}",
        "jdbc:oracle:thin:u/canary@//h:1521/x",
    ],
)
def test_whatever_could_be_a_secret_is_not_shown(text):
    assert SECRET not in masked_connection_string(text)


SIGNS = st.text(alphabet=st.sampled_from("ab@:/?#&;={}'\" \\%,."), max_size=12)
FORMS = (
    "postgresql://u:{}@h:5/db",
    "mysql://h/db?password={}",
    "host=h password={}",
    "Server=h;Pwd={};Uid=u",
)


@given(SIGNS, SIGNS, st.sampled_from(FORMS))
def test_no_password_with_any_characters_is_shown(before, after, form):
    assert "CANARY" not in masked_connection_string(form.format(f"{before}CANARY{after}"))


def test_an_invalid_connection_string_is_shown_completely_masked():
    assert masked_connection_string("something") == MASK


@pytest.mark.parametrize(
    ("text", "secrets"),
    [
        ("postgresql://u:p%40ss@h/db", {"p%40ss", "p@ss"}),
        ("postgresql://h/db?sslmode=require&sslpassword=x&key=y", {"x", "key=y"}),
        ("host=h user=u password=p", {"p"}),
        ("something", {"something"}),
        ("postgresql://u@h/db", set()),
    ],
)
def test_the_secrets_of_a_connection_string_are_known(text, secrets):
    assert set(secrets_in(text)) == secrets


@pytest.mark.parametrize(
    "text", ["postgresql://u:p%40%2F@h:5432/db?sslmode=require", "mysql://h/db", "u@h/db", "host=h password=a@b",
             "postgresql://u@[::1]:5432/db"],
)  # fmt: skip
def test_a_string_that_all_drivers_read_in_the_same_way_is_accepted(text):
    assert is_unambiguous(text)


@pytest.mark.parametrize(
    "text",
    ["postgresql://u:p@w@h/db", "postgresql://u:p/w@h/db", "postgresql://good:1/@evil/db", "postgresql://u:p?w@h/db",
     "postgresql://u:p#w@h/db", "postgresql://u@t:p@h/db", "postgresql://u:p w@h/db", "postgresql://h/db?x=a@evil"],
)  # fmt: skip
def test_one_that_drivers_read_differently_is_not(text):
    assert not is_unambiguous(text)
