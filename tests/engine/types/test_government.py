"""Numbers of states: as python-stdnum wants them, in every country offered."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from stdnum.fr import siren, siret
from stdnum.gb import nhs
from stdnum.us import ein, ssn

from tests.engine.types.made import assert_laws, bound, faults, table, values
from webapp.engine.data import vocabulary
from webapp.engine.random import RandomStream
from webapp.engine.types import government

TAX = {
    "AR": "ar.cuit", "AU": "au.tfn", "AT": "at.tin", "BE": "be.vat", "BG": "bg.vat", "BR": "br.cpf", "CA": "ca.bn",
    "CH": "ch.uid", "CL": "cl.rut", "CN": "cn.uscc", "CO": "co.nit", "CZ": "cz.dic", "DE": "de.idnr", "DK": "dk.cvr",
    "EE": "ee.registrikood", "ES": "es.nif", "FI": "fi.ytunnus", "FR": "fr.nif", "GB": "gb.utr", "GR": "gr.vat",
    "HR": "hr.oib", "HU": "hu.anum", "IE": "ie.pps", "IN": "in_.pan", "IT": "it.iva", "JP": "jp.cn", "KR": "kr.brn",
    "LT": "lt.pvm", "LV": "lv.pvn", "MX": "mx.rfc", "NL": "nl.bsn", "NO": "no.orgnr", "NZ": "nz.ird", "PL": "pl.nip",
    "PT": "pt.nif", "RO": "ro.cui", "RU": "ru.inn", "SE": "se.orgnr", "SI": "si.ddv", "SK": "sk.dph", "TR": "tr.vkn",
    "UA": "ua.rntrc", "US": "us.ein",
}  # fmt: skip
VAT = {
    "AT": "at.uid", "BE": "be.vat", "BG": "bg.vat", "CH": "ch.vat", "CY": "cy.vat", "CZ": "cz.dic", "DE": "de.vat",
    "DK": "dk.cvr", "EE": "ee.kmkr", "ES": "es.cif", "FI": "fi.alv", "FR": "fr.tva", "GB": "gb.vat", "GR": "gr.vat",
    "HR": "hr.oib", "HU": "hu.anum", "IE": "ie.vat", "IT": "it.iva", "LT": "lt.pvm", "LU": "lu.tva", "LV": "lv.pvn",
    "MT": "mt.vat", "NL": "nl.btw", "NO": "no.mva", "PL": "pl.nip", "PT": "pt.nif", "RO": "ro.cf", "SE": "se.vat",
    "SI": "si.ddv", "SK": "sk.dph",
}  # fmt: skip


def valid(module: str, number: str) -> bool:
    checker = importlib.import_module(f"stdnum.{module}")
    if module == "hu.anum":
        number = number[:10] if number.startswith("HU") else number[:8]
    if module == "es.cif":
        number = number.removeprefix("ES")
    if module == "mx.rfc":
        return checker.is_valid(number, validate_check_digits=True)
    return checker.is_valid(number)


def made(code, unique: bool = False, count: int = 10_000) -> list[str]:
    draws = RandomStream(np.uint64(3), np.arange(count, dtype=np.uint64))
    return code.text(code.draw_unique(draws) if unique else code.draw(draws)).to_pylist()


def test_every_country_offered_is_under_test():
    assert set(TAX) == set(government.TAX_COUNTRIES)
    assert set(VAT) == set(government.VAT_COUNTRIES)


@pytest.mark.parametrize("country", government.TAX_COUNTRIES)
def test_ten_thousand_tax_numbers_of_each_country_pass_python_stdnum(country):
    code = government.tax_number(vocabulary.open_default(), country)
    assert [number for number in made(code) if not valid(TAX[country], number)] == []
    unique = made(code, unique=True)
    assert len(set(unique)) == len(unique)
    assert all(valid(TAX[country], number) for number in unique[:500])


@pytest.mark.parametrize("country", government.VAT_COUNTRIES)
def test_ten_thousand_vat_numbers_of_each_country_pass_python_stdnum(country):
    code = government.vat_number(vocabulary.open_default(), country)
    assert [number for number in made(code) if not valid(VAT[country], number)] == []
    assert len(set(made(code, unique=True))) == 10_000


def test_korean_and_chinese_numbers_have_their_inner_check_digits():
    # python-stdnum leaves these two out: the Korean one (weights 1 3 7 1 3 7 1 3 5), the Chinese organisation code.
    for number in made(government.tax_number(vocabulary.open_default(), "KR"), count=500):
        digits = [int(ch) for ch in number if ch != "-"]
        total = (
            sum(d * w for d, w in zip(digits, (1, 3, 7, 1, 3, 7, 1, 3, 5), strict=False))
            + digits[8] * 5 // 10
        )
        assert digits[9] == -total % 10
    for number in made(government.tax_number(vocabulary.open_default(), "CN"), count=500):
        total = sum(int(d) * w for d, w in zip(number[8:16], (3, 7, 9, 10, 5, 8, 4, 2), strict=True))
        assert number[16] == "0123456789X"[-total % 11]


@pytest.mark.parametrize("kind", ["tax_id", "vat_id", "ssn", "ein", "nhs_number", "siren", "siret"])
def test_rows_depend_only_on_their_number(kind):
    assert_laws(kind)


def test_numbers_without_a_country_pass_python_stdnum():
    for kind, checker in (
        ("ssn", ssn),
        ("ein", ein),
        ("nhs_number", nhs),
        ("siren", siren),
        ("siret", siret),
    ):
        assert all(map(checker.is_valid, values(kind, 8192) + values(kind, 1808, start=8192)))
    assert all(number.startswith("999 ") for number in values("nhs_number", 100))


def test_every_number_but_the_voided_is_a_social_security_number():
    kind = bound([{"name": "x", "type": "ssn"}]).plan.layer.columns["x"].type
    around = [int(place) + step for place in government._void_numbers() for step in range(-4, 3)]
    index = np.array(sorted({0, *around, kind.distinct_count() - 1}), np.uint64)
    texts = kind._text(index).to_pylist()
    assert len(set(texts)) == len(texts)
    assert all(map(ssn.is_valid, texts))
    assert texts[-1] == "899-99-9999"


def test_tax_id_follows_option_then_locale_then_the_united_states():
    assert all(valid("nl.bsn", number) for number in values("tax_id", 20, of_template="nl_NL"))
    assert all(
        valid("fr.nif", number) for number in values("tax_id", 20, options={"country": "fr"}, locale="nl_NL")
    )
    assert all(map(ein.is_valid, values("tax_id", 20)))


def test_a_locale_without_a_vat_number_warns_and_a_country_without_one_is_rejected():
    source = bound([{"name": "x", "type": "vat_id", "locale": "en_US"}])
    assert [warning.code for warning in source.warnings] == ["no_values"]
    assert set(table(source, 0, 50)["x"]) == {None}
    assert faults("vat_id", {"country": "US"}) == {"options.country": "unknown_country"}
    assert faults("tax_id", {"country": "Atlantis"}) == {"options.country": "unknown_country"}
