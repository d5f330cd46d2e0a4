"""Accounts, cards and money: every check digit right, every card of one piece."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import numpy as np
import pytest
from stdnum import bic, iban, luhn
from stdnum.us import rtn

from tests.engine.types.made import assert_laws, bound, faults, table, values
from webapp.engine.data import vocabulary
from webapp.engine.random import RandomStream
from webapp.engine.types import banks, finance
from webapp.engine.types.codes import Code

FINANCE = (
    "iban", "bic", "aba_routing", "account_number", "account_name", "credit_card_number", "credit_card_type", "cvv",
    "card_expiry", "currency", "currency_name", "currency_code", "currency_symbol", "ethereum_address",
)  # fmt: skip


@pytest.mark.parametrize("kind", FINANCE)
def test_rows_depend_only_on_their_number(kind):
    assert_laws(kind)


def texts(code: Code, count: int) -> list[str]:
    return code.text(code.draw(RandomStream(np.uint64(7), np.arange(count, dtype=np.uint64)))).to_pylist()


COUNTRIES = banks.iban_countries(vocabulary.open_default())


def test_every_country_of_the_registry_is_offered():
    assert len(COUNTRIES) == 89


@pytest.mark.parametrize("country", COUNTRIES)
def test_ibans_of_every_country_pass_python_stdnum(country):
    result = texts(banks.iban_code(vocabulary.open_default(), country, False), 250)
    assert [number for number in result if not iban.is_valid(number)] == []
    assert len(set(result)) == 250


@pytest.mark.parametrize("country", ["ES"])
def test_ten_thousand_ibans_of_one_country_pass_python_stdnum(country):
    generated = values("iban", 10_000, options={"countryCode": country})
    assert all(map(iban.is_valid, generated))


# Published examples of the registry begin so; the check digits are constant where the account number has its own.
@pytest.mark.parametrize(
    ("country", "start"),
    [("BA", "39"), ("FR", "76"), ("MC", "58"), ("ME", "25"), ("MK", "07"), ("MR", "13"), ("PT", "50"), ("RS", "35"),
     ("SI", "56"), ("TN", "59"), ("XK", "05"), ("DJ", "21"), ("BI", "42"), ("ST", "23"), ("TL", "38")],
)  # fmt: skip
def test_account_keys_of_modulus_97_leave_the_ibans_check_digits_constant(country, start):
    result = texts(banks.iban_code(vocabulary.open_default(), country, False), 200)
    assert {number[2:4] for number in result} == {start}


def test_formatted_ibans_have_groups_of_four():
    generated = values("iban", 200, options={"countryCode": "PT", "formatted": True})
    assert all(number == iban.format(number) for number in generated)
    assert all(map(iban.is_valid, generated))


def test_iban_follows_the_locale_unless_a_country_is_named():
    assert {number[:2] for number in values("iban", 50, locale="de_AT")} == {"AT"}
    assert {number[:2] for number in values("iban", 50, options={"countryCode": "ch"}, locale="de_AT")} == {
        "CH"
    }
    assert {number[:2] for number in values("iban", 500)} == set(banks.DEFAULT_COUNTRIES)
    several = Counter(
        number[:2] for number in values("iban", 900, options={"country_code": ["FR", "IT", "NO"]})
    )
    assert all(200 < several[country] < 400 for country in ("FR", "IT", "NO"))


def test_unique_ibans_of_several_countries_differ():
    assert_laws("iban", {"countryCode": ["BE", "NO", "GB"]})


def test_unknown_countries_are_named_with_their_place():
    assert faults("iban", {"countryCode": "US"}) == {"options.countryCode": "unknown_country"}
    assert faults("iban", {"countryCode": ["DE", "XX"]}) == {"options.countryCode[1]": "unknown_country"}
    assert faults("iban", {"countryCode": []}) == {"options.countryCode": "too_few"}
    assert faults("bic", {"country": "XX"}) == {"options.country": "unknown_country"}


def test_bics_and_routing_numbers_pass_python_stdnum():
    generated = values("bic", 10_000) + values("bic", 100, options={"branch": True, "country": "DE"})
    assert all(map(bic.is_valid, generated))
    assert all(number[7] == "0" for number in generated)
    assert all(map(rtn.is_valid, values("aba_routing", 10_000)))


@pytest.mark.parametrize("length", [1, 4, 10, 26])
def test_account_numbers_have_the_requested_length(length):
    generated = values("account_number", 500, options={"length": length})
    assert all(len(number) == length and number.isdigit() and number[0] != "0" for number in generated)


def test_account_length_has_bounds():
    assert faults("account_number", {"length": 0}) == {"options.length": "greater_than_equal"}
    assert faults("account_number", {"length": 1000}) == {"options.length": "less_than_equal"}


CARD = [
    {"name": "number", "type": "Credit Card Number"},
    {"name": "type", "type": "credit_card_type"},
    {"name": "cvv", "type": "cvv"},
    {"name": "expiry", "type": "card_expiry"},
]


def test_ten_thousand_cards_never_contradict_themselves():
    rows = table(bound(CARD), 0, 8192)
    for number, label, code in zip(rows["number"], rows["type"], rows["cvv"], strict=True):
        issuer = finance.ISSUERS[list(finance.ISSUERS)[finance.find_issuer(label)]]
        assert luhn.is_valid(number)
        assert len(number) == issuer.length
        assert int(number[:6]) in issuer.prefixes
        assert finance.find_issuer_by_number(number) == finance.find_issuer(label)
        assert len(code) == issuer.security_digits
    assert set(rows["type"]) == {issuer.label for issuer in finance.ISSUERS.values()}


@pytest.mark.parametrize("issuer", list(finance.ISSUERS))
def test_ten_thousand_numbers_of_each_issuer_pass_luhn(issuer):
    generated = values("credit_card_number", 10_000, options={"issuer": issuer})
    assert all(map(luhn.is_valid, generated))
    assert {finance.find_issuer_by_number(number) for number in generated} == {finance.find_issuer(issuer)}


def test_issuers_are_found_by_the_names_people_use():
    for name in ("American Express", "AMEX", "amex", "american-express"):
        assert set(map(len, values("credit_card_number", 20, options={"issuer": name}))) == {15}
    assert faults("credit_card_number", {"issuer": "Vsa"}) == {"options.issuer": "unknown_issuer"}
    assert faults("credit_card_number", {"issuer": ["visa", "x"]}) == {"options.issuer[1]": "unknown_issuer"}
    assert faults("credit_card_number", {"issuer": []}) == {"options.issuer": "too_few"}


def test_unique_card_numbers_agree_with_their_type():
    fields = [{**CARD[0], "unique": True, "options": {"issuer": ["visa", "amex", "diners"]}}, *CARD[1:]]
    rows = table(bound(fields), 0, 8192)
    assert len(set(rows["number"])) == 8192
    assert all(
        finance.find_issuer_by_number(n) == finance.find_issuer(t)
        for n, t in zip(rows["number"], rows["type"], strict=True)
    )


def test_two_numbers_of_one_card_have_the_same_issuers():
    fields = [
        {"name": "a", "type": "credit_card_number", "group": "card", "options": {"issuer": "visa"}},
        {"name": "b", "type": "credit_card_number", "group": "card"},
    ]
    with pytest.raises(Exception) as caught:
        bound(fields)
    assert [fault.code for fault in caught.value.faults] == ["conflict"]


def test_fixed_type_narrows_the_card_and_an_impossible_one_warns():
    rows = table(bound(CARD, overrides={"type": "American Express"}), 0, 50)
    assert {len(number) for number in rows["number"]} == {15}
    assert {len(code) for code in rows["cvv"]} == {4}
    by_number = bound(CARD, overrides={"number": "371449635398431"})
    assert set(table(by_number, 0, 50)["type"]) == {"American Express"}
    assert by_number.warnings == []
    odd = bound(CARD, overrides={"type": "Bank of Nowhere"})
    assert [(warning.path, warning.code) for warning in odd.warnings] == [("overrides.type", "no_match")]


def test_cards_run_out_after_now():
    months = {(int(text[3:]), int(text[:2])) for text in values("card_expiry", 3000)}
    assert min(months) == (26, 2)
    assert max(months) == (31, 1)
    assert set(map(len, values("card_expiry", 50, options={"format": "%Y-%m", "years": 2}))) == {7}
    assert faults("card_expiry", {"format": "nothing"}) == {"options.format": "bad_format"}


def test_amounts_have_two_decimals_and_stay_inside():
    generated = values("currency", 5000, options={"min": 10.5, "max": 20})
    assert min(generated) >= Decimal("10.50")
    assert max(generated) <= Decimal("20.00")
    assert all(amount.as_tuple().exponent == -2 for amount in generated)
    assert all(1 <= amount <= 1000 for amount in values("price", 5000))


def test_amounts_by_mean_and_deviation_are_normal_and_not_negative():
    generated = [float(amount) for amount in values("currency", 8192, options={"mean": 500, "stddev": 50})]
    assert abs(np.mean(generated) - 500) < 5
    assert abs(np.std(generated) - 50) < 3
    assert min(values("currency", 5000, options={"mean": 10, "stddev": 20})) >= 0


def test_impossible_amounts_are_rejected():
    assert faults("currency", {"min": 5, "max": 1}) == {"options.min": "min_above_max"}
    assert faults("currency", {"stddev": -1}) == {"options.stddev": "wrong_value"}
    assert faults("currency", {"mean": 5}, unique=True) == {"unique": "not_unique"}


def test_currency_code_name_and_symbol_belong_together():
    fields = [{"name": name, "type": f"currency_{name}"} for name in ("code", "name", "symbol")]
    rows = table(bound(fields), 0, 5000)
    seen = set(zip(rows["code"], rows["name"], rows["symbol"], strict=True))
    assert ("CHF", "Swiss Franc", "CHF") in seen
    assert ("EUR", "Euro", "€") in seen
    assert len(seen) == len(set(rows["code"])) == 153
    fixed = table(bound(fields, overrides={"code": "JPY"}), 0, 5)
    assert set(fixed["name"]) == {"Japanese Yen"}


def test_currency_names_speak_the_locales_language():
    assert "Schweizer Franken" in values("currency_name", 3000, locale="de_DE")
    assert "スイス フラン" in values("currency_name", 3000, of_template="ja_JP")
