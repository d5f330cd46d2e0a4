"""The version of the package, which is also part of the User-Agent."""

__version__ = "0.1.0"
