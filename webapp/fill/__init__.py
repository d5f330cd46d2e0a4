"""Filling a database in one action: templates from its tables, a dataset of them, and a push of that dataset."""
