"""Tables that are hard to make rows for: every type, constraints of all kinds, keys of several columns, rings."""

from __future__ import annotations

DDL = """
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN zip5 AS varchar(5);
CREATE TABLE countries (code char(2) PRIMARY KEY, name varchar(40) NOT NULL UNIQUE);
CREATE TABLE customers (
  id serial PRIMARY KEY, email varchar(60) NOT NULL UNIQUE, first_name varchar(8) NOT NULL, last_name text NOT NULL,
  "Mixed Case" text NOT NULL, "select" smallint NOT NULL, phone varchar(15),
  birth_date date CHECK (birth_date < CURRENT_DATE), country_code char(2) NOT NULL REFERENCES countries(code),
  balance numeric(6, 2) NOT NULL DEFAULT 0 CHECK (balance >= 0), rating numeric(3, 1) CHECK (rating BETWEEN 1 AND 5),
  mood mood NOT NULL, zip zip5 NOT NULL, status varchar(10) NOT NULL CHECK (status IN ('new', 'active', 'it''s')),
  created_at timestamptz NOT NULL DEFAULT now(), ref uuid NOT NULL, active boolean NOT NULL, data jsonb NOT NULL,
  tags text[] NOT NULL, raw bytea NOT NULL, ip inet NOT NULL, mac macaddr NOT NULL, amount money NOT NULL,
  span interval NOT NULL, at time NOT NULL, manager_id integer REFERENCES customers(id),
  code varchar(6) NOT NULL UNIQUE, tiny "char", bits bit(4) NOT NULL, vb bit varying(7) NOT NULL,
  full_name text GENERATED ALWAYS AS (first_name || ' ' || last_name) STORED,
  starts_on date NOT NULL, ends_on date NOT NULL, CHECK (ends_on >= starts_on),
  huge numeric(30, 10) NOT NULL, anynum numeric NOT NULL, r real NOT NULL,
  d double precision NOT NULL CHECK (d <> 0 AND d < 1), iban varchar(34), url varchar(20) NOT NULL,
  description varchar(12) NOT NULL, note text CHECK (char_length(note) >= 20),
  lic text NOT NULL CHECK (lic ~ '^[A-Z]{2}-[0-9]{3}$'), big bigint NOT NULL,
  neg integer NOT NULL CHECK (neg < 0 AND neg >= -7), y smallint NOT NULL CHECK (y >= 1900 AND y <= 2100),
  rng int4range NOT NULL, doc xml NOT NULL, pt point NOT NULL, tv tsvector NOT NULL,
  pct numeric(5, 4) NOT NULL CHECK (pct > 0 AND pct < 1), one char(1) NOT NULL,
  f varchar(1) NOT NULL CHECK (f <> ''), ttz timetz NOT NULL, gender varchar(6) NOT NULL, city varchar(3),
  title varchar(4) NOT NULL, token varchar(16) UNIQUE NOT NULL, since timestamp NOT NULL CHECK (since > '2020-01-01'),
  year integer NOT NULL, age smallint NOT NULL, name varchar(3) NOT NULL, country varchar(2) NOT NULL,
  currency char(3) NOT NULL, latitude numeric(8, 5) NOT NULL, price numeric(4, 2) NOT NULL CHECK (price > 0),
  small_scale numeric(2, 2) NOT NULL, hundreds numeric(3, -2) NOT NULL, level text NOT NULL CHECK (level <> 'gold')
);
CREATE TABLE orders (
  region char(2) NOT NULL, no integer NOT NULL, customer_id integer NOT NULL REFERENCES customers,
  PRIMARY KEY (region, no)
);
CREATE TABLE lines (
  region char(2) NOT NULL, order_no integer NOT NULL, line smallint NOT NULL, sku varchar(12),
  FOREIGN KEY (region, order_no) REFERENCES orders (region, no), PRIMARY KEY (region, order_no, line)
);
CREATE TABLE passports (customer_id integer PRIMARY KEY REFERENCES customers, number varchar(9) NOT NULL UNIQUE);
CREATE TABLE tags_of (
  customer_id integer NOT NULL REFERENCES customers, country char(2) NOT NULL REFERENCES countries(code),
  UNIQUE (customer_id, country)
);
CREATE TABLE chickens (id bigint PRIMARY KEY, egg_id bigint);
CREATE TABLE eggs (id bigint PRIMARY KEY, chicken_id bigint NOT NULL REFERENCES chickens (id));
ALTER TABLE chickens ADD FOREIGN KEY (egg_id) REFERENCES eggs (id);
"""

SAFE_ORDER = ("countries", "customers", "orders", "lines", "passports", "tags_of", "chickens", "eggs")
"""Parents before their children; chickens go without their eggs at first."""
