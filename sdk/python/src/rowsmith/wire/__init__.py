"""HTTP as the service speaks it, on the standard library alone: connections, bodies, answers, retries, events."""
