"""Spark registers the `DefaultSource` of every module whose name begins with `pyspark_`, so that nobody has to."""

from rowsmith_spark import RowsmithSource as DefaultSource

__all__ = ["DefaultSource"]
