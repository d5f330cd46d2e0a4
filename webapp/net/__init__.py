"""Network addresses, and the only place that creates HTTP sessions."""
