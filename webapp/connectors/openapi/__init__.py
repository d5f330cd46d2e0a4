"""APIs described by an OpenAPI document."""
