"""Every number of this package, with its reason."""

from __future__ import annotations

from typing import Final

MAX_ROWS: Final = 50
"""Rows of a result: a model reads rows to judge them, and what is wrong shows in fewer."""
MAX_RESULT_BYTES: Final = 32_000
"""A whole result on the wire, its text and its structured form together: larger ones crowd out a conversation."""
MAX_TEXT_BYTES: Final = 12_000
"""A piece of a file, a log or a program: it stands in a result twice, escaped in its text form."""
MAX_WRITTEN_BYTES: Final = 64 * 1024
"""A file that an agent writes. What is larger is made by a template or a scenario, not typed by a model."""
PAGE: Final = 20
"""Objects of a list, where the caller does not say."""
MAX_PAGE: Final = 50
"""Objects of a list, at most."""
LOG_LINES: Final = 50
"""Last lines of a log, where the caller does not say."""
MAX_LOG_LINES: Final = 200
"""Last lines of a log, at most."""
MAX_FAULTS: Final = 50
"""Faults of a refusal that are told one by one."""
PLAN_SECONDS: Final = 600.0
"""How long a planned push may be carried out: as long as it takes a person to read the plan and agree."""
PLANS_OF_ONE: Final = 20
"""Plans that are kept for one key; an older one gives way."""
PLANS_OF_ALL: Final = 1000
"""Plans that are kept in all; a plan is a few kB."""
CALL_SECONDS: Final = 60.0
"""How long the service may be silent."""
TOTAL_SECONDS: Final = 110.0
"""A call with all its attempts: clients give up after about two minutes."""
RETRIES: Final = 2
"""Further attempts of a call: an agent can repeat by itself, and waits badly."""
LONGEST_WAIT_SECONDS: Final = 5.0
"""The longest wait before a further attempt; what asks for more is told to the agent."""
MAX_BODY_BYTES: Final = 1024 * 1024
"""A request over HTTP: the largest thing in one is a template or a program."""
PORT: Final = 8765
"""Where HTTP is served, if nothing else is said."""
