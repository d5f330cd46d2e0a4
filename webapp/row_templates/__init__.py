"""Row templates."""
