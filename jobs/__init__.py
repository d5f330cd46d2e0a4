"""Background processes: workers, the sweeper, and the work they do. They call services, never views."""
