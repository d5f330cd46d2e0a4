"""The version of the package, as the User-Agent tells it."""

__version__ = "0.1.0"
