"""Backup, restore and upgrades of the database. Used by the command line only."""
