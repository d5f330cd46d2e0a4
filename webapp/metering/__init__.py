"""Counts of requests and rows by the hour, and warnings when a limit is nearly used up."""
