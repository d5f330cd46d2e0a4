"""SQLite files of a workspace."""
