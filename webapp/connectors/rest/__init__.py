"""REST APIs."""
