"""MongoDB through pymongo."""
