"""The template that the benchmarks of the engine and the server use."""

FIELDS = [
    {"name": "id", "type": "row_number"},
    {"name": "name", "type": "name"},
    {"name": "email", "type": "email"},
    {"name": "street", "type": "street_address"},
    {"name": "city", "type": "city"},
    {"name": "country", "type": "country"},
    {"name": "phone", "type": "phone_number"},
    {"name": "quantity", "type": "number", "options": {"min": 0, "max": 1000}},
    {"name": "amount", "type": "number", "options": {"min": 0, "max": 1000, "decimals": 2}},
    {"name": "day", "type": "date", "options": {"min": "2016-01-01", "max": "2025-12-31"}},
    {"name": "key", "type": "uuid"},
]
