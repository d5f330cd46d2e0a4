"""Keeping an installation: backups, their restoration, and bringing a database to another release."""
