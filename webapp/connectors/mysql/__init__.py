"""MySQL and MariaDB through PyMySQL."""
