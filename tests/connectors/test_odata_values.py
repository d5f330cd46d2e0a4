"""Rows as bodies of V2 and V4, keys in URLs, and what a service answers."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.connectors.odata_documents import V2, V4
from webapp.connectors.column_values import ConversionError
from webapp.connectors.odata import channel as odata_responses
from webapp.connectors.odata import metadata as odata_metadata
from webapp.connectors.odata import values as odata_values
from webapp.connectors.odata.values import BodyBuilder, service_of
from webapp.connectors.schema import Column

ROOT = "https://erp.example.com/shop/"
MOMENT = dt.datetime(2026, 1, 2, 3, 4, 5, 678_912, dt.UTC)
EARLY, LATE = dt.datetime.fromisoformat("1900-01-01"), dt.datetime.fromisoformat("2200-01-01")
GUID = uuid.UUID("64ef3aea-00cf-4d15-b9c8-7c4a59a02376")
SERVICES = {"v2": odata_metadata.read(V2), "v4": odata_metadata.read(V4)}
SETS = {"v2": "OrderSet", "v4": "Orders"}


def shaper(version: str, name: str = "") -> BodyBuilder:
    service = SERVICES[version]
    return BodyBuilder(service, service.sets[name or SETS[version]], ROOT)


def body(version: str, **values):
    return json.loads(shaper(version).body(values).text(), parse_float=Decimal)


def misfit(version: str, **values) -> ConversionError:
    with pytest.raises(ConversionError) as caught:
        shaper(version).body(values)
    return caught.value


# --- Bodies ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("Customer", 42, "42"),
        ("Total", Decimal("12.345"), "12.345"),
        ("Total", "12.3456", "12.346"),
        ("Total", 7, "7"),
        ("Big", 9007199254740993, "9007199254740993"),
        ("Small", "255", 255),
        ("Weight", 1.5, "1.5"),
        ("Placed", MOMENT, "/Date(1767323045678)/"),
        ("Placed", dt.datetime.fromisoformat("1960-01-01"), "/Date(-315619200000)/"),
        ("Day", dt.date(2026, 1, 2), "/Date(1767312000000)/"),
        ("Moment", "2026-01-02T04:04:05+01:00", "/Date(1767323045000+0000)/"),
        ("Opens", dt.time(10, 11, 12), "PT10H11M12S"),
        ("Opens", "10:11:12.5", "PT10H11M12.5S"),
        ("Opens", "PT1H", "PT01H00M00S"),
        ("Photo", b"\xff\xef", "/+8="),
        ("Tag", str(GUID).upper(), str(GUID)),
        ("Home", {"Street": "Elm", "City": None}, {"Street": "Elm", "City": None}),
        ("Home", '{"Street": "Elm"}', {"Street": "Elm"}),
    ],
)
def test_v2_says_values_as_verbose_json_has_them(name, value, text):
    assert body("v2", **{name: value}) == {name: text}


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("price", "12.50", Decimal("12.50")),
        ("price", 1.005, Decimal("1.01")),
        ("count", 5, 5),
        ("colour", "Green", "Green"),
        ("colour", 2, "Green"),
        ("days", 3, "Mon,Tue"),
        ("days", "Mon, Tue", "Mon,Tue"),
        ("on", MOMENT, "2026-01-02"),
        ("at", "10:11:12.9", "10:11:12"),
        ("seen", MOMENT, "2026-01-02T03:04:05.678Z"),
        ("plain", MOMENT, "2026-01-02T03:04:05Z"),
        ("lasts", dt.timedelta(days=1, seconds=3661.5), "P1DT01H01M01.5S"),
        ("lasts", "-PT90M", "-PT01H30M00S"),
        ("raw", b"\xff\xef", "_-8="),
        ("home", {"Street": "Elm", "Lines": ["a", 2]}, {"Street": "Elm", "Lines": ["a", "2"]}),
        ("tags", ["a", 1], ["a", "1"]),
        ("ID", GUID.bytes, str(GUID)),
    ],
)
def test_v4_says_values_as_its_json_has_them(name, value, text):
    assert body("v4", **{name: value}) == {name: text}


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("count", 2**53 + 1, str(2**53 + 1)),
        ("exact", Decimal("1234567890123456789.012345678901"), "1234567890123456789.012345678901"),
    ],
)
def test_a_number_that_doubles_would_change_is_sent_as_text_with_a_note(name, value, text):
    found = shaper("v4").body({name: value, "price": 1})
    assert found.strings
    assert json.loads(found.text()) == {name: text, "price": "1"}


def test_null_is_not_reported_if_the_service_fills_it_in():
    assert body("v4", ID=None, colour=None, price=None, items=None) == {"price": None}
    assert body("v2", Number=None, Status=None, Total=None) == {"Total": None}


def test_an_update_says_null_and_leaves_the_key_out():
    found = shaper("v4").body({"ID": str(GUID), "colour": None}, updating=True)
    assert found.data == {"colour": None}


@pytest.mark.parametrize(
    ("version", "name", "value", "reason"),
    [
        ("v2", "Total", "many", "wrong_type"),
        ("v2", "Total", "12345678901.5", "out_of_range"),
        ("v2", "Total", "NaN", "wrong_type"),
        ("v2", "Small", 256, "out_of_range"),
        ("v2", "Small", 1.5, "wrong_type"),
        ("v2", "Customer", "123456789", "too_long"),
        ("v2", "Photo", b"12345", "too_long"),
        ("v2", "Tag", "no guid", "wrong_type"),
        ("v2", "Opens", "25:00:00", "wrong_type"),
        ("v2", "Day", "soon", "wrong_type"),
        ("v2", "Home", "Elm Street", "wrong_type"),
        ("v2", "Nowhere", 1, "wrong_type"),
        ("v4", "colour", "Blue", "wrong_type"),
        ("v4", "lasts", "P", "wrong_type"),
        ("v4", "tags", "a", "wrong_type"),
        ("v4", "items", [{"price": "x"}], "wrong_type"),
        ("v4", "price", 10**9, "out_of_range"),
    ],
)
def test_values_that_do_not_fit_are_rejected_before_sending_and_named(version, name, value, reason):
    error = misfit(version, **{name: value})
    assert error.reason == reason
    assert str(error).startswith(name)


def test_the_message_names_the_way_to_a_nested_value():
    assert str(misfit("v4", items=[{"price": "x"}])).startswith("items.price: 'x'")


# --- Navigation -----------------------------------------------------------------------------------------------


def test_rows_are_inserted_with_their_parent():
    items = [{"Line": 1, "Price": "1.5"}, {"Line": 2, "Price": 2}]
    assert body("v2", Items=items) == {
        "Items": {"results": [{"Line": 1, "Price": "1.5"}, {"Line": 2, "Price": "2"}]}
    }
    assert body("v4", items=[{"pos": 1, "price": 2}]) == {"items": [{"pos": 1, "price": 2}]}
    assert body("v4", items='[{"pos": 1}]') == {"items": [{"pos": 1}]}


def test_a_key_given_for_a_navigation_fills_the_columns_of_its_constraint():
    assert body("v4", owner="ann") == {"owner_id": "ann"}
    assert body("v4", owner={"id": "ann"}) == {"owner_id": "ann"}
    assert body("v2", Buyer="C1") == {"Customer": "C1"}


def test_a_reference_without_such_columns_is_a_binding():
    assert body("v4", helper="O'Neil") == {"helper@odata.bind": "People('O''Neil')"}
    assert body("v4", **{"owner@odata.bind": "ann"}) == {"owner@odata.bind": "People('ann')"}
    assert body("v4", **{"owner@odata.bind": "People('x')"}) == {"owner@odata.bind": "People('x')"}
    service = odata_metadata.read(
        V2.replace(b"<ReferentialConstraint>", b"<X>").replace(b"</ReferentialConstraint>", b"</X>")
    )
    found = BodyBuilder(service, service.sets["OrderSet"], ROOT).body({"Buyer": "C1"})
    assert found.data == {"Buyer": {"__metadata": {"uri": f"{ROOT}CustomerSet('C1')"}}}


def test_a_row_of_a_type_with_subtypes_contains_its_type_in_v2():
    assert shaper("v2", "CustomerSet").body({"Id": "1"}).data == {
        "__metadata": {"type": "ERP.Customer"},
        "Id": "1",
    }


def test_an_open_type_takes_any_name():
    assert shaper("v4", "People").body({"id": "1", "more": [1, "a"]}).data == {"id": "1", "more": [1, "a"]}


def test_columns_are_enough_if_the_metadata_cannot_be_read():
    from webapp.connectors.odata.connector import OdataConnector

    known = next(entity for entity in OdataConnector.read_document(V2).entities if entity.name == "OrderSet")
    service = service_of(known, "v2")
    found = BodyBuilder(service, service.sets["OrderSet"], ROOT)
    text = found.body({"Total": 1, "Placed": MOMENT, "Items": [{"Line": 1}]}).data
    assert text == {"Total": "1", "Placed": "/Date(1767323045678)/", "Items": [{"Line": 1}]}
    assert found.path({"Number": "7"}) == "OrderSet('7')"


# --- Keys -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "edm", "value", "text"),
    [
        ("v2", "Edm.String", "O'Neil/a b", "'O''Neil%2Fa%20b'"),
        ("v2", "Edm.Int64", 5, "5L"),
        ("v2", "Edm.Int32", 5, "5"),
        ("v2", "Edm.Decimal", Decimal("1.50"), "1.50M"),
        ("v2", "Edm.Double", 1.5, "1.5d"),
        ("v2", "Edm.Single", 1.5, "1.5f"),
        ("v2", "Edm.Boolean", True, "true"),
        ("v2", "Edm.Guid", GUID, f"guid'{GUID}'"),
        ("v2", "Edm.DateTime", MOMENT.replace(tzinfo=None, microsecond=0), "datetime'2026-01-02T03:04:05'"),
        ("v2", "Edm.DateTimeOffset", MOMENT, "datetimeoffset'2026-01-02T03:04:05.678912Z'"),
        ("v2", "Edm.Time", dt.time(1, 2, 3), "time'PT01H02M03S'"),
        ("v2", "Edm.Binary", b"\xff", "X'FF'"),
        ("v4", "Edm.Guid", GUID, str(GUID)),
        ("v4", "Edm.Date", dt.date(2026, 1, 2), "2026-01-02"),
        ("v4", "Edm.Int64", 5, "5"),
        ("v4", "Edm.Decimal", Decimal("1.50"), "1.50"),
        ("v4", "Edm.Duration", dt.timedelta(seconds=1), "duration'PT00H00M01S'"),
        ("v4", "Edm.Binary", b"\xff", "binary'_w%3D%3D'"),
        ("v4", "Shop.Colour", "Red", "Shop.Colour'Red'"),
    ],
)
def test_literals_in_urls(version, edm, value, text):
    assert odata_values.format_literal(value, edm, version) == text


def test_a_key_of_several_parts_names_them_in_their_order():
    assert shaper("v2", "ItemSet").path({"Line": "7", "Number": "A"}) == "ItemSet(Number='A',Line=7)"
    assert shaper("v4", "Pairs").path({"b": "2026-01-02", "a": "x"}) == "Pairs(a='x',b=2026-01-02)"


def test_a_row_without_its_key_is_not_found():
    with pytest.raises(ConversionError):
        shaper("v4").path({"ID": None})


# --- Answers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code", "message", "meaning"),
    [
        (
            '{"error": {"code": "SY/530", "message": {"lang": "en", "value": "Order already exists"}, "innererror":'
            ' {"transactionid": "1", "errordetails": [{"code": "Z/1", "message": "Number 5 is taken", "propertyref":'
            ' "Number", "severity": "error"}]}}}',
            "SY/530",
            "SY/530: Order already exists; Z/1: Number 5 is taken (Number)",
            "unique",
        ),
        (
            '{"error": {"code": "MULTIPLE_ERRORS", "message": "Multiple errors occurred", "details": [{"code":'
            ' "ASSERT_DATA_TYPE", "message": "Value x is not a valid Decimal", "target": "total"}]}}',
            "MULTIPLE_ERRORS",
            "MULTIPLE_ERRORS: Multiple errors occurred; ASSERT_DATA_TYPE: Value x is not a valid Decimal (total)",
            "wrong_type",
        ),
        (
            '<?xml version="1.0"?><error xmlns="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata">'
            '<code>A/1</code><message xml:lang="en">No</message><innererror><errordetails><errordetail><code>B/2</code>'
            "<message>Why</message></errordetail></errordetails></innererror></error>",
            "A/1",
            "A/1: No; B/2: Why",
            "",
        ),
        ("<html><style>x{}</style><body><h1>Bad</h1> gateway</body></html>", "", "Bad gateway", ""),
        ("plain words", "", "plain words", ""),
        ('{"other": 1}', "", '{"other": 1}', ""),
    ],
    ids=["v2", "v4", "xml", "html", "text", "json"],
)
def test_errors_are_read_to_one_message(text, code, message, meaning):
    found = odata_responses.parse_service_error(text.encode())
    assert (found.code, found.message, found.reason()) == (code, message, meaning)


def test_a_bomb_in_an_error_is_not_opened():
    bomb = b'<!DOCTYPE a [<!ENTITY b "x">]><error><message>&b;</message></error>'
    assert not odata_responses.parse_service_error(bomb).is_parsed


@pytest.mark.parametrize(
    ("location", "names", "found"),
    [
        ("Orders(64ef3aea-00cf-4d15-b9c8-7c4a59a02376)", ["ID"], {"ID": str(GUID)}),
        (f"https://x/s/Orders(guid'{GUID}')", ["ID"], {"ID": str(GUID)}),
        (
            "https://x/s/Items(Number='O''N%2F1',Line=5L)",
            ["Number", "Line"],
            {"Number": "O'N/1", "Line": "5"},
        ),
        ("https://x/s/T('a,b(c)')?x=1", ["k"], {"k": "a,b(c)"}),
        ("https://x/s/T(Number='a/b')", ["Number"], {"Number": "a/b"}),
        ("https://x/s/T", ["k"], {}),
        ("", ["k"], {}),
    ],
)
def test_keys_are_read_from_the_location_of_the_created_object(location, names, found):
    assert odata_responses.parse_key(location, names) == found


@given(st.text(max_size=30).filter(lambda text: text.isprintable()))
def test_a_key_read_from_an_address_is_the_key_that_was_written(text):
    for version in ("v2", "v4"):
        result = odata_values.format_literal(text, "Edm.String", version)
        assert odata_responses.parse_key(f"https://x/s/T({result})", ["k"]) == {"k": text}


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**9), max_value=10**9))
def test_a_decimal_arrives_with_all_its_digits(value):
    column = Column("x", "decimal", "Edm.Decimal", precision=13, scale=3)
    found = odata_values.to_edm_value(str(value), column)
    assert Decimal(odata_values.format_json(found, "Edm.Decimal", "v2")) == value
    assert Decimal(odata_values.format_json(found, "Edm.Decimal", "v4", strings=True)) == value


@given(st.datetimes(min_value=EARLY, max_value=LATE))
def test_a_date_of_v2_is_read_back_as_it_was_written(value):
    text = odata_values.format_json(value, "Edm.DateTime", "v2")
    result = odata_responses.created_values(json.dumps({"d": {"at": text}}).encode(), "v2")
    assert dt.datetime.fromisoformat(result["at"]) == value.replace(
        microsecond=value.microsecond // 1000 * 1000
    )
