"""The REST API: one class per kind of object."""
