"""Services of exports: create them, split them into parts, enforce the quota, create answer keys."""
