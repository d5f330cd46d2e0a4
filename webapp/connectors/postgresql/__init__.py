"""PostgreSQL through psycopg."""
