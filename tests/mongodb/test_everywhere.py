"""The tests of all kinds of connections, over this server."""

from __future__ import annotations

from tests.connectors.test_commits_everywhere import *  # noqa: F403  # every test of it
from tests.connectors.test_metadata_everywhere import *  # noqa: F403
from tests.connectors.test_rows_everywhere import *  # noqa: F403
