"""The REST API, a class for each kind of object."""
