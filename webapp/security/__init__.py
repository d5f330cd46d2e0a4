"""Keys, passwords, sealing, origins: small tools without a database or a request."""
