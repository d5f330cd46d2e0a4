"""Spark registers the `DefaultSource` of every module whose name starts with `pyspark_`, so no registration
is needed."""

from rowsmith_spark import RowsmithSource as DefaultSource

__all__ = ["DefaultSource"]
