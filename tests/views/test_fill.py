"""Filling a database in one action: templates, a dataset and a push; what cannot be filled is left out and named."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial

import pytest
from babel import Locale

from tests.views.targets import postgres_target, sqlite_target, work  # noqa: F401
from webapp.engine import processor_time
from webapp.engine.processor_time import CpuBudget, CpuBudgetError

SCHEMA = """
CREATE TABLE countries (code char(2) PRIMARY KEY, active boolean NOT NULL UNIQUE);
CREATE TABLE people (
    id integer PRIMARY KEY, display_name varchar(60) NOT NULL UNIQUE, email varchar(80) NOT NULL UNIQUE
);
CREATE TABLE invoices (
    id integer PRIMARY KEY, person_id integer NOT NULL REFERENCES people (id),
    plan_id integer, subscription_id integer, kind varchar(10) NOT NULL,
    CHECK ((plan_id IS NULL) <> (subscription_id IS NULL)), CHECK (upper(kind) IN ('A', 'B'))
);
"""
IMPOSSIBLE = """
CREATE TABLE impossible (id integer PRIMARY KEY, n integer NOT NULL CHECK (n > 5 AND n < 3));
CREATE TABLE child (id integer PRIMARY KEY, impossible_id integer NOT NULL REFERENCES impossible (id));
"""


@pytest.fixture
def edith(api, cast):
    return api(cast.edith)


@pytest.fixture(params=["sqlite", "postgresql"])
def target(request, app, cast):
    """`target(schema)`: a database with these tables."""
    if request.param == "postgresql":
        return partial(postgres_target, app, cast, request.getfixturevalue("postgres_url"))
    return lambda script: nullcontext(sqlite_target(app, cast, script))


def test_all_tables_are_full(edith, target, work):
    with target(SCHEMA) as database:
        answer = edith.post(f"/connections/{database.connection_id}/fill", json={"rows": 50})
        assert answer.status_code == 201, answer.json
        assert answer.json["skipped"] == []
        rows = {table["table"]: (table["rows"], table["note"]) for table in answer.json["tables"]}
        assert rows["people"] == (50, "")
        assert rows["countries"][0] == 2, "a unique boolean has two values"
        assert "only 2 exist" in rows["countries"][1]
        work(answer.json["push"]["id"])
        push = edith.get(answer.headers["Location"]).json
        assert (push["status"], push["counts"]["failed"]) == ("completed", 0), push
        counts = [database.count(name) for name in ("countries", "people", "invoices")]
        assert counts == [2, 50, 50]


def test_undo_removes_all_rows(edith, target, work):
    with target(SCHEMA) as database:
        created = edith.post(f"/connections/{database.connection_id}/fill", json={"rows": 20}).json
        work(created["push"]["id"])
        undo = edith.post(f"/pushes/{created['push']['id']}/undo", json={})
        assert undo.status_code == 201, undo.json
        work(undo.json["id"])
        assert [database.count(name) for name in ("countries", "people", "invoices")] == [0, 0, 0]


KEYLESS = """
CREATE TABLE people (id integer PRIMARY KEY, name varchar(60) NOT NULL);
CREATE TABLE visits (
    person_id integer NOT NULL REFERENCES people (id), day date NOT NULL, note text, seconds double precision
);
CREATE TABLE readings (sensor varchar(20) NOT NULL, amount decimal(8, 2));
"""


def test_undo_finds_rows_without_a_key_where_the_table_was_empty(edith, target, work):
    """Rows of a table that had some are not looked for: one of them could be equal to one of ours."""
    with target(f"{KEYLESS} INSERT INTO readings VALUES ('theirs', 1.5);") as database:
        created = edith.post(f"/connections/{database.connection_id}/fill", json={"rows": 40}).json
        work(created["push"]["id"])
        tables = ("people", "visits", "readings")
        assert [database.count(name) for name in tables] == [40, 40, 41]
        undo = edith.post(f"/pushes/{created['push']['id']}/undo", json={})
        assert undo.json["counts"]["total"] == 80
        work(undo.json["id"])
        assert edith.get(f"/pushes/{undo.json['id']}").json["counts"]["failed"] == 0
        assert [database.count(name) for name in tables] == [0, 0, 41]


def test_undo_counts_rows_that_were_deleted_with_an_equal_one(edith, target, work):
    script = "CREATE TABLE marks (school smallint NOT NULL CHECK (school BETWEEN 1 AND 3), note text);"
    with target(script) as database:
        created = edith.post(f"/connections/{database.connection_id}/fill", json={"rows": 40}).json
        work(created["push"]["id"])
        undo = edith.post(f"/pushes/{created['push']['id']}/undo", json={})
        work(undo.json["id"])
        counts = edith.get(f"/pushes/{undo.json['id']}").json["counts"]
        assert (counts["delivered"], counts["failed"]) == (40, 0)
        assert database.count("marks") == 0


RULED = """
CREATE TABLE people (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name varchar(60) NOT NULL);
CREATE TABLE visits (
    id serial PRIMARY KEY, person_id integer NOT NULL REFERENCES people (id), day date NOT NULL, seconds integer
);
CREATE TABLE old_visits () INHERITS (visits);
CREATE RULE old AS ON INSERT TO visits WHERE new.day < '1990-01-01'
    DO INSTEAD INSERT INTO old_visits (person_id, day, seconds) VALUES (new.person_id, new.day, new.seconds);
"""


def test_undo_finds_rows_of_a_table_whose_rules_keep_it_from_returning_keys(
    app, cast, postgres_url, edith, work
):
    with postgres_target(app, cast, postgres_url, RULED) as database:
        path = f"/connections/{database.connection_id}/fill"
        created = edith.post(path, json={"rows": 30, "tables": ["people", "visits"]}).json
        work(created["push"]["id"])
        assert [database.count(name) for name in ("people", "visits")] == [30, 30]
        undo = edith.post(f"/pushes/{created['push']['id']}/undo", json={})
        work(undo.json["id"])
        assert edith.get(f"/pushes/{undo.json['id']}").json["counts"]["failed"] == 0
        assert [database.count(name) for name in ("people", "visits")] == [0, 0]


def test_a_push_without_any_row_that_can_be_found_again_cannot_be_undone(edith, target, work):
    with target("CREATE TABLE readings (sensor varchar(20)); INSERT INTO readings VALUES ('x');") as database:
        created = edith.post(f"/connections/{database.connection_id}/fill", json={"rows": 3}).json
        work(created["push"]["id"])
        undo = edith.post(f"/pushes/{created['push']['id']}/undo", json={})
        assert undo.json["error"]["details"]["fields"][0]["code"] == "missing_keys"


def test_the_page_offers_to_undo_a_fill_with_a_table_without_a_key(browser, cast, edith, target, work):
    with target(KEYLESS) as database:
        created = edith.post(f"/connections/{database.connection_id}/fill", json={"rows": 3}).json
        work(created["push"]["id"])
        assert 'id="ask-undo"' in browser(cast.edith).get(f"/pushes/{created['push']['id']}").text


def test_a_dry_run_sends_nothing_and_shows_the_plan(edith, target):
    with target(SCHEMA) as database:
        created = edith.post(
            f"/connections/{database.connection_id}/fill", json={"rows": 20, "dry_run": True}
        ).json
        assert created["push"] is None
        order = [table["name"] for table in created["plan"]["tables"]]
        assert order.index("people") < order.index("invoices")
        assert database.count("people") == 0


def test_the_same_seed_fills_the_same_rows(edith, target, work):
    found = []
    with target(SCHEMA) as database:
        for _ in range(2):
            ask = {"rows": 20, "seed": "a seed", "tables": ["people"]}
            created = edith.post(f"/connections/{database.connection_id}/fill", json=ask).json
            assert created["seed"] == "a seed"
            work(created["push"]["id"])
            found.append(len(database.execute("SELECT id FROM people")))
            database.execute("DELETE FROM people")
    assert found == [20, 20]


def test_a_table_that_is_not_there_is_named(edith, target):
    with target(SCHEMA) as database:
        path = f"/connections/{database.connection_id}/fill"
        answer = edith.post(path, json={"tables": ["people", "persons"]})
        assert answer.status_code == 422
        assert [(field["path"], field["code"]) for field in answer.json["error"]["details"]["fields"]] == [
            ("tables[1]", "unknown_entity")
        ]
        answer = edith.post(path, json={"rows": 0, "tables": []})
        assert {field["path"] for field in answer.json["error"]["details"]["fields"]} == {"rows", "tables"}


def test_a_connection_that_is_no_database_is_rejected(edith):
    created = edith.post(
        "/connections",
        json={"name": "api", "type": "rest", "settings": {"base_url": "https://api.example.com"}},
    ).json
    answer = edith.post(f"/connections/{created['id']}/fill", json={})
    assert answer.status_code == 422
    assert answer.json["error"]["details"]["fields"][0]["code"] == "not_allowed"


def test_a_table_whose_rows_are_all_rejected_stops_neither_the_others_nor_the_push(edith, target, work):
    with target(SCHEMA + IMPOSSIBLE) as database:
        created = edith.post(f"/connections/{database.connection_id}/fill", json={"rows": 10}).json
        work(created["push"]["id"])
        counts = {name: database.count(name) for name in ("people", "invoices", "impossible", "child")}
        assert counts == {"people": 10, "invoices": 10, "impossible": 0, "child": 0}


TRIGGERS = """
CREATE TABLE classes (
    id serial PRIMARY KEY, name varchar(60) NOT NULL, follows varchar(60), note varchar(60), level integer DEFAULT 3
);
CREATE TABLE members (id serial PRIMARY KEY, class_id integer NOT NULL REFERENCES classes (id));
CREATE FUNCTION follow() RETURNS trigger AS $$ BEGIN
    IF NEW.follows IS NOT NULL AND NOT EXISTS (SELECT FROM classes WHERE name = NEW.follows) OR NEW.level <> 3 THEN
        RAISE EXCEPTION 'Class % does not exist.', NEW.follows;
    END IF;
    RETURN NEW;
END $$ LANGUAGE plpgsql;
CREATE TRIGGER follow BEFORE INSERT ON classes FOR EACH ROW EXECUTE FUNCTION follow();
CREATE TABLE audited (id serial PRIMARY KEY, name varchar(60) NOT NULL);
CREATE TABLE details (id serial PRIMARY KEY, audited_id integer NOT NULL REFERENCES audited (id));
CREATE TABLE notes (id serial PRIMARY KEY, text varchar(60), audited_id integer REFERENCES audited (id));
CREATE FUNCTION raise_missing() RETURNS void AS
    $$ BEGIN RAISE EXCEPTION 'No revision is set.'; END $$ LANGUAGE plpgsql;
CREATE FUNCTION audit() RETURNS trigger AS
    $$ BEGIN PERFORM raise_missing(); RETURN NEW; END $$ LANGUAGE plpgsql;
CREATE TRIGGER audit BEFORE INSERT ON audited FOR EACH ROW EXECUTE FUNCTION audit();
"""


def test_columns_that_a_trigger_rejects_are_left_empty_and_the_others_filled(
    edith, app, cast, postgres_url, work
):
    with postgres_target(app, cast, postgres_url, TRIGGERS) as database:
        created = edith.post(f"/connections/{database.connection_id}/fill", json={"rows": 30}).json
        work(created["push"]["id"])
        path = f"/pushes/{created['push']['id']}"
        names = ("classes", "members", "audited", "details", "notes")
        assert [database.count(name) for name in names] == [30, 30, 0, 0, 30]
        found = database.execute("SELECT count(follows), count(note), min(level), max(level) FROM classes")
        assert found == [(0, 30, 3, 3)]
        assert database.execute("SELECT count(text), count(audited_id) FROM notes") == [(30, 0)]
        reasons = {row["message"] for row in edith.get(f"{path}/rows?state=failed&limit=100").json["items"]}
        assert reasons == {
            "The function audit() rejects it: No revision is set.",
            'Its column "audited_id" needs a row of "audited", and none was delivered.',
        }
        log = edith.get(f"{path}/logs").text
        assert "classes: follows, level left empty" in log
        assert "notes: audited_id left empty" in log
        undo = edith.post(f"{path}/undo", json={})
        work(undo.json["id"])
        assert [database.count(name) for name in names] == [0, 0, 0, 0, 0]


def test_columns_because_of_which_a_trigger_rejects_some_rows_are_left_empty(
    edith, app, cast, postgres_url, work
):
    schema = """
    CREATE TABLE attributes (
        id serial PRIMARY KEY, free boolean NOT NULL, text varchar(60), note varchar(60), rank integer
    );
    CREATE FUNCTION allows() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.text IS NOT NULL AND NOT NEW.free THEN RAISE EXCEPTION 'No text is allowed.'; END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER allows BEFORE INSERT ON attributes FOR EACH ROW EXECUTE FUNCTION allows();
    """
    with postgres_target(app, cast, postgres_url, schema) as database:
        assert filled(edith, database, work, rows=60) == {}
        counts = database.execute("SELECT count(*), count(text), count(note), count(rank) FROM attributes")
        assert counts == [(60, 0, 60, 60)]


def test_rejected_rows_are_made_up_for(edith, app, cast, postgres_url, work):
    schema = """
    CREATE TABLE kinds (id serial PRIMARY KEY, name varchar(60) NOT NULL, free boolean NOT NULL);
    CREATE TABLE notes (
        id serial PRIMARY KEY, kind_id integer NOT NULL REFERENCES kinds (id), text varchar(60) NOT NULL
    );
    CREATE TABLE comments (id serial PRIMARY KEY, note_id integer NOT NULL REFERENCES notes (id));
    CREATE TABLE never (id serial PRIMARY KEY, text varchar(60) NOT NULL);
    CREATE FUNCTION allows() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NOT (SELECT free FROM kinds WHERE id = NEW.kind_id) THEN RAISE EXCEPTION 'No text is allowed.'; END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER allows BEFORE INSERT ON notes FOR EACH ROW EXECUTE FUNCTION allows();
    CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.id % 10 <> 0 THEN RAISE EXCEPTION 'Never.'; END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER no BEFORE INSERT ON never FOR EACH ROW EXECUTE FUNCTION no();
    """
    with postgres_target(app, cast, postgres_url, schema) as database:
        created = edith.post(f"/connections/{database.connection_id}/fill", json={"rows": 80}).json
        work(created["push"]["id"])
        assert [database.count(name) for name in ("kinds", "notes", "comments")] == [80, 80, 80]
        assert 0 < database.count("never") < 16
        path = f"/pushes/{created['push']['id']}"
        state = edith.get(path).json
        total = {table["name"]: table["count"] for table in state["tables"]}
        assert total["notes"] > 80
        assert total["never"] == 80
        assert state["counts"]["total"] == sum(total.values())
        assert state["counts"]["failed"] == total["notes"] - 80 + 80 - database.count("never")
        assert state["counts"]["pending"] == 0
        assert "more rows, because the same number was rejected" in edith.get(f"{path}/logs").text
        undo = edith.post(f"{path}/undo", json={})
        work(undo.json["id"])
        assert [database.count(name) for name in ("kinds", "notes", "comments", "never")] == [0, 0, 0, 0]


def test_keys_are_assigned_after_those_of_rows_that_triggers_insert(edith, app, cast, postgres_url, work):
    schema = """
    CREATE TABLE types (
        id serial PRIMARY KEY, root integer NOT NULL REFERENCES types (id) DEFERRABLE INITIALLY DEFERRED,
        name varchar(60) NOT NULL
    );
    CREATE TABLE instruments (id serial PRIMARY KEY, name varchar(60) NOT NULL);
    CREATE TABLE credits (type_id integer PRIMARY KEY REFERENCES types (id));
    CREATE FUNCTION type_of() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        WITH made AS (SELECT nextval('types_id_seq') AS id)
        INSERT INTO types (id, root, name) SELECT id, id, NEW.name FROM made;
        RETURN NEW;
    END $$;
    CREATE TRIGGER type_of AFTER INSERT ON instruments FOR EACH ROW EXECUTE FUNCTION type_of();
    """
    with postgres_target(app, cast, postgres_url, schema) as database:
        assert filled(edith, database, work, rows=40) == {}
        names = ("instruments", "credits")
        assert [database.count(name) for name in names] == [40, 40]
        assert database.count("types") >= 40


def test_a_parent_whose_rows_a_trigger_removes_at_the_commit_is_named(edith, app, cast, postgres_url, work):
    schema = """
    CREATE TABLE tags (id serial PRIMARY KEY, name varchar(60) NOT NULL);
    CREATE TABLE uses (id serial PRIMARY KEY, tag_id integer NOT NULL REFERENCES tags (id));
    CREATE FUNCTION unused() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        DELETE FROM tags WHERE id = NEW.id AND NOT EXISTS (SELECT FROM uses WHERE tag_id = NEW.id);
        RETURN NULL;
    END $$;
    CREATE CONSTRAINT TRIGGER unused AFTER INSERT ON tags DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION unused();
    """
    with postgres_target(app, cast, postgres_url, schema) as database:
        created = edith.post(f"/connections/{database.connection_id}/fill", json={"rows": 20}).json
        work(created["push"]["id"])
        rows = edith.get(f"/pushes/{created['push']['id']}/rows?state=failed&limit=100").json["items"]
        assert len(rows) == 20
        assert all(row["message"].startswith("tags is empty although its rows were written") for row in rows)
        assert {row["code"] for row in rows} == {"foreign_key"}


def test_a_reference_that_cannot_be_set_later_stops_neither_the_others_nor_the_push(
    edith, app, cast, postgres_url, work
):
    schema = """
    CREATE TABLE units (id serial PRIMARY KEY, name varchar(60) NOT NULL, address_id integer);
    CREATE TABLE addresses (id serial PRIMARY KEY, unit_id integer NOT NULL REFERENCES units (id));
    ALTER TABLE units ADD FOREIGN KEY (address_id) REFERENCES addresses (id);
    CREATE TABLE staff (id serial PRIMARY KEY, name varchar(60) NOT NULL, team_id integer);
    CREATE TABLE teams (id serial PRIMARY KEY, lead_id integer NOT NULL REFERENCES staff (id));
    ALTER TABLE staff ADD FOREIGN KEY (team_id) REFERENCES teams (id);
    CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        PERFORM a_function_that_is_missing(); RETURN NEW;
    END $$;
    CREATE TRIGGER audit BEFORE UPDATE ON units FOR EACH ROW EXECUTE FUNCTION audit();
    """
    with postgres_target(app, cast, postgres_url, schema) as database:
        created = edith.post(f"/connections/{database.connection_id}/fill", json={"rows": 20}).json
        work(created["push"]["id"])
        state = edith.get(f"/pushes/{created['push']['id']}").json
        assert (state["status"], state["counts"]["delivered"]) == ("completed", 80)
        assert database.execute("SELECT count(*), count(address_id) FROM units") == [(20, 0)]
        assert database.execute("SELECT count(*), count(team_id) FROM staff") == [(20, 20)]
        log = edith.get(f"/pushes/{created['push']['id']}/logs").text
        assert "units: 20 rows were delivered without address_id" in log
        assert "a_function_that_is_missing() does not exist" in log


def test_triggers_of_other_schemas_find_their_tables(edith, app, cast, postgres_url, work):
    schema = """
    CREATE SCHEMA music;
    CREATE TABLE music.artist (id serial PRIMARY KEY, name varchar(60) NOT NULL);
    CREATE TABLE music.change (name varchar(60));
    CREATE FUNCTION music.note() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN INSERT INTO change VALUES (NEW.name); RETURN NULL; END';
    CREATE TRIGGER note AFTER INSERT ON music.artist FOR EACH ROW EXECUTE FUNCTION music.note();
    """
    with postgres_target(app, cast, postgres_url, schema) as database:
        assert filled(edith, database, work, tables=["music.artist"]) == {}
        assert [database.count(name) for name in ("music.artist", "music.change")] == [30, 30]


def test_texts_have_the_case_that_a_check_demands(edith, target, work):
    schema = """
    CREATE TABLE records (
        id integer PRIMARY KEY, name varchar(60) CHECK (name = lower(name)), comment varchar(80) NOT NULL,
        CHECK (upper(comment) = comment)
    );
    """
    with target(schema) as database:
        assert filled(edith, database, work) == {}
        assert database.execute("SELECT count(name) FROM records WHERE name = lower(name)") == [(30,)]


def test_a_person_sees_the_plan_and_fills(browser, cast, target, work):
    edith = browser(cast.edith)
    with target(SCHEMA) as database:
        path = f"/connections/{database.connection_id}/fill"
        page = edith.get(path)
        assert "Fill this database" in page.text
        bad = edith.submit(f"{path}/plan", {"rows": "0"})
        assert bad.status_code == 422
        assert 'value="0"' in bad.text
        plan = edith.submit(f"{path}/plan", {"rows": "30"})
        assert "Nothing has been written to the database yet" in plan.text
        where = plan.text.split(f'action="{path}/')[1].split('"')[0]
        sent = edith.submit(f"{path}/{where}", {})
        assert sent.status_code == 303
        work(sent.headers["Location"].rpartition("/")[2])
        assert database.count("people") == 30


def test_a_changed_plan_replaces_the_first_one(browser, api, cast, target):
    person, program = browser(cast.edith), api(cast.edith)
    with target(SCHEMA) as database:
        path = f"/connections/{database.connection_id}/fill"
        first = person.submit(f"{path}/plan", {"rows": "30"}).text.split(f'action="{path}/')[1].split('"')[0]
        change = person.get(f"{path}?instead_of={first}").text
        assert f'name="instead_of" value="{first}"' in change
        person.submit(f"{path}/plan", {"rows": "20", "instead_of": first})
        assert program.get(f"/datasets/{first}").status_code == 404
        assert program.get("/datasets").json["total"] == 1
        assert program.get("/templates").json["total"] == 3


def test_a_plan_that_was_sent_is_kept(browser, api, cast, target):
    person, program = browser(cast.edith), api(cast.edith)
    with target(SCHEMA) as database:
        path = f"/connections/{database.connection_id}/fill"
        first = person.submit(f"{path}/plan", {"rows": "30"}).text.split(f'action="{path}/')[1].split('"')[0]
        person.submit(f"{path}/{first}", {})
        person.submit(f"{path}/plan", {"rows": "20", "instead_of": first})
        assert program.get(f"/datasets/{first}").status_code == 200


def test_the_plan_names_tables_that_cannot_be_undone(browser, cast, target):
    with target(
        "CREATE TABLE notes (text varchar(40)); CREATE TABLE keyed (id integer PRIMARY KEY);"
    ) as database:
        path = f"/connections/{database.connection_id}/fill"
        page = browser(cast.edith).submit(f"{path}/plan", {"rows": "30"}).text
        assert page.count("only if the table is currently empty") == 1


def test_a_second_fill_adds_rows_and_its_undo_leaves_the_first_ones(edith, target, work):
    with target(SCHEMA) as database:
        ask = {"rows": 20, "tables": ["people", "invoices"]}
        for count in (20, 40):
            created = edith.post(f"/connections/{database.connection_id}/fill", json=ask).json
            work(created["push"]["id"])
            assert [database.count(name) for name in ("people", "invoices")] == [count, count]
        undo = edith.post(f"/pushes/{created['push']['id']}/undo", json={})
        work(undo.json["id"])
        assert [database.count(name) for name in ("people", "invoices")] == [20, 20]


KEYS_OF_KEYS = """
CREATE TABLE parties (id {identity}, name varchar(60) NOT NULL);
CREATE TABLE persons (party_id integer PRIMARY KEY REFERENCES parties (id), first_name varchar(60) NOT NULL);
CREATE TABLE employees (person_id integer PRIMARY KEY REFERENCES persons (party_id), job varchar(60) NOT NULL);
CREATE TABLE shifts (
    employee_id integer NOT NULL REFERENCES employees (person_id), day date NOT NULL, PRIMARY KEY (employee_id, day)
);
"""


def test_keys_that_are_keys_of_other_tables_are_those_of_this_fill_and_only_they_are_undone(
    edith, target, work, request
):
    postgresql = "postgresql" in request.node.name
    schema = KEYS_OF_KEYS.format(identity="serial PRIMARY KEY" if postgresql else "integer PRIMARY KEY")
    names = ("parties", "persons", "employees", "shifts")
    with target(schema) as database:
        database.execute("INSERT INTO parties (id, name) VALUES (1, 'First')")
        if postgresql:
            database.execute("SELECT setval('parties_id_seq', 700)")
        else:
            database.execute("INSERT INTO parties (id, name) VALUES (700, 'Last')")
        before = database.count("parties")
        counts = {}
        for turn in (1, 2):
            created = edith.post(f"/connections/{database.connection_id}/fill", json={"rows": 20}).json
            work(created["push"]["id"])
            push = edith.get(f"/pushes/{created['push']['id']}").json
            assert push["counts"]["failed"] == 0, (turn, push)
            counts[turn] = [sorted(database.execute(f"SELECT * FROM {name} ORDER BY 1, 2")) for name in names]
        assert [len(item) for item in counts[2]] == [before + 40, 40, 40, 40]
        undo = edith.post(f"/pushes/{created['push']['id']}/undo", json={}).json
        work(undo["id"])
        assert edith.get(f"/pushes/{undo['id']}").json["counts"]["failed"] == 0
        left = [sorted(database.execute(f"SELECT * FROM {name} ORDER BY 1, 2")) for name in names]
        assert left == counts[1]


UNIQUE_INDEXES = """
CREATE TABLE shops (id integer PRIMARY KEY, name varchar(60) NOT NULL);
CREATE UNIQUE INDEX shops_name ON shops (lower(name));
CREATE TABLE members (
    id integer PRIMARY KEY, shop_id integer NOT NULL REFERENCES shops (id), email varchar(80) NOT NULL,
    level varchar(10) NOT NULL CHECK (level IN ('low', 'high')), is_owner boolean NOT NULL, left_at timestamp
);
CREATE UNIQUE INDEX members_level ON members (shop_id, level) WHERE left_at IS NULL;
CREATE UNIQUE INDEX members_owner ON members (shop_id) WHERE is_owner AND left_at IS NULL;
"""


def test_unique_indexes_with_a_condition_or_an_expression_are_obeyed(edith, target, work):
    with target(UNIQUE_INDEXES) as database:
        created = edith.post(f"/connections/{database.connection_id}/fill", json={"rows": 100}).json
        work(created["push"]["id"])
        push = edith.get(f"/pushes/{created['push']['id']}").json
        assert push["counts"]["failed"] == 0, push
        assert [database.count("shops"), database.count("members")] == [100, 100]
        assert database.execute("SELECT count(*) FROM members WHERE is_owner")[0][0] == 0
        reported = {
            item["column"]: item["reason"] for item in created["report"] if item["table"] == "members"
        }
        assert "one true value for each shop_id" in reported["is_owner"]


PARTITIONED = """
CREATE TABLE notes (id integer NOT NULL, kind varchar(20) NOT NULL) PARTITION BY LIST (kind);
CREATE TABLE notes_issue PARTITION OF notes FOR VALUES IN ('Issue', 'Epic');
CREATE TABLE notes_other PARTITION OF notes FOR VALUES IN ('Wiki');
CREATE TABLE sales (id integer NOT NULL, sold_on date NOT NULL) PARTITION BY RANGE (sold_on);
CREATE TABLE sales_1 PARTITION OF sales FOR VALUES FROM ('2031-01-01') TO ('2031-02-01');
CREATE TABLE sales_2 PARTITION OF sales FOR VALUES FROM ('2031-02-01') TO ('2031-03-01');
CREATE TABLE calls (id integer NOT NULL) PARTITION BY HASH (id);
CREATE TABLE calls_0 PARTITION OF calls FOR VALUES WITH (MODULUS 1, REMAINDER 0);
CREATE TABLE bookings (
    id integer PRIMARY KEY, room integer NOT NULL CHECK (room BETWEEN 1 AND 100000), during int4range,
    EXCLUDE USING btree (room WITH =)
);
"""


def test_rows_fit_the_partitions_and_exclusion_constraints_of_postgresql(
    edith, app, cast, postgres_url, work
):
    with postgres_target(app, cast, postgres_url, PARTITIONED) as database:
        created = edith.post(f"/connections/{database.connection_id}/fill", json={"rows": 60}).json
        work(created["push"]["id"])
        push = edith.get(f"/pushes/{created['push']['id']}").json
        assert push["counts"]["failed"] == 0, push
        assert [database.count(name) for name in ("notes", "sales", "calls", "bookings")] == [60] * 4
        assert {row[0] for row in database.execute("SELECT DISTINCT kind FROM notes")} == {
            "Issue",
            "Epic",
            "Wiki",
        }


SHOP_WITH_KINDS = """
CREATE TABLE kinds (id integer PRIMARY KEY, name varchar(20) NOT NULL);
INSERT INTO kinds VALUES (1, 'one'), (2, 'two'), (3, 'three');
CREATE TABLE levels (code integer NOT NULL UNIQUE CHECK (code IN (1, 2)), name varchar(20) PRIMARY KEY);
INSERT INTO levels VALUES (1, 'low'), (2, 'high');
CREATE TABLE articles (
    id integer PRIMARY KEY, kind_id integer NOT NULL REFERENCES kinds (id),
    special_kind_id integer NOT NULL REFERENCES kinds (id), level varchar(20) NOT NULL REFERENCES levels (name),
    CHECK (special_kind_id IN (2, 3))
);
"""


def filled(edith, database, work, **ask):
    created = edith.post(f"/connections/{database.connection_id}/fill", json={"rows": 30, **ask}).json
    work(created["push"]["id"])
    assert edith.get(f"/pushes/{created['push']['id']}").json["counts"]["failed"] == 0
    return {item["table"]: item["code"] for item in created["skipped"]}


def test_tables_with_rows_are_left_and_their_rows_are_parents_where_that_is_chosen(edith, target, work):
    with target(SHOP_WITH_KINDS) as database:
        assert filled(edith, database, work, existing="use") == {"kinds": "has_rows", "levels": "has_rows"}
        assert [database.count(name) for name in ("kinds", "levels", "articles")] == [3, 2, 30]
        answer = edith.post(f"/connections/{database.connection_id}/fill", json={"existing": "use"})
        assert answer.json["error"]["details"]["fields"][0]["code"] == "nothing_to_fill"


def test_a_lookup_table_with_all_its_values_is_left_and_a_check_limits_the_parents(edith, target, work):
    with target(SHOP_WITH_KINDS) as database:
        assert filled(edith, database, work) == {"levels": "has_rows"}
        assert [database.count(name) for name in ("kinds", "levels", "articles")] == [33, 2, 30]
        special = database.execute("SELECT DISTINCT special_kind_id FROM articles")
        assert {row[0] for row in special} <= {2, 3}


COUNTRIES = """
CREATE TABLE countries (country_code char(2) PRIMARY KEY, country_name varchar(80) NOT NULL);
CREATE TABLE towns (
    id integer PRIMARY KEY, name varchar(80) NOT NULL,
    country_code char(2) NOT NULL REFERENCES countries (country_code)
);
"""


def test_a_half_filled_lookup_table_gets_no_value_that_it_has(edith, target, work):
    present = ["AT", "BR", "CN", "DE", "FR", "IT", "JP", "PL", "US", "ZA"]
    rows = ", ".join(f"('{code}', 'Country {code}')" for code in present)
    with target(f"{COUNTRIES} INSERT INTO countries VALUES {rows};") as database:
        assert filled(edith, database, work, rows=240) == {}
        codes = [row[0] for row in database.execute("SELECT country_code FROM countries")]
        assert 90 < len(codes) == len(set(codes)) < 240  # there are not so many countries
        assert set(present) < set(codes) <= set(Locale("en").territories)
        assert database.count("towns") == 240


MANY_ROWS = """
CREATE TABLE countries (id smallint PRIMARY KEY, country_code char(2) NOT NULL UNIQUE, name varchar(80) NOT NULL);
CREATE TABLE seats (line integer NOT NULL, place integer NOT NULL, label varchar(40), PRIMARY KEY (line, place));
"""


def test_rows_beyond_the_sample_are_not_repeated(edith, target, work):
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    real = {code for code in Locale("en").territories if len(code) == 2}
    other = [a + b for a in letters for b in letters if a + b not in real][:300]
    present = [*other, *sorted(real)[:150]]
    countries = ", ".join(f"({place}, '{code}', 'x')" for place, code in enumerate(present, 1))
    seats = ", ".join(f"({line}, {place}, 'x')" for line in range(1, 26) for place in range(1, 26))
    rows = f"INSERT INTO countries VALUES {countries}; INSERT INTO seats VALUES {seats};"
    with target(MANY_ROWS + rows) as database:
        assert filled(edith, database, work, rows=20) == {}
        assert [database.count(name) for name in ("countries", "seats")] == [470, 645]
        added = database.execute("SELECT country_code FROM countries WHERE id > 450")
        assert {row[0] for row in added} <= real - set(present)
        assert len(added) == 20


def test_fills_can_be_repeated(edith, target, work):
    with target("CREATE TABLE tags (id smallint PRIMARY KEY, text varchar(200) NOT NULL);") as database:
        for turn in range(1, 5):
            filled(edith, database, work, rows=400)
            assert database.count("tags") == 400 * turn


THREADS = """
CREATE TABLE comments (
    id {identity}, root_id integer NOT NULL REFERENCES comments (id), text varchar(60) NOT NULL
);
"""


def test_a_row_refers_to_itself_where_its_table_has_none_before_it(edith, target, work, request):
    postgresql = "postgresql" in request.node.name
    script = THREADS.format(identity="serial PRIMARY KEY" if postgresql else "integer PRIMARY KEY")
    with target(script) as database:
        if postgresql:
            database.execute("SELECT setval('comments_id_seq', 50)")
        filled(edith, database, work)
        assert database.execute("SELECT count(*) FROM comments WHERE root_id = id")[0][0] == 30


def test_a_position_below_a_row_of_the_same_table_never_repeats(edith, target, work, request):
    identity = "serial PRIMARY KEY" if "postgresql" in request.node.name else "integer PRIMARY KEY"
    nodes = ", ".join(f"('x', {place and 1 + place // 9}, {place})" for place in range(60))
    script = f"""
    CREATE TABLE menu_nodes (
        id {identity}, label varchar(60) NOT NULL, parent integer REFERENCES menu_nodes (id),
        position integer NOT NULL, UNIQUE (parent, position)
    );
    INSERT INTO menu_nodes (label, parent, position) VALUES ('root', NULL, 1);
    INSERT INTO menu_nodes (label, parent, position) VALUES {nodes.replace("'x', 0,", "'x', NULL,")};
    """
    with target(script) as database:
        assert filled(edith, database, work, rows=300) == {}
        assert database.count("menu_nodes") == 361


def test_a_sequence_behind_the_rows_of_a_table_is_moved(edith, app, cast, postgres_url, work):
    schema = """
    CREATE TABLE classes (id serial PRIMARY KEY, name varchar(60) NOT NULL);
    INSERT INTO classes VALUES (4, 'a'), (9, 'b');
    """
    with postgres_target(app, cast, postgres_url, schema) as database:
        assert filled(edith, database, work) == {}
        assert database.execute("SELECT min(id), max(id), count(*) FROM classes") == [(4, 39, 32)]


TRIGGERED = """
CREATE TABLE songs (id serial PRIMARY KEY, title varchar(60) NOT NULL);
CREATE TABLE song_meta (song_id integer PRIMARY KEY REFERENCES songs (id), plays integer NOT NULL DEFAULT 0);
CREATE TABLE song_plays (
    id serial PRIMARY KEY, song_id integer NOT NULL REFERENCES song_meta (song_id), played_on date NOT NULL
);
CREATE FUNCTION insert_meta(song integer) RETURNS void LANGUAGE plpgsql AS
    'BEGIN INSERT INTO song_meta (song_id) VALUES (song); END';
CREATE FUNCTION add_meta() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN PERFORM insert_meta(NEW.id); RETURN NULL; END';
CREATE TRIGGER meta AFTER INSERT ON songs FOR EACH ROW EXECUTE FUNCTION add_meta();
"""


def test_a_table_that_a_trigger_fills_is_left_to_it_and_has_children(edith, app, cast, postgres_url, work):
    with postgres_target(app, cast, postgres_url, TRIGGERED) as database:
        assert filled(edith, database, work) == {"song_meta": "filled_by_trigger"}
        assert [database.count(name) for name in ("songs", "song_meta", "song_plays")] == [30, 30, 30]


RING = """
CREATE TABLE stores (id integer PRIMARY KEY, manager_id integer NOT NULL);
CREATE TABLE managers (id integer PRIMARY KEY, store_id integer NOT NULL REFERENCES stores (id));
ALTER TABLE stores ADD FOREIGN KEY (manager_id) REFERENCES managers (id);
"""


def test_the_plan_says_where_foreign_key_checks_are_disabled(browser, api, app, cast, postgres_url):
    with postgres_target(app, cast, postgres_url, RING) as database:
        path = f"/connections/{database.connection_id}/fill"
        plan = api(cast.edith).post(path, json={"rows": 5, "dry_run": True}).json["plan"]
        assert sum(bool(table["unchecked"]) for table in plan["tables"]) == 1
        page = browser(cast.edith).submit(f"{path}/plan", {"rows": "5", "existing": "add"}).text
        assert page.count("Foreign key checks are disabled") == 1


LEVELS = """
CREATE TABLE countries (id integer PRIMARY KEY, name varchar(60) NOT NULL);
CREATE TABLE customers (id integer PRIMARY KEY, country_id integer NOT NULL REFERENCES countries (id));
CREATE TABLE orders (id integer PRIMARY KEY, customer_id integer NOT NULL REFERENCES customers (id));
CREATE TABLE notes (id integer PRIMARY KEY, order_id integer REFERENCES orders (id), body varchar(60));
"""


def test_tables_without_rows_get_fewer_the_more_levels_refer_to_them(edith, target):
    with target(LEVELS) as database:
        requests = {"rows": 270, "row_counts": "proportional", "dry_run": True}
        created = edith.post(f"/connections/{database.connection_id}/fill", json=requests).json
        assert {table["table"]: table["rows"] for table in created["tables"]} == {
            "countries": 10,
            "customers": 30,
            "orders": 90,
            "notes": 270,
        }


def test_tables_get_rows_in_proportion_to_those_they_have_or_as_many(edith, target, work):
    rows = "INSERT INTO countries VALUES (1, 'A'), (2, 'B');"
    rows += "INSERT INTO customers VALUES (1, 1), (2, 1), (3, 2), (4, 2);"
    with target(LEVELS + rows + "INSERT INTO notes VALUES (1, NULL, 'x');") as database:
        path = f"/connections/{database.connection_id}/fill"
        created = edith.post(path, json={"rows": 40, "row_counts": "proportional", "dry_run": True}).json
        counts = {table["table"]: table["rows"] for table in created["tables"]}
        assert (counts["countries"], counts["customers"], counts["notes"]) == (20, 40, 10)
        created = edith.post(path, json={"row_counts": "existing"}).json
        assert {item["table"]: item["code"] for item in created["skipped"]} == {"orders": "no_rows"}
        work(created["push"]["id"])
        counts = [database.count(name) for name in ("countries", "customers", "orders", "notes")]
        assert counts == [4, 8, 0, 2]


def test_as_many_rows_as_there_are_needs_rows(edith, target):
    with target(LEVELS) as database:
        answer = edith.post(f"/connections/{database.connection_id}/fill", json={"row_counts": "existing"})
        assert answer.status_code == 422, answer.json
        assert answer.json["error"]["details"]["fields"][0]["code"] == "nothing_to_fill"


def test_a_table_whose_only_column_is_counted_by_the_database_is_filled(edith, app, cast, postgres_url, work):
    schema = """
    CREATE TABLE numbers (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
    CREATE TABLE uses (id integer PRIMARY KEY, number_id integer NOT NULL REFERENCES numbers (id));
    INSERT INTO numbers DEFAULT VALUES;
    """
    with postgres_target(app, cast, postgres_url, schema) as database:
        created = edith.post(f"/connections/{database.connection_id}/fill", json={"rows": 20}).json
        assert created["skipped"] == []
        work(created["push"]["id"])
        assert [database.count(name) for name in ("numbers", "uses")] == [21, 20]


def test_foreign_keys_that_must_differ_take_different_rows(edith, target, work):
    schema = """
    CREATE TABLE people (id integer PRIMARY KEY);
    CREATE TABLE friends (
        id integer PRIMARY KEY, a integer NOT NULL REFERENCES people (id), b integer NOT NULL REFERENCES people (id),
        UNIQUE (a, b), CHECK (a <> b)
    );
    CREATE TABLE rivals (
        id integer PRIMARY KEY, a integer NOT NULL REFERENCES people (id), b integer REFERENCES people (id),
        CHECK (b IS NULL OR NOT (a = b))
    );
    CREATE TABLE mentors (
        id integer PRIMARY KEY, a integer REFERENCES people (id), b integer NOT NULL REFERENCES people (id),
        level integer NOT NULL, CHECK (a <> b),
        CHECK (a IS NULL AND level = 0 OR a IS NOT NULL AND level < 0)
    );
    """
    with target(schema) as database:
        created = edith.post(f"/connections/{database.connection_id}/fill", json={"rows": 40}).json
        assert created["skipped"] == []
        work(created["push"]["id"])
        names = ("people", "friends", "rivals", "mentors")
        assert [database.count(name) for name in names] == [40, 40, 40, 40]


def test_checks_of_arrays_and_json_are_obeyed(edith, app, cast, postgres_url, work):
    schema = """
    CREATE TABLE lockers (
        pid integer PRIMARY KEY, queues text[] NOT NULL CHECK (array_ndims(queues) = 1), priorities integer[] NOT NULL,
        CHECK (array_length(priorities, 1) IS NOT NULL)
    );
    CREATE TABLE jobs (
        id integer PRIMARY KEY, args jsonb NOT NULL CHECK (jsonb_typeof(args) = 'array'),
        data jsonb NOT NULL CHECK (jsonb_typeof(data) = 'object' AND NOT data ? 'tags')
    );
    """
    with postgres_target(app, cast, postgres_url, schema) as database:
        assert filled(edith, database, work) == {}
        assert [database.count(name) for name in ("lockers", "jobs")] == [30, 30]


def test_a_partitioned_table_without_partitions_is_skipped(edith, app, cast, postgres_url, work):
    schema = """
    CREATE TABLE events (id integer NOT NULL, at date NOT NULL) PARTITION BY RANGE (at);
    CREATE TABLE days (id integer PRIMARY KEY);
    """
    with postgres_target(app, cast, postgres_url, schema) as database:
        created = edith.post(f"/connections/{database.connection_id}/fill", json={"rows": 20}).json
        assert {item["table"]: item["code"] for item in created["skipped"]} == {"events": "takes_no_rows"}
        work(created["push"]["id"])
        assert database.count("days") == 20


def test_a_small_identity_column_limits_the_number_of_rows(edith, app, cast, postgres_url, work):
    schema = """
    CREATE TABLE codes (id smallint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, name varchar(40));
    INSERT INTO codes (id, name) VALUES (1, 'A');
    """
    with postgres_target(app, cast, postgres_url, schema) as database:
        requests = {"rows": 40_000, "dry_run": True}
        created = edith.post(f"/connections/{database.connection_id}/fill", json=requests).json
        (table,) = created["tables"]
        assert (table["rows"], table["note"]) == (32_766, 'Its column "id" has a maximum of 32,767.')


def test_keys_of_several_columns_that_share_a_reference_are_filled(edith, target, work):
    schema = """
    CREATE TABLE project (id varchar(40) PRIMARY KEY);
    CREATE TABLE plan (
        project varchar(40) NOT NULL REFERENCES project (id), id bigint NOT NULL, PRIMARY KEY (project, id)
    );
    CREATE TABLE issue (
        project varchar(40) NOT NULL REFERENCES project (id), id bigint NOT NULL, plan_id bigint NOT NULL,
        PRIMARY KEY (project, id), UNIQUE (project, plan_id),
        FOREIGN KEY (project, plan_id) REFERENCES plan (project, id)
    );
    CREATE TABLE remark (
        id integer PRIMARY KEY, project varchar(40) NOT NULL, issue_id bigint NOT NULL, version varchar(40) NOT NULL,
        UNIQUE (project, issue_id, version), FOREIGN KEY (project, issue_id) REFERENCES issue (project, id)
    );
    """
    with target(schema) as database:
        created = edith.post(f"/connections/{database.connection_id}/fill", json={"rows": 60}).json
        assert created["skipped"] == []
        work(created["push"]["id"])
        assert [database.count(name) for name in ("project", "plan", "issue", "remark")] == [60] * 4


def test_the_number_of_tables_is_not_limited_by_the_time_of_a_request(edith, target, monkeypatch):
    """Each table has the processor time of a small request. That of the request itself is used up from the start."""

    class UsedUp(CpuBudget):
        __slots__ = ()

        def check(self) -> None:
            if self._outer is None:
                raise CpuBudgetError(0)
            super().check()

    with target(SCHEMA) as database:
        monkeypatch.setattr(processor_time, "CpuBudget", UsedUp)
        answer = edith.post(f"/connections/{database.connection_id}/fill", json={"rows": 20})
        assert answer.status_code == 201, answer.json
        assert answer.json["skipped"] == []
        checked = next(table for table in answer.json["tables"] if table["table"] == "invoices")
        assert checked["rows"] == 20
