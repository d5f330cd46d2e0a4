"""HTTP with the standard library only: connections, bodies, responses, retries, events."""
