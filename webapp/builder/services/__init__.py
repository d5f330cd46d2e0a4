"""Comparison of versions."""
