"""Real data."""
