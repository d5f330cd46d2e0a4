"""Starters: sets of related tables that a newcomer opens, changes and fills."""
