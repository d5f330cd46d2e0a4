"""Rows and values read from files, databases and APIs for templates."""
