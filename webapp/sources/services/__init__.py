"""Read rows and values of sources, and store them."""
