"""Routes of templates and of the builder."""
