"""Addresses, and the one place where an HTTP session is made."""
