"""JSON Schema of any draft, and that of OpenAPI: which values are valid, and how valid values can be generated."""
