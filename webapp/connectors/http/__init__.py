"""Shared by all connections over HTTP: authentication, tokens, TLS, retries, request templates."""
