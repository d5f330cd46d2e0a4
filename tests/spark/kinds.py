"""Fields whose columns have every type that rows can have."""

EVERY = [
    {"name": "id", "type": "row_number"},
    {"name": "name", "type": "name", "percent_blank": 10},
    {"name": "email", "type": "email", "unique": True},
    {"name": "amount", "type": "number", "options": {"min": 0, "max": 1000, "decimals": 2}},
    {"name": "share", "type": "custom", "options": {"values": [0.1, 2.5e-300, 1e300]}},
    {"name": "paid", "type": "boolean", "percent_blank": 20},
    {"name": "day", "type": "date"},
    {"name": "moment", "type": "datetime", "options": {"min": "-30d", "max": "now"}},
    {"name": "hour", "type": "time", "percent_blank": 10},
    {
        "name": "address",
        "type": "nested",
        "options": {"fields": [{"name": "city", "type": "city"}, {"name": "since", "type": "time"}]},
    },
    {
        "name": "lines",
        "type": "nested",
        "percent_blank": 10,
        "options": {
            "array": True,
            "count": {"min": 0, "max": 3},
            "fields": [{"name": "sku", "type": "uuid"}, {"name": "at", "type": "time"}],
        },
    },
]
SPARK = {
    "id": "bigint",
    "name": "string",
    "email": "string",
    "amount": "decimal(38,2)",
    "share": "double",
    "paid": "boolean",
    "day": "date",
    "moment": "timestamp",
    "hour": "string",
    "address": "struct<city:string,since:string>",
    "lines": "array<struct<sku:string,at:string>>",
}
"""What each of them is in Spark."""
LEAN = [
    {"name": "id", "type": "row_number"},
    {"name": "name", "type": "name", "percent_blank": 5},
    {"name": "email", "type": "email"},
    {"name": "amount", "type": "number", "options": {"min": 0, "max": 1000, "decimals": 2}},
    {"name": "day", "type": "date", "options": {"min": "2016-01-01", "max": "2025-12-31"}},
    {"name": "moment", "type": "datetime", "options": {"min": "-30d", "max": "now"}},
    {"name": "key", "type": "uuid"},
    {"name": "place", "type": "nested", "options": {"fields": [{"name": "city", "type": "city"}]}},
]
"""Few fields, for very many rows."""
