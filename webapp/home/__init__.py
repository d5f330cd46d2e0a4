"""The home page, and the search over everything."""
