"""Routes of exports."""
