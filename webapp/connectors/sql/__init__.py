"""What all SQL databases share: quoting, values, statements, sessions of the servers."""
