"""Templates from files and schemas: one reader for each format, one inference for all (`services.inference`)."""
