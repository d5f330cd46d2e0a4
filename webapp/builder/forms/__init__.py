"""Forms of the builder."""
