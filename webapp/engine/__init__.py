"""The engine: templates in, rows out. Pure: it opens nothing, asks no clock, and knows neither web nor database."""
