"""The engine: templates in, rows out. It has no side effects: no files, no clock, and no access to web or database
code."""
