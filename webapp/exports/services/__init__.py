"""What exports do: create, divide into parts, keep within the quota, answer keys."""
