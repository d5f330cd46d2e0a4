"""Db2 through ibm_db."""
