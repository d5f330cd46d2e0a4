"""E-mails: the outbox, and users' notification settings."""
