"""Schedules: exports, pushes and scenario runs that start by themselves."""
