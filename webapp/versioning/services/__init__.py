"""Versions, deletion and storage of versioned objects."""
