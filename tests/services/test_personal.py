"""Columns that are about persons: found by names and values, each with its reason and a masking that works."""

from __future__ import annotations

import pytest

from webapp.engine.data import vocabulary
from webapp.engine.errors import SpecError
from webapp.engine.masking import KeyRing, create_masker
from webapp.engine.plan import bind_fields
from webapp.engine.spec import parse
from webapp.real_data import detection

CUSTOMERS = {
    "id": [1, 2, 3, 4],
    "email": ["a@b.de", "c@d.org", None, "x@y.com"],
    "contact": ["a@b.de", "c@d.org", None, "x@y.com"],
    "fon": ["+49 170 1234567", "(415) 555-2671", "030 1234567", "+1 415 555 2671"],
    "paid_with": ["4111 1111 1111 1111", "5500005555555559", "340000000000009", "4111111111111111"],
    "into": ["DE89370400440532013000", "GB29NWBK60161331926819", None, None],
    "dob": ["1980-01-02", "17.05.1990", None, "1970-12-31"],
    "created_at": ["2024-01-02"] * 4,
    "who": ["Anna Schmidt", "Peter Müller", "John Smith", "Mary Johnson"],
    "vorname": ["Anna", "Peter", "John", "Mary"],
    "city": ["Berlin", "Paris", "Rome", "Oslo"],
    "notes": ["please call +49 170 1234567 tomorrow", "nothing", "all is well with the account", "x"],
    "amount": [1.5, 2, 3, 4],
    "ip": ["10.0.0.1", "::1", "192.168.1.1", "8.8.8.8"],
    "lives": ["12 Main Street", "Hauptstraße 5", "5 Rue de Rivoli", "77 Elm Ave"],
    "status": ["new", "open", "done", "new"],
    "us_number": ["536-90-4399", "449-55-5462", "212-09-7694", "219-09-9998"],
    "sku": ["4111111111111112", "4111111111111113", "4111111111111114", "4111111111111115"],
    "device": ["00:1A:2B:3C:4D:5E"] * 4,
}
KINDS = {
    "email": "email", "contact": "email", "fon": "phone_number", "paid_with": "credit_card_number", "into": "iban",
    "dob": "date_of_birth", "who": "name", "vorname": "first_name", "city": "city", "notes": "free_text",
    "ip": "ip_address", "lives": "street_address", "us_number": "ssn", "device": "mac_address",
}  # fmt: skip


def found(columns, table="customers"):
    return {column.name: column for column in detection.classify(table, columns, vocabulary.open_default())}


def test_every_kind_is_found_and_nothing_else():
    result = found(CUSTOMERS)
    assert {name: column.kind for name, column in result.items() if column.sensitive} == KINDS
    assert all(0 <= column.confidence <= 1 and column.reason for column in result.values())
    assert result["email"].confidence > result["contact"].confidence > 0.8


def test_no_value_is_in_the_answer():
    result = " ".join(item.reason for item in found(CUSTOMERS).values())
    values = {
        str(value) for column in CUSTOMERS.values() for value in column if value and len(str(value)) > 4
    }
    assert not [value for value in values if value in result]


def test_the_proposal_can_be_used_in_a_template_unchanged():
    result = [column for column in found(CUSTOMERS).values() if column.sensitive]
    fields = [{"name": "id", "type": "row_number"}]
    fields += [{"name": column.name, "type": column.type, "masking": column.masking} for column in result]
    for field in parse(fields).fields[1:]:
        create_masker(field, vocabulary.open_default(), KeyRing(1, {1: b"k" * 32}), bind_fields, run_id="r")


def test_dates_of_birth_are_shifted_by_a_column_that_identifies_people():
    days = {"dob": ["1980-01-02", "1990-05-17"]}
    assert found({"id": [1, 2], **days})["dob"].masking == {"strategy": "shift", "person": "id"}
    assert found({"kind": ["a", "a"], **days})["dob"].masking == {"strategy": "replace"}


def test_places_are_only_personal_next_to_people():
    things = found({"name": ["Red chair", "Table"], "city": ["Berlin", "Rome"], "price": [1, 2]}, "products")
    assert not any(thing.sensitive for thing in things.values())
    assert things["city"].kind == "city"
    assert found({"email": ["a@b.de"], "city": ["Berlin"]})["city"].sensitive


def test_a_name_is_a_guess_and_contradicting_values_lower_the_confidence():
    (bare,) = found({"email": [None, None]}).values()
    (odd,) = found({"ssn": ["x", "y", "z"]}).values()
    assert bare.sensitive
    assert odd.sensitive
    assert found({"email": ["a@b.de"]})["email"].confidence > bare.confidence > odd.confidence


def test_a_column_without_recognizable_content_is_reported():
    (one,) = found({"": [None]}).values()
    assert (one.kind, one.sensitive, one.masking) == (None, False, None)


@pytest.mark.parametrize(
    ("test", "right", "wrong"),
    [
        (detection.is_email, ["a.b+c@mail.example.org"], ["a@b", "@x.org", "a b@x.org"]),
        (detection.is_iban, ["DE89 3704 0044 0532 0130 00"], ["DE88370400440532013000", "X"]),
        (
            detection.is_card_number,
            ["4111-1111-1111-1111", "340000000000009"],
            ["4111111111111112", "1" * 16],
        ),
        (detection.is_ssn, ["536-90-4399"], ["000-12-3456", "219099999", "219-09-999"]),
        (
            detection.is_phone_number,
            ["+353 1 234 5678", "(030) 123456"],
            ["2024-01-02", "1234567", "10.0.0.1", "12-34"],
        ),
        (detection.is_ip_address, ["8.8.8.8", "fe80::1"], ["8.8.8", "12", "x"]),
        (
            detection.is_birth_date,
            ["1980-02-29", "31.12.1999", "12/31/1999"],
            ["1981-02-29", "1780-01-01", "x"],
        ),
        (
            detection.is_street_address,
            ["12 Main St", "Am Weg 5", "Lindenallee 7"],
            ["Main", "street", "12 apples"],
        ),
    ],
)
def test_values_show_what_they_are(test, right, wrong):
    assert [test(item) for item in right] == [True] * len(right)
    assert [test(item) for item in wrong] == [False] * len(wrong)


def test_a_proposal_never_names_itself_as_the_person():
    (one,) = found({"dob": ["1980-01-02", "1990-05-17"]}).values()
    with pytest.raises(SpecError):
        parse([{"name": "dob", "type": "date_of_birth", "masking": {"strategy": "shift", "person": "dob"}}])
    assert one.masking == {"strategy": "replace"}
