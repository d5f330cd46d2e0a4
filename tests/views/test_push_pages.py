"""The pages of pushes: chosen, mapped, tried, sent, looked at, repaired, undone; with and without a script."""

from __future__ import annotations

import html
import re

import pytest
from lxml.html import fromstring as html_of

from tests.views.forms import error_at
from tests.views.speak import make
from tests.views.targets import CUSTOMERS, SHOP, shop, sqlite_target, work  # noqa: F401
from webapp import limits
from webapp.connections.models import Connection
from webapp.extensions import db
from webapp.pushes.views import form as pushes_form
from webapp.pushes.views import presentation

HX = {"HX-Request": "true"}


@pytest.fixture
def page(browser, cast):
    return browser(cast.edith)


@pytest.fixture
def customers(api, cast):
    return make(api(cast.edith), name="Customers", fields=CUSTOMERS)["id"]


def form_of(text: str) -> dict[str, str]:
    """The values that a browser would submit for the form on the page."""
    text = text[text.index('id="push-form"') :]
    found: dict[str, str] = {}
    for tag in re.findall(r"<input\b[^>]*>", text):
        stored = {
            name: item or two for name, item, two in re.findall(r"""([a-z-]+)=(?:"([^"]*)"|'([^']*)')""", tag)
        }
        if "name" in stored and (stored.get("type") != "checkbox" or " checked" in tag):
            found[stored["name"]] = html.unescape(stored.get("value", ""))
    for head, inner in re.findall(r"<select\b([^>]*)>(.*?)</select>", text, re.DOTALL):
        name = re.search(r'name="([^"]+)"', head)[1]
        options = re.findall(r"<option\b([^>]*)>(.*?)</option>", inner, re.DOTALL)
        picked = next((option for option in options if "selected" in option[0]), options[0])
        value = re.search(r'value="([^"]*)"', picked[0])
        found[name] = html.unescape(value[1] if value else picked[1])
    found.pop("csrf_token", None)
    return found


@pytest.fixture
def form(page, customers, shop):
    """The form of a push of customers into the table that has their name."""
    return form_of(page.get(f"/templates/{customers}/push?connection_id={shop.connection_id}").text)


def test_rows_seed_and_locale_are_carried_from_the_export_dialog_and_sent(
    page, customers, shop, work, api, cast
):
    query = f"connection_id={shop.connection_id}&seed=s-7&count=23&locale=fr_FR"
    dialog = page.get(f"/templates/{customers}/push?{query}", headers=HX)
    assert (dialog.status_code, dialog.headers["HX-Redirect"]) == (
        204,
        f"/templates/{customers}/push?{query}",
    )
    form = form_of(page.get(f"/templates/{customers}/push?{query}").text)
    assert (form["seed"], form["count"], form["locale"]) == ("s-7", "23", "fr_FR")
    push = api(cast.edith).get(sent(page, customers, form, work)).json
    assert (push["counts"]["delivered"], push["seed"], push["request"]["locale"]) == (23, "s-7", "fr_FR")


def options(text: str) -> dict[str, str]:
    """The options of a list as value to label."""
    found = re.findall(r'<option value="([^"]*)"[^>]*>([^<]*)</option>', text)
    return {html.unescape(value): html.unescape(label) for value, label in found}


def test_export_dialog_offers_connections_with_their_tables(page, customers, shop):
    dialog = page.get(f"/builder/{customers}/export").text
    assert shop.connection_id in options(dialog)
    target = page.get(f"/destinations/target?connection_id={shop.connection_id}", headers=HX).text
    assert '<select id="x-target" name="target">' in target
    assert ">customers<" in target


def test_destination_search_finds_the_101st_connection_a_table_and_an_endpoint(
    app, page, api, cast, customers, shop
):
    edith = api(cast.edith)
    edith.get(f"/connections/{shop.connection_id}/metadata")
    with app.app_context():
        place = {"workspace_id": cast.acme, "project_id": cast.main, "team_id": cast.blue}
        rest = {"type": "rest", "settings": {"base_url": "http://127.0.0.1:1/"}, **place}
        rows = [Connection(name=f"api {n:03}", **rest) for n in range(101)]
        db.session.add_all(rows)
        db.session.commit()
        ids = [row.id for row in rows]
    edith.post("/endpoints", json={"name": "first endpoint", "connection_id": ids[0], "path": "/x"})
    everything = page.get("/destinations").text
    assert "more: search by name" in everything
    hidden = next(number for number, id in enumerate(ids) if id not in options(everything))
    assert options(page.get(f"/destinations?q=api {hidden:03}").text) == {ids[hidden]: f"api {hidden:03}"}
    ((table, label),) = options(page.get("/destinations?q=custom").text).items()
    assert table == f"{shop.connection_id}/customers"
    assert "customers (" in label
    assert "first endpoint" in options(page.get("/destinations?q=first").text).values()
    assert "No results for" in page.get("/destinations?q=zzzz").text
    form = form_of(page.get(f"/templates/{customers}/push?connection_id={table}").text)
    assert (form["connection_id"], form["target"]) == (shop.connection_id, "customers")


def test_destinations_are_not_shown_to_a_viewer(browser, cast, shop):
    assert browser(cast.victor).get("/destinations").status_code == 403


def test_an_invalid_number_of_rows_is_reported_in_the_form(page, customers, shop):
    answer = page.get(f"/templates/{customers}/push?connection_id={shop.connection_id}&count=many")
    assert answer.status_code == 200
    assert "count" in answer.text


def press(page, customers, form, verb, **how):
    return page.submit(f"/templates/{customers}/push/form", {**form, "do": verb}, **how)


def sent(page, customers, form, work, **more):
    """A push through the form, done; its address."""
    answer = press(page, customers, {**form, **more}, "send")
    assert answer.status_code == 303, answer.text
    work(answer.headers["Location"].rsplit("/", 1)[1])
    return answer.headers["Location"]


# --- Before it is sent ------------------------------------------------------------------------------------------


def test_without_a_connection_the_page_explains_how_to_create_one(page, customers):
    assert "No connections yet" in page.get(f"/templates/{customers}/push").text


def test_the_only_connection_and_the_table_of_that_name_are_preselected(page, customers, shop):
    text = page.get(f"/templates/{customers}/push").text
    assert "Column of customers" in text
    assert form_of(text)["connection_id"] == shop.connection_id


def test_every_column_is_shown_with_its_field_and_how_it_was_matched(form):
    columns = {form[f"t[0].c[{place}].column"]: form[f"t[0].c[{place}].field"] for place in range(4)}
    assert columns == {"id": "", "email": "E-Mail", "first_name": "firstName", "age": "age"}
    assert form["t[0].c[1].was"] == "alike|E-Mail"


def test_a_field_that_is_chosen_stays_and_the_others_keep_how_they_were_found(page, customers, form):
    text = press(page, customers, {**form, "t[0].c[2].field": ""}, "plan", headers=HX).text
    assert ">name<" in text
    again = form_of(f'<form id="push-form">{text}')
    assert again["t[0].c[2].field"] == ""
    assert again["t[0].c[1].was"] == "alike|E-Mail"
    assert "Not sent: id, firstName." in text


def test_a_column_that_needs_a_value_and_has_none_is_marked_before_anything_is_sent(page, customers, form):
    answer = press(page, customers, {**form, "t[0].c[1].field": ""}, "send")
    assert answer.status_code == 422
    assert "needs a value" in answer.text
    assert 'class="missing"' in answer.text


def test_a_mapping_is_kept_after_an_error_elsewhere(page, customers, form):
    changed = {**form, "t[0].c[3].field": "", "mode": "upsert"}
    wrong = press(page, customers, {**changed, "count": "0"}, "send")
    assert wrong.status_code == 422
    right = press(page, customers, {**form_of(wrong.text), "count": "5"}, "plan", headers=HX).text
    again = form_of(f'<form id="push-form">{right}')
    assert (again["t[0].c[3].field"], again["t[0].c[1].field"], again["mode"]) == ("", "E-Mail", "upsert")


def test_a_dry_run_shows_statements_and_sends_nothing(page, customers, form, shop):
    text = html.unescape(press(page, customers, form, "dry", headers=HX).text)
    assert (
        text.count('INSERT INTO "customers"') == limits.PREVIEW_ROWS
        or text.count("INSERT INTO customers") == 3
    )
    assert "none sent" in text
    assert shop.count("customers") == 0


def test_values_that_will_not_fit_are_reported_by_the_dry_run(page, customers, form):
    changed = {**form, "t[0].c[2].field": pushes_form.FORMULA, "t[0].c[2].formula": "repeat('x', 50)"}
    text = press(page, customers, changed, "dry", headers=HX).text
    assert "Problem" in text
    assert "first_name" in text


def test_the_form_sends_what_it_shows(page, customers, form, shop, work):
    where = sent(page, customers, form, work, count="25", **{"t[0].c[3].field": ""})
    assert shop.count("customers") == 25
    assert shop.execute("SELECT count(*) FROM customers WHERE age IS NULL")[0][0] == 25
    text = page.get(where).text
    assert "completed" in text
    assert "25 of 25 rows" in text


def test_a_script_is_sent_to_the_page_of_the_push(page, customers, form):
    answer = press(page, customers, form, "send", headers=HX)
    assert answer.status_code == 204
    assert answer.headers["HX-Redirect"].startswith("/pushes/psh_")


@pytest.mark.parametrize("verb", ["dry", "send"])
def test_each_error_is_at_its_field_and_the_input_is_kept(page, customers, form, shop, verb):
    wrong = {
        "count": "many", "seed": "s" * 201, "locale": "xx_XX", "mode": "replace", "on_error": "explode",
        "t[0].c[1].field": pushes_form.FORMULA, "t[0].c[1].formula": "upper(", "target": "customers",
    }  # fmt: skip
    answer = press(page, customers, {**form, **wrong}, verb)
    assert answer.status_code == 422
    assert error_at(answer.text, "count") == "Enter a whole number."
    assert error_at(answer.text, "seed") == "Enter at most 200 characters. You entered 201."
    assert error_at(answer.text, "on_error") == "Select one of the listed options."
    assert error_at(answer.text, "connection_id") == ""
    stored = form_of(answer.text)
    assert {name: stored[name] for name in ("count", "seed", "locale")} == {
        "count": "many", "seed": "s" * 201, "locale": "xx_XX",
    }  # fmt: skip
    found = html_of(answer.text)
    links = found.xpath("//*[contains(@class, 'problems')]//a/@href")
    assert {"#count", "#seed", "#on_error"} <= set(links)
    assert [item.get("id") for item in found.xpath("//*[@autofocus]")] == [links[0][1:]]
    assert shop.count("customers") == 0


@pytest.mark.parametrize(
    ("values", "control"),
    [
        ({"count": "0"}, "count"),
        ({"count": "100000000000"}, "count"),
        ({"locale": "xx_XX"}, "locale"),
        ({"target": "nowhere", "create_table": None}, "target"),
        ({"t[0].c[2].field": pushes_form.FORMULA, "t[0].c[2].formula": "upper("}, "c0-2f"),
    ],
)
def test_a_single_error_is_shown_at_its_field(page, customers, form, shop, values, control):
    inputs = {name: value for name, value in {**form, **values}.items() if value is not None}
    answer = press(page, customers, inputs, "send")
    assert answer.status_code == 422
    assert error_at(answer.text, control)
    assert [item.get("id") for item in html_of(answer.text).xpath("//*[contains(@id, '-err')]")] == [
        f"{control}-err"
    ]


def test_a_read_only_connection_is_reported_at_the_connection(page, app, customers, form, shop):
    with app.app_context():
        db.session.get_one(Connection, shop.connection_id).read_only = True
        db.session.commit()
    answer = press(page, customers, form, "send")
    assert answer.status_code == 403
    assert "read-only" in error_at(answer.text, "connection_id")


def test_production_is_named_before_it_is_written_to(page, app, cast, customers):
    target = sqlite_target(app, cast, name="Live", environment="prod")
    form = form_of(page.get(f"/templates/{customers}/push?connection_id={target.connection_id}").text)
    answer = press(page, customers, form, "send")
    assert answer.status_code == 422
    assert "marked as production" in html.unescape(answer.text)
    assert press(page, customers, {**form, "confirm": "Live"}, "send").status_code == 303


def test_another_table_drops_the_mapping_of_the_one_before(page, customers, form):
    text = press(page, customers, {**form, "target": "orders"}, "plan", headers=HX).text
    assert "Column of orders" in text
    assert "first_name" not in re.findall(r'name="t\[0\]\.c\[\d+\]\.column" value="(\w+)"', text)


def test_a_missing_table_is_created(page, customers, form, shop, work):
    text = press(page, customers, {**form, "target": "people"}, "plan", headers=HX).text
    assert "Rowsmith creates the table people with these columns." in text
    result = form_of(f'<form id="push-form">{text}')
    sent(page, customers, {**form, **result}, work, count="5")
    assert shop.count("people") == 5


def test_one_field_may_fill_two_columns():
    value = {
        "connection_id": "c", "was": "c", "target": "t",
        "t": [{"name": "T", "was": "t", "all": '["a", "b"]', "c": [
            {"column": "x", "field": "a"}, {"column": "y", "field": "a"}, {"column": "z", "field": ""}]}],
    }  # fmt: skip
    request = pushes_form.template_body(value)
    assert request["mapping"] == {"a": "x", "b": None}
    assert request["computed"] == {"y": "a"}


@pytest.mark.parametrize("bad", ["[", "{}", '"x"', "[1"])
def test_a_form_that_was_tampered_with_is_answered(page, customers, form, bad):
    answer = press(page, customers, {**form, "t[0].all": bad, "mode": "x", "count": "-1"}, "plan")
    assert answer.status_code == 422


def test_tables_are_searched_where_there_are_many(page, app, cast, customers):
    script = "".join(f"CREATE TABLE t{place} (id INTEGER PRIMARY KEY);" for place in range(150))
    target = sqlite_target(app, cast, script)
    text = page.get(f"/templates/{customers}/push?connection_id={target.connection_id}&target=t149").text
    assert 'list="targets"' in text
    assert len(text.encode()) < 50_000
    found = page.get(f"/connections/{target.connection_id}/targets?target=T14", headers=HX).text
    assert found.count("<option") == 11


def test_a_wide_table_stays_a_small_page(page, api, cast, app):
    fields = [{"name": f"field_number_{place}", "type": "number"} for place in range(40)]
    template = make(api(cast.edith), name="Wide", fields=fields)["id"]
    columns = ", ".join(f"field_number_{place} INTEGER" for place in range(40))
    target = sqlite_target(app, cast, f"CREATE TABLE wide ({columns});")
    text = page.get(f"/templates/{template}/push?connection_id={target.connection_id}").text
    assert 'list="f0"' in text
    assert len(text.encode()) < 50_000


# --- When it has ended ------------------------------------------------------------------------------------------

FEW = SHOP.replace("age INTEGER", "age INTEGER CHECK (age >= 40)")


@pytest.fixture
def half(page, app, cast, customers, work):
    """The page of a push some of whose rows were refused, and its target."""
    target = sqlite_target(app, cast, FEW)
    form = form_of(page.get(f"/templates/{customers}/push?connection_id={target.connection_id}").text)
    return sent(page, customers, form, work, count="200", seed="s"), target


def test_the_page_shows_which_rows_failed_and_why(page, half):
    text = page.get(half[0]).text
    assert "Retry all rows that did not arrive" in text
    assert "Check constraint violated" in text
    assert re.search(r"Completed with \d+ failures", text)
    values = page.get(f"{half[0]}/rows?state=failed&values=true", headers=HX).text
    assert "<dt>age</dt>" in values or "<dt>firstName</dt>" in values


def test_rows_are_leafed_through_by_state(page, half):
    first = page.get(f"{half[0]}/rows?state=delivered", headers=HX).text
    after = html.unescape(re.search(r'id="rows-next" rel="next" href="([^"]+)"', first)[1])
    second = page.get(after, headers=HX).text
    rows = [re.findall(r'right num main">([\d,]+)<', text) for text in (first, second)]
    assert len(rows[0]) == limits.PAGE_LIMIT_DEFAULT
    assert not set(rows[0]) & set(rows[1])
    assert page.get(f"{half[0]}/rows?state=delivered").text.count("<h1") == 1


def test_the_next_page_is_reached_from_the_push_itself(page, app, half):
    text = page.get(half[0]).text
    found = re.search(r'id="rows-next" rel="next" href="([^"]+)"', text)
    assert found, "more rows failed than one page shows"
    assert page.get(html.unescape(found[1]), headers=HX).status_code == 200


def test_a_repair_sends_only_what_failed_and_is_linked(page, half, work):
    where, target = half
    before = target.count("customers")
    assert 0 < before < 200
    fix = {"r[0].column": "age", "r[0].how": "value", "r[0].to": "44", "states": "failed"}
    answer = page.submit(f"{where}/repair", fix)
    assert answer.status_code == 303, answer.text
    work(answer.headers["Location"].rsplit("/", 1)[1])
    assert target.count("customers") == 200
    assert target.execute("SELECT count(*) FROM customers WHERE age = 44")[0][0] >= 200 - before
    text = page.get(where).text
    assert f'href="{answer.headers["Location"]}"' in text
    assert "Retry all rows that did not arrive" not in text


@pytest.mark.parametrize(
    ("how", "to"),
    [("formula", "40 + 3"), ("nothing", ""), ("field", "age")],
    ids=["formula", "nothing", "field"],
)
def test_a_column_is_repaired_in_other_ways(page, half, work, how, to):
    where, target = half
    answer = page.submit(
        f"{where}/repair", {"r[0].column": "age", "r[0].how": how, "r[0].to": to, "states": "failed"}
    )
    assert answer.status_code == 303, answer.text
    work(answer.headers["Location"].rsplit("/", 1)[1])
    assert (target.count("customers") == 200) == (how != "field")


def test_an_invalid_repair_keeps_the_input(page, half):
    fix = {"r[0].column": "age", "r[0].how": "formula", "r[0].to": "nowhere + 1", "states": "failed"}
    answer = page.submit(f"{half[0]}/repair", fix)
    assert answer.status_code == 422
    assert "nowhere" in answer.text
    assert 'value="nowhere + 1"' in answer.text


def test_an_undo_asks_first_and_takes_the_rows_out_again(page, half, work):
    where, target = half
    assert 'popovertarget="ask-undo"' in page.get(where).text
    answer = page.submit(f"{where}/undo")
    assert answer.status_code == 303
    work(answer.headers["Location"].rsplit("/", 1)[1])
    assert target.count("customers") == 0
    assert "deleted" in page.get(answer.headers["Location"]).text


def test_rows_that_were_not_sent_are_resumed(page, app, cast, customers, form, work):
    where = page.submit(f"/templates/{customers}/push/form", {**form, "do": "send", "count": "40"}).headers[
        "Location"
    ]
    assert 'id="go-on"' not in page.get(where).text
    page.submit(f"{where}?_method=DELETE")
    text = page.get(where).text
    assert "Send the 40 remaining rows" in text
    assert '<input type="checkbox" name="states" value="pending" checked>40 that were not sent' in text
    answer = page.submit(f"{where}/repair", {"states": "pending"})
    assert answer.status_code == 303, answer.text
    work(answer.headers["Location"].rsplit("/", 1)[1])
    text = page.get(where).text
    assert 'id="go-on"' not in text
    assert "<dt>Delivered</dt><dd>40</dd>" in text
    work(page.submit(f"{where}/undo").headers["Location"].rsplit("/", 1)[1])
    assert "<dt>Undone</dt><dd>40</dd>" in page.get(where).text
    assert "40 undone" in page.get("/activity").text


def test_the_same_is_sent_again_with_its_seed(page, half, work):
    where, target = half
    before = target.execute("SELECT * FROM customers ORDER BY id")
    target.execute("DELETE FROM customers")
    answer = page.submit(f"{where}/rerun")
    assert answer.status_code == 303, answer.text
    work(answer.headers["Location"].rsplit("/", 1)[1])
    assert target.execute("SELECT * FROM customers ORDER BY id") == before


def test_an_undo_cannot_be_sent_again(page, half, work):
    undone = page.submit(f"{half[0]}/undo").headers["Location"]
    work(undone.rsplit("/", 1)[1])
    answer = page.submit(f"{undone}/rerun")
    assert answer.status_code == 409
    assert "can be repeated" in answer.text


def test_a_push_in_hand_is_followed_by_events(page, customers, form):
    where = press(page, customers, form, "send").headers["Location"]
    text = page.get(where).text
    assert f'sse-connect="{where}/events"' in text
    assert "waiting for a worker" in text
    assert 'popovertarget="ask-cancel"' in text
    part = page.get(where, headers=HX).text
    assert "ask-cancel" not in part  # the question stays open while the counts are replaced
    assert "No failures so far." in part


def test_the_rate_is_a_line_within_its_frame():
    chart = presentation.chart([[0.0, 0], [1.0, 100], [2.0, 400], [4.0, 500]])
    assert (chart["most"], chart["seconds"]) == (300, 4.0)
    numbers = [float(item) for item in re.findall(r"[\d.]+", chart["line"])]
    assert all(0 <= y <= chart["height"] for y in numbers[1::2])
    assert presentation.chart([[0.0, 0]]) is None
    assert presentation.chart([[0.0, 0], [0.0, 5], [0.0, 5]]) is None


# --- Datasets ---------------------------------------------------------------------------------------------------


def test_a_dataset_goes_table_by_table(page, api, cast, customers, shop, work):
    tables = [{"template_id": customers, "count": 12}]
    dataset = api(cast.edith).post("/datasets", json={"name": "Set", "templates": tables}).json["id"]
    form = form_of(page.get(f"/datasets/{dataset}/push?connection_id={shop.connection_id}").text)
    assert form["t[0].target"] == "customers"
    dry = page.submit(f"/datasets/{dataset}/push/form", {**form, "do": "dry"}, headers=HX).text
    assert "none sent" in dry
    answer = page.submit(f"/datasets/{dataset}/push/form", {**form, "do": "send"})
    assert answer.status_code == 303, answer.text
    work(answer.headers["Location"].rsplit("/", 1)[1])
    assert shop.count("customers") == 12
    out = page.submit(f"/datasets/{dataset}/push/form", {**form, "t[0].out": "yes", "do": "send"})
    assert "All tables are left out" in out.text
