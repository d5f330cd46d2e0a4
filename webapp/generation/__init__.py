"""Generate and preview rows."""
