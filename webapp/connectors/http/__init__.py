"""What all connections over HTTP share: authentication, tokens, TLS, retries, request templates."""
