"""Rows of a template as a Spark DataFrame: `spark.read.format("rowsmith").option("template",
"tpl_...").load()`."""

from rowsmith_spark._version import __version__
from rowsmith_spark.source import RowsmithSource

__all__ = ["RowsmithSource", "__version__"]
