"""Shared by all SQL databases: quoting, values, statements, server sessions."""
