"""SQL scripts as people have them: client commands, missing separators, definitions in every dialect."""

from __future__ import annotations

import pytest

from webapp.imports.readers import sql
from webapp.imports.readers.base import Source, UnreadableFileError


def tables(script):
    """The entities of a script by name."""
    return {table.entity.name: table.entity for table in sql.read(Source(script.encode(), "x.sql")).tables}


def columns(script):
    """The columns of the only table of a script by name."""
    (entity,) = tables(script).values()
    return {field.name: field for field in entity.fields}


ORDER = "CREATE TABLE orders (id INT PRIMARY KEY, note VARCHAR(20))"


@pytest.mark.parametrize(
    "script",
    [
        f"SET DEFINE OFF\nSET FEEDBACK 1\nREM it's the orders\nPROMPT ****** Creating Anna's table;\n{ORDER};\n/\n",
        f"WHENEVER SQLERROR EXIT FAILURE -\n  ROLLBACK\n@drop_all.sql\nSPOOL out.log\n{ORDER};\nEXIT\n",
        f"\\connect shop\n\\set ON_ERROR_STOP on\n\\echo it's here\n{ORDER};\n\\i more.sql\n",
        f"COPY old (a) FROM stdin;\nit's\t; CREATE TABLE no (a INT);\n\\.\n\n{ORDER};\n",
        f"USE [shop]\nGO\nSET ANSI_NULLS ON\nGO 2\nIF OBJECT_ID('x') IS NULL\n{ORDER}\nGO -- done\n",
        f":setvar name shop\nDROP TABLE old\nPRINT 'orders'\n{ORDER}\nINSERT INTO orders VALUES (1, 'a')\nGO\n",
        f"-- SQLite\n.mode csv\n.headers on\n{ORDER};\n",
        f"#\n# it's a comment\n#\n{ORDER};\n",
        f"INSERT INTO a VALUES (q'[it's; CREATE TABLE b (c INT)]');\n{ORDER};\n",
        f"INSERT INTO a VALUES (E'it\\'s; CREATE TABLE b (c INT);');\n{ORDER};\n",
        f"GRANT CREATE SESSION, CREATE TABLE TO shop;\n{ORDER};\n",
    ],
)
def test_commands_of_clients_cost_no_table(script):
    found = tables(script)
    assert {name: [field.name for field in entity.fields] for name, entity in found.items()} == {
        "orders": ["id", "note"]
    }


def test_comments_that_mysql_runs_are_read():
    script = """CREATE TABLE `a` (id INT, /*!50705 place GEOMETRY NOT NULL,*/ /*!40101 b INT,*/ c INT) ENGINE=InnoDB;
    CREATE TABLE `d` (id INT) ENGINE=InnoDB; /*!50705 CREATE TABLE never_closed (id INT);"""
    found = tables(script)
    assert [field.name for field in found["a"].fields] == ["id", "place", "b", "c"]
    assert list(found) == ["a", "d"]


def test_a_script_that_begins_with_a_brace_is_sql(edith):
    script = "{\nInformix\n}\nCREATE TABLE orders (id INT PRIMARY KEY, picture BYTE IN TABLE);"
    answer = edith.post("/import", json={"content": script, "name": "orders.sql"})
    assert answer.status_code == 201, answer.text
    assert (answer.json["format"], len(answer.json["templates"])) == ("sql", 1)


def test_tables_within_create_schema_get_its_name():
    script = """CREATE SCHEMA Person
      CREATE TABLE Address(id SERIAL, city varchar(30) NOT NULL) -- no separator
      CREATE TABLE Person(id INT NOT NULL REFERENCES Address);
    ALTER TABLE Person.Address ADD CONSTRAINT pk PRIMARY KEY (id);"""
    found = tables(script)
    assert [entity.parts for entity in found.values()] == [("Person", "Address"), ("Person", "Person")]
    assert found["Address"].keys == ("id",)
    assert found["Person"].relations[0].entity == "Address"


def test_a_column_with_unknown_attributes_keeps_its_type_and_constraints():
    found = columns("""CREATE TABLE [dbo].[Person] (
      [rowguid] uniqueidentifier ROWGUIDCOL NOT NULL CONSTRAINT [DF_g] DEFAULT (NEWID()),
      [phone] NVARCHAR (20) MASKED WITH (FUNCTION = 'default()') NULL,
      [stamp] timestamp NOT NULL,
      [total] AS ([price]*[count]) PERSISTED,
      [price] money SPARSE,
      [id] [smallint] IDENTITY(1,1) NOT FOR REPLICATION PRIMARY KEY CLUSTERED CHECK ([id] > 0)
    ) ON [PRIMARY]
    GO""")
    assert {name: column.type for name, column in found.items()} == {
        "rowguid": "uuid", "phone": "text", "stamp": "binary", "total": "other", "price": "decimal", "id": "integer",
    }  # fmt: skip
    assert (found["rowguid"].nullable, found["phone"].nullable, found["phone"].max_length) == (
        False,
        True,
        20,
    )
    assert [found[name].generated for name in ("stamp", "total", "id")] == [
        "computed",
        "computed",
        "identity",
    ]
    assert found["id"].key


def test_a_timestamp_is_a_moment_outside_sql_server():
    assert columns('\\c shop\nCREATE TABLE t (id INT, "at" TIMESTAMP NOT NULL);')["at"].type == "timestamp"
    assert columns("CREATE TABLE t (id INT, at TIMESTAMP NOT NULL);")["at"].type == "timestamp"
    assert columns("CREATE TABLE t (id INT, at TIMESTAMP WITH TIME ZONE);")["at"].type == "timestamptz"


@pytest.mark.parametrize(
    ("definition", "shape"),
    [
        ("CREATE TYPE dbo.code FROM varchar(6) NOT NULL\nGO", ("text", 6, False)),
        (
            "execute sp_addtype code ,'varchar(6)' ,'NOT NULL'\nexecute sp_addtype id, 'int'\nGO",
            ("text", 6, False),
        ),
        ("CREATE DOMAIN code AS varchar(6) NOT NULL CHECK (VALUE <> 'none');", ("text", 6, False)),
        ("CREATE DISTINCT TYPE code AS varchar(6);", ("text", 6, True)),
        ("CREATE TYPE code AS ENUM ('a', 'b');", ("enum", None, True)),
    ],
)
def test_types_of_the_script_are_known(definition, shape):
    (entity,) = tables(f"{definition}\nCREATE TABLE t (id INT, c code)").values()
    column = entity.column("c")
    assert (column.type, column.max_length, column.nullable) == shape
    if "CHECK" in definition:
        assert entity.checks == ("\"c\" <> 'none'",)


@pytest.mark.parametrize(
    "constraints",
    [
        ["CONSTRAINT pk PRIMARY KEY CLUSTERED ([id] ASC) WITH (FILLFACTOR = 80) ON [PRIMARY]",
         "CONSTRAINT u UNIQUE NONCLUSTERED ([code])"],
        ["PRIMARY KEY NONCLUSTERED HASH (id) WITH (BUCKET_COUNT = 10)", "INDEX i (code)", "UNIQUE (code)"],
        ["PRIMARY KEY USING BTREE (id)", "UNIQUE KEY u (code(10))", "KEY i (code), FULLTEXT KEY f (code)"],
        ["CONSTRAINT pk PRIMARY KEY (id) USING INDEX TABLESPACE x ENABLE", "UNIQUE (code) DEFERRABLE"],
    ],
)  # fmt: skip
def test_keys_are_kept_in_every_spelling(constraints):
    (entity,) = tables(
        f"CREATE TABLE t (id INT NOT NULL, code VARCHAR(30), {', '.join(constraints)})"
    ).values()
    assert (entity.keys, entity.uniques) == (("id",), (("code",),))


def test_keys_and_references_that_are_added_later_are_kept():
    found = tables("""CREATE TABLE [dbo].[a] ([id] int NOT NULL, [code] char(3) NOT NULL)
    CREATE TABLE [dbo].[b] ([id] int NOT NULL, [code] char(3) FOREIGN KEY REFERENCES [dbo].[a]([code]), [a] int)
    GO
    ALTER TABLE [dbo].[a] WITH NOCHECK ADD CONSTRAINT [pk] PRIMARY KEY CLUSTERED ([id]) ON [PRIMARY]
    ALTER TABLE [dbo].[a] ADD CONSTRAINT [u] UNIQUE ([code]), CONSTRAINT [d] DEFAULT ('x') FOR [code], [more] int
    ALTER TABLE [dbo].[b] ADD CONSTRAINT [fk] FOREIGN KEY ([a]) REFERENCES [dbo].[a] ON DELETE SET NULL
    ALTER TABLE [dbo].[b] CHECK CONSTRAINT [fk]
    GO""")
    assert (found["a"].keys, found["a"].uniques) == (("id",), (("code",),))
    assert found["a"].column("code").default == "('x')"
    assert found["a"].column("more").type == "integer"
    assert [(relation.columns, relation.entity_columns) for relation in found["b"].relations] == [
        (("code",), ("code",)), (("a",), ("id",)),
    ]  # fmt: skip


def test_changes_of_tables_are_followed():
    found = tables("""CREATE TABLE t (
      id INT, old INT, name VARCHAR(10) NOT NULL, note TEXT, CONSTRAINT c CHECK (id > 3));
    CREATE TABLE u (t_name VARCHAR(10) REFERENCES t (name));
    ALTER TABLE t DROP COLUMN old, ALTER COLUMN note SET NOT NULL, ALTER id TYPE BIGINT;
    ALTER TABLE t RENAME COLUMN name TO label;
    ALTER TABLE t DROP CONSTRAINT c;
    ALTER TABLE t ADD COLUMN at DATE, ADD CHECK (at > '2020-01-01');
    ALTER TABLE t RENAME TO things;
    CREATE TABLE copy (LIKE things);""")
    assert [(field.name, field.type, field.nullable) for field in found["things"].fields] == [
        ("id", "integer", True), ("label", "text", False), ("note", "text", False), ("at", "date", True),
    ]  # fmt: skip
    assert found["things"].column("id").bits == 64
    assert found["things"].checks == ("at > '2020-01-01'",)
    assert found["u"].relations[0].entity == "things"
    assert found["u"].relations[0].entity_columns == ("label",)
    assert len(found["copy"].fields) == 4


def test_columns_are_changed_as_mysql_and_oracle_say_it():
    found = columns("""CREATE TABLE `t` (`id` int, `a` varchar(5), `key` varchar(9));
    ALTER TABLE `t` MODIFY `id` bigint NOT NULL AUTO_INCREMENT, ADD PRIMARY KEY (`id`), CHANGE `a` `b` char(3) NOT NULL;
    ALTER TABLE `t` ADD UNIQUE KEY `u` (`b`), ADD KEY `k` (`key`);""")
    assert list(found) == ["id", "b", "key"]
    assert (found["id"].bits, found["id"].generated, found["id"].key) == (64, "identity", True)
    assert (found["b"].max_length, found["b"].nullable, found["b"].unique) == (3, False, True)
    oracle = columns(
        "CREATE TABLE t (id NUMBER(10), a VARCHAR2(5) NOT NULL);\nALTER TABLE t MODIFY (a VARCHAR2(9));"
    )
    assert (oracle["a"].max_length, oracle["a"].nullable) == (9, False)


def test_the_second_definition_of_a_dropped_table_counts():
    assert list(columns("CREATE TABLE t (a INT); DROP TABLE IF EXISTS t; CREATE TABLE t (b INT);")) == ["b"]


def test_what_is_left_out_is_reported():
    read = sql.read(
        Source(b"""CREATE TABLE a (id INT PRIMARY KEY, during tsrange, EXCLUDE USING gist (during WITH &&));
    CREATE TABLE b AS SELECT 1 AS x;
    CREATE TABLE c PARTITION OF a FOR VALUES IN (1);
    CREATE TABLE d (LIKE missing);
    CREATE TABLE (x INT);
    ALTER TABLE a FROBNICATE;
    ALTER TABLE a OWNER TO me;
    CREATE TABLE e (id INT);""")
    )
    assert [table.entity.name for table in read.tables] == ["a", "e"]
    reported = [(problem.table, problem.state) for problem in read.problems]
    assert reported == [
        ("a", "yellow"), ("b", "red"), ("c", "yellow"), ("d", "red"), ("", "red"), ("a", "yellow"), ("d", "red"),
    ]  # fmt: skip
    assert "EXCLUDE" in read.problems[0].reason
    assert "FROBNICATE" in read.problems[5].reason


@pytest.mark.parametrize(
    "block",
    [
        "BEGIN\n  EXECUTE IMMEDIATE 'CREATE TABLE b (x NUMBER)';\nEND;\n/",
        "DO $$ BEGIN ALTER TABLE e ADD COLUMN x INT; END $$;",
    ],
)
def test_tables_that_a_block_creates_are_reported(block):
    read = sql.read(Source(f"CREATE TABLE e (id INT);\n{block}\n".encode()))
    assert [table.entity.name for table in read.tables] == ["e"]
    assert "blocks of code are not evaluated" in read.problems[0].reason


def test_a_script_without_any_table_says_why():
    with pytest.raises(UnreadableFileError, match="created from a query"):
        sql.read(Source(b"CREATE TABLE b AS SELECT 1 AS x;"))


@pytest.mark.parametrize("check", [
    "a <> 'NaN'", "a < 'Infinity'", "a >= '-Infinity'", "a >= 1e400", "a = 99999999999999999999999999999999",
    "a <> 0.000000000000000000000000000000001", "a IN (1e400, 2)",
])  # fmt: skip
@pytest.mark.parametrize("declared", ["INT", "NUMERIC(8, 2)", "NUMERIC(1000000)", "FLOAT"])
def test_a_check_with_a_number_beyond_all_others_is_imported(edith, check, declared):
    answer = edith.post(
        "/import", json={"content": f"CREATE TABLE t (id INT, a {declared} CHECK ({check}));"}
    )
    assert answer.status_code == 201, answer.text
    at = f"/templates/{answer.json['templates'][0]['id']}/generate"
    assert edith.post(at, json={"count": 5}).status_code == 200


@pytest.mark.parametrize("bound", ["2021-02-30", "9999-12-31", "0001-01-01", "infinity"])
@pytest.mark.parametrize("sign", ["<", ">", "=", "<>"])
def test_a_check_with_a_day_at_the_end_of_the_calendar_is_imported(edith, bound, sign):
    answer = edith.post(
        "/import", json={"content": f"CREATE TABLE t (id INT, a DATE CHECK (a {sign} '{bound}'));"}
    )
    assert answer.status_code == 201, answer.text


def test_a_reference_to_a_unique_column_that_is_no_key_leads_there(edith):
    script = """CREATE TABLE countries (id INT PRIMARY KEY, iso CHAR(2) NOT NULL UNIQUE);
    CREATE TABLE ports (id INT PRIMARY KEY, country CHAR(2) NOT NULL REFERENCES countries (iso));"""
    created = edith.post("/import", json={"content": script}).json["templates"]
    rows = {item["name"]: edith.post(f"/templates/{item['id']}/generate", json={"count": 20, "seed": "s"}).json
            for item in created}  # fmt: skip
    codes = [row["iso"] for row in rows["countries"]]
    assert len(set(codes)) == 20
    assert {row["country"] for row in rows["ports"]} <= {
        row["iso"]
        for row in edith.post(
            f"/templates/{created[0]['id']}/generate", json={"count": 100, "seed": "s"}
        ).json
    }
