"""Mail: what is on its way, and when a person wants it."""
