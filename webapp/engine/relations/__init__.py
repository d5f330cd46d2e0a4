"""Relations between templates: numbers of children, choice of parents, totals, unique combinations."""

RELATION = "parent"
"""The kind of the groups of `reference` fields: the fields of a group show the same row of another template."""

EXISTING = "existing"
"""The kind of the groups of `foreign_key` fields: the fields of a group show the same row of an existing table."""

PARENT = "parent."
"""The prefix by which a field of a child reads a field of its parent."""
