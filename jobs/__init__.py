"""Processes beside the web server: workers, the sweeper, and the work they do. They call services, never views."""
