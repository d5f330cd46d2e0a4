"""Activity: the exports, pushes and runs of a project in one list, and what runs now on every page."""
