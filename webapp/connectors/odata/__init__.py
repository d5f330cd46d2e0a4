"""OData V2 and V4 services."""
