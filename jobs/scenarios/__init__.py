"""Scenario runs."""
