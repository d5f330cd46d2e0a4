"""Background work: its state in the database, the queue, and deletion in batches."""
