"""Health checks, metrics, and the log of the processes without secrets."""
