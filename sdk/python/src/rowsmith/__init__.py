"""Client for Rowsmith: test data from one template.

Scenarios use `Client`. Other programs use `Api`, which covers the whole REST API. `Template` and the classes
of `rowsmith.fields` define templates. `rowsmith.error` contains the exceptions.
"""

from __future__ import annotations

from rowsmith import error, fields
from rowsmith._version import __version__
from rowsmith.api import Api
from rowsmith.client import Client, ConnectionType
from rowsmith.error import ServiceError
from rowsmith.fields import AIField, CustomField, NumberField
from rowsmith.follow import Follower, LogLine
from rowsmith.pages import Pages
from rowsmith.streams import ByteStream, RowStream
from rowsmith.template import Field, Template

__all__ = [
    "AIField",
    "Api",
    "ByteStream",
    "Client",
    "ConnectionType",
    "CustomField",
    "Field",
    "Follower",
    "LogLine",
    "NumberField",
    "Pages",
    "RowStream",
    "ServiceError",
    "Template",
    "__version__",
    "error",
    "fields",
]
