"""What a column becomes follows from its name beside its table's: cases as sample schemas and products have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from webapp.connectors.shape import Column, Entity
from webapp.services import inference, plans
from webapp.services.inferred_words import singular, split

# Table, its other columns, column, characters it takes (None: any; "u": unique), what it should become.
CASES = """
# Northwind
Categories          | CategoryID Description Picture             | CategoryName     | 15  | product_category
Customers           | CustomerID ContactName Phone               | CompanyName      | 40  | company_name
Customers           | CustomerID CompanyName Phone               | ContactName      | 30  | name
Customers           | CustomerID CompanyName ContactName         | ContactTitle     | 30  | job_title
Customers           | CompanyName                                | Region           | 15  | state
Customers           | CompanyName                                | PostalCode       | 10  | zip_code
Customers           | CompanyName                                | Fax              | 24  | phone_number
Employees           | FirstName LastName TitleOfCourtesy         | Title            | 30  | job_title
Employees           | FirstName LastName Title                   | TitleOfCourtesy  | 25  | title
Employees           | FirstName Title                            | LastName         | 20  | last_name
Suppliers           | ContactName Phone                          | CompanyName      | 40  | company_name
Suppliers           | ContactName Phone                          | HomePage         | None | url
Products            | ProductID UnitPrice                        | ProductName      | 40  | product_name
Shippers            | ShipperID Phone                            | CompanyName      | 40  | company_name
Region              | RegionID                                   | RegionDescription | 50 | state
Territories         | RegionID                                   | TerritoryDescription | 50 | state
Orders              | OrderID ShipVia                            | ShipName         | 40  | name
Orders              | OrderID ShipVia                            | ShipCity         | 15  | city
Orders              | OrderID ShipVia                            | ShipCountry      | 15  | country
# Sakila
actor               | last_name last_update                      | first_name       | 45  | first_name
city                | city_id country_id                         | city             | 50  | city
country             | country_id last_update                     | country          | 50  | country
language            | language_id                                | name             | 20  | language
category            | category_id                                | name             | 25  | product_category
film                | description release_year                   | title            | 255 | words
film                | title release_year                         | description      | None | sentences
address             | address2 phone                             | district         | 20  | state
staff               | first_name last_name                       | username         | 16  | username
# Chinook
Artist              | ArtistId                                   | Name             | 120 | name
Album               | ArtistId                                   | Title            | 160 | words
Track               | AlbumId Composer Bytes                     | Name             | 200 | words
Track               | AlbumId Name Bytes                         | Composer         | 220 | name
Playlist            | PlaylistId                                 | Name             | 120 | words
Employee            | FirstName LastName HireDate                | Title            | 30  | job_title
Customer            | FirstName LastName Email                   | Company          | 80  | company_name
Invoice             | InvoiceDate Total                          | BillingCity      | 40  | city
Invoice             | InvoiceDate Total                          | BillingCountry   | 40  | country
# HR
jobs                | min_salary max_salary                      | job_title        | 35  | job_title
departments         | manager_id location_id                     | department_name  | 30  | department
DEPT                | DEPTNO LOC                                 | DNAME            | 14  | department
dept                | deptno dname                               | loc              | 13  | city
emp                 | empno mgr hiredate sal                     | ename            | 10  | name
countries           | region_id                                  | country_name     | 60  | country
countries           | country_name region_id                     | country_id       | 2u  | country_code
regions             | region_id                                  | region_name      | 25  | state
locations           | street_address country_id                  | state_province   | 25  | state
locations           | city country_id                            | street_address   | 40  | street_address
depts               | id                                         | title            | 80  | department
departments         | id                                         | name             | 40u | department
departments         | id code                                    | title            | None | department
divisions           | id                                         | name             | 60  | department
roles               | id                                         | name             | 50  | job_title
jobs                | id salary                                  | title            | 100 | job_title
positions           | id department_id                           | name             | 100 | job_title
job_titles          | id                                         | name             | 100 | job_title
users               | id email                                   | job_title        | 100 | job_title
# WordPress
wp_users            | user_email user_pass                       | user_login       | 60  | username
wp_users            | user_email user_pass                       | user_nicename    | 50  | username
wp_users            | user_login user_pass                       | user_email       | 100 | email
wp_users            | user_login user_email                      | user_pass        | 255 | password
wp_users            | user_login user_email                      | display_name     | 250 | name
wp_posts            | post_author post_date                      | post_title       | None | words
wp_posts            | post_author post_title                     | post_excerpt     | None | sentences
wp_posts            | post_author post_title                     | post_content     | None | paragraphs
wp_terms            | term_id slug                               | name             | 200 | words
wp_options          | option_value autoload                      | option_name      | 191 | words
wp_comments         | comment_content comment_date               | comment_author   | None | name
wp_comments         | comment_content comment_date               | comment_author_email | 100 | email
wp_links            | link_url                                   | link_name        | 255 | words
# Shops
products            | vendor price sku                           | title            | 255 | product_name
products            | sku price                                  | name             | 120u | product_name
products            | title price sku                            | vendor           | 255 | company_name
products            | title price sku                            | product_type     | 255 | product_category
products            | name sku price                             | brand            | 100 | company_name
products            | name price                                 | category         | 100 | product_category
products            | name price                                 | code             | 20  | sku
order_items         | order_id quantity                          | product_name     | 255 | product_name
orders              | total status                               | customer_name    | 255 | name
orders              | total status                               | currency_code    | 3   | currency_code
product_categories  | id slug                                    | name             | 80  | product_category
tbl_products        | id price                                   | name             | 80  | product_name
product_translations | product_id locale                         | name             | 255 | product_name
manufacturers       | id country                                 | name             | 255 | company_name
stores              | id address phone                           | name             | 100 | company_name
warehouses          | id capacity                                | name             | 100 | city
suppliers           | id email phone                             | name             | 100 | company_name
customers           | id email                                   | name             | 100 | name
customers           | first_name last_name                       | title            | 10  | title
colors              | id                                         | name             | 40  | color
# Places and standards
countries           | id                                         | name             | 100u | country
countries           | id name                                    | code             | 2u  | country_code
countries           | id name                                    | iso3             | 3   | country_code
countries           | id name                                    | iso_code         | 2   | country_code
country_codes       | id                                         | country          | 80  | country
cities              | country_id population                      | name             | 100 | city
cities              | name population                            | country_code     | 2   | country_code
states              | country_id                                 | name             | 100 | state
states              | country_id name                            | code             | 3   | state_abbr
provinces           | country_id                                 | name             | 100 | state
currencies          | symbol name                                | code             | 3u  | currency_code
currencies          | symbol code                                | name             | 60  | currency_name
currencies          | name code                                  | symbol           | 5   | currency_symbol
languages           | code                                       | name             | 60  | language
languages           | name                                       | code             | 5   | language
time_zones          | utc_offset                                 | name             | 64  | time_zone
continents          | code                                       | name             | 60  | continent
nationalities       | id                                         | name             | 60  | nationality
genders             | id                                         | name             | 20  | gender
airports            | iata_code                                  | name             | 120 | city
# Books, schools, clinics, work
books               | isbn author published_on                   | title            | 200 | words
books               | isbn title                                 | author           | 100 | name
books               | isbn title                                 | publisher        | 100 | company_name
books               | title author                               | isbn             | 20  | isbn
authors             | birth_date                                 | name             | 100 | name
publishers          | website                                    | name             | 100 | company_name
courses             | credits teacher_id                         | title            | 120 | words
courses             | credits teacher_id                         | name             | 120 | words
students            | enrolled_on                                | full_name        | 120 | name
patients            | birth_date gender                          | name             | 120 | name
patients            | first_name last_name                       | title            | 8   | title
doctors             | specialty                                  | name             | 120 | name
projects            | starts_on budget                           | name             | 120 | words
tasks               | project_id due_on                          | title            | 200 | words
tickets             | priority assignee                          | subject          | 200 | words
events              | starts_at venue                            | name             | 200 | words
blog_posts          | body author_id                             | title            | 200 | words
articles            | body author_id                             | title            | 200 | words
movies              | year director                              | title            | 200 | words
movies              | year title                                 | director         | 100 | name
songs               | length artist                              | title            | 200 | words
teams               | league                                     | name             | 100 | words
tags                | slug                                       | name             | 50  | words
permissions         | id                                         | name             | 100 | words
settings            | value                                      | name             | 100 | words
companies           | website                                    | name             | 200 | company_name
companies           | website                                    | title            | 200 | company_name
organizations       | id                                         | name             | 200 | company_name
contacts            | email phone company                        | title            | 80  | job_title
employees           | hire_date                                  | name             | 80  | name
barbers             | id                                         | name             | 80  | name
widgets             | id                                         | name             | 80  | words
things              | first_name last_name                       | title            | 20  | title
titles              | emp_no from_date                           | title            | 50  | job_title
titles              | pub_id price                               | title            | 80  | words
book_titles         | isbn                                       | name             | 80  | words
exports             | format                                     | name             | 80  | words
estates             | area                                       | name             | 80  | words
profiles            | email                                      | name             | 80  | name
servers             | ip                                         | host             | 80  | words
boarding            | flight                                     | boarding_pass    | 80  | words
productcategories   | id                                         | name             | 80  | product_category
files               | size                                       | name             | 255 | file_name
"""


def cases() -> list[Any]:
    found = []
    for line in CASES.strip().splitlines():
        if line.startswith("#"):
            continue
        table, beside, column, length, wanted = (part.strip() for part in line.split("|"))
        found.append(pytest.param(table, beside.split(), column, length, wanted, id=f"{table}.{column}"))
    return found


def became(
    table: str, beside: Sequence[str], name: str, length: str, values: Sequence[Any] = (), rows: int = 10
) -> Any:
    """The field that a text column of a table becomes."""
    unique = length.endswith("u")
    size = None if length == "None" else int(length.removesuffix("u"))
    column = Column(name, "text", "text", max_length=size, unique=unique)
    entity = Entity(table, (table,), (*(Column(one, "text", "text") for one in beside), column))
    sample = pa.RecordBatch.from_pydict({name: pa.array(list(values))}) if values else None
    return inference.columns(entity, sample, plans.vocabulary(), rows)[-1]


@pytest.mark.parametrize(("table", "beside", "column", "length", "wanted"), cases())
def test_a_column_becomes_what_its_table_says_it_holds(app, table, beside, column, length, wanted):
    with app.app_context():
        assert became(table, beside, column, length).field["type"] == wanted


def test_a_sample_tells_forms_of_address_from_jobs_and_log_in_names_from_names(app):
    with app.app_context():
        mr = ["Mr.", "Ms.", "Mr.", "Dr."]
        assert became("employees", ["hire_date"], "title", "30", mr).field["type"] == "title"
        jobs = ["Clerk", "Sales Manager", "President", "Clerk"]
        assert became("customers", ["first_name"], "title", "30", jobs).field["type"] == "job_title"
        assert became("users", ["email"], "name", "30", ["ann.lee", "bob7"]).field["type"] == "username"
        three = became("countries", ["name"], "code", "10", ["DEU", "FRA", "ITA"]).field
        assert (three["type"], three["options"]) == ("country_code", {"format": "alpha3"})
        own = [f"C-{n:03}" for n in range(20)]
        assert became("countries", ["name"], "code", "10", own).field["type"] == "regexp"


def test_words_that_sort_rows_into_kinds_are_taken_from_the_sample(app):
    with app.app_context():
        for table, column in (("products", "category"), ("users", "role")):
            made = became(table, ["email"], column, "30", ["green", "red"] * 20).field
            assert (made["type"], made["options"]) == ("enum", {"values": ["green", "red"]})
        jobs = became("employees", ["hire_date"], "job_title", "60", ["Clerk", "Smith"] * 20).field
        assert jobs["type"] == "job_title"


def test_a_unique_name_of_which_there_are_too_few_becomes_words_and_few_are_told(app):
    with app.app_context():
        few = became("departments", ["id"], "name", "60u", rows=10)
        assert (few.field["type"], few.field["unique"], few.state) == ("department", True, "yellow")
        many = became("departments", ["id"], "name", "80u", rows=500)
        assert (many.field["type"], many.field["unique"]) == ("words", True)
        codes = became("currencies", ["name"], "code", "3u", rows=500)
        assert codes.field["type"] == "regexp"


def test_a_title_of_a_work_is_cut_to_its_column(app):
    with app.app_context():
        made = became("books", ["isbn"], "title", "20").field
        assert (made["type"], made["formula"]) == ("words", "left(this, 20)")
        assert became("books", ["isbn"], "title", "200").field["text_case"] == "title"


@pytest.mark.parametrize(
    ("plural", "one"),
    [("countries", "country"), ("addresses", "address"), ("movies", "movie"), ("boxes", "box"), ("people", "person"),
     ("status", "status"), ("courses", "course"), ("classes", "class"), ("analysis", "analysis"), ("news", "news")],
)  # fmt: skip
def test_nouns_are_put_into_the_singular(plural, one):
    assert singular(plural) == one


def test_names_are_split_as_people_write_them():
    assert split("OrderItems") == split("ORDER_ITEMS") == split("order-items") == ["order", "items"]
    assert split("customerID") == ["customer", "id"]
    assert split("dept_name") == ["department", "name"]
