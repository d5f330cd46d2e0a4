"""E-mail addresses in domains reserved for examples, and valid phone numbers."""

from __future__ import annotations

import phonenumbers
import pytest

from tests.engine.types.made import bound, faults, table, values
from webapp.engine.errors import SpecError
from webapp.engine.types import joining

RESERVED = {"example.com", "example.net", "example.org"}


def test_mail_goes_to_domains_that_are_reserved_for_examples():
    generated = values("email", 5_000)
    assert {address.partition("@")[2] for address in generated} == RESERVED
    assert all(len(address.partition("@")[0]) <= 64 for address in generated)  # RFC 5321, section 4.5.3.1.1


def test_a_requested_domain_is_the_only_one():
    generated = values("email", 500, options={"domain": "mail.acme.test"})
    assert {address.partition("@")[2] for address in generated} == {"mail.acme.test"}
    assert [address.partition("@")[0] for address in generated] == [
        a.partition("@")[0] for a in values("email", 500)
    ]


@pytest.mark.parametrize(
    "domain", ["", "acme", "a b.test", "-a.test", "a..test", "x@y.test", "a.test\n", "ä.test"]
)
def test_an_invalid_domain_is_rejected(domain):
    assert set(faults("email", {"domain": domain})) == {"options.domain"}


def test_addresses_are_plain_letters_in_every_script():
    for locale in ("ru_RU", "ja_JP", "zh_CN", "ko_KR", "el_GR", "tr_TR"):
        assert all(address.isascii() for address in values("email", 300, of_template=locale))


@pytest.mark.parametrize("locale", [None, "en_US", "de_DE", "fr_FR", "pt_BR", "ja_JP", "en_IN", "it_IT"])
def test_every_number_is_valid_in_every_way_of_writing(locale):
    group = [
        {"name": way, "type": "phone_number", "options": {"format": way}, "group": "g"}
        for way in ("e164", "international", "national")
    ]
    group.append({"name": "country", "type": "country_code", "group": "g"})
    generated = table(bound(group, locale=locale), 0, 1_500)
    for e164, international, national, country in zip(*generated.values(), strict=True):
        parsed = phonenumbers.parse(e164)
        assert phonenumbers.is_valid_number_for_region(parsed, country), e164
        assert (
            phonenumbers.format_number(parsed, phonenumbers.PhoneNumberFormat.INTERNATIONAL) == international
        )
        assert phonenumbers.format_number(parsed, phonenumbers.PhoneNumberFormat.NATIONAL) == national


def test_a_pattern_is_filled_with_digits():
    generated = values("phone_number", 2_000, options={"format": "(###) ##-#####x"})
    assert all(
        len(text) == 15 and text[0] == "(" and text[4:6] == ") " and text[-1] == "x" for text in generated
    )
    seen = {text[at] for text in generated for at in (1, 2, 3, 6, 7, 9, 10, 11, 12, 13)}
    assert seen == set("0123456789")
    assert values("phone_number", 5, start=100, options={"format": "(###) ##-#####x"}) == generated[100:105]


def test_a_unique_pattern_is_used_up():
    source = bound([{"name": "x", "type": "phone_number", "options": {"format": "+1 ##-##"}, "unique": True}])
    generated = table(source, 0, 10_000)["x"]
    assert sorted(generated) == sorted(f"+1 {n // 100:02d}-{n % 100:02d}" for n in range(10_000))
    with pytest.raises(SpecError):
        source.check(0, 10_001)


def test_a_pattern_longer_than_can_be_dealt_out_is_not_unique():
    assert faults("phone_number", {"format": "#" * 19}, unique=True) == {"unique": "not_unique"}
    assert faults("phone_number", {"format": "#" * joining.MAX_UNIQUE_DIGITS}, unique=True) == {}


def test_a_country_of_the_number_is_that_of_its_place():
    phone = {"name": "p", "type": "phone_number", "options": {"country": "Brazil"}}
    generated = table(bound([phone, {"name": "c", "type": "country"}]), 0, 200)
    assert set(generated["c"]) == {"Brazil"}
    assert all(number.startswith("+55 ") for number in generated["p"])


def test_unknown_and_contradicting_countries_are_rejected():
    assert faults("phone_number", {"country": "Atlantis"}) == {"options.country": "unknown_country"}
    two = [
        {"name": str(i), "type": kind, "group": "g", "options": {"country": country}}
        for i, (kind, country) in enumerate((("phone_number", "FR"), ("phone_number", "ES")))
    ]
    with pytest.raises(SpecError) as error:
        bound(two)
    assert [(fault.path, fault.code) for fault in error.value.faults] == [
        ("fields[1].options.country", "conflict")
    ]


@pytest.mark.parametrize("locale", [None, "en_US", "en_CA", "de_DE"])
def test_unique_numbers_never_repeat_and_stay_valid(locale):
    group = [{"name": "x", "type": "phone_number", "unique": True}, {"name": "c", "type": "country_code"}]
    source = bound(group, locale=locale)
    assert source.plan.layer.columns["x"].type.distinct_count() >= 1_000_000
    generated = table(source, 0, 20_000)
    assert len(set(generated["x"])) == 20_000
    for number, country in list(zip(generated["x"], generated["c"], strict=True))[::40]:
        assert phonenumbers.is_valid_number_for_region(phonenumbers.parse(number), country)
    assert table(source, 19_990, 10)["x"] == generated["x"][-10:]


def test_national_numbers_of_all_the_world_are_not_unique():
    assert faults("phone_number", {"format": "national"}, unique=True) == {"unique": "not_unique"}
    assert faults("phone_number", {"format": "national"}, unique=True, locale="fr_FR") == {}
