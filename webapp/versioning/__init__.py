"""Objects of which every change is a version, and what they have in common."""
