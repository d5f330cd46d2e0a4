"""Personal data is detected in the languages and national formats of eight countries."""

from __future__ import annotations

import pytest

from webapp.real_data import detection
from webapp.row_templates.services import compilation


def found(columns, table="kunden"):
    return {column.name: column for column in detection.classify(table, columns, compilation.vocabulary())}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Vorname", "first_name"), ("Nachname", "last_name"), ("Geburtsdatum", "date_of_birth"),
        ("SVNR", "national_id"),
        ("Gehalt", "salary"), ("salary", "salary"), ("Bruttogehalt", "salary"), ("date_naissance", "date_of_birth"),
        ("prenom", "first_name"), ("salaire", "salary"), ("fecha_nacimiento", "date_of_birth"), ("sueldo", "salary"),
        ("data_nascimento", "date_of_birth"), ("cpf", "national_id"), ("data_di_nascita", "date_of_birth"),
        ("codice_fiscale", "national_id"), ("geboortedatum", "date_of_birth"), ("bsn", "national_id"),
        ("data_urodzenia", "date_of_birth"), ("pesel", "national_id"), ("nazwisko", "last_name"),
        ("Konfession", "special_category"), ("blood_type", "special_category"),
    ],
)  # fmt: skip
def test_names_of_personal_columns_are_known(name, kind):
    assert found({name: [], "email": ["a@example.com"]})[name].kind == kind


@pytest.mark.parametrize(
    "values",
    [
        ["1237 010180", "1237010180"], ["36 574 261 809"], ["2 95 10 99 126 111 93"], ["54362315-K"],
        ["RCCMNL83S18D969H"],
        ["44051401359"], ["390.533.447-05"], ["756.9217.0769.85"], ["65 170839 J 003"],
    ],
)  # fmt: skip
def test_national_numbers_are_recognized_by_their_check_digits(values):
    assert all(map(detection.is_national_id, values))


@pytest.mark.parametrize(
    "value", ["24.12.1980", "1237 010181", "12345678901", "ORDER-1234567", "2026-01-01", "0049 30 1234"]
)
def test_other_values_are_no_national_numbers(value):
    assert not detection.is_national_id(value)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["24.12.1980", "03.01.1975"], "DD.MM.YYYY"), (["12/24/1980", "01/03/1975"], "MM/DD/YYYY"),
        (["24/12/1980", "03/01/1975"], "DD/MM/YYYY"), (["1980-12-24", "1975-01-03"], None),
        (["24-12-1980", "03-01-1975"], "DD-MM-YYYY"),
    ],
)  # fmt: skip
def test_dates_of_birth_are_shifted_in_their_format(values, expected):
    one = found({"Geburtsdatum": values, "Kundennummer": list(range(len(values)))})["Geburtsdatum"]
    assert (one.kind, one.masking["strategy"]) == ("date_of_birth", "shift")
    assert one.options == (None if expected is None else {"format": expected})


def test_a_column_that_nothing_is_known_about_asks_for_a_check():
    one = found({"xq7": ["a1", "b2", "c3"], "Preis": ["1.00", "2.00", "3.00"]})
    assert (one["xq7"].sensitive, one["xq7"].reason) == (False, "No personal data detected, please check.")
    assert one["xq7"].confidence < 0.9
    assert one["Preis"].reason == "No personal data detected."
