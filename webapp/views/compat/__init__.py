"""`{origin}/compat`: the wire of the hosted service's published clients (PyPI `datamaker-py`, npm
`@automators/datamaker`), so that programs written for them run with only address and key changed.

A translation onto the same services and nothing else: no rule, right or limit is decided here, and nothing outside of
this package knows of it but the list of blueprints and the door in `views.init_app`. What the clients send is read
from their sources; `docs/guide/coming-from-datamaker.md` says what differs.

It is a package because in one file it would be three times as long as a file here may be: `door` (who calls, and how
failures look), `words` (names and fields, both ways), then a file for each group of calls.
"""

from __future__ import annotations

from webapp.views.compat import files, people, places, sending, targets, templates, unknown
from webapp.views.compat.door import Door, bp

__all__ = ["Door", "bp", "files", "people", "places", "sending", "targets", "templates", "unknown"]
