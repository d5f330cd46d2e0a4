"""Pushes."""
